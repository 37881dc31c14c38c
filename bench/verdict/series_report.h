#pragma once

#include <string>
#include <vector>

#include "bench/verdict/series_file.h"

namespace pawl {

// The [noise] that a GPU's file should have (profiles/gpus).
void PrintNoise(const std::vector<SeriesLine>& lines);

// How often the interval that two processes give contains the mean of a further one.
void PrintCoverage(const std::vector<SeriesLine>& lines, const std::string& gpu);

// How often the seat rule fails a variant that is as fast as a parent as it was as a candidate, and one that is not:
// by processes drawn from those that were measured.
void PrintSeatRates(const std::vector<SeriesLine>& lines, const std::string& gpu);

}  // namespace pawl
