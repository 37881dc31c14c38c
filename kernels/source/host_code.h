// Sources that people have hold host code beside their kernels: functions that launch them, bindings for Python,
// headers of PyTorch and of the standard library. A build of device code alone can't take them.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/source/cpp_tokens.h"
#include "pawl/v1/bundle.pb.h"

namespace pawl {

// The text with blanks in place of host functions, host variables, bindings and includes of host libraries; every line
// stays where it is. What carries __global__, __device__, __constant__ or a macro that stands for one of them is kept,
// and so are types, templates, constants and constexpr functions. `device_macros` are such macros of other files.
std::string WithoutHostCode(std::string_view text, v1::Compiler compiler,
                            const std::vector<std::string>& device_macros = {});

// The macros of a text whose definitions have __global__ or __device__ in them.
std::vector<std::string> DeviceMacros(std::string_view text);

// The headers of PyTorch that device code uses a little of (element and accumulation types), as NVRTC can take them:
// those that the texts include, by their path.
std::map<std::string, std::string> StandInHeaders(const std::vector<std::string_view>& texts);

// Whether code of a function launches kernels or calls the runtime: k<<<...>>>(...), cudaMalloc(...), and what is named
// after them.
bool CallsHost(const std::vector<CppToken>& tokens, size_t begin, size_t end);

}  // namespace pawl
