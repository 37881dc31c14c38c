#pragma once

#include <map>
#include <memory>
#include <string>

#include "pawl/v1/bundle.pb.h"
#include "tests/promises/daemon.h"

namespace pawl {

// What makes a worker of this environment believe in a GPU: stand-ins for nvcc, the runner, ncu and compute-sanitizer,
// in tests/promises/fake_gpu. All else is real.
std::map<std::string, std::string> FakeGpuEnvironment();

// A whole pawl-worker on such a GPU.
std::unique_ptr<Daemon> FakeGpuWorker(const std::string& orchestrator, const std::string& name,
                                      const std::map<std::string, std::string>& env = {});

// TinyBundle, built by nvcc, with lines for the stand-ins in its source: "//! hang-call".
v1::Bundle FakeGpuBundle(const std::string& lines);

}  // namespace pawl
