#pragma once

#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/space.h"
#include "pawl/v1/bundle.pb.h"

namespace pawl {

// Which variants of a large space to measure so that a search can walk among them: whole neighbourhoods rather than
// scattered points. In rounds: the start; everything one change away from it; then in turn everything one change away
// from the fastest variant so far, the same along random climbs from the start, and random walks, which go where
// nothing is fast too. What was measured under way decides, so that the same measurements give the same variants, also
// after a break. Given rounds enough it reaches everything that single changes reach.
class SampleWalk {
 public:
  // The bundle must outlive it.
  SampleWalk(const v1::Bundle& bundle, int count);

  // The next variants to measure, none of them given before. Empty: there are as many as were asked for, or no more.
  absl::StatusOr<std::vector<v1::Variant>> NextRound();

  // How a variant of a round did, as the logarithm of its speed over the start's; nothing: it failed.
  void Learn(const v1::Variant& variant, std::optional<double> log_speedup);

 private:
  struct Known {
    v1::Variant variant;
    bool measured = false;
    bool expanded = false;
    std::optional<double> log_speedup;
  };

  absl::StatusOr<std::vector<v1::Variant>> Neighbours(const v1::Variant& variant);
  // Everything one change away from it that was not given before.
  absl::StatusOr<std::vector<v1::Variant>> Expand(Known* known);
  absl::StatusOr<std::vector<v1::Variant>> ExpandFastest();
  absl::StatusOr<std::vector<v1::Variant>> Climb();
  absl::StatusOr<std::vector<v1::Variant>> Wander();
  void Give(std::vector<v1::Variant>* round);
  size_t Draw(size_t count) { return random_() % count; }

  const v1::Bundle& bundle_;
  const size_t count_;
  AllowedSpace space_;
  std::map<std::string, Known> known_;  // by the variant's text: what was given
  std::vector<std::string> order_;      // as it was given
  std::string climber_;                 // where the climb stands
  int turn_ = 0;
  std::mt19937_64 random_;
};

}  // namespace pawl
