// The gates of gates.toml: pass/fail tests at the stages, and what a failed one does.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "pawl/v1/campaign.pb.h"
#include "pawl/v1/evidence.pb.h"

namespace pawl {

// Each is in a gates.toml exactly once.
enum class GateKind {
  kPreflight,
  kBaseline,
  kStaticCheck,
  kBuild,
  kCorrectness,
  kRooflineFloor,
  kSteadyTiming,
  kSeat,
  kSanitizer,
  kProfileFirst,
  kProfile,
  kMinGain,
  kWorstSize,
  kPrediction,
};

struct Gate {
  GateKind kind = GateKind::kPreflight;
  std::string name;  // "min-gain"
  v1::Stage stage = v1::STAGE_UNSPECIFIED;
  std::vector<v1::Check> checks;  // the failures of a candidate that it stands for
  double threshold = 0;           // `meaning` says of what; 0 where the gate has none
  // GATE_ACTION_PAUSE: where the gate is about a variant, that is not kept either.
  v1::GateAction action = v1::GATE_ACTION_UNSPECIFIED;
  std::string meaning;

  // What an iteration says that did not pass.
  v1::FailedGate Failed(double value, const std::string& text) const;
};

// What a campaign's success is called, by its speedup over the baseline.
struct Tiers {
  double minimum = 1;
  double target = 1;   // where a bundle's goal names no speedup
  double stretch = 1;  // times the target
};

// Immutable and thread-safe.
class Gates {
 public:
  // Every mistake of the text, as "file:line: message", one a line. A gate that is missing is one of them.
  static absl::StatusOr<Gates> Parse(std::string_view toml, const std::string& file);
  // Of the gates.toml that was built in.
  static const Gates& Default();

  const std::vector<Gate>& all() const { return all_; }
  const Gate& Get(GateKind kind) const { return all_[static_cast<size_t>(kind)]; }
  // Null: there is no such gate.
  const Gate* Find(std::string_view name) const;
  // The gate that stands for the failure. Of CHECK_UNSPECIFIED and of checks that a newer worker knows: correctness,
  // since nothing that failed may pass.
  const Gate& For(v1::Check check) const;

  const Tiers& tiers() const { return tiers_; }
  // `goal` is the speedup that bundle or submission ask for; 0: none.
  v1::SuccessTier TierOf(double speedup_over_baseline, double goal) const;
  // Kept iterations between two measurements of the best variant beside the start.
  int total_every() const { return total_every_; }

 private:
  std::vector<Gate> all_;  // by GateKind
  Tiers tiers_;
  int total_every_ = 0;
};

}  // namespace pawl
