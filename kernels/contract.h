#pragma once

#include <string>

#include "pawl/v1/bundle.pb.h"

namespace pawl {

// The first thing in which what two bundles promise to compute and to beat differs: "[[size]] main S is 128 in old, 256
// in new". `first` and `second` are what the bundles are called there. Empty: it is the same, whatever the names, the
// summaries and the implementations are.
std::string ContractDifference(const v1::Bundle& a, const v1::Bundle& b, const std::string& first,
                               const std::string& second);

}  // namespace pawl
