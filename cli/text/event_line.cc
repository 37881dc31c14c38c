#include "cli/text/event_line.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/names/resource_name.h"
#include "base/revision/revision.h"
#include "cli/text/iteration_line.h"
#include "cli/text/layout.h"
#include "cli/text/situation_text.h"
#include "cli/text/words.h"
#include "kernels/variable_values.h"
#include "report/sentences.h"

namespace pawl {
namespace {

std::string By(const std::string& author) { return author.empty() ? "" : absl::StrCat(" by ", author); }

std::string Because(const std::string& reason) { return reason.empty() ? "" : absl::StrCat(": ", reason); }

// Empty where Pawl chooses and nobody is waited for.
std::string ChooserText(const v1::ChooserSettings& chooser) {
  if (chooser.kind() == v1::CHOOSER_KIND_TREE) return "without proposals";
  if (!WaitsForProposals(chooser)) return "";
  std::string text = "changes are proposed";
  if (chooser.wait_seconds() > 0) absl::StrAppend(&text, " within ", SecondsText(chooser.wait_seconds()));
  if (chooser.kind() == v1::CHOOSER_KIND_MIXED) absl::StrAppend(&text, ", Pawl tunes after each kept edit");
  return absl::StrCat(
      text, chooser.no_proposal() == v1::NO_PROPOSAL_PAUSE ? ", otherwise it pauses" : ", otherwise Pawl chooses");
}

std::string SubmittedText(const v1::Event& event) {
  const v1::CampaignSubmitted& submitted = event.submitted();
  const v1::CampaignSpec& spec = submitted.spec();
  std::vector<std::string> limits;
  if (spec.goal().speedup() > 0) {
    limits.push_back(absl::StrFormat("goal %.2fx over the baseline", spec.goal().speedup()));
  }
  if (spec.goal().portfolio() > 1) {
    limits.push_back(absl::StrCat("a portfolio of at most ", spec.goal().portfolio(), " variants"));
  }
  if (spec.budget().iterations() > 0) limits.push_back(absl::StrCat(spec.budget().iterations(), " iterations"));
  if (spec.budget().minutes() > 0) limits.push_back(absl::StrCat(spec.budget().minutes(), " minutes"));
  if (spec.budget().dollars() > 0) limits.push_back(absl::StrFormat("%.2f dollars", spec.budget().dollars()));
  if (const std::string chooser = ChooserText(spec.chooser()); !chooser.empty()) limits.push_back(chooser);
  return absl::StrCat(event.campaign(), ": ", submitted.bundle(), " ", ObjectiveText(spec.goal()),
                      limits.empty() ? "" : "; ", absl::StrJoin(limits, ", "));
}

// "iterations 3, 5 and 8".
template <typename Numbers>
std::string IterationsText(const Numbers& numbers) {
  std::string text = numbers.size() == 1 ? "iteration " : "iterations ";
  int at = 0;
  for (const int number : numbers) {
    if (at > 0) text += at + 1 == static_cast<int>(numbers.size()) ? " and " : ", ";
    absl::StrAppend(&text, number);
    ++at;
  }
  return text;
}

std::string SanitizedText(const v1::TrialFinished& finished) {
  std::vector<int> passed, rejected, left, again;
  std::string why;
  for (const v1::RevisedIteration& revised : finished.revised()) {
    const bool kept = revised.verdict() == v1::KEPT;
    const bool reverted = revised.verdict() == v1::REVERTED;  // beside one that is rejected
    (reverted ? again : !kept ? rejected : revised.unsanitized() ? left : passed).push_back(revised.number());
    if (why.empty()) why = kept ? revised.notes() : revised.failure().message();
  }
  std::vector<std::string> parts;
  if (!passed.empty()) parts.push_back(absl::StrCat("it finds nothing in ", IterationsText(passed)));
  if (!rejected.empty()) parts.push_back(absl::StrCat("rejected: ", IterationsText(rejected)));
  if (!again.empty()) parts.push_back(absl::StrCat("to be compared with the best again: ", IterationsText(again)));
  if (!left.empty()) parts.push_back(absl::StrCat("it did not end; next, one by one: ", IterationsText(left)));
  if (!why.empty()) parts.push_back(why);
  return absl::StrCat("      compute-sanitizer: ", absl::StrJoin(parts, "; "));
}

std::string PlannedText(const v1::TrialPlanned& planned) {
  if (planned.purpose() == v1::TRIAL_PURPOSE_VERIFY) {
    return absl::StrFormat("%4d  verifying: build and measure again", planned.iteration());
  }
  if (planned.purpose() == v1::TRIAL_PURPOSE_TOTAL) {
    return absl::StrFormat("%4d  measuring the total gain against the start", planned.iteration());
  }
  if (planned.purpose() == v1::TRIAL_PURPOSE_END) {
    return absl::StrFormat("%4d  comparing the end of an expedition with the best variant, iteration %d",
                           planned.iteration(), planned.parent());
  }
  if (planned.purpose() == v1::TRIAL_PURPOSE_SANITIZE) {
    return absl::StrCat("      running compute-sanitizer over ", IterationsText(planned.unsanitized()));
  }
  std::string why = planned.why();
  if (why.empty() && planned.has_finding()) why = planned.finding().text();
  const std::string from = planned.has_parent() ? absl::StrCat(" from ", planned.parent()) : "";
  return absl::StrFormat("%4d  trying    %s%s%s", planned.iteration(), ChangeText(planned.change()), from,
                         Because(why));
}

// Which value a proposal starts from is known when it is tried: it changes the best variant of that time.
std::string ProposedText(const v1::Change& change) {
  if (change.kind_case() != v1::Change::kVariable || change.has_from()) return ChangeText(change);
  return absl::StrCat(change.variable(), "=", ToText(change), " from the best variant");
}

std::string LostText(const v1::LeaseLost& lost) {
  std::string what = "returned it before it started";
  if (lost.reason() == v1::LeaseLost::EXPIRED) what = "stopped answering";
  if (lost.reason() == v1::LeaseLost::HOST_FAULT) what = "could not run it";
  if (lost.reason() == v1::LeaseLost::NOT_RENEWED) what = "never renewed the lease";
  if (lost.reason() == v1::LeaseLost::RESTORED) what = "leased it from the original of this database";
  return absl::StrCat("trial ", lost.trial(), " is leased again: ", lost.worker(), " ", what, Because(lost.message()));
}

std::string FinishedText(const v1::TrialFinished& finished, int width) {
  if (finished.has_total_gain()) return TotalGainText(finished.total_gain());
  if (IsOfSanitizer(finished)) return SanitizedText(finished);
  if (!finished.has_verification() && !finished.has_iteration() && finished.revised_size() == 1) {
    const v1::RevisedIteration& end = finished.revised(0);
    return absl::StrFormat("%4d  %s  %s", end.number(), end.verdict() == v1::KEPT ? "kept" : "reverted", end.reason());
  }
  if (!finished.has_verification()) return IterationLine(finished.iteration(), width);
  return absl::StrCat("iteration ", finished.verification().iteration(), " verified: ", finished.verification().text());
}

std::string EndedText(const v1::CampaignEnded& ended) {
  return absl::StrCat(StateWord(ended.state()), By(ended.author()),
                      WhyText(ended.state(), ended.message(), ended.reason()));
}

std::string Text(const v1::Event& event, int width) {
  switch (event.event_case()) {
    case v1::Event::kSubmitted:
      return SubmittedText(event);
    case v1::Event::kPlanned:
      return PlannedText(event.planned());
    case v1::Event::kLeased:
      return absl::StrCat("trial ", event.leased().trial(), " runs on ", event.leased().device(), " (",
                          event.leased().worker(), ")");
    case v1::Event::kLost:
      return LostText(event.lost());
    case v1::Event::kFinished:
      return FinishedText(event.finished(), width);
    case v1::Event::kPaused:
      return absl::StrCat("paused", By(event.paused().author()), Because(event.paused().reason()));
    case v1::Event::kResumed:
      return absl::StrCat("resumed", By(event.resumed().author()));
    case v1::Event::kEnded:
      return EndedText(event.ended());
    case v1::Event::kProposed:
      return absl::StrCat("proposed", By(event.proposed().author()), ": ", ProposedText(event.proposed().change()),
                          event.proposed().why().empty() ? "" : absl::StrCat(" (", event.proposed().why(), ")"));
    case v1::Event::kDropped:
      return absl::StrCat("dropped: ", ProposedText(event.dropped().change()), ", proposed",
                          By(event.dropped().author()), ": ", event.dropped().reason());
    case v1::Event::kLeg:
      return absl::StrCat("next leg ", ObjectiveText(event.leg().leg().goal()), ": ", event.leg().leg().why());
    default:
      // Of a newer orchestrator.
      return absl::StrCat("event ", event.sequence(), " has a type that this version of pawl does not know");
  }
}

}  // namespace

std::string EventLine(const v1::Event& event, int width) { return OneLine(Text(event, width)); }

std::string ProgressLine(const v1::Progress& progress) {
  const std::string text = progress.text().empty() ? StageWord(progress.stage()) : progress.text();
  std::string line = absl::StrFormat("%4s  %s", ShortName(progress.iteration()), text);
  if (progress.steps() > 0) absl::StrAppend(&line, ", step ", progress.step(), " of ", progress.steps());
  if (progress.seconds() > 0) absl::StrAppend(&line, ", ", SecondsText(progress.seconds()), " so far");
  if (progress.seconds_left() > 0) absl::StrAppend(&line, ", about ", SecondsText(progress.seconds_left()), " left");
  return OneLine(line);
}

}  // namespace pawl
