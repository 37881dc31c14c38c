// What a source uses of the standard library without including it. With nvcc such names come in by way of the CUDA
// runtime's and the host's headers; NVRTC has none of them, and host_code = "skip" leaves out those of the host.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "worker/build/standard_headers.h"

namespace pawl {

// The text to be included before the source: typedefs (uint, int64_t) and #includes of those of `headers` that declare
// the names of std and the macros that the texts use. What the texts declare themselves is left to them. Empty: they
// use nothing of it.
std::string ImpliedNames(const std::vector<std::string_view>& texts, const std::vector<StandardHeader>& headers);

// Whether a text names the namespace std, or a macro that may stand for it.
bool MentionsStd(const std::vector<std::string_view>& texts);

}  // namespace pawl
