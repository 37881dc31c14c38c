#pragma once

#include <string>

#include "pawl/v1/campaign.pb.h"

namespace pawl {

// "prediction (mark): waves did not rise; saw 0.9, threshold 1".
std::string GateText(const v1::FailedGate& gate);

}  // namespace pawl
