// The same event log gives byte-identical decisions: a thousand campaigns over recordings, replayed from their logs.
// And what several workers gain.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/measured_space.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "orchestrator/engine/search/next_event.h"
#include "orchestrator/engine/search/tree_chooser.h"
#include "orchestrator/engine/verdict/verdict.h"
#include "tests/promises/soak.h"

namespace pawl {
namespace {

constexpr int kCampaigns = 1000;
const char* const kBundles[] = {"attention", "reduce_sum", "rmsnorm", "softmax", "transpose"};

const MeasuredSpace& Recorded(const std::string& bundle) {
  static auto& spaces = *new std::map<std::string, MeasuredSpace>;
  if (!spaces.contains(bundle)) spaces[bundle] = RecordedSpace(getenv("PAWL_SOURCE_DIR"), bundle).value();
  return spaces[bundle];
}

// A campaign's events as they are stored, each serialized.
using Log = std::vector<std::string>;

// A message's maps have no order of their own: they are brought into one.
std::string Bytes(const v1::Event& event) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream out(&stream);
  out.SetSerializationDeterministic(true);
  event.SerializeToCodedStream(&out);
  out.Trim();
  return bytes;
}

struct Campaign {
  const MeasuredSpace& space;
  std::string name;
  int iterations = 0;
  int slots = 1;
};

// Different bundles, budgets, noise and numbers of workers.
Campaign CampaignOf(int number) {
  return {.space = Recorded(kBundles[number % std::size(kBundles)]),
          .name = absl::StrCat("campaigns/", number),
          .iterations = 3 + number % 6,
          .slots = number % 4 == 3 ? 3 : 1};
}

v1::Event Finished(const Campaign& campaign, const CampaignState& state, const v1::TrialPlanned& planned,
                   SeededRandom& noise) {
  const MeasuredSpace& space = campaign.space;
  const MeasuredSpace::Entry* parent =
      planned.has_parent() ? space.Find(state.Find(planned.parent())->variant()) : nullptr;
  v1::Event event;
  v1::TrialFinished& finished = *event.mutable_finished();
  finished.set_trial(planned.trial());
  if (const MeasuredSpace::Entry* candidate = space.Find(planned.variant().values())) {
    *finished.mutable_result() = space.Measure(*candidate, parent, planned.noise(), noise);
  } else {
    finished.mutable_result()->set_passed_over("not recorded");
  }
  if (planned.purpose() == v1::TRIAL_PURPOSE_TOTAL) {
    *finished.mutable_total_gain() = JudgeTotal(state, planned, finished.result());
    for (const v1::RevisedIteration& revised : RevisedBy(finished.total_gain(), state.iterations())) {
      *finished.add_revised() = revised;
    }
  } else if (planned.purpose() == v1::TRIAL_PURPOSE_END) {
    *finished.add_revised() = JudgeEnd(state, planned, finished.result(), ProfileSet::Default().gates);
  } else {
    *finished.mutable_iteration() = Judge(state, planned, finished.result());
  }
  return event;
}

struct Course {
  Log log;
  // From the end of the start variant's trial until not all workers had a trial, for the last time.
  double seconds = 0;
  double worked = 0;  // by all workers together in that time
};

// Runs it to its end, with trials that take 0.2 to 2 seconds: those of several workers end in any order.
Course RunToEnd(const Campaign& campaign, const Chooser& chooser) {
  CampaignState state(campaign.name, campaign.space.bundle);
  SeededRandom noise(campaign.name, 0), durations(campaign.name, 1);
  Course course;
  Log& log = course.log;
  std::map<int, double> ends;  // of open trials
  double now = 0, unfilled_seconds = 0, unfilled_work = 0;
  const auto apply = [&](const v1::Event& event) {
    state.Apply(event);
    log.push_back(event.SerializeAsString());
  };
  v1::Event submitted;
  submitted.mutable_submitted()->mutable_spec()->mutable_goal()->set_speedup(INFINITY);
  submitted.mutable_submitted()->mutable_spec()->mutable_budget()->set_iterations(campaign.iterations);
  apply(submitted);
  while (!state.ended()) {
    const std::optional<v1::Event> next =
        Decide(state, chooser, absl::UnixEpoch(), ProfileSet::Default(), campaign.slots);
    if (next) {
      apply(*next);
      if (next->has_paused()) break;
      continue;
    }
    if (state.open_trials().empty()) break;
    for (const auto& [trial, open] : state.open_trials()) {
      if (ends.contains(trial)) continue;
      ends[trial] = now + 0.2 + 1.8 * durations.Uniform();
      v1::Event leased;
      leased.mutable_leased()->set_trial(trial);
      leased.mutable_leased()->set_attempt(1);
      leased.mutable_leased()->set_device(campaign.space.device);
      apply(leased);
    }
    const auto first =
        std::min_element(ends.begin(), ends.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    const v1::TrialPlanned planned = state.open_trials().at(first->first).planned;
    if (planned.has_parent()) {
      unfilled_seconds += first->second - now;
      unfilled_work += static_cast<double>(ends.size()) * (first->second - now);
    }
    if (ends.size() == static_cast<size_t>(campaign.slots)) {
      course.seconds += std::exchange(unfilled_seconds, 0);
      course.worked += std::exchange(unfilled_work, 0);
    }
    now = first->second;
    ends.erase(first);
    apply(Finished(campaign, state, planned, noise));
  }
  return course;
}

TEST(Determinism, AThousandReplayedCampaignsDecideTheSameBytes) {
  const TreeChooser chooser;
  int decisions = 0, rounds = 0;
  for (int i = 0; i < kCampaigns; ++i) {
    const Campaign campaign = CampaignOf(i);
    const Log log = RunToEnd(campaign, chooser).log;
    const TreeChooser another;
    CampaignState state(campaign.name, campaign.space.bundle);
    for (const std::string& stored : log) {
      v1::Event event;
      ASSERT_TRUE(event.ParseFromString(stored));
      if (event.has_planned() || event.has_ended() || event.has_paused()) {
        rounds += state.open_iterations() > 0;
        const std::optional<v1::Event> again =
            Decide(state, another, absl::UnixEpoch(), ProfileSet::Default(), campaign.slots);
        ASSERT_TRUE(again) << campaign.name << ": " << event.ShortDebugString();
        ASSERT_EQ(Bytes(*again), Bytes(event)) << campaign.name << ": " << event.ShortDebugString();
        ++decisions;
      }
      state.Apply(event);
    }
  }
  EXPECT_GT(decisions, 4 * kCampaigns);
  EXPECT_GT(rounds, kCampaigns / 4);
  ReportPromise(
      7, absl::StrCat(kCampaigns, " campaigns over recordings, ", decisions, " decisions, the same bytes again"));
}

// Of a campaign's time without its start and its end, in which nothing else can be measured.
TEST(SeveralWorkers, AreAlmostAlwaysBusy) {
  const TreeChooser chooser;
  for (const int slots : {1, 2, 4}) {
    double seconds = 0, worked = 0;
    for (int i = 0; i < 8; ++i) {
      const Course course = RunToEnd({.space = Recorded("attention"),
                                      .name = absl::StrCat("campaigns/", slots, "-", i),
                                      .iterations = 40,
                                      .slots = slots},
                                     chooser);
      seconds += course.seconds;
      worked += course.worked;
    }
    RecordProperty(absl::StrCat("workers_", slots), absl::StrCat(worked / seconds));
    EXPECT_GT(worked / seconds, 0.95 * slots) << slots << " workers";
  }
}

}  // namespace
}  // namespace pawl
