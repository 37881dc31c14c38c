#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/recording.pb.h"
#include "worker/process/process.h"
#include "worker/sandbox/sandboxing.h"

namespace pawl {

// Runs the bundle's baseline command in its folder and reads its times. It gets one JSON object a line on standard
// input, {"size", "sizes", "seed", "measurements"}, and answers each with one line: {"size", "graph_us", "event_us",
// "what"} or {"size", "error"}. Standard error is talk.
absl::StatusOr<std::vector<v1::BaselineTime>> RunBaseline(const v1::Bundle& bundle, const std::filesystem::path& folder,
                                                          const std::vector<v1::Size>& sizes,
                                                          const std::string& gpu_uuid,
                                                          const Sandboxing& sandboxing = Sandboxing(),
                                                          const Stopped& stopped = nullptr);

// The same where the bundle's folder is not at hand: bundle.baseline_files are put into a folder for it. All sizes.
absl::StatusOr<std::vector<v1::BaselineTime>> RunBaseline(const v1::Bundle& bundle, const std::string& gpu_uuid,
                                                          const Sandboxing& sandboxing = Sandboxing(),
                                                          const Stopped& stopped = nullptr);

// What the script is asked, and what its answers mean.
std::string BaselineRequests(const std::vector<v1::Size>& sizes, uint64_t seed, int measurements);
absl::StatusOr<std::vector<v1::BaselineTime>> ReadBaselineAnswers(std::string_view lines);

}  // namespace pawl
