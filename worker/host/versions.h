#pragma once

#include <string>

#include "pawl/v1/evidence.pb.h"
#include "worker/host/toolkit.h"

namespace pawl {

// Asks each tool that is there for its version, side by side. A tool that does not answer has none.
v1::Toolchain ToolVersions(const Toolkit& toolkit);

// Operating system, architecture and CPU count of this machine, no name: "Linux x86_64, 16 CPUs".
std::string HostText();

}  // namespace pawl
