#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/campaign_service.pb.h"
#include "pawl/v1/plan.pb.h"

namespace pawl {

struct WinnerFile {
  std::string name;
  std::string text;
  bool executable = false;
};

// What `pawl best --output` writes: the device code with every variable fixed, how to build and launch it, what was
// measured of it, and a page that says so. `source` is the winner's device code; `path` leads from the start to it.
absl::StatusOr<std::vector<WinnerFile>> WinnerFiles(const v1::BestVariant& best, const v1::Campaign& campaign,
                                                    const std::string& source, const std::vector<v1::Iteration>& path);

// Makes the folder where it is missing. AlreadyExists: one of the files is there; nothing was written.
absl::Status WriteWinner(const std::vector<WinnerFile>& files, const std::string& folder);

// A host program that loads a variant's cubin by the CUDA driver API, fills its inputs, launches it as the plan says
// and times it: an example to copy the geometry and the arguments from. The bundle's expressions stand beside the
// figures.
std::string LaunchExample(const v1::Bundle& bundle, const v1::Plan& plan, const std::string& cubin);

}  // namespace pawl
