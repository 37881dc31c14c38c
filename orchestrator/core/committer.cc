#include "orchestrator/core/committer.h"

#include <chrono>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/faults/fault_point.h"
#include "base/hash/hash.h"
#include "base/messages/valid_texts.h"
#include "base/names/resource_name.h"
#include "base/revision/revision.h"
#include "base/text/paragraph.h"
#include "kernels/bundle_message.h"
#include "kernels/read/implementation.h"
#include "kernels/variable_values.h"
#include "orchestrator/core/errors.h"
#include "orchestrator/engine/search/patterns.h"
#include "spdlog/spdlog.h"

namespace pawl {
namespace {

// The iteration that a lease is about.
int IterationOf(const CampaignState& campaign, const v1::Event& event) {
  const auto open = campaign.open_trials().find(event.has_leased() ? event.leased().trial() : event.lost().trial());
  return open == campaign.open_trials().end() ? 0 : open->second.planned.iteration();
}

// "TILE_M 64 -> 16"; empty: no change.
std::string ChangeText(const v1::Change& change) {
  switch (change.kind_case()) {
    case v1::Change::kVariable:
      return absl::StrCat(change.variable(), " ", FromText(change), " -> ", ToText(change));
    case v1::Change::kSource:
      return absl::StrCat("edit ", change.source().name());
    case v1::Change::KIND_NOT_SET:
      return "";
  }
  return "";
}

std::string EventText(const v1::Event& event, int iteration) {
  const std::string& campaign = event.campaign();
  switch (event.event_case()) {
    case v1::Event::kSubmitted:
      return absl::StrCat(campaign, " submitted: ", event.submitted().bundle(), " at ",
                          event.submitted().spec().goal().size());
    case v1::Event::kPlanned: {
      const v1::TrialPlanned& planned = event.planned();
      const bool verify = planned.purpose() == v1::TRIAL_PURPOSE_VERIFY;
      if (planned.purpose() == v1::TRIAL_PURPOSE_TOTAL) {
        return absl::StrCat(campaign, "/iterations/", planned.iteration(),
                            " to be measured against the start, by trial ", planned.trial());
      }
      if (planned.purpose() == v1::TRIAL_PURPOSE_END) {
        return absl::StrCat(campaign, "/iterations/", planned.iteration(), " to be compared with iteration ",
                            planned.parent(), ", the best, by trial ", planned.trial());
      }
      if (planned.purpose() == v1::TRIAL_PURPOSE_SANITIZE) {
        return absl::StrCat(campaign, "/iterations/", absl::StrJoin(planned.unsanitized(), ","),
                            " to be run under compute-sanitizer, by trial ", planned.trial());
      }
      return absl::StrCat(campaign, "/iterations/", planned.iteration(), verify ? " to be verified: " : " planned: ",
                          planned.has_change() ? ChangeText(planned.change()) : "start variant",
                          planned.has_parent() ? absl::StrCat(" from ", planned.parent()) : "", ", by trial ",
                          planned.trial());
    }
    case v1::Event::kLeased:
      return absl::StrCat(campaign, "/iterations/", iteration, " trial ", event.leased().trial(), " leased to ",
                          event.leased().worker(), ", attempt ", event.leased().attempt());
    case v1::Event::kLost:
      return absl::StrCat(campaign, "/iterations/", iteration, " trial ", event.lost().trial(), " lost by ",
                          event.lost().worker(), " (", v1::LeaseLost::Reason_Name(event.lost().reason()),
                          "): ", event.lost().message());
    case v1::Event::kFinished: {
      if (event.finished().has_verification()) {
        return absl::StrCat(campaign, "/iterations/", event.finished().verification().iteration(),
                            " verified: ", event.finished().verification().text());
      }
      if (event.finished().has_total_gain()) {
        const v1::TotalGain& total = event.finished().total_gain();
        return absl::StrFormat("%s/iterations/%d against the start: %.4gx measured, %.4gx estimated from the steps; %s",
                               campaign, total.iteration(), total.speedup_over_start(), total.multiplied(),
                               total.interval().reason());
      }
      if (IsOfSanitizer(event.finished())) {
        return absl::StrCat(campaign, " under compute-sanitizer: ",
                            absl::StrJoin(event.finished().revised(), ", ", [](std::string* out, const auto& one) {
                              absl::StrAppend(out, one.number(), " ", v1::Verdict_Name(one.verdict()));
                            }));
      }
      if (!event.finished().has_iteration() && event.finished().revised_size() == 1) {
        const v1::RevisedIteration& end = event.finished().revised(0);
        return absl::StrFormat("%s/iterations/%d %s: %s; %.4gx over the start", campaign, end.number(),
                               v1::Verdict_Name(end.verdict()), end.reason(), end.speedup_over_start());
      }
      const v1::Iteration& judged = event.finished().iteration();
      return absl::StrFormat("%s %s: %s; %.4gx over the start", judged.name(), v1::Verdict_Name(judged.verdict()),
                             judged.reason(), judged.speedup_over_start());
    }
    case v1::Event::kPaused:
      return absl::StrCat(campaign, " paused by ", event.paused().author(), ": ", event.paused().reason());
    case v1::Event::kResumed:
      return absl::StrCat(campaign, " resumed by ", event.resumed().author());
    case v1::Event::kEnded:
      return absl::StrCat(campaign, " ", v1::CampaignState_Name(event.ended().state()), ": ", event.ended().message());
    case v1::Event::kProposed:
      return absl::StrCat(campaign, " proposal by ", event.proposed().author(), ": ",
                          ChangeText(event.proposed().change()));
    case v1::Event::kDropped:
      return absl::StrCat(campaign, " proposal by ", event.dropped().author(),
                          " dropped: ", ChangeText(event.dropped().change()), ": ", event.dropped().reason());
    case v1::Event::kLeg:
      return absl::StrCat(campaign, " begins a leg: ", event.leg().leg().why());
    case v1::Event::EVENT_NOT_SET:
      break;
  }
  return absl::StrCat(campaign, " event ", event.sequence());
}

bool IsEmpty(const Writes& writes) {
  return writes.events.empty() && writes.workers.empty() && writes.blobs.empty() && writes.pattern_files.empty() &&
         writes.pattern_exports.empty() && !writes.maintenance && !writes.leases_ended;
}

}  // namespace

// Names, reasons and messages are other people's, and may have more lines than one.
std::string LogLine(const v1::Event& event, int iteration) { return OneLine(EventText(event, iteration)); }

void Committer::Add(Step* step, CampaignState* campaign, v1::Event event) {
  event.set_campaign(campaign->summary().name());
  SetTime(step->now, event.mutable_time());
  event.set_served_us(absl::ToInt64Microseconds(step->served));
  MakeTextsValid(&event);
  step->lines.push_back(LogLine(event, IterationOf(*campaign, event)));
  if (const std::string& source = event.planned().patched_source(); !source.empty()) {
    step->writes.blobs.push_back({v1::Blob::SOURCE, Sha256(source), source});
  }
  for (const v1::RevisedIteration& revised : event.finished().revised()) {
    const v1::Iteration* kept = campaign->Find(revised.number());
    if (kept == nullptr || kept->verdict() != v1::KEPT || revised.verdict() == v1::KEPT) continue;
    state_.patterns.TakenBack(*kept, campaign->summary().bundle(), SmArchitecture(campaign->gpu()), &step->writes);
  }
  campaign->Apply(event);
  if (const std::string& hash = event.planned().bundle_hash(); !hash.empty()) {
    v1::Bundle proposed = campaign->bundle();
    // The plan was made of a text that could be read.
    SetImplementation(event.planned().patched_source(), &proposed).IgnoreError();
    step->writes.blobs.push_back({v1::Blob::BUNDLE, hash, BundleBytes(proposed)});
  }
  // A replay uses no GPU.
  if (event.has_finished() && !campaign->summary().replay()) {
    const TrialCost cost = CostOf(event.finished(), campaign->summary());
    if (cost.seconds > 0) {
      step->writes.spending.push_back({campaign->author(), HourOf(step->now), cost.seconds, cost.dollars});
      state_.limits.Add(step->writes.spending.back());
    }
  }
  if (event.finished().has_iteration()) {
    state_.patterns.Judged(event.finished().iteration(), campaign->summary().bundle(), SmArchitecture(campaign->gpu()),
                           &step->writes);
  }
  const int64_t number = *ParseCampaignName(campaign->summary().name());
  step->touched.insert(number);
  state_.queue.Update(number, *campaign);
  step->writes.events.push_back(std::move(event));
}

absl::Status Committer::Commit(Step* step, Deferred* deferred) {
  for (int64_t number : step->touched) step->writes.campaigns.push_back(state_.campaigns.at(number)->summary());
  if (!IsEmpty(step->writes)) {
    const auto begin = std::chrono::steady_clock::now();
    const absl::Status status = store_.Commit(&step->writes);
    meters_.ObserveCommit(absl::FromChrono(std::chrono::steady_clock::now() - begin));
    if (!status.ok()) return Fail(status, step, deferred);
  }
  Pass(FaultPoint::kAfterCommit);
  Publish(step, deferred);
  return absl::OkStatus();
}

void Committer::Publish(Step* step, Deferred* deferred) {
  for (const std::string& line : step->lines) spdlog::info("{}", line);
  for (const v1::Event& event : step->writes.events) {
    meters_.Count(event, *state_.campaigns.at(*ParseCampaignName(event.campaign())));
    if (!event.has_ended() || !options_.ended) continue;
    deferred->push_back([this, number = *ParseCampaignName(event.campaign())] { options_.ended(number); });
  }
  for (Step::Offer& offer : step->offers) {
    deferred->push_back([answer = std::move(offer.answer), response = std::move(offer.response)] { answer(response); });
  }
  for (int64_t number : step->touched) {
    deferred->push_back([this, number] { hub_.Wake(number); });
    const CampaignState& campaign = *state_.campaigns.at(number);
    if (campaign.ended() && KnownBaselines::Counts(campaign.summary())) {
      state_.baselines.Note(campaign.summary(), ContractHash(campaign.bundle()));
    }
    if (campaign.ended() && campaign.open_trials().empty()) state_.Drop(number);
  }
}

absl::Status Committer::Fail(const absl::Status& status, Step* step, Deferred* deferred) {
  spdlog::error("nothing is served until the database can be written again: {}", std::string(status.message()));
  state_.broken = TryLater(std::string(status.message()), 1);
  state_.SendAway(state_.broken, deferred);
  for (Step::Offer& offer : step->offers) {
    deferred->push_back([answer = std::move(offer.answer), broken = state_.broken] { answer(broken); });
  }
  return state_.broken;
}

}  // namespace pawl
