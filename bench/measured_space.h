#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "orchestrator/engine/search/point.h"
#include "orchestrator/engine/search/seeded_random.h"
#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/trial.pb.h"

namespace pawl {

// A bundle's space of which every variant was measured, or a sample, to search in without a GPU.
struct MeasuredSpace {
  struct Entry {
    v1::Variant variant;
    bool ok = false;
    double log_speed = 0;           // over any one variant of the space
    std::vector<double> residuals;  // of the recorded pairs; empty: without noise
    v1::Evidence counted, uncounted;
  };

  std::string name;  // "attention (H200)"
  std::string device;
  v1::Bundle bundle;
  std::vector<Entry> entries;
  std::map<Point, size_t> places;
  double best = 0;  // log speed

  void Index();
  const Entry* Find(const google::protobuf::Map<std::string, int32_t>& variant) const;

  // What a worker would send. `parent` null: the trial has none.
  v1::TrialResult Measure(const Entry& candidate, const Entry* parent, const v1::ProcessNoise& noise,
                          SeededRandom& random) const;
  // The verdict by the same protocol.
  bool Faster(const Entry& candidate, const Entry& than, SeededRandom& random) const;
};

// Names of the bundles that ship with a recording of their space, in alphabetical order. What campaigns chose is the
// way of one search and no space for others: such recordings are left out.
absl::StatusOr<std::vector<std::string>> RecordedBundles(const std::filesystem::path& checkout);

// Of a shipped recording: noise as recorded, evidence with counters for what is about to be kept. An error when it is
// of another version of the bundle.
absl::StatusOr<MeasuredSpace> RecordedSpace(const std::filesystem::path& checkout, const std::string& bundle);

}  // namespace pawl
