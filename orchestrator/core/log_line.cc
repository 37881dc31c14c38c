#include "orchestrator/core/log_line.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace pawl {
namespace {

// "TILE_M 64 -> 16"; empty: no change.
std::string ChangeText(const v1::Change& change) {
  switch (change.kind_case()) {
    case v1::Change::kVariable:
      return absl::StrCat(change.variable(), " ", change.from(), " -> ", change.to());
    case v1::Change::kSource:
      return absl::StrCat("edit ", change.source().name());
    case v1::Change::KIND_NOT_SET:
      return "";
  }
  return "";
}

std::string Text(const v1::Event& event, int iteration) {
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
                            " to be measured beside the start, by trial ", planned.trial());
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
        return absl::StrFormat("%s/iterations/%d beside the start: %.4gx measured, %.4gx multiplied; %s", campaign,
                               total.iteration(), total.speedup_over_start(), total.multiplied(),
                               total.interval().reason());
      }
      const v1::Iteration& judged = event.finished().iteration();
      return absl::StrFormat("%s %s: %s; %.4gx of the start", judged.name(), v1::Verdict_Name(judged.verdict()),
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
    case v1::Event::EVENT_NOT_SET:
      break;
  }
  return absl::StrCat(campaign, " event ", event.sequence());
}

}  // namespace

// Reasons and messages are other people's, and may have more lines than one.
std::string LogLine(const v1::Event& event, int iteration) {
  return absl::StrReplaceAll(Text(event, iteration), {{"\n", " "}, {"\r", " "}});
}

}  // namespace pawl
