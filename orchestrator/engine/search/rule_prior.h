#pragma once

#include <memory>
#include <string>
#include <vector>

#include "google/protobuf/repeated_field.h"
#include "orchestrator/engine/search/posterior.h"
#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/finding.pb.h"
#include "pawl/v1/pattern.pb.h"

namespace pawl {

struct RulePriorSettings {
  // Of the log speedup for a change that closes the whole deficit of a finding with severity 1, before any pattern.
  double worth = 0.3;
  double sd = 0.3;
  // Log speedup of a launch less, which costs a microsecond or two: what is known of it without any finding.
  double launch = 0.1;
  // Trials that the estimate of a wider group counts as: all architectures, this one, this bundle.
  double trials = 6;
  double most_gain = 0.5;  // log speedups of patterns are clipped here: an extreme gain of one kernel does not transfer

  bool operator==(const RulePriorSettings&) const = default;
};

// What findings of the best variant's evidence say about other variants, before anything is measured. Every effect that
// a finding wants is a known cause of the posterior: a variant serves it by the changes of its variables from the best
// variant's values, and the campaign's measurements correct what it is worth. Immutable.
class RulePrior {
 public:
  // `best` is the variant that the findings are of; `patterns` as of CampaignState::patterns().
  RulePrior(std::vector<v1::Finding> findings, const v1::Bundle& bundle, const Point& best,
            const google::protobuf::RepeatedPtrField<v1::Pattern>& patterns, const std::string& architecture,
            const RulePriorSettings& settings);
  RulePrior(const RulePrior&) = delete;  // its parts point to its findings

  const std::vector<v1::Finding>& findings() const { return findings_; }
  const std::vector<KnownCause>& causes() const { return *causes_; }
  const std::shared_ptr<const std::vector<KnownCause>>& shared_causes() const { return causes_; }
  const RulePriorSettings& settings() const { return settings_; }

  // Expected log speedup over the best variant: by the findings alone, and what patterns add to that.
  double Rules(const Point& point) const;
  double Patterns(const Point& point) const;

  // The finding that a change of one variable of the best variant serves most; null: none.
  struct Served {
    const v1::Finding* finding = nullptr;
    v1::Effect effect;
  };
  Served ServedBy(size_t variable, uint16_t place) const;

  // The finding that the grid does not fill the GPU; null: it does, or the evidence does not say.
  const v1::Finding* GridTooSmall() const;

 private:
  void AddLaunches(const v1::Bundle& bundle, const Point& best, double worth, std::vector<KnownCause>* causes);

  const RulePriorSettings settings_;
  std::vector<v1::Finding> findings_;
  std::shared_ptr<const std::vector<KnownCause>> causes_;
  std::vector<Served> sources_;  // of the causes; their findings are in findings_, null for that of launches
  std::vector<double> worths_;   // of the causes, without patterns
};

// Whether the change of the variable has this effect: more or less of a resource.
bool Gives(const v1::Variable& variable, int32_t from, int32_t to, const v1::Effect& effect);

// The change gives something that the finding wants.
bool Serves(const v1::Bundle& bundle, const v1::Change& change, const v1::Finding& finding);

// Expected log speedup of the changes that gave the effect for the rule, and in how many trials it was seen: of all
// architectures, corrected by those on this one, corrected by those of this bundle.
struct Worth {
  double mean = 0, trials = 0;
};
Worth WorthOf(const google::protobuf::RepeatedPtrField<v1::Pattern>& patterns, const std::string& rule,
              const v1::Effect& effect, const std::string& architecture, const std::string& bundle, double prior,
              const RulePriorSettings& settings);

}  // namespace pawl
