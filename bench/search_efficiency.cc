// pawl-search-efficiency [FOLDER] [RUNS [SPACE [FIRST]]] [--jobs=N] [--leave-out]: how many evaluations searches need
// in measured spaces, without a GPU. FOLDER has spaces that others measured (see public_spaces.h); without it, the
// bundles' recordings and bench/spaces. Prints Markdown: medians over the runs, with quartiles. The start counts as the
// first evaluation, and every method goes by Pawl's own verdict of what is faster, so that they differ only in what
// they try. FIRST numbers the first run: other numbers are other starts, ties and noise. An empty SPACE is all of them.
// --leave-out runs other settings, too, and shows for each kernel the settings that are best on all other kernels.
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "bench/measured_campaign.h"
#include "bench/measured_space.h"
#include "bench/public_spaces.h"
#include "kernels/space.h"
#include "orchestrator/engine/search/patterns.h"
#include "orchestrator/engine/search/tree_chooser.h"
#include "profiles/embedded.h"
#include "profiles/pattern_file.h"

namespace pawl {
namespace {

constexpr char kUsage[] =
    "usage: pawl-search-efficiency [FOLDER] [RUNS [SPACE [FIRST]]] [--jobs=N] [--leave-out]\n"
    "FOLDER has spaces.toml, or CSV and T4 files; without it: the bundles' recordings and bench/spaces\n";

using Entry = MeasuredSpace::Entry;

constexpr double kNothingLeft = 1e-3;  // log speed

// Log speed of the best found after each evaluation; the start is the first.
using Run = std::vector<double>;

// CPU time of the choices.
struct ChoiceTimes {
  std::mutex mutex;
  double worst = 0, sum = 0;
  int64_t count = 0;

  void Add(double seconds) {
    const std::lock_guard<std::mutex> lock(mutex);
    worst = std::max(worst, seconds);
    sum += seconds;
    ++count;
  }
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
    times_.Add(CpuSeconds() - begin);
    return choice;
  }

 private:
  const Chooser& inner_;
  ChoiceTimes& times_;
};

// Share of predictions that hold the outcome in their interval, of all that were made.
struct Predictions {
  std::atomic<int> made = 0, held = 0;
};

// Ends early when it is so near the best variant, in log speed.
Run Engine(const MeasuredSpace& space, const Entry& start, const Chooser& chooser, size_t evaluations, uint64_t seed,
           const std::vector<v1::Pattern>& patterns, Predictions* predictions, double near = kNothingLeft) {
  Run run;
  RunMeasuredCampaign(space, start, chooser, static_cast<int>(evaluations), seed, patterns,
                      [&](const CampaignState& campaign, const v1::Iteration& iteration) {
                        const v1::Iteration* best = campaign.best();
                        run.push_back(best == nullptr ? -INFINITY : space.Find(best->variant())->log_speed);
                        if (predictions != nullptr && iteration.has_prediction() && iteration.has_interval()) {
                          ++predictions->made;
                          predictions->held += iteration.prediction().time_outcome() == v1::Prediction::CAME_TRUE;
                        }
                        return run.back() < space.best - near;
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

// Evaluations by run until the best found is so near the best there is, in order; SIZE_MAX: never.
std::vector<size_t> EvaluationsTo(double within, const MeasuredSpace& space, const std::vector<Run>& runs) {
  std::vector<size_t> counts;
  for (const Run& run : runs) {
    const auto reached = std::find_if(run.begin(), run.end(),
                                      [&](double log_speed) { return log_speed >= space.best - std::log1p(within); });
    counts.push_back(reached == run.end() ? SIZE_MAX : static_cast<size_t>(reached - run.begin()) + 1);
  }
  std::sort(counts.begin(), counts.end());
  return counts;
}

template <typename T>
T QuantileOf(const std::vector<T>& sorted, double share) {
  return sorted[static_cast<size_t>(share * static_cast<double>(sorted.size() - 1))];
}

std::string CountText(size_t count) { return count == SIZE_MAX ? "never" : absl::StrCat(count); }

// "52 (38 to 80)".
std::string QuartilesText(const std::vector<size_t>& sorted) {
  return absl::StrCat(CountText(QuantileOf(sorted, 0.5)), " (", CountText(QuantileOf(sorted, 0.25)), " to ",
                      CountText(QuantileOf(sorted, 0.75)), ")");
}

// Of the best speed there is, after so many evaluations, by run.
std::vector<double> SharesAfter(size_t evaluations, const MeasuredSpace& space, const std::vector<Run>& runs) {
  std::vector<double> shares;
  for (const Run& run : runs) shares.push_back(std::exp(run[std::min(run.size(), evaluations) - 1] - space.best));
  std::sort(shares.begin(), shares.end());
  return shares;
}

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// The community's score: 0 is random search, 1 the optimum at once. The mean of (random's expected best − this search's
// median best) / (random's expected best − optimum), from the evaluation at which random search has come half of the
// way from the median to the optimum to the one at which it has come 95 % of it. Of times; a failure counts as the
// slowest.
double CommunityScore(const MeasuredSpace& space, const std::vector<Run>& runs) {
  std::vector<double> times;
  for (const Entry& entry : space.entries) {
    if (entry.ok) times.push_back(std::exp(space.best - entry.log_speed));
  }
  std::sort(times.begin(), times.end());
  const double median = QuantileOf(times, 0.5);
  times.resize(space.entries.size(), times.back());
  const double count = static_cast<double>(times.size());
  const auto expected = [&](double evaluations) {  // the least of so many draws
    double best = times[0];
    for (size_t i = 1; i < times.size(); ++i) {
      if (times[i] > times[i - 1]) {
        best += (times[i] - times[i - 1]) * std::pow(1 - static_cast<double>(i) / count, evaluations);
      }
    }
    return best;
  };
  const auto first_at = [&](double share) {
    double low = 1, high = count;
    while (high - low > 1) {
      const double middle = std::floor((low + high) / 2);
      (expected(middle) > median - share * (median - 1) ? low : high) = middle;
    }
    return high;
  };
  const double begin = first_at(0.5), end = std::max(begin, first_at(0.95));
  constexpr int kPoints = 50;
  double sum = 0;
  for (int i = 0; i < kPoints; ++i) {
    const double at = std::round(begin + (end - begin) * i / (kPoints - 1));
    const double random = expected(at);
    const double own = 1 / QuantileOf(SharesAfter(static_cast<size_t>(at), space, runs), 0.5);
    sum += random > 1 ? (random - own) / (random - 1) : 1;
  }
  return sum / kPoints;
}

constexpr size_t kMost = 300;  // evaluations in a public space

// What counts where a search never comes so near.
double LogCount(size_t count) { return std::log(static_cast<double>(std::min(count, kMost))); }

// What the methods came to in one space, by the first letter of their names.
using Results = std::map<char, std::vector<Run>>;

// Ahead at 20 evaluations: the mean share of the best, over the runs, is larger by more than this; within it, a tie.
constexpr double kTie = 0.001;

void JudgeRecorded(const MeasuredSpace& space, const Results& results) {
  const size_t to = QuantileOf(EvaluationsTo(0.10, space, results.at('a')), 0.5);
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

// Hill climbing may be ahead by chance: what counts is whether Pawl's median is beyond its upper quartile.
void JudgePublic(const PublicSpace& space, const char* settings, const Results& results) {
  const std::vector<size_t> own = EvaluationsTo(0.10, space.space, results.at('a'));
  const std::vector<size_t> climbing = EvaluationsTo(0.10, space.space, results.at('c'));
  const size_t to = QuantileOf(own, 0.5);
  printf("- %s (settings: %s): within 10 %% after %s evaluations; hill climbing %s: %s.", space.space.name.c_str(),
         settings, QuartilesText(own).c_str(), QuartilesText(climbing).c_str(),
         to <= QuantileOf(climbing, 0.75) ? "not behind by more than its quartiles" : "behind");
  for (const auto& [name, evaluations] : space.peers) {
    printf(" %s %d: %.2f of it.", name.c_str(), evaluations,
           static_cast<double>(std::min(to, kMost)) / std::max(1, evaluations));
  }
  printf("\n");
}

void PrintHeader(const std::vector<size_t>& marks) {
  printf("\n| space | method | to 10 %% | to 5 %% | to 1 %% | score |");
  for (const size_t mark : marks) printf(" after %zu |", mark);
  printf("\n| --- | --- | --- | --- | --- | --- |");
  for (size_t i = 0; i < marks.size(); ++i) printf(" --- |");
  printf("\n");
}

void PrintRow(const MeasuredSpace& space, const char* method, const std::vector<Run>& runs,
              const std::vector<size_t>& marks) {
  printf("| %s | %s |", space.name.c_str(), method);
  for (const double within : {0.10, 0.05, 0.01}) {
    printf(" %s |", QuartilesText(EvaluationsTo(within, space, runs)).c_str());
  }
  printf(" %.2f |", CommunityScore(space, runs));
  for (const size_t mark : marks) printf(" %.3f |", QuantileOf(SharesAfter(mark, space, runs), 0.5));
  printf("\n");
  fflush(stdout);
}

[[noreturn]] void Die(const absl::Status& status) {
  fprintf(stderr, "pawl-search-efficiency: %s\n", std::string(status.message()).c_str());
  exit(1);
}

struct Options {
  std::filesystem::path folder;  // empty: the recordings and bench/spaces
  int runs = 100;
  std::string only;
  int first = 0;
  int jobs = 1;
  bool leave_out = false;
};

// All runs of a method from the given starts, on as many threads as there are jobs.
std::vector<Run> RunsOf(const Options& options, const std::function<Run(int)>& run) {
  std::vector<Run> runs(static_cast<size_t>(options.runs));
  std::atomic<int> next = 0;
  const auto work = [&] {
    for (int i = next++; i < options.runs; i = next++) runs[static_cast<size_t>(i)] = run(options.first + i);
  };
  std::vector<std::thread> threads;
  for (int i = 1; i < options.jobs; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  return runs;
}

const Entry& RandomStart(const MeasuredSpace& space, int run) {
  SeededRandom random("start", static_cast<uint64_t>(run));
  while (true) {
    const Entry& start = space.entries[random.Below(space.entries.size())];
    if (start.ok) return start;
  }
}

// A variant that was not measured is not allowed.
TreeSettings In(const MeasuredSpace& space, TreeSettings settings) {
  settings.ranking.exists = [&space](const v1::Variant& variant) { return space.Find(variant.values()) != nullptr; };
  return settings;
}

std::vector<Run> PublicRuns(const Options& options, const PublicSpace& space, const TreeSettings& settings, double near,
                            ChoiceTimes* times, Predictions* predictions) {
  const TreeChooser tree(DecisionTree::Default(), In(space.space, settings));
  const TimedChooser timed(tree, times);
  return RunsOf(options, [&](int run) {
    const Entry& start = RandomStart(space.space, run);
    return Engine(space.space, start, timed, kMost, static_cast<uint64_t>(run), {}, predictions, near);
  });
}

struct NamedSettings {
  const char* name;
  TreeSettings settings;
};

// The default settings, and those that could be chosen instead.
std::vector<NamedSettings> Alternatives() {
  std::vector<NamedSettings> all(7, {"default", TreeSettings()});
  const auto posterior = [&](size_t i) -> PosteriorSettings& { return all[i].settings.ranking.posterior; };
  all[1].name = "more variation of rates";
  posterior(1).ordered_rate.sd = 2;
  all[2].name = "larger named rate";
  posterior(2).named_rate.median = 0.37;
  all[3].name = "smaller named rate";
  posterior(3).named_rate.median = 0.05;
  all[4].name = "more separate variance";
  posterior(4).separate.median = 1;
  all[5].name = "aim at half a standard deviation";
  all[5].settings.ranking.aim = 0.5;
  all[6].name = "aim at two standard deviations";
  all[6].settings.ranking.aim = 2;
  return all;
}

// By space: the settings that are best on the spaces of other kernels. Every kernel counts the same. The runs that
// decide it are not those of the table.
std::vector<NamedSettings> LeftOutSettings(const Options& options, const std::vector<PublicSpace>& spaces) {
  constexpr int kOtherRuns = 1'000'000;
  const std::vector<NamedSettings> alternatives = Alternatives();
  Options others = options;
  others.first += kOtherRuns;
  ChoiceTimes times;
  std::vector<std::vector<double>> logs(alternatives.size());  // of the evaluations to 10 %, mean over runs, by space
  for (size_t a = 0; a < alternatives.size(); ++a) {
    for (const PublicSpace& space : spaces) {
      const std::vector<Run> runs =
          PublicRuns(others, space, alternatives[a].settings, std::log1p(0.10), &times, nullptr);
      double sum = 0;
      for (const size_t count : EvaluationsTo(0.10, space.space, runs)) sum += LogCount(count);
      logs[a].push_back(sum / static_cast<double>(runs.size()));
    }
    fprintf(stderr, "ran \"%s\"\n", alternatives[a].name);
  }
  std::vector<NamedSettings> chosen;
  for (const PublicSpace& left_out : spaces) {
    size_t best = 0;
    double least = INFINITY;
    for (size_t a = 0; a < alternatives.size(); ++a) {
      std::map<std::string, std::pair<double, int>> by_kernel;
      for (size_t other = 0; other < spaces.size(); ++other) {
        if (spaces[other].kernel == left_out.kernel) continue;
        by_kernel[spaces[other].kernel].first += logs[a][other];
        ++by_kernel[spaces[other].kernel].second;
      }
      double total = 0;
      for (const auto& [kernel, sum] : by_kernel) total += sum.first / sum.second;
      if (total >= least) continue;
      least = total;
      best = a;
    }
    chosen.push_back(alternatives[best]);
  }
  return chosen;
}

void PrintCoverage(const Predictions& predictions) {
  printf("Predicted 80 %% intervals hold the outcome %.1f times in 100 (%d predictions).\n",
         100.0 * predictions.held / std::max(1, predictions.made.load()), predictions.made.load());
}

// `settings` by space.
void PublicTable(const Options& options, const std::vector<PublicSpace>& spaces,
                 const std::vector<NamedSettings>& settings, ChoiceTimes* times) {
  const std::vector<size_t> marks = {20, 50, 100};
  Predictions predictions;
  std::vector<Results> all;
  PrintHeader(marks);
  for (size_t i = 0; i < spaces.size(); ++i) {
    const PublicSpace& space = spaces[i];
    Results& results = all.emplace_back();
    results['a'] = PublicRuns(options, space, settings[i].settings, kNothingLeft, times, &predictions);
    PrintRow(space.space, "a: Pawl", results['a'], marks);
    results['b'] = RunsOf(options, [&](int run) {
      return RandomSearch(space.space, RandomStart(space.space, run), kMost, static_cast<uint64_t>(run));
    });
    PrintRow(space.space, "b: random", results['b'], marks);
    results['c'] = RunsOf(options, [&](int run) {
      return HillClimbing(space.space, RandomStart(space.space, run), kMost, static_cast<uint64_t>(run));
    });
    PrintRow(space.space, "c: hill climbing", results['c'], marks);
  }
  printf("\n");
  std::map<char, double> logs;
  std::map<std::string, std::pair<double, int>> peers;
  for (size_t i = 0; i < spaces.size(); ++i) {
    JudgePublic(spaces[i], settings[i].name, all[i]);
    for (const auto& [method, runs] : all[i]) {
      logs[method] += LogCount(QuantileOf(EvaluationsTo(0.10, spaces[i].space, runs), 0.5));
    }
    if (spaces[i].peers.empty()) continue;
    int best = INT32_MAX;
    for (const auto& [name, evaluations] : spaces[i].peers) best = std::min(best, std::max(1, evaluations));
    const size_t own = QuantileOf(EvaluationsTo(0.10, spaces[i].space, all[i].at('a')), 0.5);
    peers["the best of the peers"].first += LogCount(own) - std::log(best);
    ++peers["the best of the peers"].second;
  }
  const double count = static_cast<double>(spaces.size());
  printf(
      "\nEvaluations to 10 %%, geometric mean over %zu spaces (%zu where never): Pawl %.1f, random %.1f, hill climbing "
      "%.1f.\n",
      spaces.size(), kMost, std::exp(logs['a'] / count), std::exp(logs['b'] / count), std::exp(logs['c'] / count));
  for (const auto& [name, ratio] : peers) {
    printf("Of %s, where known (%d spaces): %.2f.\n", name.c_str(), ratio.second, std::exp(ratio.first / ratio.second));
  }
  PrintCoverage(predictions);
}

// What the shipped patterns have of other bundles: a bundle is left out of what is known beforehand.
std::vector<v1::Pattern> PatternsOfOthers(const std::string& bundle) {
  std::vector<v1::Pattern> all;
  for (const v1::PatternFile& file : ShippedPatterns()) {
    all.insert(all.end(), file.patterns().begin(), file.patterns().end());
  }
  return OverAll(WithoutBundle(all, bundle));
}

void RecordedTable(const Options& options, const std::filesystem::path& checkout, ChoiceTimes* times) {
  const std::vector<size_t> marks = {10, 20, 50, 100};
  const absl::StatusOr<std::vector<std::string>> bundles = RecordedBundles(checkout);
  if (!bundles.ok()) Die(bundles.status());
  std::vector<std::pair<MeasuredSpace, Results>> recorded;
  Predictions predictions;
  PrintHeader(marks);
  for (const std::string& bundle : *bundles) {
    if (!options.only.empty() && options.only != bundle) continue;
    absl::StatusOr<MeasuredSpace> space = RecordedSpace(checkout, bundle);
    if (!space.ok()) Die(space.status());
    const Entry* own = space->Find(StartVariant(space->bundle).values());
    if (own == nullptr) Die(absl::NotFoundError(absl::StrCat("the start variant of ", bundle, " was not recorded")));
    const Entry& start = *own;
    const TreeChooser tree(DecisionTree::Default(), In(*space, TreeSettings()));
    const TimedChooser timed(tree, times);
    constexpr size_t kEvaluations = 100;
    const auto seed = [](int run) { return static_cast<uint64_t>(run); };
    Results results;
    const std::vector<v1::Pattern> patterns = PatternsOfOthers(bundle);
    results['a'] = RunsOf(options, [&](int run) {
      return Engine(*space, start, timed, kEvaluations, seed(run), patterns, &predictions);
    });
    results['b'] = RunsOf(options, [&](int run) { return RandomSearch(*space, start, kEvaluations, seed(run)); });
    results['c'] = RunsOf(options, [&](int run) { return HillClimbing(*space, start, kEvaluations, seed(run)); });
    results['d'] = RunsOf(options, [&](int run) {
      const DecisionTree shuffled = Shuffled(seed(run));
      const TreeChooser chooser(shuffled, In(*space, TreeSettings()));
      return Engine(*space, start, chooser, kEvaluations, seed(run), {}, nullptr);
    });
    const std::map<char, const char*> names = {
        {'a', "a: Pawl"}, {'b', "b: random"}, {'c', "c: hill climbing"}, {'d', "d: Pawl, rules shuffled"}};
    for (const auto& [name, runs] : results) PrintRow(*space, names.at(name), runs, marks);
    recorded.emplace_back(*std::move(space), std::move(results));
  }
  printf("\n");
  for (const auto& [space, results] : recorded) JudgeRecorded(space, results);
  PrintCoverage(predictions);
}

int Main(const Options& options) {
  const char* source = getenv("PAWL_SOURCE_DIR");
  const std::filesystem::path checkout = source == nullptr ? "." : source;
  ChoiceTimes times;
  if (options.folder.empty()) RecordedTable(options, checkout, &times);
  absl::StatusOr<std::vector<PublicSpace>> spaces =
      ReadPublicSpaces(options.folder.empty() ? checkout / "bench/spaces" : options.folder);
  if (!spaces.ok()) Die(spaces.status());
  std::erase_if(*spaces, [&](const PublicSpace& space) { return !absl::StartsWith(space.space.name, options.only); });
  if (spaces->empty() && times.count == 0) {
    const std::string folder = options.folder.empty() ? "the recordings and bench/spaces" : options.folder.string();
    Die(absl::NotFoundError(absl::StrCat("no space of ", folder, " begins with ", options.only)));
  }
  if (!spaces->empty()) {
    std::set<std::string> kernels;
    for (const PublicSpace& space : *spaces) kernels.insert(space.kernel);
    if (options.leave_out && kernels.size() < 2) {
      Die(absl::InvalidArgumentError("--leave-out needs spaces of two kernels or more: settings come from the others"));
    }
    const std::vector<NamedSettings> settings = options.leave_out
                                                    ? LeftOutSettings(options, *spaces)
                                                    : std::vector<NamedSettings>(spaces->size(), Alternatives()[0]);
    PublicTable(options, *spaces, settings, &times);
  }
  if (times.count > 0) {
    fprintf(stderr, "a choice takes %.2f ms of CPU time, at worst %.2f ms, in %lld choices\n",
            1e3 * times.sum / static_cast<double>(times.count), 1e3 * times.worst, static_cast<long long>(times.count));
  }
  return 0;
}

}  // namespace
}  // namespace pawl

int main(int argc, char** argv) {
  pawl::Options options;
  std::vector<std::string> arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--leave-out") {
      options.leave_out = true;
    } else if (argument.rfind("--jobs=", 0) == 0) {
      options.jobs = std::max(1, atoi(argument.c_str() + 7));
    } else if (argument.rfind("--", 0) == 0) {
      const bool help = argument == "--help";
      if (!help) fprintf(stderr, "pawl-search-efficiency: unknown option %s\n", argv[i]);
      fprintf(help ? stdout : stderr, "%s", pawl::kUsage);
      return help ? 0 : 2;
    } else {
      arguments.push_back(argument);
    }
  }
  if (!arguments.empty() && std::filesystem::is_directory(arguments[0])) {
    options.folder = arguments[0];
    arguments.erase(arguments.begin());
  }
  if (!arguments.empty() && atoi(arguments[0].c_str()) < 1) {
    fprintf(stderr, "pawl-search-efficiency: %s is neither a folder nor a number of runs\n%s", arguments[0].c_str(),
            pawl::kUsage);
    return 2;
  }
  if (!arguments.empty()) options.runs = atoi(arguments[0].c_str());
  if (arguments.size() > 1) options.only = arguments[1];
  if (arguments.size() > 2) options.first = std::max(0, atoi(arguments[2].c_str()));
  return pawl::Main(options);
}
