// pawl-search-efficiency [RUNS [SPACE [FIRST]]]: how many evaluations searches need in measured spaces.
// No GPU. Prints Markdown: medians over the runs. The start counts as the first evaluation, and every method goes by
// Pawl's own verdict of what is faster, so that they differ only in what they try. FIRST numbers the first run: other
// numbers are other starts, ties and noise, so that settings can be scored by runs that nobody has seen. An empty SPACE
// is all of them.
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "bench/measured_campaign.h"
#include "bench/measured_space.h"
#include "kernels/space.h"
#include "orchestrator/engine/search/tree_chooser.h"
#include "profiles/embedded.h"

namespace pawl {
namespace {

using Entry = MeasuredSpace::Entry;

// Log speed of the best found after each evaluation; the start is the first.
using Run = std::vector<double>;

// CPU time of the choices.
struct ChoiceTimes {
  double worst = 0, sum = 0;
  int64_t count = 0;
};

double CpuSeconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

class TimedChooser : public Chooser {
 public:
  TimedChooser(const Chooser& inner, ChoiceTimes* times) : inner_(inner), times_(*times) {}
  std::optional<Choice> Next(const CampaignState& campaign) const override {
    const double begin = CpuSeconds();
    std::optional<Choice> choice = inner_.Next(campaign);
    const double took = CpuSeconds() - begin;
    times_.worst = std::max(times_.worst, took);
    times_.sum += took;
    ++times_.count;
    return choice;
  }

 private:
  const Chooser& inner_;
  ChoiceTimes& times_;
};

Run Engine(const MeasuredSpace& space, const Entry& start, const Chooser& chooser, size_t evaluations, uint64_t seed) {
  Run run;
  RunMeasuredCampaign(space, start, chooser, static_cast<int>(evaluations), seed, /*patterns=*/{},
                      [&](const CampaignState& campaign, const v1::Iteration&) {
                        const v1::Iteration* best = campaign.best();
                        run.push_back(best == nullptr ? -INFINITY : space.Find(best->variant())->log_speed);
                      });
  return run;
}

// What a search that may jump has found: all searches go by the same verdict.
class Found {
 public:
  Found(const MeasuredSpace& space, const Entry& start, uint64_t seed)
      : space_(space), best_(&start), random_(seed), run_{start.log_speed} {
    seen_.insert(&start);
  }
  const Run& run() const { return run_; }
  size_t evaluations() const { return run_.size(); }
  SeededRandom& random() { return random_; }
  const Entry& Draw() { return space_.entries[random_.Below(space_.entries.size())]; }

  // Whether it is faster than `than`. What was measured before costs nothing.
  bool Try(const Entry& entry, const Entry& than) {
    if (seen_.insert(&entry).second) {
      if (space_.Faster(entry, *best_, random_)) best_ = &entry;
      run_.push_back(best_->log_speed);
    }
    return !than.ok || space_.Faster(entry, than, random_);
  }

 private:
  const MeasuredSpace& space_;
  const Entry* best_;
  SeededRandom random_;
  std::set<const Entry*> seen_;
  Run run_;
};

Run RandomSearch(const MeasuredSpace& space, const Entry& start, size_t evaluations, uint64_t seed) {
  Found found(space, start, seed);
  const size_t most = std::min(evaluations, space.entries.size());
  while (found.evaluations() < most) found.Try(found.Draw(), start);
  return found.run();
}

std::vector<const Entry*> Around(const MeasuredSpace& space, const Entry& entry) {
  std::vector<const Entry*> around;
  const Point at = PointOf(space.bundle, entry.variant.values());
  for (size_t i = 0; i < at.size(); ++i) {
    Point point = at;
    for (point[i] = 0; point[i] < space.bundle.variables(static_cast<int>(i)).values_size(); ++point[i]) {
      const auto found = space.places.find(point);
      if (point[i] != at[i] && found != space.places.end()) around.push_back(&space.entries[found->second]);
    }
  }
  return around;
}

// One variable to any other value, in random order, the first improvement taken; a random restart where there is none.
Run HillClimbing(const MeasuredSpace& space, const Entry& start, size_t evaluations, uint64_t seed) {
  Found found(space, start, seed);
  const size_t most = std::min(evaluations, space.entries.size());
  const Entry* at = &start;
  while (found.evaluations() < most) {
    std::vector<const Entry*> around = Around(space, *at);
    const Entry* next = nullptr;
    while (!around.empty() && next == nullptr && found.evaluations() < most) {
      std::swap(around[found.random().Below(around.size())], around.back());
      if (found.Try(*around.back(), *at)) next = around.back();
      around.pop_back();
    }
    if (next == nullptr) {
      next = &found.Draw();
      if (found.evaluations() < most) found.Try(*next, *at);
    }
    at = next;
  }
  return found.run();
}

// The decision tree with the wants of its rules shuffled.
DecisionTree Shuffled(uint64_t seed) {
  SeededRandom random(seed);
  std::vector<std::string> lines = absl::StrSplit(std::string(embedded::kDecisionTreeToml), '\n');
  std::vector<size_t> wants;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (absl::StartsWith(lines[i], "wants")) wants.push_back(i);
  }
  for (size_t i = wants.size(); i-- > 1;) std::swap(lines[wants[i]], lines[wants[random.Below(i + 1)]]);
  return DecisionTree::Parse(absl::StrJoin(lines, "\n"), "shuffled", Metrics::Default()).value();
}

struct Method {
  const char* name;
  std::function<Run(const MeasuredSpace&, const Entry& start, size_t evaluations, uint64_t seed)> search;
};

template <typename T>
T Median(std::vector<T> values) {
  std::sort(values.begin(), values.end());
  return values[(values.size() - 1) / 2];
}

// Evaluations until the best found is so near the best there is; SIZE_MAX: never.
size_t EvaluationsTo(double within, const MeasuredSpace& space, const std::vector<Run>& runs) {
  std::vector<size_t> counts;
  for (const Run& run : runs) {
    const auto reached = std::find_if(run.begin(), run.end(),
                                      [&](double log_speed) { return log_speed >= space.best - std::log1p(within); });
    counts.push_back(reached == run.end() ? SIZE_MAX : static_cast<size_t>(reached - run.begin()) + 1);
  }
  return Median(counts);
}

std::string CountText(size_t count) { return count == SIZE_MAX ? "never" : absl::StrCat(count); }

// Of the best speed there is, after so many evaluations, by run.
std::vector<double> SharesAfter(size_t evaluations, const MeasuredSpace& space, const std::vector<Run>& runs) {
  std::vector<double> shares;
  for (const Run& run : runs) shares.push_back(std::exp(run[std::min(run.size(), evaluations) - 1] - space.best));
  return shares;
}

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// What the four methods came to in one space, by the first letter of their names.
using Results = std::map<char, std::vector<Run>>;

// Ahead at 20 evaluations: the mean share of the best, over the runs, is larger by more than this; within it, a tie.
constexpr double kTie = 0.001;

void JudgeRecorded(const MeasuredSpace& space, const Results& results) {
  const size_t to = EvaluationsTo(0.10, space, results.at('a'));
  printf("- %s: within 10 %% after %s of at most 20 evaluations: %s.", space.name.c_str(), CountText(to).c_str(),
         to <= 20 ? "met" : "not met");
  const double own = Mean(SharesAfter(20, space, results.at('a')));
  printf(" Mean share of the best at 20: %.4f;", own);
  for (const auto& [name, runs] : results) {
    if (name == 'a') continue;
    const double other = Mean(SharesAfter(20, space, runs));
    printf(" %s (%c) with %.4f%s",
           own > other + kTie   ? "ahead of"
           : own < other - kTie ? "behind"
                                : "tied with",
           name, other, name == 'd' ? ".\n" : ",");
  }
}

void JudgePublic(const MeasuredSpace& space, const Results& results) {
  const size_t to = EvaluationsTo(0.10, space, results.at('a')), climbing = EvaluationsTo(0.10, space, results.at('c'));
  printf("- %s: within 10 %% after %s evaluations, hill climbing %s: %s.", space.name.c_str(), CountText(to).c_str(),
         CountText(climbing).c_str(), to <= climbing ? "not worse, met" : "worse, not met");
  if (space.peer_evaluations > 0) {
    printf(" Kernel Tuner's best strategy %d: %s; 0.6 of it: %s.", space.peer_evaluations,
           to <= static_cast<size_t>(space.peer_evaluations) ? "met" : "not met",
           static_cast<double>(to) <= 0.6 * space.peer_evaluations ? "met" : "not met");
  }
  printf("\n");
}

void PrintHeader(const std::vector<size_t>& marks) {
  printf("\n| space | method | to 10 %% | to 5 %% | to 1 %% |");
  for (const size_t mark : marks) printf(" after %zu |", mark);
  printf("\n| --- | --- | --- | --- | --- |");
  for (size_t i = 0; i < marks.size(); ++i) printf(" --- |");
  printf("\n");
}

void PrintRow(const MeasuredSpace& space, const Method& method, const std::vector<Run>& runs,
              const std::vector<size_t>& marks) {
  printf("| %s | %s |", space.name.c_str(), method.name);
  for (const double within : {0.10, 0.05, 0.01}) printf(" %s |", CountText(EvaluationsTo(within, space, runs)).c_str());
  for (const size_t mark : marks) printf(" %.3f |", Median(SharesAfter(mark, space, runs)));
  printf("\n");
  fflush(stdout);
}

[[noreturn]] void Die(const absl::Status& status) {
  fprintf(stderr, "pawl-search-efficiency: %s\n", std::string(status.message()).c_str());
  exit(1);
}

int Main(int runs, const std::string& only, int first) {
  const char* source = getenv("PAWL_SOURCE_DIR");
  const std::filesystem::path checkout = source == nullptr ? "." : source;
  ChoiceTimes times;
  const TreeChooser tree;
  const TimedChooser timed(tree, &times);
  const std::vector<Method> methods = {
      {"a: Pawl",
       [&](auto& space, auto& start, size_t n, uint64_t seed) { return Engine(space, start, timed, n, seed); }},
      {"b: random", RandomSearch},
      {"c: hill climbing", HillClimbing},
      {"d: Pawl, rules shuffled", [](auto& space, auto& start, size_t n, uint64_t seed) {
         const DecisionTree shuffled = Shuffled(seed);
         return Engine(space, start, TreeChooser(shuffled), n, seed);
       }}};

  const std::vector<size_t> marks = {10, 20, 50, 100};
  std::vector<std::pair<MeasuredSpace, Results>> recorded, foreign;
  PrintHeader(marks);
  const absl::StatusOr<std::vector<std::string>> bundles = RecordedBundles(checkout);
  if (!bundles.ok()) Die(bundles.status());
  for (const std::string& bundle : *bundles) {
    if (!only.empty() && only != bundle) continue;
    absl::StatusOr<MeasuredSpace> space = RecordedSpace(checkout, bundle);
    if (!space.ok()) Die(space.status());
    const Entry* own = space->Find(StartVariant(space->bundle).values());
    if (own == nullptr) Die(absl::NotFoundError(absl::StrCat("the start variant of ", bundle, " was not recorded")));
    const Entry& start = *own;
    Results results;
    for (const Method& method : methods) {
      std::vector<Run>& found = results[method.name[0]];
      for (int i = first; i < first + runs; ++i) {
        found.push_back(method.search(*space, start, 100, static_cast<uint64_t>(i)));
      }
      PrintRow(*space, method, found, marks);
    }
    recorded.emplace_back(*std::move(space), std::move(results));
  }

  absl::StatusOr<std::vector<MeasuredSpace>> spaces = PublicSpaces(checkout / "bench/spaces");
  if (!spaces.ok()) Die(spaces.status());
  PrintHeader(marks);
  for (MeasuredSpace& space : *spaces) {
    if (!only.empty() && !absl::StartsWith(space.name, only)) continue;
    Results results;
    for (const Method& method : methods) {
      if (method.name[0] == 'd') continue;  // without evidence there are no findings
      std::vector<Run>& found = results[method.name[0]];
      for (int i = first; i < first + runs; ++i) {
        SeededRandom random("start", static_cast<uint64_t>(i));
        const Entry* start = nullptr;
        while (start == nullptr || !start->ok) start = &space.entries[random.Below(space.entries.size())];
        found.push_back(method.search(space, *start, 300, static_cast<uint64_t>(i)));
      }
      PrintRow(space, method, found, marks);
    }
    foreign.emplace_back(std::move(space), std::move(results));
  }
  printf("\n");
  for (const auto& [space, results] : recorded) JudgeRecorded(space, results);
  for (const auto& [space, results] : foreign) JudgePublic(space, results);
  fprintf(stderr, "a choice takes %.2f ms of CPU time, at worst %.2f ms, in %lld choices\n",
          1e3 * times.sum / static_cast<double>(std::max<int64_t>(1, times.count)), 1e3 * times.worst,
          static_cast<long long>(times.count));
  return 0;
}

}  // namespace
}  // namespace pawl

int main(int argc, char** argv) {
  return pawl::Main(argc > 1 ? std::max(1, atoi(argv[1])) : 100, argc > 2 ? argv[2] : "",
                    argc > 3 ? std::max(0, atoi(argv[3])) : 0);
}
