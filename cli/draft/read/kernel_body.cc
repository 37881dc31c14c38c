#include "cli/draft/read/kernel_body.h"

#include <algorithm>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cli/draft/read/constants.h"
#include "cli/draft/read/cpp_statement.h"
#include "cli/draft/read/element_type.h"

namespace pawl {
namespace {

using Kind = CppExpression::Kind;

constexpr int kMaxCalls = 6;  // of device functions in each other

CppExpression NumberOf(int64_t value) {
  CppExpression number;
  number.kind = Kind::kNumber;
  number.text = absl::StrCat(value);
  return number;
}

CppExpression BinaryOf(const std::string& op, CppExpression a, CppExpression b) {
  CppExpression binary;
  binary.kind = Kind::kBinary;
  binary.text = op;
  binary.parts = {std::move(a), std::move(b)};
  return binary;
}

// Elements of a pointer's own type that one of the cast type is: 4 for float* cast to float4*.
int64_t Widening(const std::string& type) {
  for (const char* word : {"float4", "int4", "uint4", "Vec4", "vec4"}) {
    if (absl::StrContains(type, word)) return 4;
  }
  for (const char* word : {"float2", "int2", "uint2", "half2", "bfloat162", "double2"}) {
    if (absl::StrContains(type, word)) return 2;
  }
  return 1;
}

// An expression that points into a parameter's memory.
struct Pointer {
  std::string parameter;
  CppExpression offset;
  CppExpression scale = NumberOf(1);  // elements of the parameter that one step of the pointer is
  bool element = false;               // a reference to an element, not a pointer
};

class BodyReader {
 public:
  // What the names of one block stand for.
  using Scope = std::map<std::string, CppExpression>;

  BodyReader(const SourceModel& model, KernelBody& body) : model_(model), body_(body) {}

  void ReadKernel(const SourceFunction& kernel) {
    std::map<std::string, Pointer> pointers;
    const auto add = [&](const std::string& name, const SourceType& type) {
      pointers[name] = {name, NumberOf(0), NumberOf(1), false};
      // params.rows[0] is also params.rows[i].
      if (absl::EndsWith(name, "]")) {
        const std::string any = absl::StrCat(name.substr(0, name.rfind('[')), "[*]");
        pointers[any] = {any, NumberOf(0), NumberOf(1), false};
        element_of_[any] = type.element;
      }
      element_of_[name] = type.element;
      body_.pointers[name];
    };
    for (const SourceParameter& parameter : kernel.parameters) {
      declared_[parameter.name] = 1;
      if (parameter.type.pointers > 0) add(parameter.name, parameter.type);
      for (const SourceParameter& field : parameter.fields) {
        if (field.type.pointers > 0) add(absl::StrCat(parameter.name, ".", field.name), field.type);
      }
    }
    Read(kernel, std::move(pointers), {}, 0);
  }

 private:
  // `names` are the function's parameters as the body of the kernel has them.
  void Read(const SourceFunction& function, std::map<std::string, Pointer> pointers, Scope names, int calls) {
    const std::map<std::string, Pointer> outer = std::exchange(pointers_, std::move(pointers));
    const std::vector<Scope> outer_scopes = std::exchange(scopes_, {std::move(names)});
    const int outer_calls = std::exchange(calls_, calls);
    const size_t close = ClosingBracket(function.file->tokens, function.body);
    for (size_t i = function.body; i < close; ++i) {
      const CppToken& token = function.file->tokens[i];
      if (token.IsWord()) body_.words.emplace(token.text);
      if (token.kind == CppToken::Kind::kNumber) body_.numbers.emplace_back(token.text);
    }
    for (const CppStatement& statement : ParseCppBody(function.file->tokens, function.body)) Visit(statement);
    pointers_ = outer;
    scopes_ = outer_scopes;
    calls_ = outer_calls;
  }

  // A name that no other variable of the kernel has: the second `c` is c#2.
  std::string Unique(const std::string& name) {
    const int count = ++declared_[name];
    return count == 1 ? name : absl::StrCat(name, "#", count);
  }

  void Visit(const CppStatement& statement) {
    using StatementKind = CppStatement::Kind;
    if (statement.kind == StatementKind::kDeclaration) {
      for (const CppDeclarator& declarator : statement.declared) Declare(declarator);
      return;
    }
    if (statement.kind == StatementKind::kExpression && IsReassigned(statement)) return;
    scopes_.emplace_back();
    if (statement.kind == StatementKind::kFor) {
      if (!statement.body.empty()) {
        // The loop's own variables are those of this scope.
        if (statement.body[0].kind == StatementKind::kDeclaration) {
          for (const CppDeclarator& declarator : statement.body[0].declared) Declare(declarator);
        } else {
          Visit(statement.body[0]);
        }
      }
      const std::vector<CppExpression> expressions = Renamed(statement.expressions);
      if (statement.has_condition) Bound(expressions[0], false);
      for (const CppExpression& expression : expressions) Value(expression);
      for (size_t i = 1; i < statement.body.size(); ++i) Visit(statement.body[i]);
      scopes_.pop_back();
      return;
    }
    const bool leaves = statement.kind == StatementKind::kIf && !statement.body.empty() && Leaves(statement.body[0]);
    for (const CppExpression& expression : Renamed(statement.expressions)) {
      if (statement.kind == StatementKind::kIf || statement.kind == StatementKind::kWhile) Bound(expression, leaves);
      Value(expression);
    }
    for (const CppStatement& inner : statement.body) Visit(inner);
    scopes_.pop_back();
  }

  // x = blockIdx.y * TILE + threadIdx.x; after `if (x < width)`: from here on it is another number with other bounds.
  bool IsReassigned(const CppStatement& statement) {
    if (scopes_.size() != 1 || statement.expressions.size() != 1) return false;
    const CppExpression& e = statement.expressions[0];
    if (e.kind != Kind::kAssign || e.text != "=" || e.parts[0].kind != Kind::kName) return false;
    const auto known = scopes_.back().find(e.parts[0].text);
    if (known == scopes_.back().end() || !body_.bounds.contains(CppText(known->second))) return false;
    if (pointers_.contains(CppText(known->second)) || Mentions(e.parts[1], e.parts[0].text)) return false;
    CppDeclarator again;
    again.name = e.parts[0].text;
    again.initial = {e.parts[1]};
    Declare(again);
    return true;
  }

  CppExpression Renamed(const CppExpression& e) const {
    if (e.kind == Kind::kName) {
      for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
        if (const auto found = scope->find(e.text); found != scope->end()) return found->second;
      }
      return e;
    }
    CppExpression result = e;
    for (CppExpression& part : result.parts) part = Renamed(part);
    return result;
  }
  std::vector<CppExpression> Renamed(const std::vector<CppExpression>& expressions) const {
    std::vector<CppExpression> renamed;
    for (const CppExpression& e : expressions) renamed.push_back(Renamed(e));
    return renamed;
  }

  static bool Leaves(const CppStatement& statement) {
    if (statement.kind == CppStatement::Kind::kReturn || statement.kind == CppStatement::Kind::kJump) return true;
    return statement.kind == CppStatement::Kind::kBlock && !statement.body.empty() && Leaves(statement.body.back());
  }

  // i < n in a condition under which the body runs; of one under which it leaves, i >= n.
  void Bound(const CppExpression& e, bool negated) {
    if (e.kind == Kind::kCall && e.parts.size() >= 3 && absl::StrContains(e.parts[0].text, "KERNEL_LOOP")) {
      body_.bounds.emplace(CppText(e.parts[1]), e.parts[2]);
      return;
    }
    if (e.kind != Kind::kBinary) return;
    if (e.text == (negated ? "||" : "&&")) {
      Bound(e.parts[0], negated);
      Bound(e.parts[1], negated);
      return;
    }
    const bool below = e.text == (negated ? ">=" : "<"), above = e.text == (negated ? "<=" : ">");
    if (!below && !above) return;
    const CppExpression& low = e.parts[below ? 0 : 1];
    if (low.kind == Kind::kNumber) return;
    body_.bounds.emplace(CppText(low), e.parts[below ? 1 : 0]);
  }

  void Declare(const CppDeclarator& declarator) {
    const std::vector<CppExpression> initials = Renamed(declarator.initial);
    for (const CppExpression& initial : initials) Value(initial, declarator.reference);
    const std::string name = Unique(declarator.name);
    scopes_.back()[declarator.name] = NameOf(name);
    if (initials.size() != 1 || declarator.array) return;
    const CppExpression& initial = initials[0];
    if (declarator.reference) {
      if (std::optional<Pointer> element = ElementOf(initial)) {
        element->element = true;
        pointers_[name] = *std::move(element);
        return;
      }
    }
    if (std::optional<Pointer> pointer = PointerOf(initial)) {
      pointers_[name] = *std::move(pointer);
      return;
    }
    body_.definitions.emplace(name, initial);
    body_.values[name].push_back(initial);
  }

  // How many elements of a parameter one of the type in a cast is; bytes count for a void*.
  CppExpression Elements(const std::string& cast, const std::string& parameter) const {
    std::string type = cast.substr(0, cast.rfind('*'));
    for (const char* word : {"const ", "volatile ", "struct "}) {
      while (absl::StartsWith(type, word)) type.erase(0, std::string_view(word).size());
    }
    absl::StripAsciiWhitespace(&type);
    const auto bytes_of = [&](const std::string& name) -> int64_t {
      if (const std::optional<ElementType> known = ElementTypeOf(name)) return BytesOfType(known->type) * known->width;
      const auto record = model_.record_bytes.find(name);
      return record == model_.record_bytes.end() ? 0 : record->second;
    };
    const auto own = element_of_.find(parameter);
    if (own == element_of_.end()) return NumberOf(Widening(cast));
    if (type == own->second) return NumberOf(1);
    // Vec<T, 8>, where the parameter is a T*.
    const std::vector<CppToken> tokens = CppTokens(type);
    size_t open = 0;
    while (open < tokens.size() && !tokens[open].Is("<")) ++open;
    if (open < tokens.size() && tokens.back().Is(">")) {
      const auto arguments = SplitAtCommas(tokens, open + 1, tokens.size() - 1);
      if (arguments.size() == 2 && TokensText(tokens, arguments[0].first, arguments[0].second) == own->second) {
        if (std::optional<CppExpression> count = ParseCppExpression(tokens, arguments[1].first, arguments[1].second))
          return *std::move(count);
      }
    }
    // A vector type is one more extent of its tensor.
    const std::optional<ElementType> known = ElementTypeOf(own->second);
    const int64_t to = bytes_of(type), from = known && known->width > 1 ? 0 : bytes_of(own->second);
    return NumberOf(to > 0 && from > 0 && to % from == 0 ? to / from : Widening(cast));
  }

  // What `e` points into; nothing: no parameter.
  std::optional<Pointer> PointerOf(const CppExpression& e) const {
    if (e.kind == Kind::kName || e.kind == Kind::kMember || e.kind == Kind::kSubscript) {
      auto found = pointers_.find(CppText(e));
      // params.rows[i]: any of the array's pointers.
      if (found == pointers_.end() && e.kind == Kind::kSubscript)
        found = pointers_.find(absl::StrCat(CppText(e.parts[0]), "[*]"));
      return found == pointers_.end() || found->second.element ? std::nullopt : std::optional(found->second);
    }
    if (e.kind == Kind::kCast) {
      std::optional<Pointer> inner = PointerOf(e.parts[0]);
      if (inner && absl::StrContains(e.text, "*")) inner->scale = Elements(e.text, inner->parameter);
      return inner;
    }
    if (e.kind == Kind::kBinary && (e.text == "+" || e.text == "-")) {
      std::optional<Pointer> pointer = PointerOf(e.parts[0]);
      const bool left = pointer.has_value();
      if (!left) pointer = PointerOf(e.parts[1]);
      if (!pointer) return std::nullopt;
      pointer->offset = Sum(e.text, pointer->offset, Scaled(e.parts[left ? 1 : 0], pointer->scale));
      return pointer;
    }
    if (e.kind == Kind::kPrefix && e.text == "&") return ElementOf(e.parts[0]);
    if (e.kind == Kind::kConditional) {
      std::optional<Pointer> yes = PointerOf(e.parts[1]);
      return yes ? yes : PointerOf(e.parts[2]);
    }
    if (e.kind == Kind::kAssign) return PointerOf(e.parts[1]);
    return std::nullopt;
  }

  static CppExpression Scaled(const CppExpression& index, const CppExpression& scale) {
    return scale.kind == Kind::kNumber && scale.text == "1" ? index : BinaryOf("*", index, scale);
  }
  static CppExpression Sum(const std::string& op, const CppExpression& a, const CppExpression& b) {
    return a.kind == Kind::kNumber && a.text == "0" && op == "+" ? b : BinaryOf(op, a, b);
  }

  // The parameter that an lvalue is an element of, and its index.
  std::optional<Pointer> ElementOf(const CppExpression& e) const {
    if (e.kind == Kind::kSubscript) {
      std::optional<Pointer> pointer = PointerOf(e.parts[0]);
      if (!pointer) return std::nullopt;
      pointer->offset = Sum("+", pointer->offset, Scaled(e.parts[1], pointer->scale));
      return pointer;
    }
    if (e.kind == Kind::kPrefix && e.text == "*") return PointerOf(e.parts[0]);
    if (e.kind == Kind::kMember) {
      if (std::optional<Pointer> element = ElementOf(e.parts[0])) return element;
      return PointerOf(e.parts[0]);  // p->x
    }
    if (e.kind == Kind::kName) {
      const auto found = pointers_.find(e.text);
      if (found != pointers_.end() && found->second.element) return found->second;
    }
    return std::nullopt;
  }

  enum class How { kRead, kWrite, kAdd };
  void Use(const Pointer& pointer, How how) {
    if (absl::EndsWith(pointer.parameter, "[*]")) {
      const std::string array = pointer.parameter.substr(0, pointer.parameter.size() - 2);
      for (auto& [key, use] : body_.pointers) {
        if (!absl::StartsWith(key, array)) continue;
        Pointer each = pointer;
        each.parameter = key;
        Use(each, how);
      }
      return;
    }
    PointerUse& use = body_.pointers[pointer.parameter];
    if (how != How::kWrite && !use.written) use.read_first = true;
    use.read = use.read || how != How::kWrite;
    use.written = use.written || how != How::kRead;
    use.added_to = use.added_to || how == How::kAdd;
    if (std::none_of(use.indices.begin(), use.indices.end(),
                     [&](const CppExpression& known) { return CppText(known) == CppText(pointer.offset); })) {
      use.indices.push_back(pointer.offset);
    }
  }

  // The subexpressions of an lvalue: its index, and what its pointer is made of.
  void Inside(const CppExpression& e) {
    if (e.kind == Kind::kSubscript) {
      if (!PointerOf(e.parts[0])) Value(e.parts[0]);
      Value(e.parts[1]);
    } else if (!e.parts.empty()) {
      Inside(e.parts[0]);
    }
  }

  void Value(const CppExpression& e, bool address = false) {
    if (std::optional<Pointer> element = ElementOf(e)) {
      if (!address) Use(*element, How::kRead);
      Inside(e);
      return;
    }
    switch (e.kind) {
      case Kind::kAssign:
        Value(e.parts[1]);
        Assign(e);
        return;
      case Kind::kPrefix:
      case Kind::kPostfix:
        if (e.text == "++" || e.text == "--") {
          if (std::optional<Pointer> element = ElementOf(e.parts[0])) {
            Use(*element, How::kAdd);
            Inside(e.parts[0]);
            return;
          }
          if (e.parts[0].kind == Kind::kName) body_.values[e.parts[0].text].push_back(e);
        }
        Value(e.parts[0], e.text == "&");
        return;
      case Kind::kCall:
        Call(e);
        return;
      case Kind::kConditional:
        Bound(e.parts[0], false);  // i < n ? x[i] : 0
        for (const CppExpression& part : e.parts) Value(part);
        return;
      default:
        for (const CppExpression& part : e.parts) Value(part);
    }
  }

  void Assign(const CppExpression& e) {
    const CppExpression& left = e.parts[0];
    if (std::optional<Pointer> element = ElementOf(left)) {
      Use(*element, e.text == "=" ? How::kWrite : How::kAdd);
      Inside(left);
    } else if (left.kind == Kind::kName && e.text == "=") {
      if (std::optional<Pointer> pointer = PointerOf(e.parts[1])) {
        pointers_[left.text] = *std::move(pointer);
      } else {
        body_.definitions.emplace(left.text, e.parts[1]);
        body_.values[left.text].push_back(e.parts[1]);
      }
    } else if (left.kind == Kind::kName) {
      // x += row * stride: the pointer moves.
      const auto found = pointers_.find(left.text);
      if (found != pointers_.end() && !found->second.element && (e.text == "+=" || e.text == "-=")) {
        const std::string op = e.text.substr(0, 1);
        found->second.offset = Sum(op, found->second.offset, Scaled(e.parts[1], found->second.scale));
      } else {
        body_.values[left.text].push_back(e);
      }
    } else {
      Value(left);
    }
  }

  // How a function that is not in the source uses a pointer argument, by its name. Nothing: that is not known.
  static std::optional<How> Known(const std::string& name, size_t argument, size_t count) {
    const std::string plain = name.substr(name.rfind(':') == std::string::npos ? 0 : name.rfind(':') + 1);
    if (absl::StartsWith(plain, "atomic") || absl::StartsWith(plain, "red")) {
      return argument == 1 ? How::kAdd : How::kRead;
    }
    if (absl::StrContains(plain, "memcpy")) {
      const bool group = count == 4 && absl::StrContains(plain, "async") && !absl::StartsWith(plain, "__pipeline");
      return argument == (group ? 2u : 1u) ? How::kWrite : How::kRead;
    }
    if (absl::StartsWith(plain, "__ld") || absl::StrContains(plain, "load") || absl::StrContains(plain, "Load") ||
        absl::StartsWith(plain, "ld") || absl::StrContains(plain, "read") || absl::StrContains(plain, "cp_async")) {
      return How::kRead;
    }
    if (absl::StartsWith(plain, "__st") || absl::StrContains(plain, "store") || absl::StrContains(plain, "Store") ||
        absl::StartsWith(plain, "st_") || absl::StrContains(plain, "write")) {
      return How::kWrite;
    }
    return std::nullopt;
  }

  void Call(const CppExpression& e) {
    const CppExpression& callee = e.parts[0];
    const std::string& name = callee.text;
    if (absl::EndsWith(name, "sync")) NoteSync(callee);
    if (callee.kind == Kind::kMember) Value(callee.parts[0]);
    if (callee.kind == Kind::kName) body_.called.insert(RootOf(name));
    const SourceFunction* function = callee.kind == Kind::kName ? FindDevice(name) : nullptr;
    std::map<std::string, Pointer> given;
    Scope names;
    for (size_t i = 1; i < e.parts.size(); ++i) {
      std::optional<Pointer> pointer = PointerOf(e.parts[i]);
      // An element by reference is as good as its address.
      const bool by_reference = function != nullptr && i <= function->parameters.size() &&
                                absl::StrContains(function->parameters[i - 1].type.spelling, "&") &&
                                !absl::StrContains(function->parameters[i - 1].type.spelling, "const");
      if (!pointer && by_reference) {
        pointer = ElementOf(e.parts[i]);
        if (pointer) pointer->element = true;
      }
      const bool enters = function != nullptr && i <= function->parameters.size() && calls_ < kMaxCalls;
      if (!pointer) {
        Value(e.parts[i]);
        if (enters) GiveValue(function->parameters[i - 1].name, e.parts[i], given, names);
        continue;
      }
      if (e.parts[i].kind == Kind::kPrefix) Inside(e.parts[i].parts[0]);
      if (enters) {
        const std::string own = Unique(function->parameters[i - 1].name);
        names[function->parameters[i - 1].name] = NameOf(own);
        given[own] = *pointer;
      } else if (const std::optional<How> how = Known(name, i, e.parts.size() - 1)) {
        Use(*pointer, *how);
        if (*how == How::kAdd) body_.pointers[pointer->parameter].atomic = true;
      } else {
        body_.pointers[pointer->parameter].passed_on = true;
      }
    }
    if (function != nullptr && calls_ < kMaxCalls && entered_.insert(function).second) {
      Read(*function, std::move(given), std::move(names), calls_ + 1);
      entered_.erase(function);
    }
  }

  // A device function's parameter that is no pointer: a variable with the argument as its first value; a struct is the
  // kernel's own, with its pointers.
  void GiveValue(const std::string& parameter, const CppExpression& argument, std::map<std::string, Pointer>& given,
                 Scope& names) {
    if (argument.kind == Kind::kName) {
      const std::string fields = absl::StrCat(argument.text, ".");
      bool any = false;
      for (const auto& [key, pointer] : pointers_) {
        if (!absl::StartsWith(key, fields)) continue;
        given[key] = pointer;
        any = true;
      }
      if (any) {
        names[parameter] = argument;
        return;
      }
    }
    const std::string own = Unique(parameter);
    names[parameter] = NameOf(own);
    body_.definitions.emplace(own, argument);
    body_.values[own].push_back(argument);
  }

  static CppExpression NameOf(const std::string& text) {
    CppExpression name;
    name.kind = Kind::kName;
    name.text = text;
    return name;
  }

  // The kernel's own name for what a device function got.
  std::string RootOf(std::string name) const {
    for (int step = 0; step < kMaxCalls; ++step) {
      const auto made = body_.definitions.find(name);
      if (made == body_.definitions.end() || made->second.kind != Kind::kName) break;
      name = made->second.text;
    }
    return name;
  }

  void NoteSync(const CppExpression& callee) {
    if (callee.kind != Kind::kMember || callee.parts[0].kind == Kind::kOther) return;
    const std::string object = CppText(callee.parts[0]);
    const auto made = body_.definitions.find(object);
    const std::string text = made == body_.definitions.end() ? object : CppText(made->second);
    if (absl::StrContains(text, "this_grid")) body_.grid_sync = true;
  }

  const SourceFunction* FindDevice(const std::string& name) const {
    const SourceFunction* found = model_.Find(name);
    if (found == nullptr)
      found = model_.Find(name.substr(name.rfind(':') == std::string::npos ? 0 : name.rfind(':') + 1));
    return found != nullptr && !found->kernel ? found : nullptr;
  }

  const SourceModel& model_;
  KernelBody& body_;
  std::map<std::string, Pointer> pointers_;
  std::map<std::string, std::string> element_of_;  // the types that the kernel's pointers point to
  std::map<std::string, int> declared_;            // how many variables of a name there are
  std::vector<Scope> scopes_;
  std::set<const SourceFunction*> entered_;
  int calls_ = 0;
};

}  // namespace

KernelBody ReadKernelBody(const SourceModel& model, const SourceFunction& kernel) {
  KernelBody body;
  BodyReader(model, body).ReadKernel(kernel);
  return body;
}

}  // namespace pawl
