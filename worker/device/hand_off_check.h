#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/campaign.pb.h"
#include "pawl/v1/evidence.pb.h"
#include "worker/host/toolkit.h"
#include "worker/process/subprocess.h"
#include "worker/sandbox/sandboxing.h"

namespace pawl {

using HandOffFiles = google::protobuf::RepeatedPtrField<v1::SourceFile>;

struct HandOffHost {
  const v1::GpuInfo& gpu;
  const Toolkit& toolkit;
  const Sandboxing& sandboxing;
  Stopped stopped = nullptr;
  absl::Duration deadline = absl::Minutes(5);  // of a form
  // How a command is run, the sandbox's arguments included; a script in tests.
  std::function<absl::StatusOr<ProcessResult>(const ProcessOptions&)> run = RunProcess;
};

// Builds and runs each form of what `pawl best --output` writes, once: the files' check_FORM.sh, in a folder of their
// own and in the sandbox of baselines (GPU, toolkit and Python, no network, no home), with an environment of its own. A
// form that fails, or can't be run here, is a check that did not pass, with the end of what it printed. CANCELLED:
// stopped.
absl::StatusOr<std::vector<v1::HandOffCheck>> CheckHandOff(const v1::Bundle& bundle, const HandOffFiles& files,
                                                           const HandOffHost& host);

}  // namespace pawl
