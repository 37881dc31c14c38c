// Changes that people and agents propose, and the situation that they look at first.
#include <algorithm>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/names/resource_name.h"
#include "kernels/variable_values.h"
#include "orchestrator/core/errors.h"
#include "orchestrator/core/orchestrator.h"
#include "orchestrator/core/stored_campaign.h"
#include "orchestrator/engine/report/situation.h"
#include "orchestrator/engine/search/next_event.h"
#include "orchestrator/engine/search/single_change.h"

namespace pawl {
namespace {

constexpr size_t kMaxPatch = 100'000;          // bytes of an edit
constexpr size_t kMaxStart = size_t{1} << 20;  // of one that adds the device code to a contract alone
constexpr int64_t kMaxStartLines = 50'000;
constexpr size_t kMaxProposals = 100;

absl::Status CheckChange(const v1::Change& change) {
  switch (change.kind_case()) {
    case v1::Change::kVariable:
      return change.has_to() || !change.to_word().empty()
                 ? absl::OkStatus()
                 : BadField("change", "expected the value that the variable goes to");
    case v1::Change::kSource:
      if (change.source().name().empty() || change.source().name().size() > 100) {
        return BadField("change.source.name", "expected 1 to 100 characters: the history shows this name");
      }
      return absl::OkStatus();
    case v1::Change::KIND_NOT_SET:
      break;
  }
  return BadField("change", "expected a variable and the value it goes to, or a named source edit");
}

absl::Status CheckPatch(const std::string& patch, bool start) {
  const std::string has = absl::StrCat("the patch has ", patch.size(), " bytes; ");
  if (!start && patch.size() > kMaxPatch) {
    return BadField("change.source.patch", absl::StrCat(has, "an edit has at most ", kMaxPatch));
  }
  if (patch.size() > kMaxStart) {
    return BadField("change.source.patch", absl::StrCat(has, "one that adds the device code has at most ", kMaxStart));
  }
  const auto lines = std::count(patch.begin(), patch.end(), '\n');
  if (lines <= kMaxStartLines) return absl::OkStatus();
  return BadField("change.source.patch",
                  absl::StrCat("the patch has ", lines, " lines; expected at most ", kMaxStartLines));
}

// With the verdict that it got then, so that nobody has to wait for it again.
absl::Status TriedBefore(const CampaignState& campaign, int number, v1::ErrorDetail detail) {
  const v1::Iteration* before = campaign.Find(number);
  if (before == nullptr) {
    detail.set_fix("wait for its verdict; propose another change");
    return Error(absl::StatusCode::kAlreadyExists, absl::StrCat("this variant is being tried: iteration ", number),
                 detail);
  }
  detail.set_fix(absl::StrCat("pawl explain ", absl::StripPrefix(campaign.summary().name(), "campaigns/"), " ", number,
                              " shows how it went; propose another change"));
  return Error(absl::StatusCode::kAlreadyExists,
               absl::StrCat("this variant was tried before: iteration ", number, ", ",
                            absl::AsciiStrToLower(v1::Verdict_Name(before->verdict())), ": ", before->reason()),
               detail);
}

}  // namespace

absl::StatusOr<v1::ProposeChangeResponse> Orchestrator::Propose(const v1::ProposeChangeRequest& request) {
  if (request.author().empty() || request.author().size() > kMaxText) {
    return BadField("author", "expected 1 to 1000 characters: the history names the author");
  }
  if (absl::Status status = CheckText("why", request.why()); !status.ok()) return status;
  if (absl::Status status = CheckChange(request.change()); !status.ok()) return status;
  for (;;) {
    PatchedBest patched;  // applied while others have the lock
    if (request.change().has_source()) {
      PatchBases bases;
      {
        absl::MutexLock lock(&mutex_);
        const auto campaign = Unended("campaign", request.campaign());
        if (!campaign.ok()) return campaign.status();
        const absl::Status fits = CheckPatch(request.change().source().patch(), (*campaign)->awaits_start());
        if (!fits.ok()) return fits;
        bases = BasesOf(**campaign);
      }
      patched = Patched(bases, request.change().source().patch());
    }
    auto answer = ProposePatched(request, std::move(patched));
    if (answer) return *std::move(answer);
  }
}

std::optional<absl::StatusOr<v1::ProposeChangeResponse>> Orchestrator::ProposePatched(
    const v1::ProposeChangeRequest& request, PatchedBest patched) {
  Turn turn(&mutex_);
  absl::StatusOr<CampaignState*> found = Steered("campaign", request.campaign(), turn.deferred());
  if (!found.ok()) return found.status();
  CampaignState& campaign = **found;
  if (request.change().has_source() && patched.best != campaign.PatchBase()) return std::nullopt;
  v1::ErrorDetail detail;
  detail.set_resource(request.campaign());
  if (campaign.summary().spec().chooser().kind() == v1::CHOOSER_KIND_TREE) {
    detail.set_fix("submit with --chooser both, mixed or outside");
    return Error(absl::StatusCode::kFailedPrecondition,
                 absl::StrCat(request.campaign(), " takes no proposals: it was submitted with --chooser tree"), detail);
  }
  if (campaign.best() == nullptr && !campaign.awaits_start()) {
    detail.set_fix("wait for iteration 0");
    return Error(absl::StatusCode::kFailedPrecondition,
                 absl::StrCat(request.campaign(), " has no kept variant to change yet"), detail);
  }
  const v1::Bundle& best = campaign.BundleAt(campaign.PatchBase());
  v1::Change asked = request.change();
  if (const absl::Status status = ReadWord(best.variables(), &asked); !status.ok()) {
    return BadField("change", std::string(status.message()));
  }
  NameWords(best, &asked);
  ProposalRefusal refusal;
  const std::optional<Choice> choice = Proposed(campaign, asked, &refusal, &patched);
  if (!choice && !refusal.why.empty()) return BadField("change", refusal.why);
  if (!choice) return TriedBefore(campaign, refusal.tried_before, std::move(detail));
  for (const CampaignState::Proposal& waiting : campaign.proposals()) {
    const v1::Change& change = waiting.proposed.change();
    if (change.variable() != asked.variable() || change.to() != asked.to() ||
        change.source().patch() != asked.source().patch()) {
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
  v1::Event event;
  event.mutable_proposed()->set_author(request.author());
  *event.mutable_proposed()->mutable_change() = std::move(asked);
  event.mutable_proposed()->set_why(request.why());
  event.mutable_proposed()->set_number(campaign.next_proposal());
  const size_t bytes = event.proposed().ByteSizeLong() + choice->patched_source.size();
  if (absl::Status status = CheckHeldBytes(state_, options_, request.author(), static_cast<int64_t>(bytes));
      !status.ok()) {
    return status;
  }
  v1::ProposeChangeResponse response;
  response.set_waiting(static_cast<int>(campaign.proposals().size()));
  Step step = Begin();
  committer_.Add(&step, &campaign, std::move(event));
  campaign.proposals().back().patched = std::move(patched);
  scheduler_.Foretell(&step, campaign);
  if (absl::Status status = Commit(&step, turn.deferred()); !status.ok()) return status;
  return response;
}

absl::StatusOr<v1::Situation> Orchestrator::Situation(const v1::GetSituationRequest& request) {
  const auto situation = [&](const CampaignState& campaign, const char* fix) -> absl::StatusOr<v1::Situation> {
    if (campaign.best() != nullptr || campaign.awaits_start()) {
      return SituationOf(campaign, chooser_, options_.profiles->tree);
    }
    v1::ErrorDetail detail;
    detail.set_resource(request.campaign());
    detail.set_fix(fix);
    return Error(absl::StatusCode::kFailedPrecondition, absl::StrCat(request.campaign(), " has no kept variant yet"),
                 detail);
  };
  std::shared_ptr<const CampaignState> unended;
  {
    Turn turn(&mutex_);
    // Nobody is told of a result that may still be lost.
    if (absl::Status status = WriteResults(turn.deferred()); !status.ok()) return status;
    const auto found = Unended("campaign", request.campaign());
    if (!found.ok() && !absl::IsFailedPrecondition(found.status())) return found.status();
    if (found.ok()) unended = (*found)->Copy();  // ranking the changes uses a memo of its own
  }
  if (unended != nullptr) return situation(*unended, "wait for iteration 0; pawl show shows its progress");
  // An ended campaign is read from its events, which may be many: others don't wait for that.
  absl::StatusOr<StoredCampaign> ended = ReadCampaign(store_, *ParseCampaignName(request.campaign()), &bundles_);
  if (!ended.ok()) return ended.status();
  return situation(*ended->state, "pawl show says why it ended");
}

}  // namespace pawl
