// Every cheat of tests/cheats is rejected by a check that is meant for it, every honest control accepted. With
// PAWL_CHEATS_TABLE=FILE the outcomes are written there as rows of a Markdown table, which scripts/cheats reads; with
// PAWL_CHEATS_AS_EDITS set, changes are proposed as edits of the source, as an agent does, where the variable stands in
// nothing but the source.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "kernels/read/bundle_reader.h"
#include "kernels/space.h"
#include "tests/cheats/cheat_list.h"
#include "tests/gpu/shared_device.h"
#include "tests/orchestrator/engine/campaign_script.h"
#include "worker/trial/timer.h"

namespace pawl {
namespace {

std::filesystem::path CheatsFolder() { return std::filesystem::path(getenv("PAWL_SOURCE_DIR")) / "tests/cheats"; }

std::string CheckName(v1::Check check) {
  std::string name = v1::Check_Name(check);
  return absl::AsciiStrToLower(absl::StripPrefix(name, "CHECK_"));
}

struct Outcome {
  std::string fired;  // the check, "accepted", "not kept", "reader" or "error"
  std::string why;
};

std::string CheckOf(const v1::Iteration& iteration) {
  return iteration.has_failure() ? CheckName(iteration.failure().check()) : "rejected";
}

// With a goal that no change reaches: the campaign goes on.
v1::CampaignSpec OutOfReach(const v1::Bundle& bundle) {
  v1::CampaignSpec spec;
  *spec.mutable_goal() = bundle.goal();
  spec.mutable_goal()->set_speedup(1e6);
  return spec;
}

// Whether a variable's value matters to the source alone, so that an edit of it can stand for a change of the variable.
bool IsOfSource(v1::Bundle bundle, const std::string& variable) {
  if (!bundle.files().empty() || bundle.source().text().empty()) return false;
  bundle.clear_source();
  bundle.clear_variables();
  bundle.clear_summary();
  return !absl::StrContains(bundle.ShortDebugString(), variable);
}

// A campaign on the GPU in which the changes are those that the test proposes.
class GpuCampaign {
 public:
  explicit GpuCampaign(const v1::Bundle& bundle) : bundle_(bundle), script_(OutOfReach(bundle), bundle) {}

  // The start variant; then proposals, from the best so far.
  absl::StatusOr<v1::Iteration> Start() { return RunPlanned(); }
  absl::StatusOr<v1::Iteration> Try(const std::string& variable, int value) {
    if (getenv("PAWL_CHEATS_AS_EDITS") != nullptr && IsOfSource(bundle_, variable)) {
      const std::string& source = script_.state().BundleAt(script_.state().best()->number()).source().text();
      script_.ProposePatch(absl::StrCat(variable, " is ", value),
                           absl::StrCat("@@ -1,1 +1,3 @@\n+#undef ", variable, "\n+#define ", variable, " ", value,
                                        "\n ", source.substr(0, source.find('\n')), "\n"));
      fprintf(stderr, "  as an edit:\n");
    } else {
      script_.Propose(variable, value);
    }
    return RunPlanned();
  }
  // compute-sanitizer over what was kept, as before a campaign ends.
  absl::Status Sanitize() {
    if (script_.state().unsanitized().empty()) return absl::OkStatus();
    v1::Event event;
    v1::TrialPlanned& planned = *event.mutable_planned();
    planned.set_trial(script_.state().next_trial());
    planned.set_purpose(v1::TRIAL_PURPOSE_SANITIZE);
    for (const int number : script_.state().unsanitized()) planned.add_unsanitized(number);
    planned.set_iteration(planned.unsanitized(0));
    *planned.mutable_variant() = VariantOf(Now(planned.iteration()));
    script_.Apply(event);
    return RunOpen(planned).status();
  }
  // The best beside the start, as before a campaign ends.
  absl::StatusOr<v1::TrialResult> Total() {
    v1::TrialPlanned planned;
    planned.set_purpose(v1::TRIAL_PURPOSE_TOTAL);
    planned.set_iteration(script_.state().best()->number());
    planned.set_parent(0);
    *planned.mutable_variant() = VariantOf(*script_.state().best());
    return RunPlan(bundle_, planned, script_.state());
  }
  // As it stands now: a later result may have changed it.
  const v1::Iteration& Now(int number) const { return *script_.state().Find(number); }

 private:
  absl::StatusOr<v1::Iteration> RunPlanned() {
    std::optional<v1::Event> event = script_.Decide();
    if (!event || !event->has_planned()) {
      return absl::FailedPreconditionError(event ? event->ShortDebugString() : "nothing is planned");
    }
    if (event->planned().purpose() == v1::TRIAL_PURPOSE_SANITIZE) {
      if (const absl::StatusOr<v1::Iteration> sanitized = RunOpen(event->planned()); !sanitized.ok()) return sanitized;
      return RunPlanned();
    }
    return RunOpen(event->planned());
  }

  absl::StatusOr<v1::Iteration> RunOpen(const v1::TrialPlanned& planned) {
    script_.Lease(planned.trial());
    absl::StatusOr<v1::TrialResult> result = RunPlan(bundle_, planned, script_.state());
    if (!result.ok()) return result.status();
    const v1::Iteration judged = script_.Finish(planned.trial(), *result);
    if (getenv("PAWL_CHEATS_SEATS") != nullptr) PrintSeats(judged);
    return judged;
  }

  // For a look at what the seat test saw.
  static void PrintSeats(const v1::Iteration& iteration) {
    fprintf(stderr, "  %d %s: %s\n", iteration.number(), v1::Verdict_Name(iteration.verdict()).c_str(),
            iteration.reason().c_str());
    for (const auto& [name, time] : {std::pair{"candidate / anchor", iteration.as_candidate()},
                                     std::pair{"parent / anchor", iteration.as_parent()},
                                     std::pair{"candidate / witness", iteration.candidate_beside_witness()},
                                     std::pair{"parent / witness", iteration.parent_beside_witness()},
                                     std::pair{"parent / witness, alone", iteration.parent_alone()}}) {
      if (time.processes() > 0) fprintf(stderr, "    %s: %s\n", name, time.ShortDebugString().c_str());
    }
  }

  const v1::Bundle bundle_;
  CampaignScript script_;
};

Outcome Judged(const v1::Iteration& iteration) {
  if (iteration.verdict() == v1::KEPT) return {"accepted", iteration.reason()};
  if (iteration.verdict() == v1::REVERTED) return {"not kept", iteration.reason()};
  const std::string size = iteration.failure().size();
  return {CheckOf(iteration), size.empty() ? iteration.reason() : absl::StrCat(size, ": ", iteration.reason())};
}

// What the end of the campaign makes of a variant that was kept.
Outcome AtTheEnd(GpuCampaign& campaign, const v1::Iteration& kept) {
  if (const absl::Status status = campaign.Sanitize(); !status.ok()) return {"error", std::string(status.message())};
  for (int number = 0; number <= kept.number(); ++number) {
    if (campaign.Now(number).verdict() == v1::REJECTED) return Judged(campaign.Now(number));
  }
  const absl::StatusOr<v1::TrialResult> total = campaign.Total();
  if (!total.ok()) return {"error", std::string(total.status().message())};
  if (!total->has_failure()) return Judged(kept);
  return {CheckName(total->failure().check()),
          absl::StrCat("at the campaign's end, ", total->failure().size(), ": ", total->failure().message())};
}

constexpr char kStamp[] = "4000000000";

// Writes the time at which `seconds` from now will be over into the source.
absl::Time Stamp(int seconds, v1::Bundle* bundle) {
  const absl::Time until = absl::Now() + absl::Seconds(seconds);
  bundle->mutable_source()->set_text(
      absl::StrReplaceAll(bundle->source().text(), {{kStamp, absl::StrCat(absl::ToUnixSeconds(until))}}));
  return until + absl::Seconds(1);
}

// What becomes of a bundle: of its start variant, or of the changes that the cheat makes one after another.
Outcome RunCampaign(v1::Bundle bundle, const Cheat& cheat) {
  const absl::Time until = cheat.stamped ? Stamp(*cheat.stamped, &bundle) : absl::InfinitePast();
  const std::map<std::string, int32_t>&variant = cheat.variant, &then = cheat.then;
  GpuCampaign campaign(bundle);
  absl::StatusOr<v1::Iteration> last = campaign.Start();
  if (!last.ok()) return {"error", std::string(last.status().message())};
  if (last->verdict() != v1::KEPT) {
    Outcome outcome = Judged(*last);
    if (!variant.empty()) outcome.fired = absl::StrCat("start: ", outcome.fired);
    return outcome;
  }
  std::map<std::string, int32_t> made;
  for (const std::map<std::string, int32_t>* changes : {&variant, &then}) {
    if (changes == &then && absl::Now() < until) absl::SleepFor(until - absl::Now());
    for (const auto& [name, value] : *changes) {
      if (made.contains(name) && made[name] == value) continue;
      made[name] = value;
      last = campaign.Try(name, value);
      if (!last.ok()) return {"error", std::string(last.status().message())};
      // A result may also have rejected the variant that it was made from.
      const v1::Iteration& first = campaign.Now(1);
      if (first.verdict() == v1::REJECTED) return Judged(first);
      if (last->verdict() != v1::KEPT) return Judged(*last);
    }
  }
  return AtTheEnd(campaign, *last);
}

// An honest change of the start after the cheat, in the same processes of the worker: "no harm" if it is kept.
Outcome TrySpared(const v1::Bundle& bundle, const Cheat& cheat) {
  GpuCampaign campaign(bundle);
  if (absl::StatusOr<v1::Iteration> start = campaign.Start(); !start.ok() || start->verdict() != v1::KEPT) {
    return {"error", start.ok() ? start->reason() : std::string(start.status().message())};
  }
  for (const auto& [name, value] : cheat.variant) {
    if (absl::StatusOr<v1::Iteration> tried = campaign.Try(name, value); !tried.ok()) {
      return {"error", std::string(tried.status().message())};
    } else if (tried->verdict() == v1::KEPT) {
      return {"accepted", tried->reason()};
    } else if (tried->verdict() == v1::REJECTED) {
      return Judged(*tried);
    }
  }
  const std::pair<std::string, std::string> words = absl::StrSplit(cheat.spares, '=');
  const absl::StatusOr<v1::Iteration> spared = campaign.Try(words.first, std::stoi(words.second));
  if (!spared.ok()) return {"error", std::string(spared.status().message())};
  return {spared->verdict() == v1::KEPT ? "no harm" : absl::StrCat("harm: ", Judged(*spared).fired),
          absl::StrCat(cheat.spares, " after it: ", spared->reason())};
}

// How much faster the cheat is than the same with harmless_as (VARIABLE=VALUE), at the goal's size.
absl::StatusOr<double> GainOfHarmless(CudaDevice& device, const Cheat& named) {
  const v1::Bundle bundle = ReadBundle(CheatsFolder() / named.name).bundle;
  v1::Variant cheating = StartVariant(bundle);
  for (const std::map<std::string, int32_t>* changes : {&named.variant, &named.then}) {
    for (const auto& [variable, value] : *changes) (*cheating.mutable_values())[variable] = value;
  }
  v1::Variant honest = cheating;
  const std::pair<std::string, std::string> words = absl::StrSplit(named.harmless_as, '=');
  (*honest.mutable_values())[words.first] = std::stoi(words.second);
  const std::vector<v1::Size> sizes(bundle.sizes().begin(), bundle.sizes().end());
  absl::StatusOr<BuiltVariant> cheat = BuildVariant(device.builder(), bundle, cheating, sizes, device.gpu());
  if (!cheat.ok()) return cheat.status();
  absl::StatusOr<BuiltVariant> parent = BuildVariant(device.builder(), bundle, honest, sizes, device.gpu());
  if (!parent.ok()) return parent.status();
  const std::string& goal = bundle.goal().size();
  absl::StatusOr<Timing> timing = TimeAgainst(device, bundle, *cheat->Find(goal), *parent->Find(goal), {.pairs = 15});
  if (!timing.ok()) return timing.status();
  if (timing->failure) return absl::InternalError(timing->failure->message());
  if (timing->times.pairs().empty()) return absl::UnavailableError("no pair was steady: what else runs on the GPU?");
  double sum = 0;
  for (const v1::PairSample& pair : timing->times.pairs()) sum += pair.log_ratio();
  return std::exp(sum / timing->times.pairs_size()) - 1;
}

std::string Cell(std::string text) {
  for (char& c : text) {
    if (c == '|' || c == '\n') c = ' ';
  }
  return text.substr(0, 240);
}

bool Contains(const std::vector<v1::Check>& expected, const std::string& fired) {
  return std::any_of(expected.begin(), expected.end(), [&](v1::Check check) { return CheckName(check) == fired; });
}

// PAWL_CHEATS=NAME,...: those of these names; seat_* stands for all whose name begins so.
bool Wanted(const std::string& name) {
  const char* words = getenv("PAWL_CHEATS");
  if (words == nullptr) return true;
  const std::vector<std::string> parts = absl::StrSplit(words, ',');
  return std::any_of(parts.begin(), parts.end(), [&](absl::string_view part) {
    return absl::ConsumeSuffix(&part, "*") ? absl::StartsWith(name, part) : name == part;
  });
}

TEST(Cheats, AreRejectedByTheCheckMeantForThemAndControlsAreAccepted) {
  PAWL_NEEDS_GPU();
  CudaDevice& device = SharedDevice()->cuda();
  const absl::StatusOr<CheatList> list = ReadCheatList(CheatsFolder() / "cheats.toml");
  ASSERT_TRUE(list.ok()) << list.status();
  std::ofstream table;
  if (const char* file = getenv("PAWL_CHEATS_TABLE"); file != nullptr) table.open(file);
  const auto report = [&](const std::string& name, const std::string& kind, const std::string& what,
                          const std::string& expected, const Outcome& outcome, bool fine, absl::Time start) {
    fprintf(stderr, "%-26s %-14s %5.2f s  %s%s\n", name.c_str(), outcome.fired.c_str(),
            absl::ToDoubleSeconds(absl::Now() - start), fine ? "" : "UNEXPECTED ", outcome.why.substr(0, 200).c_str());
    EXPECT_TRUE(fine) << name << ": " << outcome.fired << ": " << outcome.why;
    table << absl::StrCat("| `", name, "` | ", kind, " | ", what, " | ", expected, " | ", outcome.fired, " | ",
                          Cell(outcome.why), " | ", fine ? "fine" : "unexpected", " |\n")
          << std::flush;  // a run may be cut short
  };
  for (const Cheat& cheat : list->cheats) {
    if (!Wanted(cheat.name)) continue;
    const absl::Time start = absl::Now();
    const BundleReading reading = ReadBundle(CheatsFolder() / cheat.name);
    Outcome outcome = !reading.problems.empty() ? Outcome{"reader", reading.problems[0].message}
                      : cheat.spares.empty()    ? RunCampaign(reading.bundle, cheat)
                                                : TrySpared(reading.bundle, cheat);
    if (outcome.fired == "accepted" && !cheat.harmless_as.empty()) {
      const absl::StatusOr<double> gain = GainOfHarmless(device, cheat);
      outcome =
          !gain.ok()
              ? Outcome{"error", std::string(gain.status().message())}
              : Outcome{*gain < 0.03 ? "no gain" : "accepted",
                        absl::StrFormat("against itself with %s: %+.2f %% faster", cheat.harmless_as, 100 * *gain)};
    }
    if (outcome.fired == "not kept" && !cheat.harmless_as.empty()) outcome.fired = "no gain";
    const bool no_gain = outcome.fired == "no gain" || outcome.fired == "no harm";
    const bool rejected =
        Contains(cheat.expect, outcome.fired) || (outcome.fired == "reader" && cheat.by == CaughtBy::kReader);
    std::vector<std::string> expected;
    for (const v1::Check check : cheat.expect) expected.push_back(CheckName(check));
    report(cheat.name, cheat.kind, cheat.what, absl::StrJoin(expected, ", "), outcome, rejected || no_gain, start);
  }
  for (const Control& control : list->controls) {
    if (!Wanted(control.name)) continue;
    const absl::Time start = absl::Now();
    const BundleReading reading = ReadBundle(CheatsFolder() / control.name);
    const Outcome outcome =
        reading.problems.empty() ? RunCampaign(reading.bundle, {}) : Outcome{"reader", reading.problems[0].message};
    report(control.name, "honest", control.what, "accepted", outcome, outcome.fired == "accepted", start);
  }
}

}  // namespace
}  // namespace pawl
