// Numbers for a first run, by what names usually mean.
#pragma once

#include <string>

#include "cli/draft/draft.h"

namespace pawl {

// Gives every size of the draft a small and a large value, so that no tensor is too large.
void SetSizeValues(Draft& draft);

// Makes a size that is divided by a number a multiple of it. `divided` are expressions beside those of the draft.
void RoundSizes(Draft& draft, const std::vector<std::string>& divided);

// Ranges of the sizes that tensors have, for [hidden]; a size that is divided by something that is no number has none.
void SetSizeRanges(Draft& draft, const std::vector<std::string>& divided);

// The bytes of all inputs and outputs whose shapes are known.
void SetLeastBytes(Draft& draft);

// 1e-5 for eps, 0.9 for beta1, 1 for others.
std::string TypicalValue(const std::string& name, const std::string& type);

}  // namespace pawl
