#pragma once

#include <string>

#include "pawl/v1/event.pb.h"

namespace pawl {

// One line for the log, campaign and iteration named in it. A lease names only its trial: `iteration` is the one it is
// about.
std::string LogLine(const v1::Event& event, int iteration);

}  // namespace pawl
