#include "orchestrator/meters/meters.h"

#include "absl/strings/ascii.h"
#include "absl/strings/strip.h"
#include "base/revision/revision.h"

namespace pawl {
namespace {

std::string VerdictLabel(const v1::TrialFinished& finished) {
  if (finished.has_verification()) return finished.verification().agrees() ? "verified" : "differs";
  if (finished.has_total_gain()) return "total";
  if (IsOfSanitizer(finished)) return "sanitized";
  if (finished.iteration().untried()) return "untried";
  return absl::AsciiStrToLower(v1::Verdict_Name(finished.iteration().verdict()));
}

// "STAGE_BUILD" is build.
std::string StageLabel(v1::Stage stage) {
  return absl::AsciiStrToLower(absl::StripPrefix(v1::Stage_Name(stage), "STAGE_"));
}

// Of an hour of the campaign's GPU; 0: not known.
double PriceOf(const v1::Campaign& campaign) {
  return campaign.gpu_seconds() > 0 ? campaign.dollars() / campaign.gpu_seconds() * 3600 : 0;
}

}  // namespace

TrialCost CostOf(const v1::TrialFinished& finished, const v1::Campaign& campaign) {
  TrialCost cost;
  for (const v1::StageTime& stage : finished.result().stages()) cost.seconds += stage.seconds();
  cost.dollars = cost.seconds / 3600 * PriceOf(campaign);
  return cost;
}

void Meters::Count(const v1::Event& event, const CampaignState& campaign) {
  absl::MutexLock lock(&mutex_);
  switch (event.event_case()) {
    case v1::Event::kSubmitted:
      ++submitted_;
      return;
    case v1::Event::kLeased:
      ++leased_[GpuLabel(event.leased().device())];
      return;
    case v1::Event::kLost:
      ++lost_[absl::AsciiStrToLower(v1::LeaseLost::Reason_Name(event.lost().reason()))];
      return;
    case v1::Event::kFinished:
      return CountFinished(event.finished(), campaign);
    case v1::Event::kEnded:
      ++ended_[absl::AsciiStrToLower(v1::CampaignState_Name(event.ended().state()))];
      return;
    default:
      return;
  }
}

// A result names a GPU as well, and it need not be one that was leased to.
std::string Meters::GpuLabel(const std::string& gpu) {
  std::string label = NameOrOther(gpus_, gpu);
  gpus_[label] = true;
  return label;
}

void Meters::CountFinished(const v1::TrialFinished& finished, const CampaignState& campaign) {
  const v1::TrialResult& result = finished.result();
  const std::string& device = result.device().empty() ? campaign.summary().device() : result.device();
  const std::string gpu = GpuLabel(device);
  ++finished_[{gpu, VerdictLabel(finished)}];
  if (result.same_code()) ++same_code_[gpu];
  if (result.built_ahead()) ++built_ahead_[gpu];
  for (const v1::StageTime& stage : result.stages()) {
    stages_[{gpu, StageLabel(stage.stage())}] += stage.seconds();
  }
  if (campaign.summary().replay()) return;  // it uses no GPU, and builds nothing
  builds_[{gpu, "cache"}] += result.cached_builds();
  builds_[{gpu, "compiler"}] += result.compiled_builds();
  const TrialCost cost = CostOf(finished, campaign.summary());
  TrialCost& used = NamedEntry(used_, campaign.author());
  used.seconds += cost.seconds;
  used.dollars += cost.dollars;
}

void Meters::ObserveCommit(absl::Duration took) {
  absl::MutexLock lock(&mutex_);
  commits_.Observe(absl::ToDoubleSeconds(took));
}

void Meters::ObserveCall(const std::string& method, absl::Duration took) {
  absl::MutexLock lock(&mutex_);
  NamedEntry(calls_, method).Observe(absl::ToDoubleSeconds(took));
}

void Meters::Write(Exposition* text) const {
  absl::MutexLock lock(&mutex_);
  text->Family("pawl_campaigns_submitted_total", "counter", "Campaigns submitted.");
  text->Sample({}, static_cast<double>(submitted_));
  text->Family("pawl_campaigns_ended_total", "counter", "Campaigns that ended, by their final state.");
  for (const auto& [state, count] : ended_) text->Sample({{"state", state}}, static_cast<double>(count));
  text->Family("pawl_trials_leased_total", "counter", "Leases given, by the worker's GPU.");
  for (const auto& [gpu, count] : leased_) text->Sample({{"gpu", gpu}}, static_cast<double>(count));
  text->Family("pawl_trials_finished_total", "counter",
               "Trials with a result, by GPU and verdict; verified and differs are verifications, total measures the "
               "best beside the start, untried is not in the recording.");
  for (const auto& [key, count] : finished_) {
    text->Sample({{"gpu", key.first}, {"verdict", key.second}}, static_cast<double>(count));
  }
  text->Family("pawl_trials_same_code_total", "counter",
               "Trials that needed no measurement because the machine code is the parent's.");
  for (const auto& [gpu, count] : same_code_) text->Sample({{"gpu", gpu}}, static_cast<double>(count));
  text->Family("pawl_trials_built_ahead_total", "counter",
               "Trials whose variant was built while an earlier one was measured.");
  for (const auto& [gpu, count] : built_ahead_) text->Sample({{"gpu", gpu}}, static_cast<double>(count));
  text->Family("pawl_builds_total", "counter",
               "Cubins that workers needed, by GPU and where they came from: a worker's cache, or the compiler.");
  for (const auto& [key, count] : builds_) {
    text->Sample({{"gpu", key.first}, {"from", key.second}}, static_cast<double>(count));
  }
  text->Family("pawl_stage_seconds_total", "counter", "Time that trials spent in each stage, by GPU.");
  for (const auto& [key, seconds] : stages_) text->Sample({{"gpu", key.first}, {"stage", key.second}}, seconds);
  text->Family("pawl_leases_lost_total", "counter", "Leases that ended without a result, by reason.");
  for (const auto& [reason, count] : lost_) text->Sample({{"reason", reason}}, static_cast<double>(count));
  text->Family("pawl_gpu_seconds_total", "counter",
               "Time that trials took, by the campaign's author; without replays.");
  for (const auto& [author, used] : used_) text->Sample({{"author", author}}, used.seconds);
  text->Family("pawl_dollars_total", "counter",
               "Cost of that time by the GPU's price, by the campaign's author; 0 where the price is not known.");
  for (const auto& [author, used] : used_) text->Sample({{"author", author}}, used.dollars);
  text->Family("pawl_commit_seconds", "histogram", "Time that a commit to the database took.");
  text->Histogram({}, commits_);
  text->Family("pawl_rpc_seconds", "histogram",
               "Time until a call was answered, by method. LeaseTrial waits for a trial.");
  for (const auto& [method, histogram] : calls_) {
    const size_t slash = method.rfind('/');
    text->Histogram({{"method", slash == std::string::npos ? method : method.substr(slash + 1)}}, histogram);
  }
}

}  // namespace pawl
