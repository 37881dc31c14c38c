#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/recording.pb.h"
#include "worker/build/built_variant.h"
#include "worker/problem/baseline_answers.h"
#include "worker/problem/problem_process.h"
#include "worker/process/process.h"
#include "worker/sandbox/sandboxing.h"

namespace pawl {

// Where and how a baseline command runs.
struct BaselineHost {
  v1::GpuInfo gpu;
  Sandboxing sandboxing = Sandboxing();
  Stopped stopped = nullptr;
  ProblemProcess* python = nullptr;  // runs scripts of its interpreter with PyTorch loaded; null: there is none
};

// Runs the bundle's baseline command in its folder and reads its times. It gets one JSON object a line on standard
// input, {"size", "sizes", "tensors", "seed", "measurements"}, and answers each with one line: {"size", "graph_us",
// "event_us", "what"} or {"size", "error"}. Standard error is talk. Python finds pawl_baseline, which answers for it.
absl::StatusOr<std::vector<v1::BaselineTime>> RunBaseline(const v1::Bundle& bundle, const std::filesystem::path& folder,
                                                          const std::vector<v1::Size>& sizes, const BaselineHost& host);

// The same where the bundle's folder is not at hand: bundle.baseline_files are put into a folder for it. All sizes. A
// script for the host's interpreter runs there, which has PyTorch loaded; where that can't be started, in a fresh one.
absl::StatusOr<std::vector<v1::BaselineTime>> RunBaseline(const v1::Bundle& bundle, const BaselineHost& host);

// Times the baseline interleaved with a validated variant at its size. The command loads the variant's cubin: the
// request has "winner" with the file and its plan, the answer {"size", "log_ratios", "baseline_us", "best_us"}. No
// interval in it. A status says why there is no ratio.
absl::StatusOr<v1::BesideBaseline> RunBaselineBeside(const v1::Bundle& bundle, const BuiltSize& best,
                                                     const BaselineHost& host);

// What the script is asked; problem/baseline_answers.h reads its answers.
std::string BaselineRequests(const v1::Bundle& bundle, const std::vector<v1::Size>& sizes, const v1::GpuInfo& gpu,
                             uint64_t seed, int measurements);
std::string BesideRequest(const v1::Plan& plan, const std::string& cubin, const std::string& cubin_file, uint64_t seed);

}  // namespace pawl
