// What people ask of the orchestrator.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/hash/hash.h"
#include "base/names/resource_name.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "kernels/bundle_message.h"
#include "kernels/space.h"
#include "orchestrator/core/errors.h"
#include "orchestrator/core/orchestrator.h"
#include "orchestrator/engine/report/situation.h"
#include "orchestrator/engine/search/decide.h"
#include "orchestrator/engine/state/campaign_states.h"

namespace pawl {
namespace {

constexpr int kDefaultIterations = 50;
constexpr double kDefaultMinutes = 60;
constexpr double kDefaultWait = 300;   // s, for a proposal
constexpr size_t kMaxPatch = 100'000;  // bytes
constexpr size_t kMaxProposals = 100;
constexpr size_t kMaxText = 1000;  // of a reason or an author

// The same message gives the same bytes, maps included: the hash is of these.
std::string Bytes(const google::protobuf::Message& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  message.SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

absl::StatusOr<v1::CampaignSpec> CompleteSpec(const v1::Bundle& bundle, v1::CampaignSpec spec, const Gates& gates) {
  v1::Goal& goal = *spec.mutable_goal();
  if (goal.size().empty()) goal.set_size(bundle.goal().size());
  if (goal.speedup() == 0) goal.set_speedup(bundle.goal().speedup());
  if (goal.speedup() == 0) goal.set_speedup(gates.tiers().target);
  std::vector<std::string> sizes;
  for (const v1::Size& size : bundle.sizes()) sizes.push_back(size.name());
  if (std::find(sizes.begin(), sizes.end(), goal.size()) == sizes.end()) {
    return BadField("spec.goal.size",
                    absl::StrCat(bundle.name(), " has no size ", goal.size(), "; it has ", absl::StrJoin(sizes, ", ")));
  }
  auto sensible = [](double value) { return std::isfinite(value) && value >= 0; };
  if (!(goal.speedup() > 0) || !std::isfinite(goal.speedup())) return BadField("spec.goal.speedup", "expected above 0");
  v1::Budget& budget = *spec.mutable_budget();
  if (budget.iterations() < 0) return BadField("spec.budget.iterations", "expected 0 or more");
  if (!sensible(budget.minutes())) return BadField("spec.budget.minutes", "expected 0 or more");
  if (!sensible(budget.dollars())) return BadField("spec.budget.dollars", "expected 0 or more");
  if (budget.reverts_in_a_row() < 0) return BadField("spec.budget.reverts_in_a_row", "expected 0 or more");
  if (!sensible(spec.keep().min_gain()) || spec.keep().min_gain() > 1) {
    return BadField("spec.keep.min_gain", "expected 0 to 1");
  }
  if (spec.keep().min_gain() == 0) spec.mutable_keep()->set_min_gain(gates.Get(GateKind::kMinGain).threshold);
  if (!sensible(spec.keep().floor()) || spec.keep().floor() > 1) return BadField("spec.keep.floor", "expected 0 to 1");
  if (spec.keep().floor() == 0) spec.mutable_keep()->set_floor(gates.Get(GateKind::kRooflineFloor).threshold);
  if (!sensible(spec.expected_baseline_us())) return BadField("spec.expected_baseline_us", "expected 0 or more");
  v1::ChooserSettings& chooser = *spec.mutable_chooser();
  if (!v1::ChooserKind_IsValid(chooser.kind())) return BadField("spec.chooser.kind", "expected one of ChooserKind");
  if (!v1::NoProposal_IsValid(chooser.no_proposal())) {
    return BadField("spec.chooser.no_proposal", "expected one of NoProposal");
  }
  if (!sensible(chooser.wait_seconds())) return BadField("spec.chooser.wait_seconds", "expected 0 or more");
  if (chooser.kind() == v1::CHOOSER_KIND_UNSPECIFIED) chooser.set_kind(v1::CHOOSER_KIND_BOTH);
  if (chooser.no_proposal() == v1::NO_PROPOSAL_UNSPECIFIED) chooser.set_no_proposal(v1::NO_PROPOSAL_TREE);
  if (chooser.wait_seconds() == 0) chooser.set_wait_seconds(kDefaultWait);
  if (budget.iterations() == 0) budget.set_iterations(kDefaultIterations);
  if (budget.minutes() == 0) budget.set_minutes(kDefaultMinutes);
  return spec;
}

absl::Status CheckText(const std::string& field, const std::string& text) {
  if (text.size() > kMaxText) return BadField(field, "expected at most 1000 characters");
  return absl::OkStatus();
}

absl::Status CheckChange(const v1::Change& change) {
  switch (change.kind_case()) {
    case v1::Change::kVariable:
      return change.has_to() ? absl::OkStatus() : BadField("change", "expected the value that the variable goes to");
    case v1::Change::kSource:
      if (change.source().name().empty() || change.source().name().size() > 100) {
        return BadField("change.source.name", "expected 1 to 100 characters: the edit is called so in the history");
      }
      if (change.source().patch().size() > kMaxPatch) {
        return BadField("change.source.patch", absl::StrCat("expected at most ", kMaxPatch, " bytes"));
      }
      return absl::OkStatus();
    case v1::Change::KIND_NOT_SET:
      break;
  }
  return BadField("change", "expected a variable and the value it goes to, or a named source edit");
}

absl::Status Ended(const v1::Campaign& campaign) {
  v1::ErrorDetail detail;
  detail.set_resource(campaign.name());
  detail.set_fix(absl::StrCat("pawl show ", campaign.name(), " says how it ended; submit it again to go on"));
  return Error(
      absl::StatusCode::kFailedPrecondition,
      absl::StrCat(campaign.name(), " has ended: ", v1::CampaignState_Name(campaign.state()), ", ", campaign.message()),
      detail);
}

absl::StatusOr<int64_t> NumberOf(const std::string& field, const std::string& name) {
  const std::optional<int64_t> number = ParseCampaignName(name);
  if (!number) return BadField(field, "expected a campaign's name, like campaigns/7");
  return *number;
}

}  // namespace

absl::StatusOr<v1::Campaign> Orchestrator::Stored(int64_t number) {
  absl::StatusOr<std::optional<v1::Campaign>> campaign = store_.GetCampaign(number);
  if (!campaign.ok()) return campaign.status();
  if (!*campaign) return NoSuch(CampaignName(number), "pawl campaigns lists those there are");
  return **std::move(campaign);
}

absl::StatusOr<CampaignState*> Orchestrator::Unended(const std::string& field, const std::string& name) {
  if (absl::Status status = Serving(); !status.ok()) return status;
  absl::StatusOr<int64_t> number = NumberOf(field, name);
  if (!number.ok()) return number.status();
  const auto found = campaigns_.find(*number);
  if (found != campaigns_.end() && !found->second->ended()) return found->second.get();
  absl::StatusOr<v1::Campaign> stored = Stored(*number);
  return stored.ok() ? Ended(*stored) : stored.status();
}

absl::StatusOr<v1::Campaign> Orchestrator::Submit(const v1::SubmitCampaignRequest& request) {
  if (request.request_id().size() > 64) return BadField("request_id", "expected at most 64 characters");
  if (absl::Status status = CheckText("author", request.author()); !status.ok()) return status;
  const std::vector<std::string> problems = BundleProblems(request.bundle());
  if (!problems.empty()) {
    v1::ErrorDetail detail;
    detail.set_field("bundle");
    detail.set_fix("pawl check BUNDLE shows where");
    for (const std::string& problem : problems) detail.add_problems(problem);
    return Error(absl::StatusCode::kInvalidArgument,
                 absl::StrCat("the bundle has ", problems.size(), " mistakes: ", absl::StrJoin(problems, "; ")),
                 detail);
  }
  absl::StatusOr<v1::CampaignSpec> spec = CompleteSpec(request.bundle(), request.spec(), options_.profiles->gates);
  if (!spec.ok()) return spec.status();
  const std::string bytes = Bytes(request.bundle());
  v1::Event event;
  v1::CampaignSubmitted& submitted = *event.mutable_submitted();
  *submitted.mutable_spec() = *std::move(spec);
  submitted.set_bundle(request.bundle().name());
  submitted.set_bundle_hash(Sha256(bytes));
  submitted.set_space_hash(BundleHash(request.bundle()));
  submitted.set_author(request.author());
  submitted.set_request_id(request.request_id());

  return Locked([&](After* after) -> absl::StatusOr<v1::Campaign> {
    if (absl::Status status = Serving(); !status.ok()) return status;
    if (!leasing_) return TryLater("the orchestrator shuts down", 1);
    if (!request.request_id().empty()) {
      absl::StatusOr<std::optional<v1::Campaign>> before = store_.FindRequest(request.request_id());
      if (!before.ok()) return before.status();
      if (*before) return **before;
    }
    if (static_cast<int>(campaigns_.size()) >= options_.max_unfinished) {
      v1::ErrorDetail detail;
      detail.set_retry_after_seconds(30);
      detail.set_fix("wait for campaigns to end, cancel some, or start more workers");
      return Error(absl::StatusCode::kResourceExhausted,
                   absl::StrCat("there are ", campaigns_.size(), " unfinished campaigns, and no more are taken"),
                   detail);
    }
    *submitted.mutable_patterns() = patterns_.Snapshot(request.bundle());
    Step step = Begin();
    const int64_t number = next_campaign_++;
    step.writes.blobs.push_back({v1::Blob::BUNDLE, submitted.bundle_hash(), bytes});
    campaigns_[number] =
        std::make_unique<CampaignState>(CampaignName(number), bundles_.Put(submitted.bundle_hash(), request.bundle()));
    Add(&step, campaigns_[number].get(), std::move(event));
    if (absl::Status status = Commit(&step, after); !status.ok()) return status;
    return Stored(number);
  });
}

std::string Orchestrator::WaitsFor(const CampaignState& campaign) const {
  if (const std::optional<absl::Time> deadline = ProposalDeadline(campaign)) {
    return absl::StrCat("waits for a proposal until ", absl::FormatTime("%H:%M:%S", *deadline, absl::UTCTimeZone()),
                        " UTC: pawl propose");
  }
  const std::vector<const v1::Worker*> present = workers_.Present(clock_());
  if (present.empty()) return "no worker is registered: start pawl-worker";
  std::string why;
  for (const v1::Worker* worker : present) {
    const absl::Status can = CanRun(worker->device(), campaign.summary(), campaign.space_hash());
    if (can.ok()) return "";
    absl::StrAppend(&why, why.empty() ? "" : "; ", worker->name(), " (", worker->device().label(),
                    "): ", std::string(can.message()));
  }
  return absl::StrCat("no worker can take it: ", why);
}

absl::StatusOr<v1::Campaign> Orchestrator::Get(const v1::GetCampaignRequest& request) {
  absl::StatusOr<int64_t> number = NumberOf("name", request.name());
  if (!number.ok()) return number.status();
  absl::StatusOr<v1::Campaign> stored = Stored(*number);
  if (!stored.ok() || IsFinal(stored->state())) return stored;
  std::lock_guard lock(mutex_);
  const auto found = campaigns_.find(*number);
  if (found == campaigns_.end() || found->second->summary().state() == v1::PAUSED) return stored;
  stored->set_minutes(absl::ToDoubleMinutes(found->second->Running(clock_())));
  const auto queued = queued_.find(*number);
  const bool waits = queued != queued_.end() && !queued->second.empty();
  if (waits || ProposalDeadline(*found->second)) stored->set_message(WaitsFor(*found->second));
  return stored;
}

absl::StatusOr<v1::Campaign> Orchestrator::Pause(const v1::PauseCampaignRequest& request) {
  if (absl::Status status = CheckText("reason", request.reason()); !status.ok()) return status;
  if (absl::Status status = CheckText("author", request.author()); !status.ok()) return status;
  return Locked([&](After* after) -> absl::StatusOr<v1::Campaign> {
    absl::StatusOr<CampaignState*> campaign = Unended("name", request.name());
    if (!campaign.ok()) return campaign.status();
    if ((*campaign)->summary().state() != v1::PAUSED) {
      Step step = Begin();
      v1::Event event;
      event.mutable_paused()->set_author(request.author());
      event.mutable_paused()->set_reason(request.reason());
      Add(&step, *campaign, std::move(event));
      if (absl::Status status = Commit(&step, after); !status.ok()) return status;
    }
    return Stored(*ParseCampaignName(request.name()));
  });
}

absl::StatusOr<v1::Campaign> Orchestrator::Resume(const v1::ResumeCampaignRequest& request) {
  if (absl::Status status = CheckText("author", request.author()); !status.ok()) return status;
  return Locked([&](After* after) -> absl::StatusOr<v1::Campaign> {
    absl::StatusOr<CampaignState*> campaign = Unended("name", request.name());
    if (!campaign.ok()) return campaign.status();
    if ((*campaign)->summary().state() != v1::PAUSED) {
      v1::ErrorDetail detail;
      detail.set_resource(request.name());
      detail.set_fix("nothing is to be done: it goes on by itself");
      return Error(absl::StatusCode::kFailedPrecondition, absl::StrCat(request.name(), " is not paused"), detail);
    }
    Step step = Begin();
    v1::Event event;
    event.mutable_resumed()->set_author(request.author());
    Add(&step, *campaign, std::move(event));
    if (absl::Status status = Commit(&step, after); !status.ok()) return status;
    return Stored(*ParseCampaignName(request.name()));
  });
}

absl::StatusOr<v1::Campaign> Orchestrator::Cancel(const v1::CancelCampaignRequest& request) {
  if (absl::Status status = CheckText("reason", request.reason()); !status.ok()) return status;
  if (absl::Status status = CheckText("author", request.author()); !status.ok()) return status;
  return Locked([&](After* after) -> absl::StatusOr<v1::Campaign> {
    absl::StatusOr<CampaignState*> campaign = Unended("name", request.name());
    if (!campaign.ok()) {
      const std::optional<int64_t> number = ParseCampaignName(request.name());
      if (number && campaign.status().code() == absl::StatusCode::kFailedPrecondition) {
        absl::StatusOr<v1::Campaign> stored = Stored(*number);
        if (stored.ok() && stored->state() == v1::CANCELLED) return stored;
      }
      return campaign.status();
    }
    const int64_t number = *ParseCampaignName(request.name());
    Step step = Begin();
    for (const auto& [trial, open] : (*campaign)->open_trials()) {
      if (open.planned.purpose() == v1::TRIAL_PURPOSE_VERIFY) continue;  // goes on
      if (v1::Worker* worker = workers_.Mutable(open.worker)) {
        auto* trials = worker->mutable_trials();
        trials->erase(std::remove(trials->begin(), trials->end(), TrialName(number, trial)), trials->end());
      }
      deadlines_.erase({number, trial});
    }
    v1::Event event;
    v1::CampaignEnded& ended = *event.mutable_ended();
    ended.set_state(v1::CANCELLED);
    ended.set_reason(v1::STOP_REASON_CANCELLED);
    ended.set_message(request.reason().empty() ? "cancelled" : absl::StrCat("cancelled: ", request.reason()));
    ended.set_author(request.author());
    ended.set_tier(TierOf((*campaign)->summary(), options_.profiles->gates));
    Add(&step, *campaign, std::move(event));
    if (absl::Status status = Commit(&step, after); !status.ok()) return status;
    return Stored(number);
  });
}

absl::StatusOr<v1::VerifyIterationResponse> Orchestrator::Verify(const v1::VerifyIterationRequest& request) {
  const std::optional<NameInCampaign> name = ParseIterationName(request.name());
  if (!name) return BadField("name", "expected an iteration's name, like campaigns/7/iterations/12");
  auto refused = [&](const std::string& message, const std::string& fix) {
    v1::ErrorDetail detail;
    detail.set_resource(request.name());
    detail.set_fix(fix);
    return Error(absl::StatusCode::kFailedPrecondition, message, detail);
  };
  // The log of a campaign that has ended may be long: it is read before others have to wait for the lock.
  absl::StatusOr<v1::Campaign> before = Stored(name->campaign);
  if (!before.ok()) return before.status();
  absl::StatusOr<std::unique_ptr<CampaignState>> loaded = nullptr;
  if (IsFinal(before->state()) && !before->verifying()) loaded = LoadCampaign(name->campaign);
  if (!loaded.ok()) return loaded.status();
  return Locked([&](After* after) -> absl::StatusOr<v1::VerifyIterationResponse> {
    if (absl::Status status = Serving(); !status.ok()) return status;
    absl::StatusOr<v1::Campaign> stored = Stored(name->campaign);
    if (!stored.ok()) return stored.status();
    auto found = campaigns_.find(name->campaign);
    if (found == campaigns_.end()) {
      const bool outdated = *loaded == nullptr || before->last_sequence() != stored->last_sequence();
      if (outdated) loaded = LoadCampaign(name->campaign);  // it ended, or was verified, in the meantime
      if (!loaded.ok()) return loaded.status();
      found = campaigns_.emplace(name->campaign, *std::move(loaded)).first;
    }
    CampaignState& campaign = *found->second;
    const v1::Iteration* iteration = campaign.Find(name->number);
    absl::Status status = absl::OkStatus();
    if (iteration == nullptr) {
      status = NoSuch(request.name(), "pawl history lists those there are");
    } else if (!(iteration->time_us() > 0)) {
      status = refused(absl::StrCat(request.name(), " was never measured: ", iteration->reason()),
                       "verify a kept or reverted one");
    }
    for (const auto& [trial, open] : campaign.open_trials()) {
      if (open.planned.purpose() != v1::TRIAL_PURPOSE_VERIFY) continue;
      if (open.planned.iteration() == name->number) {
        v1::VerifyIterationResponse same;
        same.set_trial(TrialName(name->campaign, trial));
        same.set_after_sequence(stored->last_sequence());
        return same;
      }
      status = refused(absl::StrCat(stored->name(), " is being verified already"),
                       "wait for that to end, a minute at most if no worker takes it");
    }
    if (!status.ok()) {
      if (campaign.ended() && campaign.open_trials().empty()) Drop(name->campaign);
      return status;
    }
    Step step = Begin();
    v1::Event event;
    v1::TrialPlanned& planned = *event.mutable_planned();
    planned.set_trial(campaign.next_trial());
    planned.set_purpose(v1::TRIAL_PURPOSE_VERIFY);
    planned.set_iteration(name->number);
    if (iteration->has_parent()) planned.set_parent(iteration->parent());
    *planned.mutable_variant() = VariantOf(*iteration);
    if (iteration->has_change()) *planned.mutable_change() = iteration->change();
    v1::VerifyIterationResponse response;
    response.set_trial(TrialName(name->campaign, planned.trial()));
    response.set_after_sequence(stored->last_sequence());
    Add(&step, &campaign, std::move(event));
    if (absl::Status committed = Commit(&step, after); !committed.ok()) return committed;
    return response;
  });
}

absl::StatusOr<v1::ProposeChangeResponse> Orchestrator::Propose(const v1::ProposeChangeRequest& request) {
  if (request.author().empty() || request.author().size() > kMaxText) {
    return BadField("author", "expected 1 to 1000 characters: who proposes stands in the history");
  }
  if (absl::Status status = CheckText("why", request.why()); !status.ok()) return status;
  if (absl::Status status = CheckChange(request.change()); !status.ok()) return status;
  return Locked([&](After* after) -> absl::StatusOr<v1::ProposeChangeResponse> {
    absl::StatusOr<CampaignState*> found = Unended("campaign", request.campaign());
    if (!found.ok()) return found.status();
    CampaignState& campaign = **found;
    v1::ErrorDetail detail;
    detail.set_resource(request.campaign());
    if (campaign.summary().spec().chooser().kind() == v1::CHOOSER_KIND_TREE) {
      detail.set_fix("submit with --chooser both or outside");
      return Error(absl::StatusCode::kFailedPrecondition,
                   absl::StrCat(request.campaign(), " takes no proposals: it was submitted with --chooser tree"),
                   detail);
    }
    if (campaign.best() == nullptr) {
      detail.set_fix("wait for iteration 0");
      return Error(absl::StatusCode::kFailedPrecondition,
                   absl::StrCat(request.campaign(), " has no kept variant to change yet"), detail);
    }
    std::string why;
    const std::optional<Choice> choice = Proposed(campaign, request.change(), &why);
    if (!choice && !why.empty()) return BadField("change", why);
    if (!choice) {
      detail.set_fix("pawl history shows how it went; propose another change");
      return Error(absl::StatusCode::kAlreadyExists, "this variant was tried before", detail);
    }
    for (const CampaignState::Proposal& waiting : campaign.proposals()) {
      const v1::Change& change = waiting.proposed.change();
      if (change.variable() != request.change().variable() || change.to() != request.change().to() ||
          change.source().patch() != request.change().source().patch()) {
        continue;
      }
      detail.set_fix("wait for it to be tried; propose another change");
      return Error(absl::StatusCode::kAlreadyExists,
                   absl::StrCat("this change was proposed before, by ", waiting.proposed.author()), detail);
    }
    if (campaign.proposals().size() >= kMaxProposals) {
      detail.set_fix("wait for some to be tried");
      detail.set_retry_after_seconds(10);
      return Error(absl::StatusCode::kResourceExhausted,
                   absl::StrCat(request.campaign(), " has ", kMaxProposals, " proposals waiting"), detail);
    }
    v1::ProposeChangeResponse response;
    response.set_waiting(static_cast<int>(campaign.proposals().size()));
    Step step = Begin();
    v1::Event event;
    event.mutable_proposed()->set_author(request.author());
    *event.mutable_proposed()->mutable_change() = request.change();
    event.mutable_proposed()->set_why(request.why());
    Add(&step, &campaign, std::move(event));
    if (absl::Status status = Commit(&step, after); !status.ok()) return status;
    return response;
  });
}

absl::StatusOr<v1::Situation> Orchestrator::Situation(const v1::GetSituationRequest& request) {
  std::lock_guard lock(mutex_);
  absl::StatusOr<CampaignState*> campaign = Unended("campaign", request.campaign());
  if (!campaign.ok()) return campaign.status();
  if ((*campaign)->best() == nullptr) {
    v1::ErrorDetail detail;
    detail.set_resource(request.campaign());
    detail.set_fix("wait for iteration 0; pawl show says how far it is");
    return Error(absl::StatusCode::kFailedPrecondition, absl::StrCat(request.campaign(), " has kept nothing yet"),
                 detail);
  }
  return SituationOf(**campaign, chooser_, options_.profiles->tree);
}

absl::StatusOr<v1::ListPatternsResponse> Orchestrator::Patterns(const v1::ListPatternsRequest& request) {
  return Locked([&](After* after) -> absl::StatusOr<v1::ListPatternsResponse> {
    if (absl::Status status = Serving(); !status.ok()) return status;
    v1::ListPatternsResponse response = patterns_.List(request);
    if (!request.own()) return response;
    Step step = Begin();
    patterns_.HandOut(response, &step.writes);
    if (step.writes.pattern_exports.empty()) return response;
    if (absl::Status status = Commit(&step, after); !status.ok()) return status;
    return response;
  });
}

absl::StatusOr<v1::ImportPatternsResponse> Orchestrator::ImportPatterns(const v1::ImportPatternsRequest& request) {
  return Locked([&](After* after) -> absl::StatusOr<v1::ImportPatternsResponse> {
    if (absl::Status status = Serving(); !status.ok()) return status;
    Step step = Begin();
    absl::StatusOr<v1::ImportPatternsResponse> imported = patterns_.Import(request, &step.writes);
    if (!imported.ok()) return imported;
    if (absl::Status status = Commit(&step, after); !status.ok()) return status;
    return imported;
  });
}

absl::StatusOr<v1::ListWorkersResponse> Orchestrator::Workers(const v1::ListWorkersRequest& request) {
  std::lock_guard lock(mutex_);
  v1::ListWorkersResponse response;
  for (v1::Worker& worker : workers_.All(request.gone_too(), clock_())) *response.add_workers() = std::move(worker);
  return response;
}

}  // namespace pawl
