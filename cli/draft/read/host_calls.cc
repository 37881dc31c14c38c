#include "cli/draft/read/host_calls.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "cli/draft/read/constants.h"

namespace pawl {
namespace {

using Kind = CppExpression::Kind;

constexpr int kMaxCallers = 4;          // of callers of callers
constexpr size_t kMaxOtherNumbers = 5;  // of one parameter

}  // namespace

Callers::Callers(const SourceModel& model, const std::vector<HostCall>& calls)
    : constants_(ConstantValues(model)), calls_(calls) {}

const HostCall* Callers::CallOf(const SourceFunction& host) const {
  const auto call =
      std::find_if(calls_.begin(), calls_.end(), [&](const HostCall& made) { return made.callee == &host; });
  return call == calls_.end() ? nullptr : &*call;
}

std::map<std::string, std::string> Callers::Templates(const SourceFunction& host, int depth) const {
  std::map<std::string, std::string> found;
  const HostCall* call = depth > kMaxCallers ? nullptr : CallOf(host);
  if (call == nullptr) return found;
  const std::map<std::string, std::string> outer = Templates(*call->caller, depth + 1);
  for (size_t i = 0; i < host.templates.size() && i < call->template_arguments.size(); ++i) {
    const std::string& argument = call->template_arguments[i];
    const auto known = outer.find(argument);
    const bool open = std::any_of(call->caller->templates.begin(), call->caller->templates.end(),
                                  [&](const TemplateParameter& own) { return own.name == argument; });
    if (known != outer.end()) {
      found[host.templates[i].name] = known->second;
    } else if (!open) {
      const auto constant = constants_.find(argument);
      found[host.templates[i].name] = constant == constants_.end() ? argument : absl::StrCat(constant->second);
    }
  }
  return found;
}

std::map<std::string, int64_t> Callers::Numbers(const SourceFunction& host, int depth) const {
  std::map<std::string, int64_t> found;
  const HostCall* call = depth > kMaxCallers ? nullptr : CallOf(host);
  if (call == nullptr) return found;
  std::map<std::string, int64_t> known = Numbers(*call->caller, depth + 1);
  for (const auto& [name, value] : constants_) known.emplace(name, value);
  for (size_t i = 0; i < host.parameters.size() && i < call->arguments.size(); ++i) {
    if (host.parameters[i].type.pointers > 0) continue;
    const CppExpression resolved = Resolved(call->arguments[i], call->values);
    if (const std::optional<int64_t> number = LikelyValue(resolved, known)) found[host.parameters[i].name] = *number;
  }
  return found;
}

std::map<std::string, std::vector<int64_t>> Callers::OtherNumbers(const SourceFunction& host) const {
  std::map<std::string, std::vector<int64_t>> found;
  const HostCall* first = CallOf(host);
  for (const HostCall& call : calls_) {
    if (call.callee != &host || &call == first) continue;
    for (size_t i = 0; i < host.parameters.size() && i < call.arguments.size(); ++i) {
      if (host.parameters[i].type.pointers > 0) continue;
      std::vector<int64_t>& numbers = found[host.parameters[i].name];
      if (numbers.size() == kMaxOtherNumbers) continue;
      const std::optional<int64_t> number = LikelyValue(Resolved(call.arguments[i], call.values), constants_);
      if (number && std::find(numbers.begin(), numbers.end(), *number) == numbers.end()) numbers.push_back(*number);
    }
  }
  return found;
}

std::map<std::string, CppExpression> Callers::Fields(const SourceFunction& host, int depth) const {
  std::map<std::string, CppExpression> found;
  const HostCall* call = depth > kMaxCallers ? nullptr : CallOf(host);
  if (call == nullptr) return found;
  HostValues values = call->values;
  for (const auto& [field, value] : Fields(*call->caller, depth + 1))
    values.try_emplace(field, HostValue{{value}, false, ""});
  const std::map<std::string, int64_t> numbers = Numbers(*call->caller, depth + 1);
  for (size_t i = 0; i < host.parameters.size() && i < call->arguments.size(); ++i) {
    const SourceParameter& parameter = host.parameters[i];
    const CppExpression& argument = call->arguments[i];
    if (argument.kind != Kind::kName) continue;
    const auto made = values.find(argument.text);
    for (size_t k = 0; k < parameter.fields.size(); ++k) {
      const std::string& name = parameter.fields[k].name;
      const auto assigned = values.find(absl::StrCat(argument.text, ".", name));
      std::optional<CppExpression> value;
      if (assigned != values.end() && assigned->second.parts.size() == 1) {
        value = assigned->second.parts[0];
      } else if (made != values.end() && made->second.parts.size() == parameter.fields.size()) {
        value = made->second.parts[k];
      }
      if (!value) continue;
      CppExpression resolved = Resolved(*value, values);
      if (const std::optional<int64_t> number = LikelyValue(resolved, numbers)) {
        resolved = {};
        resolved.kind = Kind::kNumber;
        resolved.text = absl::StrCat(*number);
      }
      const bool clashes = std::any_of(host.parameters.begin(), host.parameters.end(),
                                       [&](const SourceParameter& own) { return Mentions(resolved, own.name); });
      if (!clashes) found.emplace(absl::StrCat(parameter.name, ".", name), std::move(resolved));
    }
  }
  return found;
}

std::map<std::string, std::string> Callers::Reals(const SourceFunction& host) const {
  std::map<std::string, std::string> found;
  const HostCall* call = CallOf(host);
  for (size_t i = 0; call != nullptr && i < host.parameters.size() && i < call->arguments.size(); ++i) {
    const CppExpression resolved = Resolved(call->arguments[i], call->values);
    if (resolved.kind == Kind::kNumber) found[host.parameters[i].name] = resolved.text;
  }
  return found;
}

}  // namespace pawl
