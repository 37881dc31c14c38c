// `wait`: until a proposal is judged, or until a campaign's start variant is; not longer than it is told to.
#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "agent/tools/forms.h"
#include "agent/tools/proposal_name.h"
#include "agent/tools/tool.h"
#include "base/names/resource_name.h"
#include "base/revision/settled_verdicts.h"
#include "base/sync/steady_time.h"
#include "report/words.h"

namespace pawl {
namespace {

constexpr double kUsualWait = 30;                              // seconds
constexpr absl::Duration kWaitLook = absl::Milliseconds(200);  // whether somebody still waits
constexpr absl::Duration kProgressEvery = absl::Seconds(1);
constexpr absl::Duration kFindProposal = absl::Seconds(3);

// What is known of a proposal, as its campaign's events come by.
class ProposalTrail {
 public:
  explicit ProposalTrail(const ProposalName& name) : name_(name) {}

  void Take(const v1::Event& event) {
    if (event.has_ended()) ended_ = event.ended();
    if (event.has_proposed() && !found_ &&
        ProposalDigest(event.proposed().author(), event.proposed().change()) == name_.digest) {
      found_ = event.proposed();
    }
    if (!found_) return;
    if (event.has_dropped() && IsOfIt(event.dropped())) dropped_ = event.dropped();
    if (event.has_planned() && !iteration_ && IsOfIt(event.planned())) {
      iteration_ = event.planned().iteration();
      if (!event.planned().bundle_hash().empty()) start_ = event.planned().trial();
    }
    // What was proposed as the start and is rejected is judged with another number.
    const v1::TrialFinished& finished = event.finished();
    if (start_ && finished.has_iteration() && finished.trial() == *start_) iteration_ = finished.iteration().number();
    for (const v1::Iteration& settled : verdicts_.Take(event)) {
      if (iteration_ && settled.number() == *iteration_) judged_ = settled;
    }
  }
  void Take(const v1::Progress& progress) {
    const std::optional<NameInCampaign> name = ParseIterationName(progress.iteration());
    if (iteration_ && name && name->number == *iteration_) progress_ = progress.text();
  }

  bool found() const { return found_.has_value(); }
  bool done() const { return judged_ || dropped_ || ended_; }
  const std::string& progress() const { return progress_; }

  std::string status() const {
    if (judged_) return judged_->untried() ? "untried" : VerdictWord(judged_->verdict());
    if (dropped_) return "dropped";
    if (ended_) return "ended";
    return iteration_ ? "running" : "queued";
  }

  void Describe(Json* result) const {
    if (judged_) (*result)["result"] = IterationForm(*judged_);
    if (!judged_ && iteration_) (*result)["iteration"] = *iteration_;
    if (dropped_) AddText("reason", dropped_->reason(), result);
    if (!judged_ && !dropped_ && ended_) AddText("reason", ended_->message(), result);
    if (!done()) AddText("progress", progress_, result);
  }

 private:
  // A trial, or a proposal that was dropped. Events of version 0.1.0 have no numbers.
  template <typename Event>
  bool IsOfIt(const Event& event) const {
    if (found_->number() > 0) return event.proposal() == found_->number();
    return event.author() == found_->author() && IsSameChange(found_->change(), event.change());
  }

  const ProposalName name_;
  std::optional<v1::ChangeProposed> found_;
  std::optional<v1::ProposalDropped> dropped_;
  std::optional<v1::CampaignEnded> ended_;
  std::optional<int> iteration_;
  std::optional<int> start_;  // the trial, where it was proposed as the start
  std::optional<v1::Iteration> judged_;
  SettledVerdicts verdicts_;
  std::string progress_;
};

std::string NextStep(const std::string& status) {
  if (status == "kept") return "it is the best now: call situation";
  if (status == "reverted" || status == "rejected")
    return "the reason says what went wrong; call situation, then propose another change";
  if (status == "untried") return "the recording has no such variant: propose another one";
  if (status == "dropped") return "propose it again against the best as it is now, or something else";
  if (status == "ended") return "the campaign has ended: call best";
  return "call wait again";
}

// Hands every message to `take` until it says that it has enough, the time is up, or nobody waits any more.
absl::Status Follow(CampaignWatch& watch, absl::Duration wait, const McpCall& call,
                    const std::function<std::string()>& progress,
                    const std::function<bool(const v1::WatchCampaignResponse&)>& take) {
  const SteadyTime begun = SteadyNow();
  SteadyTime told = begun;
  while (!call.cancellation.cancelled()) {
    const absl::Duration left = begun + wait - SteadyNow();
    if (left <= absl::ZeroDuration()) return absl::OkStatus();
    v1::WatchCampaignResponse message;
    switch (watch.Next(std::min(left, kWaitLook), &message)) {
      case CampaignWatch::Got::kEnd:
        return watch.status();
      case CampaignWatch::Got::kMessage:
        if (take(message)) return absl::OkStatus();
        break;
      case CampaignWatch::Got::kNothingYet:
        break;
    }
    if (SteadyNow() - told < kProgressEvery) continue;
    told = SteadyNow();
    call.progress(absl::ToDoubleSeconds(told - begun), absl::ToDoubleSeconds(wait), progress());
  }
  return absl::CancelledError("the call was cancelled");
}

absl::Duration WaitOf(const Json& arguments) {
  const Json* given = JsonAt(arguments, "timeoutSeconds");
  return absl::Seconds(given == nullptr ? kUsualWait : given->get<double>());
}

absl::StatusOr<Json> WaitForProposal(const ToolContext& context, const ProposalName& name, const Json& arguments,
                                     const McpCall& call) {
  ProposalTrail trail(name);
  const std::unique_ptr<CampaignWatch> watch = context.campaigns.Watch(name.campaign, name.after_sequence);
  const auto follow = [&](absl::Duration wait, bool until_found) {
    return Follow(
        *watch, wait, call, [&] { return trail.progress().empty() ? trail.status() : trail.progress(); },
        [&](const v1::WatchCampaignResponse& message) {
          if (message.has_event()) trail.Take(message.event());
          if (message.has_progress()) trail.Take(message.progress());
          return trail.done() || (until_found && trail.found());
        });
  };
  // What was proposed is on disk already.
  if (absl::Status followed = follow(kFindProposal, /*until_found=*/true); !followed.ok()) return followed;
  if (!trail.found()) return absl::NotFoundError("there is no such proposal: check its name");
  if (!trail.done()) {
    if (absl::Status followed = follow(WaitOf(arguments), /*until_found=*/false); !followed.ok()) return followed;
  }
  Json result = {{"done", trail.done()}, {"status", trail.status()}};
  trail.Describe(&result);
  result["next"] = NextStep(trail.status());
  return result;
}

// Ready for proposals, over, or neither yet. A contract alone waits for the proposal of its start.
std::string ReadinessOf(const v1::Campaign& campaign) {
  if (campaign.has_end_time()) return "ended";
  if (campaign.state() == v1::PAUSED) return "paused";
  return campaign.has_best() || campaign.waiting_for() == v1::WAITING_FOR_PROPOSAL ? "ready" : "starting";
}

absl::StatusOr<Json> WaitForStart(const ToolContext& context, const std::string& name, const Json& arguments,
                                  const McpCall& call) {
  absl::StatusOr<v1::Campaign> campaign = context.campaigns.GetCampaign(name);
  if (!campaign.ok()) return campaign.status();
  std::string progress = "the start variant is measured first";
  if (ReadinessOf(*campaign) == "starting") {
    const std::unique_ptr<CampaignWatch> watch = context.campaigns.Watch(name, campaign->last_sequence());
    const absl::Status followed = Follow(
        *watch, WaitOf(arguments), call, [&] { return progress; },
        [&](const v1::WatchCampaignResponse& message) {
          if (message.has_progress()) progress = message.progress().text();
          return message.event().has_ended() || message.event().has_paused() ||
                 (message.event().has_finished() && message.event().finished().has_iteration());
        });
    if (!followed.ok()) return followed;
    campaign = context.campaigns.GetCampaign(name);
    if (!campaign.ok()) return campaign.status();
  }
  const std::string status = ReadinessOf(*campaign);
  Json result = {{"done", status != "starting"}, {"status", status}, {"campaign", CampaignForm(*campaign)}};
  if (status == "starting") AddText("progress", progress, &result);
  result["next"] = status == "ready"      ? "call situation"
                   : status == "starting" ? "call wait again"
                   : status == "paused"   ? "somebody must resume it (pawl resume); its message says why it is paused"
                                          : "the campaign has ended: its message says why";
  return result;
}

}  // namespace

absl::StatusOr<Json> WaitTool(const ToolContext& context, const Json& arguments, const McpCall& call) {
  if (!arguments.contains("proposal")) {
    absl::StatusOr<std::string> campaign = CampaignArgument(context, arguments);
    if (!campaign.ok()) return campaign.status();
    return WaitForStart(context, *campaign, arguments, call);
  }
  absl::StatusOr<ProposalName> name = ReadProposalName(TextAt(arguments, "proposal"));
  if (!name.ok()) return name.status();
  absl::StatusOr<std::string> campaign = CampaignArgument(context, {{"campaign", name->campaign}});
  if (!campaign.ok()) return campaign.status();
  return WaitForProposal(context, *name, arguments, call);
}

}  // namespace pawl
