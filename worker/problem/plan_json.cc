#include "worker/problem/plan_json.h"

#include <cstring>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/strip.h"
#include "worker/build/cubin.h"

namespace pawl {
namespace {

using Json = nlohmann::json;

// "DATA_TYPE_F8E4M3" is "f8e4m3" in kernel.toml.
std::string WordOf(const std::string& name, absl::string_view prefix) {
  return absl::AsciiStrToLower(absl::StripPrefix(name, prefix));
}

// As in memory: JSON has no infinity, and a float is not a double.
template <typename T>
std::string HexOf(T value) {
  char bytes[sizeof(T)];
  memcpy(bytes, &value, sizeof(T));
  return absl::BytesToHexString(absl::string_view(bytes, sizeof(T)));
}

Json ArgumentJson(const v1::PlanArgument& argument) {
  switch (argument.argument_case()) {
    case v1::PlanArgument::kTensor:
      return {{"tensor", argument.tensor()}};
    case v1::PlanArgument::kF32:
      return {{"bytes", HexOf(argument.f32())}};
    case v1::PlanArgument::kF64:
      return {{"bytes", HexOf(argument.f64())}};
    case v1::PlanArgument::kRaw:
      return {{"bytes", absl::BytesToHexString(argument.raw())}};
    case v1::PlanArgument::kIndex:
      return {{"index", true}};
    case v1::PlanArgument::kFields: {
      Json fields = Json::array();
      for (const v1::PlanArgument& field : argument.fields().fields()) fields.push_back(ArgumentJson(field));
      return {{"fields", std::move(fields)}, {"in_memory", argument.fields().in_memory()}};
    }
    default:
      return {{"bytes", HexOf(argument.i32())}};
  }
}

Json ExtentsJson(const v1::Dim3& extents) { return {extents.x(), extents.y(), extents.z()}; }

}  // namespace

Json SizeJson(const std::string& size, const google::protobuf::Map<std::string, int32_t>& sizes, uint64_t seed) {
  Json request = {{"size", size}, {"seed", seed >> (64 - kSeedBits)}, {"sizes", Json::object()}};
  for (const auto& [name, value] : sizes) request["sizes"][name] = value;
  return request;
}

Json TensorsJson(const v1::Plan& plan) {
  Json tensors = Json::array();
  for (const v1::PlanTensor& tensor : plan.tensors()) {
    Json& added =
        tensors.emplace_back(Json{{"name", tensor.name()},
                                  {"type", WordOf(v1::DataType_Name(tensor.type()), "DATA_TYPE_")},
                                  {"role", WordOf(v1::TensorRole_Name(tensor.role()), "TENSOR_ROLE_")},
                                  {"shape", std::vector<int64_t>(tensor.shape().begin(), tensor.shape().end())}});
    added["fill"] = tensor.fill() == v1::FILL_UNSPECIFIED ? "normal" : WordOf(v1::Fill_Name(tensor.fill()), "FILL_");
    if (tensor.has_low()) added["low"] = tensor.low();
    if (tensor.has_high()) added["high"] = tensor.high();
    if (tensor.align() > 0) added["align"] = tensor.align();
    if (tensor.is_static()) added["static"] = true;
  }
  return tensors;
}

Json LaunchesJson(const v1::Plan& plan) {
  Json launches = Json::array();
  for (const v1::PlanLaunch& launch : plan.launches()) {
    Json arguments = Json::array();
    for (const v1::PlanArgument& argument : launch.arguments()) arguments.push_back(ArgumentJson(argument));
    Json& added = launches.emplace_back(Json{{"entry", launch.symbol().empty() ? launch.entry() : launch.symbol()},
                                             {"grid", ExtentsJson(launch.grid())},
                                             {"block", ExtentsJson(launch.block())},
                                             {"shared", launch.shared_bytes()},
                                             {"arguments", std::move(arguments)}});
    if (launch.repeat() > 1) added["repeat"] = launch.repeat();
    if (launch.loop() > 1) added["loop"] = launch.loop();
    if (launch.swap_size() == 2) added["swap"] = {launch.swap(0), launch.swap(1)};
    if (launch.cooperative()) added["cooperative"] = true;
    if (launch.has_cluster()) added["cluster"] = ExtentsJson(launch.cluster());
  }
  return launches;
}

Json SymbolsJson(const v1::Plan& plan, const std::string& cubin) {
  Json symbols = Json::array();
  if (plan.symbols().empty()) return symbols;
  const absl::StatusOr<std::vector<GlobalVariable>> variables = GlobalVariables(cubin);
  for (const v1::PlanSymbol& symbol : plan.symbols()) {
    const GlobalVariable* variable = variables.ok() ? FindVariable(*variables, symbol.name()) : nullptr;
    symbols.push_back({{"name", variable == nullptr ? symbol.name() : variable->name}, {"tensor", symbol.tensor()}});
  }
  return symbols;
}

}  // namespace pawl
