// Numbers for a first run, by what names usually mean.
#pragma once

#include <string>

#include "cli/draft/draft.h"

namespace pawl {

// Gives every size of the draft a small and a large value, so that no tensor is too large.
void SetSizeValues(Draft& draft);

// 1e-5 for eps, 0.9 for beta1, 1 for others.
std::string TypicalValue(const std::string& name, const std::string& type);

}  // namespace pawl
