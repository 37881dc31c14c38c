#pragma once

#include "worker/host/machine.h"

namespace pawl {

// Tries what builds need on this machine: NVRTC, the sandboxes, a compilation that must pass and one that must fail.
BuildsSeen ProbeBuilds(const DriverSeen& driver);

}  // namespace pawl
