#pragma once

#include <string>

#include "pawl/v1/bundle.pb.h"

namespace pawl {

// A warning about a reference that adds up floats one after another, where its own rounding may be larger than the
// tolerance: a kernel that adds in a better order, and is more exact, would be rejected. Empty: there is none.
std::string RoundingOfReference(const v1::Bundle& bundle);

}  // namespace pawl
