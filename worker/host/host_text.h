#pragma once

#include <string>

namespace pawl {

// Operating system, architecture and CPU count of this machine, no name: "Linux x86_64, 16 CPUs".
std::string HostText();

}  // namespace pawl
