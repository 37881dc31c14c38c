#pragma once

#include <filesystem>
#include <string>

#include "absl/status/statusor.h"
#include "cli/connect/connection.h"
#include "pawl/v1/bundle.pb.h"

namespace pawl {

// Writes what a campaign measured into a recording, or adds it to the one that is there, and prints the file's name.
// `output` empty: RecordingPath. Answers the exit code.
absl::StatusOr<int> RecordCampaign(Connection& connection, const std::string& campaign, const v1::Bundle& bundle,
                                   std::filesystem::path output);

}  // namespace pawl
