#pragma once

#include <filesystem>
#include <string>

namespace pawl {

// Where a recording goes that nobody named a file for: BUNDLE.GPU.jsonl.gz, among those that ship where there is such a
// folder here.
std::filesystem::path RecordingPath(const std::string& bundle, const std::string& gpu);

}  // namespace pawl
