#include "cli/draft/read/host_tensors.h"

#include <algorithm>
#include <functional>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cli/draft/read/translation.h"

namespace pawl {
namespace {

using Kind = CppExpression::Kind;

void Visit(const std::vector<CppStatement>& statements, const std::function<void(const CppStatement&)>& see) {
  for (const CppStatement& statement : statements) {
    see(statement);
    Visit(statement.body, see);
  }
}

// The factors of a product.
void Factors(const CppExpression& e, std::vector<CppExpression>& factors) {
  if (e.kind == Kind::kCast) return Factors(e.parts[0], factors);
  if (e.kind == Kind::kBinary && e.text == "*") {
    Factors(e.parts[0], factors);
    Factors(e.parts[1], factors);
    return;
  }
  factors.push_back(e);
}

// Elements of n * sizeof(T) bytes; nothing: it has no sizeof.
std::vector<CppExpression> Elements(const CppExpression& bytes) {
  std::vector<CppExpression> factors, elements;
  Factors(bytes, factors);
  bool sized = false;
  for (const CppExpression& factor : factors) {
    if (!sized && factor.kind == Kind::kCall && factor.parts[0].IsName("sizeof")) {
      sized = true;
    } else {
      elements.push_back(factor);
    }
  }
  if (!sized || elements.empty()) return {};
  CppExpression product = elements[0];
  for (size_t i = 1; i < elements.size(); ++i) {
    CppExpression next;
    next.kind = Kind::kBinary;
    next.text = "*";
    next.parts = {product, elements[i]};
    product = next;
  }
  return {product};
}

class Allocating {
 public:
  Allocating(const HostLaunch& launch, std::string tensor) : launch_(launch), tensor_(std::move(tensor)) {}

  HostAllocation Run(const SourceFunction& host) {
    const std::vector<CppStatement> body = ParseCppBody(host.file->tokens, host.body);
    Visit(body, [&](const CppStatement& statement) { See(statement); });
    return std::move(made_);
  }

 private:
  void See(const CppStatement& statement) {
    for (const CppDeclarator& declarator : statement.declared) {
      for (const CppExpression& initial : declarator.initial) {
        if (declarator.name == tensor_) Tensor(initial);
        Calls(initial);
      }
      // thrust::device_vector<float> x(n)
      const bool vector = absl::StrContains(declarator.type, "device_vector") && !declarator.assigned;
      if (declarator.name == tensor_ && vector && !declarator.initial.empty() && made_.shape.empty() &&
          declarator.initial[0].kind != Kind::kList && declarator.initial.size() < 3) {
        made_.shape = {declarator.initial[0]};
        made_.flat = true;
      }
      // float* out = workspace: declared here, but what it points to is not made here.
      if (declarator.name == tensor_ && declarator.pointer && declarator.initial.empty()) made_.local = true;
    }
    for (const CppExpression& e : statement.expressions) {
      if (statement.kind == CppStatement::Kind::kReturn && Mentions(e, tensor_)) made_.returned = true;
      if (e.kind == Kind::kAssign && e.parts[0].IsName(tensor_)) Tensor(e.parts[1]);
      Calls(e);
    }
  }

  // auto out = torch::empty({rows, cols}, options)
  void Tensor(const CppExpression& e) {
    if (e.kind != Kind::kCall) return;
    const std::string& name = e.parts[0].text;
    const bool method = e.parts[0].kind == Kind::kMember;
    if (absl::StrContains(name, "zeros")) made_.cleared = true;
    if (absl::StrContains(name, "empty_like") || absl::StrContains(name, "zeros_like")) {
      made_.local = true;
      return;
    }
    const bool makes = absl::EndsWith(name, "empty") || absl::EndsWith(name, "zeros") || absl::EndsWith(name, "ones") ||
                       absl::EndsWith(name, "full") || (method && absl::StartsWith(name, "new_"));
    if (!makes || e.parts.size() < 2) return;
    made_.local = true;
    if (e.parts[1].kind == Kind::kList) made_.shape = e.parts[1].parts;
  }

  void Calls(const CppExpression& e) {
    for (const CppExpression& part : e.parts) Calls(part);
    if (e.kind != Kind::kCall || e.parts.size() < 3) return;
    const std::string& name = e.parts[0].text;
    if (absl::StrContains(name, "Malloc") && HostTensor(e.parts[1], {}) == tensor_) {
      made_.local = true;
      if (!made_.shape.empty()) return;
      const CppExpression bytes = Resolved(e.parts[2], Bytes());
      made_.shape = Elements(bytes);
      if (made_.shape.empty()) made_.bytes = {bytes};
      made_.flat = true;
    }
    if (absl::StrContains(name, "Memset") &&
        (HostTensor(e.parts[1], {}) == tensor_ || HostTensor(e.parts[1], launch_.values) == tensor_)) {
      made_.cleared = true;
    }
    // What comes back to the host is a result.
    if (absl::StrContains(name, "Memcpy") && HostTensor(e.parts[2], {}) == tensor_) made_.returned = true;
  }

  // Of the host's variables those that are bytes: size_t bytes = n * sizeof(float).
  HostValues Bytes() const {
    HostValues bytes;
    for (const auto& [name, value] : launch_.values) {
      if (value.parts.size() == 1 && absl::StrContains(CppText(value.parts[0]), "sizeof")) bytes[name] = value;
    }
    return bytes;
  }

  const HostLaunch& launch_;
  std::string tensor_;
  HostAllocation made_;
};

// What a function of a class makes its members of, by its parameters: n_ for n of Layer(int n) : n_(n) {}, and of n_ =
// n;
std::map<std::string, CppExpression> MembersByParameter(const SourceFunction& function) {
  std::map<std::string, CppExpression> members;
  const std::vector<CppToken>& tokens = function.file->tokens;
  const auto add = [&](const std::string& member, const CppExpression& value) {
    const bool given = value.kind == Kind::kName &&
                       std::any_of(function.parameters.begin(), function.parameters.end(),
                                   [&](const SourceParameter& parameter) { return parameter.name == value.text; });
    CppExpression name;
    name.kind = Kind::kName;
    name.text = member;
    if (given) members.emplace(value.text, name);
  };
  size_t at = ClosingBracket(tokens, function.name_at + 1) + 1;
  while (at < function.body && !tokens[at].Is(":")) ++at;
  for (; at + 1 < function.body; ++at) {
    if (!tokens[at].IsWord() || (!tokens[at + 1].Is("(") && !tokens[at + 1].Is("{"))) continue;
    const size_t close = ClosingBracket(tokens, at + 1);
    if (const std::optional<CppExpression> value = ParseCppExpression(tokens, at + 2, close))
      add(std::string(tokens[at].text), *value);
    at = close;
  }
  Visit(ParseCppBody(tokens, function.body), [&](const CppStatement& statement) {
    for (const CppExpression& e : statement.expressions) {
      if (e.kind == Kind::kAssign && e.text == "=" && e.parts[0].kind == Kind::kName) add(e.parts[0].text, e.parts[1]);
    }
  });
  return members;
}

}  // namespace

HostAllocation AllocationOf(const SourceModel& model, const HostLaunch* launch, const std::string& tensor) {
  if (launch == nullptr || tensor.empty()) return {};
  const SourceFunction& host = *launch->host;
  HostAllocation made = Allocating(*launch, tensor).Run(host);
  // A member that the constructor allocates.
  const bool own = std::any_of(host.parameters.begin(), host.parameters.end(),
                               [&](const SourceParameter& parameter) { return parameter.name == tensor; });
  if (!host.method || made.local || own) return made;
  const std::string scope = host.qualified.substr(0, host.qualified.rfind(':') + 1);
  for (const SourceFunction& other : model.functions) {
    if (!other.method || &other == &host || other.qualified != absl::StrCat(scope, other.name)) continue;
    HostAllocation elsewhere = Allocating(*launch, tensor).Run(other);
    if (!elsewhere.local) continue;
    // In the names that the launching function has as well; what only the other one knows is not known here.
    const std::map<std::string, CppExpression> members = MembersByParameter(other);
    for (std::vector<CppExpression>* shape : {&elsewhere.shape, &elsewhere.bytes}) {
      for (CppExpression& extent : *shape) extent = Substituted(extent, members);
      const bool unknown = std::any_of(shape->begin(), shape->end(), [&](const CppExpression& extent) {
        return std::any_of(other.parameters.begin(), other.parameters.end(),
                           [&](const SourceParameter& parameter) { return Mentions(extent, parameter.name); });
      });
      if (unknown) shape->clear();
    }
    return elsewhere;
  }
  return made;
}

}  // namespace pawl
