#pragma once

#include <string>
#include <vector>

#include "pawl/v1/campaign.pb.h"

namespace pawl {

// What differs between two things, a row each: what, the first's, the second's and, of numbers, the second over the
// first.
class Differences {
 public:
  void Text(const std::string& what, const std::string& first, const std::string& second);
  void Time(const std::string& what, double first_us, double second_us);
  void Speedup(const std::string& what, double first, double second);
  void Number(const std::string& what, double first, double second);

  // Variables, verdict, times, speedups, and what the evidence says of each launch.
  void Iterations(const v1::Iteration& first, const v1::Iteration& second);
  // Kernel, goal, device, budget, and what came of it.
  void Campaigns(const v1::Campaign& first, const v1::Campaign& second);

  bool empty() const { return rows_.empty(); }
  std::string TableText(const std::string& first, const std::string& second, int width) const;

 private:
  void Evidence(const v1::Evidence& first, const v1::Evidence& second);
  void Launch(const std::string& entry, const v1::LaunchEvidence& first, const v1::LaunchEvidence& second);

  std::vector<std::vector<std::string>> rows_;
};

}  // namespace pawl
