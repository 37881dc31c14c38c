#pragma once

#include <string>

namespace pawl {

// The user's name, to be recorded with what they ask for.
std::string Author();

}  // namespace pawl
