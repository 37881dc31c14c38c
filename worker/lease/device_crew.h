#pragma once

#include <string>
#include <vector>

#include "worker/lease/worker_options.h"

namespace pawl {

// The command line of one of several workers: that of all, with its own device and name.
std::vector<std::string> CommandOf(const std::vector<std::string>& words, const std::string& device,
                                   const std::string& name);

// Runs this program once for each device of `options`, until all have ended. Signals are passed on: the first drains
// all, the second ends them. One that fails leaves the others running. The first exit code that is not 0.
int RunDeviceCrew(const WorkerOptions& options, const std::vector<std::string>& words);

}  // namespace pawl
