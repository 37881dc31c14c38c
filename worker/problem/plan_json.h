// A plan as Pawl's Python modules read it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "pawl/v1/plan.pb.h"

namespace pawl {

// Small enough for every generator's seed.
inline constexpr int kSeedBits = 31;

// {"size", "seed", "sizes"}: what every request begins with.
nlohmann::json SizeJson(const std::string& size, const google::protobuf::Map<std::string, int32_t>& sizes,
                        uint64_t seed);
nlohmann::json TensorsJson(const v1::Plan& plan);
nlohmann::json LaunchesJson(const v1::Plan& plan);
// By their names in the cubin.
nlohmann::json SymbolsJson(const v1::Plan& plan, const std::string& cubin);

}  // namespace pawl
