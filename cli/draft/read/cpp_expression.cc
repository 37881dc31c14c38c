#include "cli/draft/read/cpp_expression.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace pawl {
namespace {

using Kind = CppExpression::Kind;

constexpr int kMaxDepth = 200;  // of brackets and operators in each other

const std::map<std::string_view, int>& BinaryPrecedence() {
  static const auto& precedence = *new std::map<std::string_view, int>{
      {"||", 1}, {"&&", 2}, {"|", 3},  {"^", 4},  {"&", 5}, {"==", 6}, {"!=", 6}, {"<", 7},  {">", 7},
      {"<=", 7}, {">=", 7}, {"<<", 8}, {">>", 8}, {"+", 9}, {"-", 9},  {"*", 10}, {"/", 10}, {"%", 10}};
  return precedence;
}

bool IsTypeWord(std::string_view word) {
  static const auto& words = *new std::set<std::string_view>{
      "int",           "unsigned",       "signed",    "long",  "short",    "char",   "float",  "double",
      "bool",          "size_t",         "half",      "auto",  "void",     "float2", "float3", "float4",
      "int2",          "int4",           "uint",      "uint2", "uint4",    "half2",  "__half", "__half2",
      "__nv_bfloat16", "__nv_bfloat162", "ptrdiff_t", "const", "scalar_t", "uchar"};
  return words.contains(word) || word.ends_with("_t");
}

bool StartsOperand(const CppToken& token) {
  using TokenKind = CppToken::Kind;
  return token.kind == TokenKind::kWord || token.kind == TokenKind::kNumber || token.kind == TokenKind::kString ||
         token.Is("(") || token.Is("*") || token.Is("&") || token.Is("-") || token.Is("~") || token.Is("!");
}

class Parser {
 public:
  Parser(const std::vector<CppToken>& tokens, size_t begin, size_t end) : tokens_(tokens), at_(begin), end_(end) {}

  std::optional<CppExpression> Whole() {
    std::optional<CppExpression> expression = Assignment();
    if (!expression || at_ != end_) return std::nullopt;
    return expression;
  }

 private:
  bool Is(std::string_view text) const { return at_ < end_ && tokens_[at_].Is(text); }
  bool IsAt(size_t at, std::string_view text) const { return at < end_ && tokens_[at].Is(text); }
  bool Take(std::string_view text) {
    if (!Is(text)) return false;
    ++at_;
    return true;
  }

  CppExpression Made(Kind kind, std::string text, std::vector<CppExpression> parts) const {
    CppExpression made;
    made.kind = kind;
    made.text = std::move(text);
    made.offset = parts.empty() ? 0 : parts[0].offset;
    made.parts = std::move(parts);
    return made;
  }

  std::optional<CppExpression> Assignment() {
    struct Depth {
      explicit Depth(int& depth) : depth(depth) { ++depth; }
      ~Depth() { --depth; }
      int& depth;
    } depth(depth_);
    if (depth_ > kMaxDepth) return std::nullopt;
    if (Is(".")) return Designated();
    std::optional<CppExpression> left = Conditional();
    if (!left) return std::nullopt;
    static const auto& operators =
        *new std::set<std::string_view>{"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<="};
    std::string op;
    if (at_ < end_ && operators.contains(tokens_[at_].text)) {
      op = tokens_[at_++].text;
    } else if (Is(">") && IsAt(at_ + 1, ">=") && tokens_[at_ + 1].offset == tokens_[at_].offset + 1) {
      op = ">>=";
      at_ += 2;
    } else {
      return left;
    }
    std::optional<CppExpression> right = Assignment();
    if (!right) return std::nullopt;
    return Made(Kind::kAssign, op, {*std::move(left), *std::move(right)});
  }

  // .rows = n, .clusterDim{2, 1, 1} of a list
  std::optional<CppExpression> Designated() {
    if (!Take(".") || at_ >= end_ || !tokens_[at_].IsWord()) return std::nullopt;
    CppExpression field;
    field.offset = tokens_[at_].offset;
    field.text = "." + std::string(tokens_[at_++].text);
    if (!Take("=") && !Is("{")) return std::nullopt;
    std::optional<CppExpression> value = Assignment();
    if (!value) return std::nullopt;
    return Made(Kind::kAssign, "=", {std::move(field), *std::move(value)});
  }

  std::optional<CppExpression> Conditional() {
    std::optional<CppExpression> condition = Binary(1);
    if (!condition || !Take("?")) return condition;
    std::optional<CppExpression> yes = Assignment();
    if (!yes || !Take(":")) return std::nullopt;
    std::optional<CppExpression> no = Assignment();
    if (!no) return std::nullopt;
    return Made(Kind::kConditional, "?", {*std::move(condition), *std::move(yes), *std::move(no)});
  }

  // The binary operator here, and how many tokens it is.
  std::string_view Operator(size_t* count) const {
    *count = 1;
    if (at_ >= end_ || tokens_[at_].kind != CppToken::Kind::kPunctuation) return "";
    if (Is(">") && IsAt(at_ + 1, ">") && tokens_[at_ + 1].offset == tokens_[at_].offset + 1) {
      *count = 2;
      return ">>";
    }
    return BinaryPrecedence().contains(tokens_[at_].text) ? tokens_[at_].text : std::string_view();
  }

  std::optional<CppExpression> Binary(int least) {
    std::optional<CppExpression> left = Unary();
    if (!left) return std::nullopt;
    for (;;) {
      size_t count = 1;
      const std::string_view op = Operator(&count);
      if (op.empty() || BinaryPrecedence().at(op) < least) return left;
      if (op == ">" && IsAt(at_ + 1, ">=")) return left;  // >>=
      at_ += count;
      std::optional<CppExpression> right = Binary(BinaryPrecedence().at(op) + 1);
      if (!right) return std::nullopt;
      left = Made(Kind::kBinary, std::string(op), {*std::move(left), *std::move(right)});
    }
  }

  // Behind the ) of a cast that begins at the ( here; 0: it is none.
  size_t CastEnd() const {
    const size_t close = ClosingBracket(tokens_, at_);
    if (close + 1 >= end_ || close <= at_ + 1 || !StartsOperand(tokens_[close + 1])) return 0;
    bool type = false;
    for (size_t i = at_ + 1; i < close; ++i) {
      const CppToken& token = tokens_[i];
      if (token.IsWord()) {
        type = type || IsTypeWord(token.text);
      } else if (!token.Is("*") && !token.Is("::") && !token.Is("&") && !token.Is("<") && !token.Is(">")) {
        return 0;
      }
    }
    const bool pointer = tokens_[close - 1].Is("*");
    if (!type && !pointer) return 0;
    // (a)*b and (a)-b are products and differences unless a is a type by itself.
    const bool binary = tokens_[close + 1].Is("*") || tokens_[close + 1].Is("&") || tokens_[close + 1].Is("-");
    return binary && !type && !pointer ? 0 : close + 1;
  }

  std::optional<CppExpression> Unary() {
    if (at_ >= end_) return std::nullopt;
    static const auto& prefixes = *new std::set<std::string_view>{"!", "~", "-", "+", "*", "&", "++", "--"};
    const CppToken& token = tokens_[at_];
    if (token.kind == CppToken::Kind::kPunctuation && prefixes.contains(token.text)) {
      if (++depth_ > kMaxDepth) return std::nullopt;
      ++at_;
      std::optional<CppExpression> operand = Unary();
      --depth_;
      if (!operand) return std::nullopt;
      CppExpression made = Made(Kind::kPrefix, std::string(token.text), {*std::move(operand)});
      made.offset = token.offset;
      return made;
    }
    if (token.Is("(")) {
      if (const size_t behind = CastEnd(); behind != 0) {
        const std::string type = TokensText(tokens_, at_ + 1, behind - 1);
        at_ = behind;
        std::optional<CppExpression> operand = Unary();
        if (!operand) return std::nullopt;
        return Made(Kind::kCast, type, {*std::move(operand)});
      }
    }
    std::optional<CppExpression> operand = Primary();
    return operand ? Postfix(*std::move(operand)) : std::nullopt;
  }

  std::optional<std::vector<CppExpression>> List(std::string_view close) {
    std::vector<CppExpression> list;
    if (Take(close)) return list;
    do {
      std::optional<CppExpression> item = Assignment();
      if (!item) return std::nullopt;
      Take("...");  // f(arguments...)
      list.push_back(*std::move(item));
    } while (Take(",") && !(close == "}" && Is("}")));
    if (!Take(close)) return std::nullopt;
    return list;
  }

  std::optional<CppExpression> Name() {
    CppExpression name;
    name.kind = Kind::kName;
    name.offset = tokens_[at_].offset;
    if (Take("::")) name.text = "";
    while (at_ < end_ && tokens_[at_].IsWord()) {
      if (Is("template") && !name.text.empty()) ++at_;
      if (at_ >= end_) return std::nullopt;
      name.text += tokens_[at_++].text;
      if (Is("<")) {
        const size_t behind = SkipTemplateArguments(tokens_, at_, end_);
        static const auto& follow = *new std::set<std::string_view>{"(", "::", "<<<", "{"};
        if (behind > at_ && (behind >= end_ || follow.contains(tokens_[behind].text))) {
          name.template_arguments.clear();
          for (const auto& [from, to] : SplitAtCommas(tokens_, at_ + 1, behind - 1)) {
            name.template_arguments.push_back(TokensText(tokens_, from, to));
          }
          at_ = behind;
        }
      }
      if (!Take("::")) break;
      absl::StrAppend(&name.text, "::");
    }
    return name;
  }

  std::optional<CppExpression> Primary() {
    const CppToken& token = tokens_[at_];
    using TokenKind = CppToken::Kind;
    if (token.kind == TokenKind::kNumber || token.kind == TokenKind::kString || token.kind == TokenKind::kCharacter) {
      CppExpression literal;
      literal.kind = token.kind == TokenKind::kNumber ? Kind::kNumber : Kind::kString;
      literal.text = token.text;
      literal.offset = token.offset;
      ++at_;
      while (at_ < end_ && tokens_[at_].kind == TokenKind::kString) literal.text += tokens_[at_++].text;
      return literal;
    }
    if (token.IsWord() || token.Is("::")) {
      std::optional<CppExpression> name = Name();
      if (!name) return std::nullopt;
      const std::string& text = name->text;
      if ((text == "static_cast" || text == "reinterpret_cast" || text == "const_cast" ||
           text == "__builtin_bit_cast") &&
          name->template_arguments.size() == 1 && Take("(")) {
        std::optional<std::vector<CppExpression>> operand = List(")");
        if (!operand || operand->size() != 1) return std::nullopt;
        return Made(Kind::kCast, name->template_arguments[0], {std::move((*operand)[0])});
      }
      if (text == "sizeof") return SizeOf();
      return name;
    }
    if (token.Is("(")) {
      ++at_;
      std::optional<CppExpression> inner = Assignment();
      while (inner && Take(",")) inner = Assignment();
      if (!inner || !Take(")")) return std::nullopt;
      return inner;
    }
    if (token.Is("{")) {
      ++at_;
      std::optional<std::vector<CppExpression>> list = List("}");
      if (!list) return std::nullopt;
      return Made(Kind::kList, "{", *std::move(list));
    }
    if (token.Is("[")) return Lambda();
    return std::nullopt;
  }

  std::optional<CppExpression> SizeOf() {
    CppExpression made;
    made.kind = Kind::kCall;
    CppExpression name;
    name.kind = Kind::kName;
    name.text = "sizeof";
    CppExpression operand;
    operand.kind = Kind::kOther;
    if (Is("(")) {
      const size_t close = ClosingBracket(tokens_, at_);
      if (close >= end_) return std::nullopt;
      operand.text = TokensText(tokens_, at_ + 1, close);
      at_ = close + 1;
    }
    made.parts = {name, operand};
    return made;
  }

  std::optional<CppExpression> Lambda() {
    CppExpression made;
    made.kind = Kind::kOther;
    made.offset = tokens_[at_].offset;
    at_ = ClosingBracket(tokens_, at_) + 1;
    while (at_ < end_ && !Is("{")) at_ = Is("(") ? ClosingBracket(tokens_, at_) + 1 : at_ + 1;
    if (at_ >= end_) return std::nullopt;
    at_ = ClosingBracket(tokens_, at_) + 1;
    return at_ <= end_ ? std::optional(made) : std::nullopt;
  }

  std::optional<CppExpression> Postfix(CppExpression operand) {
    for (;;) {
      if (Take("(")) {
        std::optional<std::vector<CppExpression>> arguments = List(")");
        if (!arguments) return std::nullopt;
        std::vector<CppExpression> parts = {std::move(operand)};
        for (CppExpression& argument : *arguments) parts.push_back(std::move(argument));
        operand = Made(Kind::kCall, "(", std::move(parts));
      } else if (Take("[")) {
        std::optional<CppExpression> index = Assignment();
        if (!index || !Take("]")) return std::nullopt;
        operand = Made(Kind::kSubscript, "[", {std::move(operand), *std::move(index)});
      } else if (Is(".") || Is("->")) {
        ++at_;
        if (Is("template")) ++at_;
        if (at_ >= end_ || !tokens_[at_].IsWord()) return std::nullopt;
        std::optional<CppExpression> name = Name();
        if (!name) return std::nullopt;
        if (operand.IsName("this")) {  // this->rows is rows
          operand = *std::move(name);
          continue;
        }
        CppExpression member = Made(Kind::kMember, name->text, {std::move(operand)});
        member.template_arguments = name->template_arguments;
        operand = std::move(member);
      } else if (Is("++") || Is("--")) {
        const std::string op(tokens_[at_++].text);
        operand = Made(Kind::kPostfix, op, {std::move(operand)});
      } else if (Is("{") && operand.kind == Kind::kName) {
        ++at_;
        std::optional<std::vector<CppExpression>> arguments = List("}");
        if (!arguments) return std::nullopt;
        std::vector<CppExpression> parts = {std::move(operand)};
        for (CppExpression& argument : *arguments) parts.push_back(std::move(argument));
        operand = Made(Kind::kCall, "(", std::move(parts));
      } else {
        return operand;
      }
    }
  }

  const std::vector<CppToken>& tokens_;
  size_t at_;
  size_t end_;
  int depth_ = 0;
};

}  // namespace

std::optional<CppExpression> ParseCppExpression(const std::vector<CppToken>& tokens, size_t begin, size_t end) {
  if (begin >= end || end > tokens.size()) return std::nullopt;
  return Parser(tokens, begin, end).Whole();
}

const CppExpression* DesignatedValue(const CppExpression& part, std::string* name) {
  const bool named = part.kind == Kind::kAssign && part.parts[0].kind == Kind::kOther && part.parts[0].text[0] == '.';
  if (!named) return nullptr;
  *name = part.parts[0].text.substr(1);
  return &part.parts[1];
}

bool Mentions(const CppExpression& e, std::string_view name) {
  return e.IsName(name) ||
         std::any_of(e.parts.begin(), e.parts.end(), [&](const CppExpression& part) { return Mentions(part, name); });
}

std::string CppText(const CppExpression& e) {
  const auto joined = [&](size_t from) {
    std::vector<std::string> texts;
    for (size_t i = from; i < e.parts.size(); ++i) texts.push_back(CppText(e.parts[i]));
    return absl::StrJoin(texts, ", ");
  };
  const auto inner = [&](size_t i) {
    const Kind kind = e.parts[i].kind;
    const bool bare = kind == Kind::kNumber || kind == Kind::kName || kind == Kind::kCall || kind == Kind::kMember ||
                      kind == Kind::kSubscript || kind == Kind::kString;
    return bare ? CppText(e.parts[i]) : absl::StrCat("(", CppText(e.parts[i]), ")");
  };
  switch (e.kind) {
    case Kind::kNumber:
    case Kind::kString:
      return e.text;
    case Kind::kName:
      return e.template_arguments.empty() ? e.text
                                          : absl::StrCat(e.text, "<", absl::StrJoin(e.template_arguments, ", "), ">");
    case Kind::kMember:
      return absl::StrCat(inner(0), ".", e.text);
    case Kind::kCall:
      return absl::StrCat(inner(0), "(", joined(1), ")");
    case Kind::kSubscript:
      return absl::StrCat(inner(0), "[", CppText(e.parts[1]), "]");
    case Kind::kPrefix:
      return absl::StrCat(e.text, inner(0));
    case Kind::kPostfix:
      return absl::StrCat(inner(0), e.text);
    case Kind::kBinary:
    case Kind::kAssign:
      return absl::StrCat(inner(0), " ", e.text, " ", inner(1));
    case Kind::kConditional:
      return absl::StrCat(inner(0), " ? ", inner(1), " : ", inner(2));
    case Kind::kCast:
      return absl::StrCat("(", e.text, ")", inner(0));
    case Kind::kList:
      return absl::StrCat("{", joined(0), "}");
    case Kind::kOther:
      return e.text.empty() ? "..." : e.text;
  }
  return "";
}

std::string TokensText(const std::vector<CppToken>& tokens, size_t begin, size_t end) {
  std::string text;
  for (size_t i = begin; i < end && i < tokens.size(); ++i) {
    const bool words = i > begin && (tokens[i].kind != CppToken::Kind::kPunctuation) &&
                       tokens[i - 1].kind != CppToken::Kind::kPunctuation;
    const bool comma = i > begin && tokens[i - 1].Is(",");
    if (words || comma) text += ' ';
    text += tokens[i].text;
  }
  return text;
}

std::vector<std::pair<size_t, size_t>> SplitAtCommas(const std::vector<CppToken>& tokens, size_t begin, size_t end) {
  std::vector<std::pair<size_t, size_t>> ranges;
  size_t from = begin;
  for (size_t i = begin; i < end; ++i) {
    if (tokens[i].Is("(") || tokens[i].Is("[") || tokens[i].Is("{")) {
      i = std::min(ClosingBracket(tokens, i), end);
    } else if (tokens[i].Is("<") && i > begin && tokens[i - 1].IsWord()) {
      const size_t behind = SkipTemplateArguments(tokens, i, end);
      if (behind > i) i = behind - 1;
    } else if (tokens[i].Is(",")) {
      ranges.push_back({from, i});
      from = i + 1;
    }
  }
  if (from < end || !ranges.empty()) ranges.push_back({from, end});
  return ranges;
}

size_t SkipTemplateArguments(const std::vector<CppToken>& tokens, size_t open, size_t end) {
  int depth = 0;
  for (size_t i = open; i < end; ++i) {
    const CppToken& token = tokens[i];
    if (token.Is("<")) {
      ++depth;
    } else if (token.Is(">")) {
      if (--depth == 0) return i + 1;
    } else if (token.Is("(") || token.Is("[")) {
      i = ClosingBracket(tokens, i);
    } else if (token.Is(";") || token.Is("{") || token.Is("}") || token.Is("&&") || token.Is("||") || token.Is("=") ||
               token.Is("?") || token.Is("<<<") || token.Is("+=") || token.Is(")")) {
      return open;
    }
  }
  return open;
}

std::optional<int64_t> WholeNumber(std::string_view text) {
  std::string digits;
  for (const char c : text) {
    if (c != '\'') digits += absl::ascii_tolower(static_cast<unsigned char>(c));
  }
  const bool hex = absl::StartsWith(digits, "0x");
  while (!digits.empty() && (digits.back() == 'u' || digits.back() == 'l')) digits.pop_back();
  int64_t value = 0;
  if (hex) {
    uint64_t bits = 0;
    if (!absl::SimpleHexAtoi(digits, &bits)) return std::nullopt;
    return static_cast<int64_t>(bits);
  }
  return absl::SimpleAtoi(digits, &value) ? std::optional(value) : std::nullopt;
}

}  // namespace pawl
