// What the text of a bundle's source says about its kernel.toml, without compiling it.
#pragma once

#include <string>
#include <vector>

#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/check.pb.h"

namespace pawl {

// "the variable STREAMINGX appears nowhere ...; did you mean STREAMING?": variables that neither code nor launches use.
std::vector<std::string> UnusedVariables(const v1::Bundle& bundle);

// Warnings about macros of variables that the source uses behind a #define of its own, which takes effect whatever the
// variable says: outside of every #if but an include guard.
std::vector<std::string> RedefinedVariables(const v1::Bundle& bundle);

// Launches whose kernel calls grid.sync() and that are not cooperative.
std::vector<std::string> LaunchesWithoutCooperation(const v1::Bundle& bundle);

// Warnings about launches without a cluster whose kernel uses one, or has __cluster_dims__.
std::vector<std::string> LaunchesWithoutClusters(const v1::Bundle& bundle);

// What a source of nothing but #error says: it stands in for code that is not there, as in an imported space. Empty: it
// has code.
std::string WhyNoCode(const v1::Bundle& bundle);

// The kernels of a cubin, by their C++ names, with the bytes of their parameters.
std::vector<v1::CheckEntry> EntriesOf(const std::string& cubin);

// Warnings about __constant__ variables of a cubin that hold zeros and that no [[symbol]] fills.
std::vector<std::string> UnfilledConstants(const v1::Bundle& bundle, const std::string& cubin);

}  // namespace pawl
