#pragma once

#include "pawl/v1/report.pb.h"
#include "report/document.h"

namespace pawl {

// What a report says: every figure is the message's. A section that has nothing to say says why. Pure.
Document ContentOf(const v1::Report& report);

}  // namespace pawl
