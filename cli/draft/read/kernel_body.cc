#include "cli/draft/read/kernel_body.h"

#include <algorithm>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cli/draft/read/constants.h"
#include "cli/draft/read/cpp_statement.h"

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
  int64_t scale = 1;
  bool element = false;  // a reference to an element, not a pointer
};

class BodyReader {
 public:
  BodyReader(const SourceModel& model, KernelBody& body) : model_(model), body_(body) {}

  void Read(const SourceFunction& function, std::map<std::string, Pointer> pointers, int calls) {
    const std::map<std::string, Pointer> outer = std::exchange(pointers_, std::move(pointers));
    const int outer_calls = std::exchange(calls_, calls);
    const size_t close = ClosingBracket(function.file->tokens, function.body);
    for (size_t i = function.body; i < close; ++i) {
      const CppToken& token = function.file->tokens[i];
      if (token.IsWord()) body_.words.emplace(token.text);
      if (token.kind == CppToken::Kind::kNumber) body_.numbers.emplace_back(token.text);
    }
    for (const CppStatement& statement : ParseCppBody(function.file->tokens, function.body)) Visit(statement);
    pointers_ = outer;
    calls_ = outer_calls;
  }

 private:
  void Visit(const CppStatement& statement) {
    using StatementKind = CppStatement::Kind;
    if (statement.kind == StatementKind::kDeclaration) {
      for (const CppDeclarator& declarator : statement.declared) Declare(declarator);
      return;
    }
    if (statement.kind == StatementKind::kFor) {
      if (!statement.body.empty()) Visit(statement.body[0]);
      if (statement.has_condition) Bound(statement.expressions[0], false);
      for (const CppExpression& expression : statement.expressions) Value(expression);
      for (size_t i = 1; i < statement.body.size(); ++i) Visit(statement.body[i]);
      return;
    }
    const bool leaves = statement.kind == StatementKind::kIf && !statement.body.empty() && Leaves(statement.body[0]);
    for (const CppExpression& expression : statement.expressions) {
      if (statement.kind == StatementKind::kIf || statement.kind == StatementKind::kWhile) Bound(expression, leaves);
      Value(expression);
    }
    for (const CppStatement& inner : statement.body) Visit(inner);
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
    for (const CppExpression& initial : declarator.initial) Value(initial, declarator.reference);
    if (declarator.initial.size() != 1 || declarator.array) return;
    const CppExpression& initial = declarator.initial[0];
    if (declarator.reference) {
      if (std::optional<Pointer> element = ElementOf(initial)) {
        element->element = true;
        pointers_[declarator.name] = *std::move(element);
        return;
      }
    }
    if (std::optional<Pointer> pointer = PointerOf(initial)) {
      pointers_[declarator.name] = *std::move(pointer);
      return;
    }
    pointers_.erase(declarator.name);
    body_.definitions.emplace(declarator.name, initial);
  }

  // What `e` points into; nothing: no parameter.
  std::optional<Pointer> PointerOf(const CppExpression& e) const {
    if (e.kind == Kind::kName || e.kind == Kind::kMember) {
      const auto found = pointers_.find(e.kind == Kind::kName ? e.text : CppText(e));
      return found == pointers_.end() || found->second.element ? std::nullopt : std::optional(found->second);
    }
    if (e.kind == Kind::kCast) {
      std::optional<Pointer> inner = PointerOf(e.parts[0]);
      if (inner && absl::StrContains(e.text, "*") && inner->offset.kind == Kind::kNumber && inner->offset.text == "0") {
        inner->scale = Widening(e.text);
      }
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

  static CppExpression Scaled(const CppExpression& index, int64_t scale) {
    return scale == 1 ? index : BinaryOf("*", index, NumberOf(scale));
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
        }
        Value(e.parts[0], e.text == "&");
        return;
      case Kind::kCall:
        Call(e);
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
      if (std::optional<Pointer> pointer = PointerOf(e.parts[1])) pointers_[left.text] = *std::move(pointer);
    } else if (left.kind == Kind::kName && (e.text == "+=" || e.text == "-=")) {
      // x += row * stride: the pointer moves.
      if (const auto found = pointers_.find(left.text); found != pointers_.end() && !found->second.element) {
        const std::string op = e.text.substr(0, 1);
        found->second.offset = Sum(op, found->second.offset, Scaled(e.parts[1], found->second.scale));
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
    const SourceFunction* function = callee.kind == Kind::kName ? FindDevice(name) : nullptr;
    std::map<std::string, Pointer> given;
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
      if (!pointer) {
        Value(e.parts[i]);
        continue;
      }
      if (e.parts[i].kind == Kind::kPrefix) Inside(e.parts[i].parts[0]);
      if (function != nullptr && i <= function->parameters.size() && calls_ < kMaxCalls) {
        given[function->parameters[i - 1].name] = *pointer;
      } else if (const std::optional<How> how = Known(name, i, e.parts.size() - 1)) {
        Use(*pointer, *how);
        if (*how == How::kAdd) body_.pointers[pointer->parameter].atomic = true;
      } else {
        body_.pointers[pointer->parameter].passed_on = true;
      }
    }
    if (function != nullptr && calls_ < kMaxCalls && entered_.insert(function).second) {
      Read(*function, std::move(given), calls_ + 1);
      entered_.erase(function);
    }
  }

  void NoteSync(const CppExpression& callee) {
    if (callee.kind != Kind::kMember || callee.parts[0].kind == Kind::kOther) return;
    const std::string object = CppText(callee.parts[0]);
    const auto made = body_.definitions.find(object);
    const std::string text = made == body_.definitions.end() ? object : CppText(made->second);
    if (absl::StrContains(text, "this_grid")) body_.grid_sync = true;
    if (absl::StrContains(text, "this_cluster")) body_.uses_cluster = true;
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
  std::set<const SourceFunction*> entered_;
  int calls_ = 0;
};

}  // namespace

KernelBody ReadKernelBody(const SourceModel& model, const SourceFunction& kernel) {
  KernelBody body;
  std::map<std::string, Pointer> pointers;
  const auto add = [&](const std::string& name) {
    pointers[name] = {name, NumberOf(0), 1, false};
    body.pointers[name];
  };
  for (const SourceParameter& parameter : kernel.parameters) {
    if (parameter.type.pointers > 0) add(parameter.name);
    for (const SourceParameter& field : parameter.fields) {
      if (field.type.pointers > 0) add(absl::StrCat(parameter.name, ".", field.name));
    }
  }
  BodyReader(model, body).Read(kernel, std::move(pointers), 0);
  return body;
}

}  // namespace pawl
