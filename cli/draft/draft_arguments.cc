// What a launch passes: tensors, sizes, scalars and structs (declared in drafting.h).
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/expression/expression.h"
#include "cli/draft/drafting.h"
#include "cli/draft/read/constants.h"
#include "cli/draft/read/translation.h"
#include "cli/draft/size_values.h"

namespace pawl {

void Drafting::Arguments(PlannedKernel& planned, DraftLaunch& launch) {
  for (size_t i = 0; i < planned.kernel->parameters.size(); ++i) {
    const SourceParameter& parameter = planned.kernel->parameters[i];
    const CppExpression* given =
        planned.launch != nullptr && i < planned.launch->arguments.size() ? &planned.launch->arguments[i] : nullptr;
    launch.arguments.push_back(Argument(parameter, given, planned, launch));
  }
}

std::string Drafting::Argument(const SourceParameter& parameter, const CppExpression* given, PlannedKernel& planned,
                               DraftLaunch& launch) {
  if (parameter.type.pointers > 1) {
    DraftStruct made;
    made.name = FreeName(absl::StrCat(parameter.name, "_pointers"));
    made.fields = {planned.tensors.at(parameter.name)};
    made.in_memory = true;
    made.todo = "name all tensors that it points to, 64 at most; of more, let the kernel take one pointer and a stride";
    draft_.structs.push_back(made);
    return made.name;
  }
  if (parameter.type.pointers == 1) return planned.tensors.at(parameter.name);
  if (parameter.type.record) {
    // A __half by value is a scalar, however libclang sees it.
    const std::optional<ElementType> plain = TypeOf(parameter.type, planned);
    if (!plain || plain->width > 1) return Struct(parameter, given, planned);
  }
  const std::optional<ElementType> type = TypeOf(parameter.type, planned);
  DraftLaunch& head = HeadOf(launch);
  if (given != nullptr && planned.launch->loop && !head.repeat.empty() && type &&
      (type->type == "i32" || type->type == "u32") &&
      RootOf(*given, planned.launch->values) == planned.launch->loop->index) {
    if (head.index.empty()) head.index = FreeName(parameter.name);
    return head.index;
  }
  const auto size = planned.sizes.find(parameter.name);
  if (size != planned.sizes.end() && type && type->type == "i32" && IsName(size->second)) return size->second;
  return Scalar(parameter, given, planned, type, size == planned.sizes.end() ? "" : size->second);
}

std::string Drafting::Scalar(const SourceParameter& parameter, const CppExpression* given, PlannedKernel& planned,
                             const std::optional<ElementType>& type, const std::string& size) {
  DraftScalar scalar;
  scalar.type = type ? type->type : "f32";
  if (!type) {
    scalar.todo =
        absl::StrCat("type: ", parameter.type.element, " is not known; a struct is a [[struct]] with its fields");
  }
  if (!size.empty()) {
    scalar.value = size;
  } else if (given != nullptr) {
    // A number of the host that is no integer is none of the sizes.
    if (std::optional<std::string> text =
            HostText(*given, planned, nullptr, IsWholeType(scalar.type) && !IsFlagName(parameter.name))) {
      scalar.value = *text;
    }
    if (scalar.value.empty()) {
      scalar.value = PassedReal(RootOf(*given, planned.launch->values), planned).value_or("");
      if (!scalar.value.empty()) scalar.todo = "the first caller of the host function passes it";
    }
  }
  if (scalar.value.empty() && given != nullptr && !planned.launch->first_round.empty()) {
    CppExpression first = *given;
    for (size_t step = 0; step <= planned.launch->first_round.size(); ++step)
      first = Substituted(first, planned.launch->first_round);
    const std::optional<int64_t> number = LikelyValue(Resolved(first, planned.launch->values), ConstantValues(model_));
    if (number && CppText(first) != CppText(*given)) {
      scalar.value = absl::StrCat(*number);
      scalar.todo =
          absl::StrCat("the host passes ", CppText(*given), ", which is this in the first round of its loops");
    }
  }
  if (scalar.value.empty()) {
    scalar.value = TypicalValue(parameter.name, scalar.type);
    absl::StrAppend(&scalar.todo, scalar.todo.empty() ? "" : "; ",
                    given == nullptr ? "no launch in the source gives its value"
                                     : absl::StrCat("the host passes ", CppText(*given)));
  }
  for (const DraftScalar& known : draft_.scalars) {
    if (known.type == scalar.type && known.value == scalar.value &&
        (known.name == parameter.name || absl::StartsWith(known.name, parameter.name))) {
      return known.name;
    }
  }
  scalar.name = FreeName(parameter.name);
  draft_.scalars.push_back(scalar);
  return scalar.name;
}

std::string Drafting::Struct(const SourceParameter& parameter, const CppExpression* given, PlannedKernel& planned) {
  DraftStruct made;
  if (std::any_of(parameter.fields.begin(), parameter.fields.end(),
                  [](const SourceParameter& field) { return absl::StrContains(field.name, "."); })) {
    made.todo = "the fields of its inner structs are written out: they must lie as in C without the inner structs";
  }
  if (parameter.fields.empty()) made.todo = absl::StrCat(parameter.type.spelling, " is not known: name its fields");
  for (const SourceParameter& field : parameter.fields) {
    const auto tensor = planned.tensors.find(absl::StrCat(parameter.name, ".", field.name));
    if (tensor != planned.tensors.end()) {
      made.fields.push_back(tensor->second);
      continue;
    }
    const std::optional<ElementType> type = TypeOf(field.type, planned);
    const auto size = planned.sizes.find(absl::StrCat(parameter.name, ".", field.name));
    if (size != planned.sizes.end() && type && type->type == "i32" && IsName(size->second)) {
      made.fields.push_back(size->second);
    } else {
      const CppExpression* value =
          FieldOf(parameter, static_cast<size_t>(&field - parameter.fields.data()), given, planned);
      made.fields.push_back(Scalar(field, value, planned, type, size == planned.sizes.end() ? "" : size->second));
    }
  }
  for (const DraftStruct& known : draft_.structs) {
    if (known.fields == made.fields && !known.in_memory) return known.name;
  }
  made.name = FreeName(parameter.name);
  draft_.structs.push_back(made);
  return made.name;
}

}  // namespace pawl
