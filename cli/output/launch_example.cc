#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/output/winner_folder.h"
#include "kernels/plan.h"

namespace pawl {
namespace {

constexpr char kBegin[] = R"(#include <cuda.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

static void Check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  const char* text = nullptr;
  cuGetErrorString(result, &text);
  std::fprintf(stderr, "%s: %s\n", what, text);
  std::exit(1);
}

// Values in [0, 1), the same in each run.
static double Next() {
  static uint64_t state = 1;
  state = state * 6364136223846793005u + 1442695040888963407u;
  return static_cast<double>(state >> 40) / (1 << 24);
}

static uint32_t Bits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

[[maybe_unused]] static float ToF32(double value) { return static_cast<float>(value); }
[[maybe_unused]] static double ToF64(double value) { return value; }
[[maybe_unused]] static int32_t ToI32(double value) { return static_cast<int32_t>(value * 100); }
[[maybe_unused]] static uint16_t ToBf16(double value) { return Bits(static_cast<float>(value)) >> 16; }
[[maybe_unused]] static uint16_t ToF16(double value) {
  const uint32_t bits = Bits(static_cast<float>(value));
  const int exponent = static_cast<int>(bits >> 23 & 255) - 112;
  return exponent <= 0 ? 0 : static_cast<uint16_t>(exponent << 10 | (bits >> 13 & 1023));
}

template <typename Value>
[[maybe_unused]] static CUdeviceptr Input(size_t elements, Value (*convert)(double)) {
  std::vector<Value> host(elements);
  for (Value& value : host) value = convert(Next());
  CUdeviceptr device;
  Check(cuMemAlloc(&device, elements * sizeof(Value)), "allocate");
  Check(cuMemcpyHtoD(device, host.data(), elements * sizeof(Value)), "copy");
  return device;
}

[[maybe_unused]] static CUdeviceptr Room(size_t bytes) {
  CUdeviceptr device;
  Check(cuMemAlloc(&device, bytes), "allocate");
  Check(cuMemsetD8(device, 0, bytes), "clear");
  return device;
}

int main() {
  CUdevice gpu;
  CUcontext context;
  CUmodule module;
  Check(cuInit(0), "initialise");
  Check(cuDeviceGet(&gpu, 0), "open the GPU");
  Check(cuDevicePrimaryCtxRetain(&context, gpu), "open the GPU");
  Check(cuCtxSetCurrent(context), "open the GPU");
)";

constexpr char kEnd[] = R"(
  call();
  Check(cuCtxSynchronize(), "run");
  CUevent from, to;
  Check(cuEventCreate(&from, 0), "event");
  Check(cuEventCreate(&to, 0), "event");
  Check(cuEventRecord(from, nullptr), "event");
  const int calls = 100;
  for (int i = 0; i < calls; ++i) call();
  Check(cuEventRecord(to, nullptr), "event");
  Check(cuEventSynchronize(to), "run");
  float milliseconds = 0;
  Check(cuEventElapsedTime(&milliseconds, from, to), "event");
  std::printf("%.3f us a call in a loop of launches; Pawl times a graph of them, without the launch overhead\n",
              1000.0 * milliseconds / calls);
}
)";

const char* ConverterOf(v1::DataType type) {
  switch (type) {
    case v1::DATA_TYPE_F16:
      return "ToF16";
    case v1::DATA_TYPE_BF16:
      return "ToBf16";
    case v1::DATA_TYPE_F64:
      return "ToF64";
    case v1::DATA_TYPE_I32:
      return "ToI32";
    default:
      return "ToF32";
  }
}

std::string Name(const v1::PlanTensor& tensor) { return absl::StrCat("t_", tensor.name()); }

std::string TensorLine(const v1::PlanTensor& tensor) {
  const char* comment = tensor.role() == v1::TENSOR_ROLE_INPUT    ? ""
                        : tensor.role() == v1::TENSOR_ROLE_OUTPUT ? "  // output"
                                                                  : "  // scratch";
  if (tensor.role() == v1::TENSOR_ROLE_INPUT) {
    return absl::StrFormat("  CUdeviceptr %s = Input(%d, %s);\n", Name(tensor), tensor.elements(),
                           ConverterOf(tensor.type()));
  }
  return absl::StrFormat("  CUdeviceptr %s = Room(%d);%s\n", Name(tensor),
                         tensor.elements() * ElementBytes(tensor.type()), comment);
}

std::string Literal(float value) {
  std::string text = absl::StrFormat("%.9g", value);
  if (text.find_first_of(".e") == std::string::npos) absl::StrAppend(&text, ".0");
  return absl::StrCat(text, "f");
}

std::string Dimensions(const v1::Dim3& dim) { return absl::StrCat(dim.x(), ", ", dim.y(), ", ", dim.z()); }

// The launch of the bundle that a launch of the plan comes from: those whose `when` does not hold are not in the plan.
const v1::Launch* Written(const v1::Bundle& bundle, const v1::Plan& plan, int index) {
  int at = 0;
  for (int i = 0; i < index; ++i, ++at) {
    while (at < bundle.launches_size() && bundle.launches(at).entry() != plan.launches(i).entry()) ++at;
  }
  while (at < bundle.launches_size() && bundle.launches(at).entry() != plan.launches(index).entry()) ++at;
  return at < bundle.launches_size() ? &bundle.launches(at) : nullptr;
}

struct LaunchText {
  std::string setup;
  std::string call;
};

LaunchText TextOf(const v1::Bundle& bundle, const v1::Plan& plan, int index) {
  const v1::PlanLaunch& launch = plan.launches(index);
  const v1::Launch* written = Written(bundle, plan, index);
  LaunchText text;
  absl::StrAppendFormat(&text.setup, "\n  CUfunction entry%d;\n", index);
  absl::StrAppendFormat(&text.setup, "  Check(cuModuleGetFunction(&entry%d, module, \"%s\"), \"%s\");\n", index,
                        launch.entry(), launch.entry());
  if (launch.shared_bytes() > 48 * 1024) {
    absl::StrAppendFormat(&text.setup,
                          "  Check(cuFuncSetAttribute(entry%d, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, %d), "
                          "\"shared memory\");\n",
                          index, launch.shared_bytes());
  }
  std::vector<std::string> pointers;
  for (int i = 0; i < launch.arguments_size(); ++i) {
    const v1::PlanArgument& argument = launch.arguments(i);
    const std::string name = absl::StrFormat("a%d_%d", index, i);
    const std::string comment =
        written != nullptr && i < written->arguments_size() ? absl::StrCat("  // ", written->arguments(i)) : "";
    switch (argument.argument_case()) {
      case v1::PlanArgument::kTensor:
        pointers.push_back(absl::StrCat("&", Name(plan.tensors(argument.tensor()))));
        break;
      case v1::PlanArgument::kF32:
        absl::StrAppendFormat(&text.setup, "  float %s = %s;%s\n", name, Literal(argument.f32()), comment);
        break;
      case v1::PlanArgument::kF64:
        absl::StrAppendFormat(&text.setup, "  double %s = %.17g;%s\n", name, argument.f64(), comment);
        break;
      default:
        absl::StrAppendFormat(&text.setup, "  int32_t %s = %d;%s\n", name, argument.i32(), comment);
        break;
    }
    if (!argument.has_tensor()) pointers.push_back(absl::StrCat("&", name));
  }
  absl::StrAppendFormat(&text.setup, "  void* arguments%d[] = {%s};\n", index, absl::StrJoin(pointers, ", "));
  if (written != nullptr) {
    absl::StrAppend(&text.call, "    // grid ", absl::StrJoin(written->grid(), ", "), "; block ",
                    absl::StrJoin(written->block(), ", "), written->shared().empty() ? "" : "; shared ",
                    written->shared(), "\n");
  }
  absl::StrAppendFormat(
      &text.call, "    Check(cuLaunchKernel(entry%d, %s, %s, %d, nullptr, arguments%d, nullptr), \"%s\");\n", index,
      Dimensions(launch.grid()), Dimensions(launch.block()), launch.shared_bytes(), index, launch.entry());
  return text;
}

}  // namespace

std::string LaunchExample(const v1::Bundle& bundle, const v1::Plan& plan, const std::string& cubin) {
  std::string text = absl::StrCat("// How ", bundle.name(), " is launched at size ", plan.size(), ".\n", kBegin);
  absl::StrAppendFormat(&text, "  Check(cuModuleLoad(&module, \"%s\"), \"load %s\");\n\n", cubin, cubin);
  for (const v1::PlanTensor& tensor : plan.tensors()) absl::StrAppend(&text, TensorLine(tensor));
  std::string calls;
  for (int i = 0; i < plan.launches_size(); ++i) {
    const LaunchText launch = TextOf(bundle, plan, i);
    absl::StrAppend(&text, launch.setup);
    absl::StrAppend(&calls, launch.call);
  }
  absl::StrAppend(&text, "\n  const auto call = [&] {\n", calls, "  };\n", kEnd);
  return text;
}

}  // namespace pawl
