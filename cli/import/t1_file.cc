#include "cli/import/t1_file.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "cli/import/parameter_value.h"
#include "cli/output/files.h"

namespace pawl {
namespace {

using T1Json = nlohmann::json;

constexpr size_t kMaxT1Bytes = 16 << 20;

// "[1, 2]", "['a', 'b']", "(True, False)": lists of Python's literals that JSON has, too.
T1Json ListOf(const T1Json& values) {
  if (!values.is_string()) return values;
  std::string text =
      absl::StrReplaceAll(values.get<std::string>(), {{"'", "\""}, {"True", "true"}, {"False", "false"}});
  if (text.size() > 1 && text.front() == '(' && text.back() == ')') {
    text.front() = '[';
    text.back() = ']';
  }
  return T1Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

}  // namespace

absl::StatusOr<T1Problem> ReadT1(const std::filesystem::path& file) {
  const auto wrong = [&](const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat(file.string(), ": ", what));
  };
  absl::StatusOr<std::string> text = ReadPackedFile(file, kMaxT1Bytes);
  if (!text.ok()) return text.status();
  const T1Json json = T1Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return wrong("it is not JSON");
  const T1Json& space = JsonField(json, "ConfigurationSpace");
  const T1Json& parameters = JsonField(space, "TuningParameters");
  if (!parameters.is_array() || parameters.empty()) {
    return wrong("it has no ConfigurationSpace.TuningParameters; expected a T1 problem");
  }
  T1Problem problem;
  const T1Json& kernel = JsonField(json, "KernelSpecification");
  problem.name = JsonText(JsonField(json, "General"), "BenchmarkName");
  if (problem.name.empty()) problem.name = JsonText(kernel, "BenchmarkName");
  problem.kernel = JsonText(kernel, "KernelName");
  for (const T1Json& one : parameters) {
    T1Problem::Parameter parameter;
    parameter.name = JsonText(one, "Name");
    const T1Json list = ListOf(JsonField(one, "Values"));
    if (!list.is_array() || list.empty()) {
      return wrong(absl::StrCat("the Values of ", parameter.name,
                                " are not a list of literals; without --problem the values are those of the results"));
    }
    for (const T1Json& value : list) {
      const std::optional<ParameterValue> read = ParameterValue::Of(value);
      if (!read) return wrong(absl::StrCat(parameter.name, " has a value that is not a number, flag or text"));
      parameter.values.push_back(*read);
    }
    parameter.preset = ParameterValue::Of(JsonField(one, "Default"));
    problem.parameters.push_back(std::move(parameter));
  }
  const T1Json& conditions = JsonField(space, "Conditions");
  if (conditions.is_array()) {
    for (const T1Json& condition : conditions) problem.conditions.push_back(JsonText(condition, "Expression"));
  }
  const T1Json& size = JsonField(kernel, "ProblemSize");
  if (size.is_array()) {
    for (const T1Json& extent : size) {
      const std::optional<ParameterValue> read = ParameterValue::Of(extent);
      if (read && read->whole && *read->whole > 0) problem.problem_size.push_back(*read->whole);
    }
  }
  return problem;
}

}  // namespace pawl
