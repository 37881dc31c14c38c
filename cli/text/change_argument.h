// VARIABLE=VALUE, as people type a change.
#pragma once

#include <string>

#include "pawl/v1/bundle.pb.h"

namespace pawl {

// The variable and the value it is to have; empty where the text is no change.
v1::Change ReadChange(const std::string& text);

// For CLI11: what is wrong with the text, empty where nothing is.
std::string CheckChange(const std::string& text);

}  // namespace pawl
