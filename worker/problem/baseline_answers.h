#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "pawl/v1/recording.pb.h"

namespace pawl {

// What the lines of a baseline mean, whether its own script or pawl_baseline wrote them. Unavailable: it failed, and
// the message says why.
absl::StatusOr<std::vector<v1::BaselineTime>> ReadBaselineAnswers(std::string_view lines);
absl::StatusOr<v1::BesideBaseline> ReadBesideAnswer(std::string_view lines, const std::string& size);

}  // namespace pawl
