#include "cli/draft/read/constants.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"

namespace pawl {
namespace {

using Kind = CppExpression::Kind;

std::optional<int64_t> Combined(const std::string& op, int64_t a, int64_t b) {
  if ((op == "/" || op == "%") && b == 0) return std::nullopt;
  if ((op == "<<" || op == ">>") && (b < 0 || b > 62)) return std::nullopt;
  int64_t result = 0;
  if (op == "+") return __builtin_add_overflow(a, b, &result) ? std::nullopt : std::optional(result);
  if (op == "-") return __builtin_sub_overflow(a, b, &result) ? std::nullopt : std::optional(result);
  if (op == "*") return __builtin_mul_overflow(a, b, &result) ? std::nullopt : std::optional(result);
  if (op == "/") return b == -1 ? std::nullopt : std::optional(a / b);
  if (op == "%") return b == -1 ? 0 : a % b;
  if (op == "<<") return static_cast<int64_t>(static_cast<uint64_t>(a) << b);
  if (op == ">>") return a >> b;
  if (op == "&") return a & b;
  if (op == "|") return a | b;
  if (op == "^") return a ^ b;
  if (op == "==") return a == b;
  if (op == "!=") return a != b;
  if (op == "<") return a < b;
  if (op == ">") return a > b;
  if (op == "<=") return a <= b;
  if (op == ">=") return a >= b;
  if (op == "&&") return a != 0 && b != 0;
  if (op == "||") return a != 0 || b != 0;
  return std::nullopt;
}

std::optional<int64_t> SizeOfType(const std::string& type) {
  static const auto& sizes = *new std::map<std::string, int64_t, std::less<>>{
      {"char", 1},      {"bool", 1},          {"uint8_t", 1},  {"int8_t", 1},   {"short", 2},        {"half", 2},
      {"__half", 2},    {"__nv_bfloat16", 2}, {"int", 4},      {"unsigned", 4}, {"unsigned int", 4}, {"float", 4},
      {"int32_t", 4},   {"uint32_t", 4},      {"half2", 4},    {"__half2", 4},  {"double", 8},       {"long", 8},
      {"long long", 8}, {"int64_t", 8},       {"uint64_t", 8}, {"size_t", 8},   {"float2", 8},       {"int2", 8},
      {"float4", 16},   {"int4", 16},         {"uint4", 16},   {"double2", 16}};
  const auto found = sizes.find(type);
  return found == sizes.end() ? std::nullopt : std::optional(found->second);
}

std::vector<CppToken> Copy(const std::vector<CppToken>& tokens, size_t begin, size_t end) {
  return {tokens.begin() + static_cast<std::ptrdiff_t>(begin), tokens.begin() + static_cast<std::ptrdiff_t>(end)};
}

void AddConstant(SourceConstant constant, const std::vector<CppToken>& value, SourceModel& model) {
  const std::optional<CppExpression> expression = ParseCppExpression(value, 0, value.size());
  if (!expression) return;
  const std::optional<int64_t> number = ConstantValue(*expression, ConstantValues(model));
  if (!number) return;
  constant.value = *number;
  constant.literal = value.size() == 1;
  constant.value_text = TokensText(value, 0, value.size());
  constant.expression = *expression;
  constant.is_bool = constant.is_bool || value[0].Is("true") || value[0].Is("false");
  model.constants.push_back(std::move(constant));
}

}  // namespace

std::map<std::string, int64_t> ConstantValues(const SourceModel& model) {
  std::map<std::string, int64_t> values;
  for (const SourceConstant& constant : model.constants) values.emplace(constant.name, constant.value);
  return values;
}

std::optional<int64_t> ConstantValue(const CppExpression& e, const std::map<std::string, int64_t>& names) {
  const auto part = [&](size_t i) { return ConstantValue(e.parts[i], names); };
  switch (e.kind) {
    case Kind::kNumber:
      return WholeNumber(e.text);
    case Kind::kName: {
      if (e.text == "true" || e.text == "false") return e.text == "true";
      const auto found = names.find(e.text);
      return found == names.end() ? std::nullopt : std::optional(found->second);
    }
    case Kind::kCast:
      return part(0);
    case Kind::kPrefix: {
      const std::optional<int64_t> value = part(0);
      if (!value) return std::nullopt;
      if (e.text == "-") return *value == INT64_MIN ? std::nullopt : std::optional(-*value);
      if (e.text == "+") return value;
      if (e.text == "!") return *value == 0;
      if (e.text == "~") return ~*value;
      return std::nullopt;
    }
    case Kind::kBinary: {
      const std::optional<int64_t> a = part(0), b = part(1);
      return a && b ? Combined(e.text, *a, *b) : std::nullopt;
    }
    case Kind::kConditional: {
      const std::optional<int64_t> condition = part(0);
      return condition ? part(*condition != 0 ? 1 : 2) : std::nullopt;
    }
    case Kind::kCall: {
      const std::string& name = e.parts[0].text;
      if (name == "sizeof" && e.parts.size() == 2) return SizeOfType(e.parts[1].text);
      if ((name == "std::min" || name == "min" || name == "std::max" || name == "max") && e.parts.size() == 3) {
        const std::optional<int64_t> a = part(1), b = part(2);
        if (!a || !b) return std::nullopt;
        return name.ends_with("min") ? std::min(*a, *b) : std::max(*a, *b);
      }
      return std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

void AddDefinedConstant(const std::vector<CppToken>& directive, const SourceText& file, SourceModel& model) {
  SourceConstant constant;
  constant.name = directive[2].text;
  constant.is_macro = true;
  constant.line = directive[0].line;
  constant.file = &file;
  const CppToken& value = directive[3];
  constant.before = file.text.substr(directive[0].offset, value.offset - directive[0].offset);
  AddConstant(std::move(constant), Copy(directive, 3, directive.size()), model);
}

void ReadConstants(SourceModel& model) {
  static const auto& integers = *new std::set<std::string_view>{
      "int",       "unsigned", "long",     "short",   "char",       "bool",     "auto",    "size_t", "int32_t",
      "uint32_t",  "int64_t",  "uint64_t", "uint8_t", "int8_t",     "uint16_t", "int16_t", "uint",   "const",
      "constexpr", "static",   "inline",   "signed",  "__device__", "__host__", "std",     "::",     "__constant__"};
  for (const std::unique_ptr<SourceText>& file : model.files) {
    const std::vector<CppToken>& tokens = file->tokens;
    std::vector<bool> functions;  // of each { that is open: a function's body or something in it
    for (size_t i = 0; i + 3 < tokens.size(); ++i) {
      if (tokens[i].Is("{")) {
        const bool inner = !functions.empty() && functions.back();
        functions.push_back(inner || (i > 0 && tokens[i - 1].Is(")")));
      }
      if (tokens[i].Is("}") && !functions.empty()) functions.pop_back();
      if (!tokens[i].Is("constexpr") && !tokens[i].Is("const")) continue;
      size_t begin = i;
      while (begin > 0 && integers.contains(tokens[begin - 1].text)) --begin;
      size_t name = i + 1;
      while (name + 1 < tokens.size() && integers.contains(tokens[name].text)) ++name;
      if (!tokens[name].IsWord() || !tokens[name + 1].Is("=")) continue;
      const size_t first = name;
      // constexpr int A = 1, B = 2;
      for (;;) {
        size_t end = name + 2;
        while (end < tokens.size() && !tokens[end].Is(";") && !tokens[end].Is(",")) {
          end = tokens[end].Is("(") || tokens[end].Is("{") ? ClosingBracket(tokens, end) + 1 : end + 1;
        }
        if (end >= tokens.size()) break;
        SourceConstant constant;
        constant.name = tokens[name].text;
        constant.line = tokens[name].line;
        constant.file = file.get();
        constant.local = !functions.empty() && functions.back();
        for (size_t k = begin; k < first; ++k) constant.is_bool = constant.is_bool || tokens[k].Is("bool");
        const bool alone = name == first && tokens[end].Is(";");
        const size_t from = tokens[alone ? begin : name].offset, value = tokens[name + 2].offset;
        constant.before = file->text.substr(from, value - from);
        if (alone) constant.after = ";";
        AddConstant(std::move(constant), Copy(tokens, name + 2, end), model);
        i = end;
        if (!tokens[end].Is(",") || end + 2 >= tokens.size() || !tokens[end + 1].IsWord() || !tokens[end + 2].Is("="))
          break;
        name = end + 1;
      }
    }
  }
}

}  // namespace pawl
