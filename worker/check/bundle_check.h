#pragma once

#include <filesystem>
#include <vector>

#include "pawl/v1/check.pb.h"
#include "profiles/gpus.h"
#include "worker/process/process.h"

namespace pawl {

struct BundleCheckOptions {
  std::vector<const GpuSpec*> gpus;  // at least one
  bool build = true;
  // Compile for the architecture of every GPU that can launch it; otherwise for one: that of this machine's GPU where
  // it is among them, or the newest.
  bool all_architectures = false;
  bool builds = false;  // also every single change of the start variant
  bool allow_unsandboxed = false;
  Stopped stopped = nullptr;  // while it holds, what runs is ended and nothing more begins: the report is of no use
};

// Everything that can be said about a bundle here: mistakes, compile errors, limits of the known GPUs, and, where this
// machine has a GPU, whether the start variant passes validation on it.
v1::CheckReport CheckBundle(const std::filesystem::path& folder, const BundleCheckOptions& options);

}  // namespace pawl
