#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "orchestrator/engine/search/chooser.h"
#include "orchestrator/engine/state/campaign.h"
#include "pawl/v1/event.pb.h"
#include "tests/orchestrator/engine/neighbour_chooser.h"
#include "tests/orchestrator/engine/tiny_bundle.h"

namespace pawl {

// A campaign made event by event, on a clock that stands still unless told otherwise.
class CampaignScript {
 public:
  explicit CampaignScript(const v1::CampaignSpec& spec = v1::CampaignSpec(), const v1::Bundle& bundle = TinyBundle());

  const CampaignState& state() const { return state_; }
  const v1::Campaign& summary() const { return state_.summary(); }
  const std::vector<v1::Event>& events() const { return events_; }
  absl::Time now() const { return now_; }
  void Pass(absl::Duration time) { now_ += time; }

  // Gives the event its campaign, sequence and time.
  void Apply(v1::Event event);

  // What the engine does next by itself, applied; nothing: it waits.
  std::optional<v1::Event> Decide(const Chooser& chooser = NeighbourChooser(), int slots = 1);
  void Lease(int trial, int attempt = 1, double price_per_hour = 0);
  void Lose(int trial, v1::LeaseLost::Reason reason);
  // Judges the result; the iteration as it stands in the campaign.
  v1::Iteration Finish(int trial, const v1::TrialResult& result);
  // Plans, leases and finishes the next iteration.
  v1::Iteration Run(const v1::TrialResult& result);
  // Leases and finishes the trial that measures the best beside the start.
  v1::TotalGain FinishTotal(const v1::TrialResult& result);
  // Plans, leases and finishes a verification.
  void PlanVerification(int iteration);
  void FinishVerification(const v1::TrialResult& result);
  void Propose(const std::string& variable, int to, const std::string& author = "ann");
  void ProposePatch(const std::string& name, const std::string& patch, const std::string& author = "an agent");
  void Pause(const std::string& reason = "lunch");
  void Resume();
  void End(v1::CampaignState state, v1::StopReason reason);

 private:
  CampaignState state_;
  std::vector<v1::Event> events_;
  absl::Time now_ = absl::FromUnixSeconds(1'790'000'000);
};

}  // namespace pawl
