// Numbers for a first run, by what names usually mean.
#pragma once

#include <string>

#include "cli/draft/draft.h"

namespace pawl {

// Gives every size of the draft a small and a large value, so that no tensor is too large.
void SetSizeValues(Draft& draft);

// 1e-5 for eps, 0.9 for beta1, 1 for others.
// Ranges of the sizes that tensors have, for [hidden]. `divided` are further expressions: a size that is divided by a
// number is a multiple of it, and one that is divided by something else has no range.
void SetSizeRanges(Draft& draft, const std::vector<std::string>& divided);

// The bytes of all inputs and outputs whose shapes are known.
void SetLeastBytes(Draft& draft);

std::string TypicalValue(const std::string& name, const std::string& type);

}  // namespace pawl
