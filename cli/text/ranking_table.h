#pragma once

#include <string>
#include <vector>

#include "pawl/v1/campaign.pb.h"

namespace pawl {

// A change with its score and a note.
struct RankedRow {
  std::string change;
  v1::Score score;
  std::string note;
};

// In log speedup: the expected improvement, the posterior's mean and standard deviation, then the mean's terms. Rows in
// the order given; `limit` 0: all, otherwise the first so many and a
// line that says how many are left.
std::string RankingTable(const std::vector<RankedRow>& rows, const std::string& note_title, int limit, int width);

// Of the posterior: rules, model and patterns together.
double Mean(const v1::Score& score);
// What ranks a change: expected improvement for each second, or the mean where the score has none.
double Rate(const v1::Score& score);
// "+0.520 ± 0.110 = rules +0.497, model +0.023, patterns 0; expected improvement 0.5200 in 8.1 s".
std::string ScoreText(const v1::Score& score);
// "+0.520"; "0" for a term that is 0.
std::string LogText(double log_speedup);

}  // namespace pawl
