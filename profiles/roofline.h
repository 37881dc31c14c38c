#pragma once

#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/plan.pb.h"
#include "profiles/gpus.h"

namespace pawl {

// The shortest time that one call of the plan can take on the GPU, in us; 0 where the plan does not know its work. A
// time below it is a defect of the measurement or a cheat. Never above what an honest kernel can reach: bytes that may
// lie in the L2 when the call starts, or may still lie there when it ends, are not charged to the DRAM.
double RooflineFloorUs(const v1::Plan& plan, const GpuSpec& gpu, bool tensor_cores, v1::TimingMode mode);

}  // namespace pawl
