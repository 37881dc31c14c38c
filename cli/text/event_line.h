#pragma once

#include <string>

#include "pawl/v1/event.pb.h"
#include "pawl/v1/trial.pb.h"

namespace pawl {

// What happened, on one line without the newline. A verdict stands in columns that fit into `width` cells; 0: any.
std::string EventLine(const v1::Event& event, int width = 0);

// Where a trial stands: "   5  validate at large (4 of 7), step 3 of 9, about 12 s left".
std::string ProgressLine(const v1::Progress& progress);

}  // namespace pawl
