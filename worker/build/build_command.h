#pragma once

#include <string>
#include <vector>

#include "pawl/v1/bundle.pb.h"

namespace pawl {

// A command line that builds a variant's cubin at one size from the bundle's folder, to paste into a shell. nvcc also
// stands for NVRTC, which has no command line and takes the same options.
std::string BuildCommand(const v1::Bundle& bundle, const v1::Variant& variant, const v1::Size& size,
                         const std::string& architecture);
std::string BuildCommand(const std::vector<std::string>& options, const std::string& source,
                         const std::string& architecture);

// The size of the ladder with this name; null: there is none.
const v1::Size* FindSize(const v1::Bundle& bundle, const std::string& name);

}  // namespace pawl
