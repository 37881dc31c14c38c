#pragma once

#include "pawl/v1/doctor.pb.h"
#include "worker/host/machine.h"

namespace pawl {

// Says of everything a campaign needs whether this machine has it, and how to get it. Pure.
v1::DoctorReport Examine(const Machine& machine);

}  // namespace pawl
