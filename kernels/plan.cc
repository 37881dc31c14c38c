#include "kernels/plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/expression/expression.h"
#include "kernels/data_file.h"
#include "kernels/entry_name.h"
#include "kernels/limits.h"
#include "kernels/tolerance.h"
#include "kernels/variable_values.h"

namespace pawl {
namespace {

// Whether each call gets another content by chance.
bool IsDrawn(v1::Fill fill) {
  switch (fill) {
    case v1::FILL_ZEROS:
    case v1::FILL_ONES:
    case v1::FILL_CONSTANT:
    case v1::FILL_IOTA:
    case v1::FILL_FILE:
      return false;
    default:
      return true;
  }
}

constexpr int64_t kMaxInt32 = std::numeric_limits<int32_t>::max();

using Values = std::map<std::string, double>;
using Launches = google::protobuf::RepeatedPtrField<v1::Launch>;
using Planned = google::protobuf::RepeatedPtrField<v1::PlanLaunch>;

std::optional<int> TensorNamed(const std::string& name, const v1::Plan& plan) {
  for (int i = 0; i < plan.tensors_size(); ++i) {
    if (plan.tensors(i).name() == name) return i;
  }
  return std::nullopt;
}

// The first tensor that a launch is given and that is not static; empty: none.
std::string NotStatic(const v1::PlanLaunch& launch, const v1::Plan& plan) {
  std::vector<const v1::PlanArgument*> arguments;
  for (const v1::PlanArgument& argument : launch.arguments()) {
    arguments.push_back(&argument);
    for (const v1::PlanArgument& field : argument.fields().fields()) arguments.push_back(&field);
  }
  for (const v1::PlanArgument* argument : arguments) {
    if (argument->argument_case() != v1::PlanArgument::kTensor) continue;
    const v1::PlanTensor& tensor = plan.tensors(argument->tensor());
    if (!tensor.is_static()) return tensor.name();
  }
  return "";
}

}  // namespace

std::map<std::string, double> GpuLimits(const v1::GpuInfo& gpu) {
  return {{"SM_COUNT", gpu.sm_count()},
          {"MAX_THREADS_PER_BLOCK", gpu.max_threads_per_block()},
          {"MAX_THREADS_PER_SM", gpu.max_threads_per_sm()},
          {"SHARED_PER_BLOCK", gpu.shared_per_block_optin()},
          {"SHARED_PER_SM", gpu.shared_per_sm()},
          {"REGISTERS_PER_SM", gpu.registers_per_sm()},
          {"L2_BYTES", static_cast<double>(gpu.l2_bytes())}};
}

bool IsFilled(v1::TensorRole role) { return role == v1::TENSOR_ROLE_INPUT || role == v1::TENSOR_ROLE_INOUT; }

bool IsCompared(v1::TensorRole role) { return role == v1::TENSOR_ROLE_OUTPUT || role == v1::TENSOR_ROLE_INOUT; }

bool CallsShareInputs(const v1::Plan& plan) {
  bool drawn = false;
  for (const v1::PlanTensor& tensor : plan.tensors()) {
    if (tensor.fill() == v1::FILL_FILE || tensor.is_static()) return true;
    drawn |= IsFilled(tensor.role()) && IsDrawn(tensor.fill());
  }
  return !drawn;
}

const std::string& SymbolOf(const v1::PlanLaunch& launch) {
  return launch.symbol().empty() ? launch.entry() : launch.symbol();
}

int64_t CountLaunches(const v1::Plan& plan) {
  int64_t count = 0;
  for (const v1::PlanLaunch& launch : plan.launches()) count += std::max(1, launch.repeat());
  return count;
}

const v1::Tolerance& ToleranceOf(const v1::Plan& plan, const v1::PlanTensor& tensor) {
  return tensor.has_tolerance() ? tensor.tolerance() : plan.tolerance();
}

struct Planner::State {
  const v1::Bundle& bundle;
  std::map<std::string, Expression> expressions;

  absl::StatusOr<double> Number(const std::string& text, const Values& values) {
    auto it = expressions.find(text);
    if (it == expressions.end()) {
      const absl::StatusOr<std::string> plain = WithoutWords(bundle, text);
      if (!plain.ok()) return plain.status();
      absl::StatusOr<Expression> expression = Expression::Parse(*plain);
      if (!expression.ok()) return expression.status();
      it = expressions.emplace(text, std::move(*expression)).first;
    }
    return it->second.Evaluate(values);
  }

  absl::StatusOr<int64_t> Whole(const std::string& text, const Values& values, int64_t low, int64_t high) {
    absl::StatusOr<double> number = Number(text, values);
    if (!number.ok()) return number.status();
    if (*number != std::floor(*number)) {
      return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" is ", *number, ", not a whole number"));
    }
    if (*number < static_cast<double>(low) || *number > static_cast<double>(high)) {
      return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" is ", *number, "; expected ", low, " to ", high));
    }
    return static_cast<int64_t>(*number);
  }

  absl::StatusOr<v1::Dim3> Geometry(const google::protobuf::RepeatedPtrField<std::string>& texts,
                                    const Values& values) {
    int32_t extent[3] = {1, 1, 1};
    if (texts.empty() || texts.size() > 3) return absl::InvalidArgumentError("expected one to three expressions");
    for (int i = 0; i < texts.size(); ++i) {
      absl::StatusOr<int64_t> whole = Whole(texts[i], values, 1, kMaxInt32);
      if (!whole.ok()) return whole.status();
      extent[i] = static_cast<int32_t>(*whole);
    }
    v1::Dim3 result;
    result.set_x(extent[0]);
    result.set_y(extent[1]);
    result.set_z(extent[2]);
    return result;
  }

  absl::StatusOr<v1::PlanTensor> Tensor(const v1::Tensor& tensor, const Values& values) {
    v1::PlanTensor result;
    result.set_name(tensor.name());
    result.set_type(tensor.type());
    result.set_role(tensor.role());
    result.set_fill(tensor.fill());
    int64_t elements = 1;
    for (const std::string& text : tensor.shape()) {
      absl::StatusOr<int64_t> extent = Whole(text, values, 1, kMaxElements);
      if (!extent.ok()) return extent.status();
      result.add_shape(*extent);
      if (__builtin_mul_overflow(elements, *extent, &elements) || elements > kMaxElements) {
        return absl::InvalidArgumentError("it has more than 2^40 elements, which no GPU holds");
      }
    }
    if (ElementBits(tensor.type()) < 8 && !result.shape().empty() && *result.shape().rbegin() % 2 != 0) {
      return absl::InvalidArgumentError(absl::StrCat("the last extent is ", *result.shape().rbegin(),
                                                     "; expected an even one: two elements share a byte"));
    }
    result.set_elements(elements);
    result.set_align(tensor.align());
    result.set_file(tensor.file());
    result.set_file_holds(tensor.file_holds());
    result.set_is_static(tensor.is_static());
    if (IsCompared(tensor.role())) {
      if (tensor.has_tolerance()) *result.mutable_tolerance() = tensor.tolerance();
      if (!tensor.has_tolerance() && !IsFloat(tensor.type())) result.mutable_tolerance()->set_exact(true);
    }
    return result;
  }

  // Whether the fill can be made: what it counts must be a value of the type, and a file must have it.
  absl::Status CheckFill(const v1::PlanTensor& tensor) {
    const bool counts = tensor.fill() == v1::FILL_IOTA || tensor.fill() == v1::FILL_PERMUTATION;
    const double last = static_cast<double>(tensor.elements() - 1);
    if (counts && (last > LargestOf(tensor.type()) || last > 1 / std::max(UnitRoundoff(tensor.type()), 0x1p-53))) {
      return absl::InvalidArgumentError(
          absl::StrCat("it counts to ", last, ", which ", DataTypeName(tensor.type()), " can't hold exactly"));
    }
    if (tensor.fill() != v1::FILL_FILE) return absl::OkStatus();
    const v1::DataFile* file = FindDataFile(bundle, tensor.file());
    if (file == nullptr) return absl::InvalidArgumentError(absl::StrCat("there is no data file ", tensor.file()));
    return DataOf(*file, tensor).status();
  }

  // The values that the contract allows in an input. `tensor` has its type and role.
  absl::Status Range(const std::string& low, const std::string& high, const Values& values, v1::PlanTensor& tensor) {
    if (low.empty() && high.empty()) {
      if (tensor.role() != v1::TENSOR_ROLE_INPUT || tensor.type() != v1::DATA_TYPE_I32 ||
          tensor.fill() > v1::FILL_UNIFORM) {
        return absl::OkStatus();
      }
      tensor.set_low(0);  // a bundle of version 0.1.0
      tensor.set_high(1023);
      return absl::OkStatus();
    }
    for (const auto& [text, set] :
         {std::pair{&low, &v1::PlanTensor::set_low}, std::pair{&high, &v1::PlanTensor::set_high}}) {
      absl::StatusOr<double> number = Number(*text, values);
      if (!number.ok()) return number.status();
      if (!Holds(tensor.type(), *number)) {
        return absl::InvalidArgumentError(
            absl::StrCat("\"", *text, "\" is ", *number, ", which the tensor's type can't hold"));
      }
      (tensor.*set)(*number);
    }
    if (tensor.low() > tensor.high()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the lowest value is ", tensor.low(), ", the highest ", tensor.high()));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<v1::PlanArgument> Scalar(const v1::Scalar& scalar, const Values& values) {
    v1::PlanArgument argument;
    if (scalar.type() == v1::DATA_TYPE_I32) {
      absl::StatusOr<int64_t> whole = Whole(scalar.value(), values, -kMaxInt32 - 1, kMaxInt32);
      if (!whole.ok()) return whole.status();
      argument.set_i32(static_cast<int32_t>(*whole));
      return argument;
    }
    absl::StatusOr<double> number = Number(scalar.value(), values);
    if (!number.ok()) return number.status();
    if (!Holds(scalar.type(), *number)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "\"", scalar.value(), "\" is ", *number,
          IsFloat(scalar.type()) ? ", too large for " : ", which can't be a value of ", DataTypeName(scalar.type())));
    }
    if (scalar.type() == v1::DATA_TYPE_F64) {
      argument.set_f64(*number);
    } else if (scalar.type() == v1::DATA_TYPE_F32) {
      argument.set_f32(static_cast<float>(*number));
    } else {
      argument.set_raw(EncodedScalar(scalar.type(), *number));
    }
    return argument;
  }

  // A tensor, a size or a scalar.
  absl::StatusOr<v1::PlanArgument> Field(const std::string& name, const v1::Plan& plan, const Values& values) {
    v1::PlanArgument argument;
    if (const std::optional<int> tensor = TensorNamed(name, plan)) {
      argument.set_tensor(*tensor);
      return argument;
    }
    if (auto it = plan.sizes().find(name); it != plan.sizes().end()) {
      argument.set_i32(it->second);
      return argument;
    }
    for (const v1::Scalar& scalar : bundle.scalars()) {
      if (scalar.name() == name) return Scalar(scalar, values);
    }
    return absl::InvalidArgumentError("it is neither a tensor nor a scalar nor a size");
  }

  absl::StatusOr<v1::PlanArgument> Argument(const std::string& name, const v1::Plan& plan, const Values& values) {
    for (const v1::StructArgument& of : bundle.structs()) {
      if (of.name() != name) continue;
      v1::PlanArgument argument;
      argument.mutable_fields()->set_in_memory(of.in_memory());
      for (const std::string& field : of.fields()) {
        absl::StatusOr<v1::PlanArgument> planned = Field(field, plan, values);
        if (!planned.ok()) {
          return absl::InvalidArgumentError(absl::StrCat("field ", field, ": ", planned.status().message()));
        }
        *argument.mutable_fields()->add_fields() = *std::move(planned);
      }
      return argument;
    }
    return Field(name, plan, values);
  }

  // The two tensors whose names a launch exchanges.
  absl::Status Swap(const v1::Launch& launch, const v1::Plan& plan, v1::PlanLaunch& result) {
    if (launch.swap().empty()) return absl::OkStatus();
    if (launch.swap_size() != 2) return absl::InvalidArgumentError("expected two tensors");
    for (const std::string& name : launch.swap()) {
      const std::optional<int> tensor = TensorNamed(name, plan);
      if (!tensor) return absl::InvalidArgumentError(absl::StrCat("there is no tensor ", name));
      if (plan.tensors(*tensor).role() == v1::TENSOR_ROLE_INPUT || plan.tensors(*tensor).is_static()) {
        return absl::InvalidArgumentError(absl::StrCat(name, " may not be written by a launch"));
      }
      result.add_swap(*tensor);
    }
    const v1::PlanTensor &a = plan.tensors(result.swap(0)), &b = plan.tensors(result.swap(1));
    const bool same =
        a.type() == b.type() && std::equal(a.shape().begin(), a.shape().end(), b.shape().begin(), b.shape().end());
    if (same && result.swap(0) != result.swap(1)) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(a.name(), " and ", b.name(), " must be two tensors of the same type and shape"));
  }

  // Nothing where the launch is left out. `first`: of its loop, whose repetition it has; otherwise the launch itself.
  absl::StatusOr<std::optional<v1::PlanLaunch>> Launch(const v1::Launch& launch, const v1::Launch& first,
                                                       const std::string& entry, const Values& values,
                                                       const v1::Plan& plan) {
    const auto failed = [&](const std::string& what, const absl::Status& status) {
      return absl::InvalidArgumentError(
          absl::StrCat("launch ", launch.entry(), " at size ", plan.size(), ": ", what, ": ", status.message()));
    };
    if (!launch.when().empty()) {
      absl::StatusOr<double> when = Number(launch.when(), values);
      if (!when.ok()) return failed("when", when.status());
      if (*when == 0) return std::nullopt;
    }
    v1::PlanLaunch result;
    result.set_entry(entry);
    if (!first.repeat().empty()) {
      absl::StatusOr<int64_t> repeat = Whole(first.repeat(), values, 0, kMaxLaunches);
      if (!repeat.ok()) return failed("repeat", repeat.status());
      if (*repeat == 0) return std::nullopt;
      result.set_repeat(static_cast<int32_t>(*repeat));
    }
    absl::StatusOr<v1::Dim3> grid = Geometry(launch.grid(), values);
    if (!grid.ok()) return failed("grid", grid.status());
    absl::StatusOr<v1::Dim3> block = Geometry(launch.block(), values);
    if (!block.ok()) return failed("block", block.status());
    *result.mutable_grid() = *grid;
    *result.mutable_block() = *block;
    if (!launch.cluster().empty()) {
      absl::StatusOr<v1::Dim3> cluster = Geometry(launch.cluster(), values);
      if (!cluster.ok()) return failed("cluster", cluster.status());
      *result.mutable_cluster() = *cluster;
    }
    result.set_cooperative(launch.cooperative());
    if (!launch.shared().empty()) {
      absl::StatusOr<int64_t> shared = Whole(launch.shared(), values, 0, kMaxInt32);
      if (!shared.ok()) return failed("shared", shared.status());
      result.set_shared_bytes(static_cast<int32_t>(*shared));
    }
    if (absl::Status status = Swap(first, plan, result); !status.ok()) return failed("swap", status);
    for (const std::string& name : launch.arguments()) {
      if (!first.index().empty() && name == first.index()) {
        result.add_arguments()->set_index(true);
        continue;
      }
      absl::StatusOr<v1::PlanArgument> argument = Argument(name, plan, values);
      if (!argument.ok()) return failed(absl::StrCat("argument ", name), argument.status());
      *result.add_arguments() = *std::move(argument);
    }
    return result;
  }

  // Launches that know sizes alone see no variables, whatever their names are.
  absl::Status AddLaunches(const Launches& launches, const v1::Variant& variant, const v1::Size& size,
                           const Values& values, const v1::Plan& plan, Planned* planned) {
    int64_t count = 0;
    int first = 0;   // of the loop, in the bundle
    int begin = -1;  // of the loop, in the plan; -1: there is none, or none of its launches yet
    for (int i = 0; i < launches.size(); ++i) {
      const v1::Launch& launch = launches[i];
      const bool goes_on = i > 0 && !launch.loop().empty() && launch.loop() == launches[i - 1].loop();
      if (!goes_on) first = i, begin = -1;
      absl::StatusOr<std::optional<v1::PlanLaunch>> result =
          Launch(launch, launches[first], EntryOf(bundle, launch.entry(), variant, size), values, plan);
      if (!result.ok()) return result.status();
      if (!result->has_value()) continue;
      count += std::max(1, (*result)->repeat());
      if (count > kMaxLaunches) {
        return absl::InvalidArgumentError(absl::StrCat("launch ", launch.entry(), " at size ", size.name(),
                                                       ": a call has more than ", kMaxLaunches,
                                                       " launches, repetitions counted"));
      }
      if (begin >= 0) {
        (*planned)[planned->size() - 1].clear_swap();  // the last one exchanges
        (*planned)[begin].set_loop(planned->size() - begin + 1);
      } else {
        begin = planned->size();
      }
      *planned->Add() = **std::move(result);
    }
    return absl::OkStatus();
  }

  // Variables of the device code that hold inputs. Those of the implementation must be the same in every call.
  absl::Status AddSymbols(const google::protobuf::RepeatedPtrField<v1::Symbol>& symbols, bool must_be_static,
                          v1::Plan& plan) {
    for (const v1::Symbol& symbol : symbols) {
      const std::optional<int> tensor = TensorNamed(symbol.tensor(), plan);
      const auto failed = [&](const std::string& what) {
        return absl::InvalidArgumentError(absl::StrCat("symbol ", symbol.name(), ": ", what));
      };
      if (!tensor) return failed(absl::StrCat("there is no tensor ", symbol.tensor()));
      const v1::PlanTensor& filled = plan.tensors(*tensor);
      if (filled.role() != v1::TENSOR_ROLE_INPUT) return failed(absl::StrCat(symbol.tensor(), " is not an input"));
      if (must_be_static && !filled.is_static()) return failed(absl::StrCat(symbol.tensor(), " is not static"));
      v1::PlanSymbol& added = *plan.add_symbols();
      added.set_name(symbol.name());
      added.set_tensor(*tensor);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<v1::Plan> Make(const v1::Size& size, const Values& values, const v1::Variant& variant,
                                const Launches& launches, bool with_scratch) {
    v1::Plan plan;
    plan.set_size(size.name());
    *plan.mutable_sizes() = size.values();
    *plan.mutable_tolerance() = bundle.tolerance();
    for (const v1::Tensor& tensor : bundle.tensors()) {
      if (tensor.role() == v1::TENSOR_ROLE_SCRATCH && !with_scratch) continue;
      absl::StatusOr<v1::PlanTensor> planned = Tensor(tensor, values);
      if (!planned.ok()) {
        return absl::InvalidArgumentError(
            absl::StrCat("tensor ", tensor.name(), " at size ", size.name(), ": shape: ", planned.status().message()));
      }
      if (absl::Status status = Range(tensor.low(), tensor.high(), values, *planned); !status.ok()) {
        return absl::InvalidArgumentError(
            absl::StrCat("tensor ", tensor.name(), " at size ", size.name(), ": range: ", status.message()));
      }
      if (absl::Status status = CheckFill(*planned); !status.ok()) {
        return absl::InvalidArgumentError(
            absl::StrCat("tensor ", tensor.name(), " at size ", size.name(), ": fill: ", status.message()));
      }
      *plan.add_tensors() = *planned;
    }
    Planned planned;
    if (absl::Status status = AddLaunches(launches, variant, size, values, plan, &planned); !status.ok()) return status;
    plan.mutable_launches()->Swap(&planned);
    if (plan.launches().empty() && !launches.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("no launch is left at size ", size.name(), ": every `when` is 0"));
    }
    for (const auto& [text, set] : {std::pair{&bundle.work_flops(), &v1::Plan::set_flops},
                                    std::pair{&bundle.work_bytes(), &v1::Plan::set_bytes}}) {
      if (text->empty()) continue;
      absl::StatusOr<double> number = Number(*text, values);
      if (!number.ok()) return absl::InvalidArgumentError(absl::StrCat("[work]: ", number.status().message()));
      (plan.*set)(*number);
    }
    return plan;
  }

  // Launches of the setup: its expressions know sizes alone.
  absl::Status AddSetup(const v1::Size& size, v1::Plan& plan) {
    const Values values(size.values().begin(), size.values().end());
    Planned planned;
    if (absl::Status status = AddLaunches(bundle.setup().launches(), v1::Variant(), size, values, plan, &planned);
        !status.ok()) {
      return status;
    }
    for (const v1::PlanLaunch& launch : planned) {
      if (const std::string other = NotStatic(launch, plan); !other.empty()) {
        return absl::InvalidArgumentError(absl::StrCat("launch ", launch.entry(), " at size ", size.name(),
                                                       ": the setup gets static tensors only, and ", other,
                                                       " is not static"));
      }
    }
    plan.mutable_setup()->Swap(&planned);
    return absl::OkStatus();
  }
};

Planner::Planner(const v1::Bundle& bundle) : state_(new State{bundle, {}}) {}
Planner::~Planner() = default;

absl::StatusOr<v1::Plan> Planner::MakePlan(const v1::Variant& variant, const v1::Size& size, const v1::GpuInfo& gpu) {
  Values values = GpuLimits(gpu);
  for (const auto& [name, value] : size.values()) values[name] = value;
  for (const auto& [name, value] : variant.values()) values[name] = value;
  absl::StatusOr<v1::Plan> plan = state_->Make(size, values, variant, state_->bundle.launches(), true);
  if (!plan.ok()) return plan;
  if (absl::Status status = state_->AddSetup(size, *plan); !status.ok()) return status;
  if (absl::Status status = state_->AddSymbols(state_->bundle.symbols(), true, *plan); !status.ok()) return status;
  return plan;
}

absl::StatusOr<v1::Plan> Planner::MakeReferencePlan(const v1::Size& size, const v1::GpuInfo& gpu) {
  Values values = GpuLimits(gpu);
  for (const auto& [name, value] : size.values()) values[name] = value;
  absl::StatusOr<v1::Plan> plan =
      state_->Make(size, values, v1::Variant(), state_->bundle.reference().launches(), false);
  if (!plan.ok()) return plan;
  if (absl::Status status = state_->AddSymbols(state_->bundle.reference().symbols(), false, *plan); !status.ok()) {
    return status;
  }
  return plan;
}

absl::StatusOr<v1::Plan> MakePlan(const v1::Bundle& bundle, const v1::Variant& variant, const v1::Size& size,
                                  const v1::GpuInfo& gpu) {
  return Planner(bundle).MakePlan(variant, size, gpu);
}

absl::StatusOr<v1::Plan> MakeReferencePlan(const v1::Bundle& bundle, const v1::Size& size, const v1::GpuInfo& gpu) {
  return Planner(bundle).MakeReferencePlan(size, gpu);
}

v1::GpuInfo TypicalGpu() {
  v1::GpuInfo gpu;
  gpu.set_sm_count(132);
  gpu.set_max_threads_per_sm(2048);
  gpu.set_max_threads_per_block(1024);
  gpu.set_registers_per_sm(65536);
  gpu.set_shared_per_sm(233472);
  gpu.set_shared_per_block_optin(232448);
  gpu.set_l2_bytes(int64_t{50} << 20);
  return gpu;
}

}  // namespace pawl
