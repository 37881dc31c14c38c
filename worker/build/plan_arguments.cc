#include "worker/build/plan_arguments.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/data_type.h"
#include "kernels/plan.h"

namespace pawl {
namespace {

template <typename T>
std::string ContentOf(T value) {
  std::string bytes(sizeof(value), '\0');
  std::memcpy(bytes.data(), &value, sizeof(value));
  return bytes;
}

int RoundedUp(int offset, int align) { return (offset + align - 1) / align * align; }

absl::Status CheckTensor(const v1::Plan& plan, const v1::PlanLaunch& launch, int tensor) {
  if (tensor >= 0 && tensor < plan.tensors_size()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("launch ", launch.entry(), " names tensor ", tensor, " of ",
                                                 plan.tensors_size(), ": the plan is damaged"));
}

absl::Status CheckArgument(const v1::Plan& plan, const v1::PlanLaunch& launch, const v1::PlanArgument& argument) {
  switch (argument.argument_case()) {
    case v1::PlanArgument::ARGUMENT_NOT_SET:
      return absl::InvalidArgumentError(absl::StrCat("an argument of ", launch.entry(), " has no value"));
    case v1::PlanArgument::kTensor:
      return CheckTensor(plan, launch, argument.tensor());
    case v1::PlanArgument::kRaw: {
      const size_t bytes = argument.raw().size();
      if (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8) return absl::OkStatus();
      return absl::InvalidArgumentError(absl::StrCat("a scalar of ", launch.entry(), " has ", bytes, " bytes"));
    }
    case v1::PlanArgument::kFields:
      for (const v1::PlanArgument& field : argument.fields().fields()) {
        if (field.has_fields()) {
          return absl::InvalidArgumentError(absl::StrCat("a struct of ", launch.entry(), " holds another struct"));
        }
        if (absl::Status status = CheckArgument(plan, launch, field); !status.ok()) return status;
      }
      return absl::OkStatus();
    default:
      return absl::OkStatus();
  }
}

absl::Status CheckLaunch(const v1::Plan& plan, const v1::PlanLaunch& launch) {
  for (const v1::PlanArgument& argument : launch.arguments()) {
    if (absl::Status status = CheckArgument(plan, launch, argument); !status.ok()) return status;
  }
  if (launch.swap().empty()) return absl::OkStatus();
  if (launch.swap_size() != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("launch ", launch.entry(), " exchanges ", launch.swap_size(), " tensors: expected two"));
  }
  for (const int tensor : launch.swap()) {
    if (absl::Status status = CheckTensor(plan, launch, tensor); !status.ok()) return status;
  }
  const v1::PlanTensor &a = plan.tensors(launch.swap(0)), &b = plan.tensors(launch.swap(1));
  if (TensorBytes(a) == TensorBytes(b)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("launch ", launch.entry(), " exchanges ", a.name(), " and ", b.name(),
                                                 ", which have ", TensorBytes(a), " and ", TensorBytes(b),
                                                 " bytes at size ", plan.size()));
}

}  // namespace

int ArgumentBytes(const v1::PlanArgument& argument) {
  switch (argument.argument_case()) {
    case v1::PlanArgument::kTensor:
    case v1::PlanArgument::kF64:
      return 8;
    case v1::PlanArgument::kRaw:
      return static_cast<int>(argument.raw().size());
    case v1::PlanArgument::kFields:
      return argument.fields().in_memory() ? 8 : LayoutOf(argument.fields()).bytes;
    default:
      return 4;
  }
}

StructLayout LayoutOf(const v1::PlanStruct& fields) {
  StructLayout layout;
  int most = 1;
  for (const v1::PlanArgument& field : fields.fields()) {
    const int bytes = std::max(1, ArgumentBytes(field));
    layout.offsets.push_back(RoundedUp(layout.bytes, bytes));
    layout.bytes = layout.offsets.back() + bytes;
    most = std::max(most, bytes);
  }
  layout.bytes = RoundedUp(layout.bytes, most);
  return layout;
}

std::string ArgumentContent(const v1::PlanArgument& argument, const std::vector<uint64_t>& tensors, int32_t index) {
  switch (argument.argument_case()) {
    case v1::PlanArgument::kTensor:
      return ContentOf(tensors[argument.tensor()]);
    case v1::PlanArgument::kF32:
      return ContentOf(argument.f32());
    case v1::PlanArgument::kF64:
      return ContentOf(argument.f64());
    case v1::PlanArgument::kRaw:
      return argument.raw();
    case v1::PlanArgument::kIndex:
      return ContentOf(index);
    default:
      return ContentOf(argument.i32());
  }
}

std::string StructContent(const v1::PlanStruct& fields, const std::vector<uint64_t>& tensors, int32_t index) {
  const StructLayout layout = LayoutOf(fields);
  std::string content(layout.bytes, '\0');
  for (int i = 0; i < fields.fields_size(); ++i) {
    const std::string field = ArgumentContent(fields.fields(i), tensors, index);
    content.replace(layout.offsets[i], field.size(), field);
  }
  return content;
}

std::vector<int> BuffersAfter(const v1::Plan& plan) {
  std::vector<int> buffers(plan.tensors_size());
  std::iota(buffers.begin(), buffers.end(), 0);
  for (const v1::PlanLaunch& launch : plan.launches()) {
    const bool odd = RepeatsOf(launch) % 2 == 1;
    if (launch.swap_size() == 2 && odd) std::swap(buffers[launch.swap(0)], buffers[launch.swap(1)]);
  }
  return buffers;
}

std::optional<v1::Failure> CheckResultPlaces(const v1::Plan& plan, const v1::Plan& start) {
  const std::vector<int> places = BuffersAfter(plan), start_places = BuffersAfter(start);
  std::map<std::string, std::string> expected;
  for (int i = 0; i < start.tensors_size(); ++i) {
    expected[start.tensors(i).name()] = start.tensors(start_places[i]).name();
  }
  for (int i = 0; i < plan.tensors_size(); ++i) {
    if (!IsCompared(plan.tensors(i).role())) continue;
    const std::string &name = plan.tensors(i).name(), &place = plan.tensors(places[i]).name();
    if (place == expected[name]) continue;
    v1::Failure failure;
    failure.set_stage(v1::STAGE_STATIC_CHECK);
    failure.set_check(v1::CHECK_LAUNCH_LIMITS);
    failure.set_size(plan.size());
    failure.set_message(
        absl::StrCat("the result of ", name, " is left in the buffer of ", place, " at size ", plan.size(), ", where ",
                     start.launches().empty() ? "the contract wants" : "the start variant leaves", " it in that of ",
                     expected[name], ": copy it there as part of the call, or change `swap` or `repeat`"));
    return failure;
  }
  return std::nullopt;
}

absl::Status CheckPlan(const v1::Plan& plan) {
  for (const auto* launches : {&plan.launches(), &plan.setup()}) {
    for (const v1::PlanLaunch& launch : *launches) {
      if (absl::Status status = CheckLaunch(plan, launch); !status.ok()) return status;
    }
    for (int i = 0; i < launches->size(); ++i) {
      for (int j = i + 1; j < i + (*launches)[i].loop(); ++j) {
        if (j < launches->size() && RepeatsOf((*launches)[j]) == RepeatsOf((*launches)[i])) continue;
        return absl::InvalidArgumentError(
            absl::StrCat("the loop of launch ", (*launches)[i].entry(), " is not one: the plan is damaged"));
      }
    }
  }
  for (const v1::PlanSymbol& symbol : plan.symbols()) {
    if (symbol.tensor() >= 0 && symbol.tensor() < plan.tensors_size()) continue;
    return absl::InvalidArgumentError(absl::StrCat("symbol ", symbol.name(), " names tensor ", symbol.tensor(), " of ",
                                                   plan.tensors_size(), ": the plan is damaged"));
  }
  return absl::OkStatus();
}

}  // namespace pawl
