#pragma once

#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "bench/verdict/build_crew.h"
#include "bench/verdict/series_file.h"
#include "bench/verdict/study_device.h"
#include "pawl/v1/bundle.pb.h"
#include "worker/build/built_variant.h"
#include "worker/trial/timer.h"

namespace pawl {

struct StudyOptions {
  std::vector<std::string> bundles;
  std::string output;
  std::string size;   // that is timed where a bundle has it; else the goal's
  int pairs = 10;     // of variants, a bundle
  int processes = 6;  // a pair of variants
  int series = 36;    // pairs of blocks, a process
  double seconds = 540;
  uint64_t seed = 1;
  double gain = 0;  // of variants over copies of them that wait
};

// Two variants at the timed size.
struct StudyPair {
  std::string name;
  const v1::Bundle* bundle = nullptr;
  std::optional<BuiltSize> parent, candidate;  // empty: does not build
  bool failed = false;                         // when it was timed
};

// What the studies share: bundles and variants to draw from, builds side by side before anything is timed, and the file
// that gets a line a process.
class Study {
 public:
  Study(StudyDevice& device, const StudyOptions& options);

  // Random single changes, each compared in several processes that lie apart in time.
  void CompareChanges();
  // Variants against copies of them whose code is placed differently, by the whole protocol.
  void CompareCopies();
  // Variants against copies of them that wait, by the whole protocol: how often a gain is kept (slowed_study.cc).
  void CompareSlowed();
  // Whether variants are slower as parents than as candidates, and whether a bias is found (slowed_study.cc).
  void CompareSeats();

 private:
  struct Space {
    v1::Bundle bundle;
    std::vector<v1::Variant> sample;  // around the start
  };

  bool TimeIsUp() const { return absl::Now() > end_; }
  // At the timed size; nothing where it does not build.
  std::optional<BuiltSize> Built(const v1::Bundle& bundle, const v1::Variant& variant);
  // Builds the sides of all of them, in parallel.
  void Build(const std::vector<std::pair<std::optional<BuiltSize>*, std::pair<v1::Bundle, v1::Variant>>>& wanted);
  // A variant and another one that differs in one variable; nothing: the draw is no change that is allowed.
  std::optional<std::pair<v1::Variant, v1::Variant>> DrawChange(const Space& space);
  std::vector<StudyPair> DrawPairs();
  // In a fresh process. Nothing: it failed, and the output says why.
  std::optional<std::vector<v1::PairSample>> Time(const std::string& name, const v1::Bundle& bundle,
                                                  const BuiltSize& candidate, const BuiltSize& parent,
                                                  TimingOptions options);
  void CompareCopy(const StudyPair& pair);
  // A copy that waits, so that it takes this share longer. Nothing: none was found.
  std::optional<BuiltSize> Slowed(const std::string& name, const v1::Bundle& bundle, const v1::Variant& variant,
                                  const BuiltSize& built, double share);
  struct Seats;
  std::optional<Seats> DrawSeats(const Space& space);
  void TimeRole(const Seats& seats, const char* role, int process);
  void Say() const;
  void SayResults(const std::string& what) const;

  StudyDevice& device_;
  const StudyOptions& options_;
  const absl::Time end_;
  BuildCrew crew_;
  std::map<std::string, int> done_;  // processes by pair
  SeriesFile file_;
  std::mt19937_64 random_;
  std::vector<Space> spaces_;
  std::map<int, int> results_;  // by ComparisonResult; 0: all
  double gpu_seconds_ = 0;
};

}  // namespace pawl
