#include "cli/draft/read/host_variables.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cli/draft/read/constants.h"
#include "cli/draft/read/translation.h"

namespace pawl {
namespace {

using Kind = CppExpression::Kind;

bool IsDim3(const std::string& type) { return absl::StrContains(type, "dim3"); }

}  // namespace

std::optional<std::vector<CppExpression>> Dim3Parts(const CppExpression& e) {
  if (e.kind == Kind::kList) {
    std::vector<CppExpression> parts;
    std::string name;
    for (const CppExpression& part : e.parts) {
      const CppExpression* named = DesignatedValue(part, &name);  // {.x = 2, .y = 1}
      parts.push_back(named == nullptr ? part : *named);
    }
    return parts;
  }
  if (e.kind == Kind::kCall && e.parts[0].IsName("dim3")) {
    return std::vector<CppExpression>(e.parts.begin() + 1, e.parts.end());
  }
  if (e.kind == Kind::kCast && e.text == "dim3") return std::vector<CppExpression>{e.parts[0]};
  return std::nullopt;
}

void HostVariables::Filled(const CppExpression& call) {
  const std::string& function = call.parts[0].text;
  const bool query = absl::StrContains(function, "Get") || absl::StrContains(function, "Occupancy");
  for (size_t i = 1; i < call.parts.size(); ++i) {
    CppExpression e = call.parts[i];
    while (e.kind == Kind::kCast) e = CppExpression(e.parts[0]);
    if (e.kind != Kind::kPrefix || e.text != "&" || e.parts[0].kind != Kind::kName) continue;
    const auto value = values_.find(e.parts[0].text);
    if (value == values_.end() || value->second.pointer || value->second.parts.size() > 1) continue;
    const bool empty = value->second.parts.empty() || ConstantValue(value->second.parts[0], {}) == 0;
    if (!query && !empty) continue;
    CppExpression answer;
    answer.kind = Kind::kOther;
    answer.text = function;
    if (absl::StrContains(CppText(call), "MultiProcessorCount")) answer.text = "multiProcessorCount";
    if (answer.text != function || absl::StrContains(function, "Occupancy")) answer.kind = Kind::kName;
    value->second.parts.clear();
    if (query) value->second.parts.push_back(std::move(answer));
  }
}

void HostVariables::Declare(const CppDeclarator& declarator) {
  HostValue value;
  value.type = declarator.type;
  value.is_dim3 = IsDim3(declarator.type);
  value.pointer = declarator.pointer;
  value.parts = declarator.initial;
  for (CppExpression& part : value.parts) part = Written(part);
  Fields(declarator);
  // float* src = in: from now on src is what in is now, whatever in becomes.
  if (value.pointer && value.parts.size() == 1) {
    CppExpression held = value.parts[0];
    while (held.kind == Kind::kCast) held = CppExpression(held.parts[0]);
    if (held.kind == Kind::kName) {
      const auto other = values_.find(held.text);
      const bool alias = other != values_.end() && other->second.pointer && other->second.parts.size() == 1;
      value.parts = {alias ? other->second.parts[0] : held};
      if (value.parts[0].IsName("nullptr") || value.parts[0].IsName("NULL")) value.parts.clear();
      values_[declarator.name] = std::move(value);
      return;
    }
    if (held.kind == Kind::kNumber) value.parts.clear();  // float* x = 0
  }
  if (value.parts.size() == 1) {
    if (std::optional<std::vector<CppExpression>> parts = Dim3Parts(value.parts[0])) {
      const bool list = value.parts[0].kind == Kind::kList;
      if (!list || value.is_dim3 || declarator.array) {
        value.parts = *std::move(parts);
        value.is_dim3 = value.is_dim3 || !list;
      }
    }
  }
  values_[declarator.name] = std::move(value);
}

// The fields that a list names: Params p{.x = x}, p = {.x = x}, auto p = Params{.x = x}.
void HostVariables::Fields(const CppDeclarator& declarator) {
  const std::vector<CppExpression>* list = &declarator.initial;
  if (list->size() == 1 && ((*list)[0].kind == Kind::kList || (*list)[0].kind == Kind::kCall)) list = &(*list)[0].parts;
  std::string name;
  for (const CppExpression& part : *list) {
    if (const CppExpression* value = DesignatedValue(part, &name))
      values_[absl::StrCat(declarator.name, ".", name)] = {{*value}, false, ""};
  }
}

// std::swap(a, b) of two pointers: from now on each is what the other was.
void HostVariables::Exchange(const std::string& a, const std::string& b) {
  const auto held = [&](const std::string& name) -> std::optional<HostValue> {
    const auto known = values_.find(name);
    const bool pointer = known == values_.end() ? IsPointerParameter(name) : known->second.pointer;
    if (!pointer) return std::nullopt;
    CppExpression own;
    own.kind = Kind::kName;
    own.text = name;
    own.text = HostTensor(own, values_);
    return HostValue{{own}, false, known == values_.end() ? "" : known->second.type, true};
  };
  const std::optional<HostValue> of_a = held(a), of_b = held(b);
  if (!of_a || !of_b) return;
  values_[a] = *of_b;
  values_[b] = *of_a;
}

void HostVariables::Assign(const CppExpression& e) {
  if (IsSwap(e) && e.parts[1].kind == Kind::kName && e.parts[2].kind == Kind::kName)
    Exchange(e.parts[1].text, e.parts[2].text);
  // waves++: what it is from now on is not followed.
  if ((e.kind == Kind::kPrefix || e.kind == Kind::kPostfix) && (e.text == "++" || e.text == "--") &&
      e.parts[0].kind == Kind::kName) {
    values_.erase(e.parts[0].text);
  }
  if (e.kind != Kind::kAssign) return;
  const CppExpression& left = e.parts[0];
  if (e.text == "=" && left.kind == Kind::kName) {
    CppDeclarator again;
    again.name = left.text;
    const auto known = values_.find(left.text);
    again.type = known == values_.end() ? "" : known->second.type;
    again.pointer = (known != values_.end() && known->second.pointer) || IsPointerParameter(left.text);
    again.initial = {e.parts[1]};
    if (Mentions(e.parts[1], left.text)) {
      // n = n / 2: of what it was, or not followed.
      if (known == values_.end() || known->second.parts.size() != 1) {
        values_.erase(left.text);
        return;
      }
      again.initial = {Substituted(e.parts[1], {{left.text, known->second.parts[0]}})};
    }
    Declare(again);
  } else if (e.text == "=" && left.kind == Kind::kMember && left.parts[0].kind == Kind::kName) {
    static const std::string kAxes = "xyz";
    const size_t axis = kAxes.find(left.text);
    HostValue& value = values_[left.parts[0].text];
    if (axis == std::string::npos || left.text.size() != 1 || !value.is_dim3) {
      values_[CppText(left)] = {{e.parts[1]}, false, ""};  // a field of a struct
      return;
    }
    CppExpression one;
    one.kind = Kind::kNumber;
    one.text = "1";
    while (value.parts.size() <= axis) value.parts.push_back(one);
    value.parts[axis] = e.parts[1];
  } else if (e.text == "=" && left.kind == Kind::kSubscript &&
             (left.parts[0].kind == Kind::kName || left.parts[0].kind == Kind::kMember)) {
    values_[CppText(left)] = {{e.parts[1]}, false, ""};  // an element of an array
  } else if (left.kind == Kind::kName) {
    values_.erase(left.text);  // n /= 2: what it is from now on is not followed
  }
}

bool HostVariables::IsPointerParameter(const std::string& name) const {
  return std::any_of(host_.parameters.begin(), host_.parameters.end(), [&](const SourceParameter& parameter) {
    return parameter.name == name && parameter.type.pointers > 0;
  });
}

const HostLambda* HostVariables::Lambda(const std::string& name) const {
  const auto lambda = lambdas_.find(name);
  return lambda == lambdas_.end() ? nullptr : &lambda->second;
}

CppExpression HostVariables::Written(const CppExpression& e, int depth) const {
  constexpr int kMaxWritten = 4;  // calls in each other
  if (depth > kMaxWritten) return e;
  // decltype(x)::value of an std::integral_constant<int, 4> x.
  if (e.kind == Kind::kOther && absl::StartsWith(e.text, "decltype(") && absl::EndsWith(e.text, ")::value")) {
    const auto held = values_.find(e.text.substr(9, e.text.size() - 9 - 8));
    if (held == values_.end() || held->second.parts.size() != 1) return e;
    const CppExpression& made = held->second.parts[0];
    const CppExpression& type = made.parts.empty() ? made : made.parts[0];
    if (type.template_arguments.size() != 2 || !absl::StrContains(type.text, "integral_constant")) return e;
    const std::vector<CppToken> tokens = CppTokens(type.template_arguments[1]);
    return ParseCppExpression(tokens, 0, tokens.size()).value_or(e);
  }
  CppExpression result = e;
  for (size_t i = e.kind == Kind::kCall ? 1 : 0; i < e.parts.size(); ++i) result.parts[i] = Written(e.parts[i], depth);
  if (e.kind != Kind::kCall || e.parts[0].kind != Kind::kName) return result;
  if (const HostLambda* lambda = Lambda(e.parts[0].text)) {
    if (lambda->parameters.size() + 1 != e.parts.size()) return result;
    std::map<std::string, CppExpression> arguments;
    for (size_t i = 0; i < lambda->parameters.size(); ++i) arguments[lambda->parameters[i]] = result.parts[i + 1];
    const std::optional<CppExpression> returned = Returned(lambda->body, arguments);
    return returned ? Written(*returned, depth + 1) : result;
  }
  const std::optional<CppExpression> returned = Inlined(result, model_);
  return returned && returned->kind != Kind::kList && Dim3Parts(*returned) ? Written(*returned, depth + 1) : result;
}

}  // namespace pawl
