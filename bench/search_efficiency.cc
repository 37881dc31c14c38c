// pawl-search-efficiency: how many evaluations searches need in spaces that were measured whole. No GPU. Prints Markdown.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "bench/measured_space.h"
#include "kernels/space.h"
#include "orchestrator/engine/decide.h"
#include "orchestrator/engine/tree_chooser.h"
#include "orchestrator/engine/verdict.h"
#include "profiles/embedded.h"

namespace pawl {
namespace {

using Entry = MeasuredSpace::Entry;

// Log speed of the best found after each evaluation; the start is the first.
using Run = std::vector<double>;

void Note(double log_speed, Run* run) { run->push_back(run->empty() ? log_speed : std::max(run->back(), log_speed)); }

TreeSettings g_settings;
double g_worst = 0, g_total = 0;
long g_choices = 0;

class TimedChooser : public Chooser {
 public:
  explicit TimedChooser(const Chooser& inner) : inner_(inner) {}
  std::optional<Choice> Next(const CampaignState& campaign) const override {
    const auto begin = std::chrono::steady_clock::now();
    std::optional<Choice> choice = inner_.Next(campaign);
    const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    g_worst = std::max(g_worst, took);
    g_total += took;
    ++g_choices;
    return choice;
  }

 private:
  const Chooser& inner_;
};

bool g_trace = false;

// The engine itself, fed with events in memory.
Run Engine(const MeasuredSpace& space, const Entry& start, const Chooser& chooser, int evaluations, uint64_t seed) {
  v1::Bundle bundle = space.bundle;
  for (v1::Variable& variable : *bundle.mutable_variables()) {
    variable.set_start(start.variant.values().at(variable.name()));
  }
  const std::string name = absl::StrCat("campaigns/", seed + 1);
  CampaignState campaign(name, bundle);
  SeededRandom random(name, 0);
  v1::Event submitted;
  submitted.mutable_submitted()->mutable_spec()->mutable_goal()->set_speedup(INFINITY);
  submitted.mutable_submitted()->mutable_spec()->mutable_budget()->set_iterations(evaluations - 1);
  campaign.Apply(submitted);
  Run run;
  while (static_cast<int>(run.size()) < evaluations) {
    std::optional<v1::Event> next = Decide(campaign, chooser, absl::UnixEpoch());
    if (!next || !next->has_planned()) break;
    campaign.Apply(*next);
    const v1::TrialPlanned& planned = next->planned();
    v1::Event leased;
    leased.mutable_leased()->set_trial(planned.trial());
    leased.mutable_leased()->set_attempt(1);
    leased.mutable_leased()->set_device(space.device);
    campaign.Apply(leased);
    const v1::Iteration* parent = planned.has_parent() ? campaign.Find(planned.parent()) : nullptr;
    const Entry* candidate = space.Find(planned.variant().values());
    v1::Event finished;
    v1::TrialFinished& f = *finished.mutable_finished();
    f.set_trial(planned.trial());
    if (candidate == nullptr) {
      f.mutable_result()->set_passed_over("not recorded");
    } else {
      *f.mutable_result() = space.Measure(*candidate, parent ? space.Find(parent->variant()) : nullptr, random);
    }
    *f.mutable_iteration() = Judge(campaign, planned, f.result());
    if (g_trace) {
      fprintf(stderr, "%3d parent %d %s %d->%d %s  %s %.3f (%.3f)  %s\n", planned.iteration(), planned.parent(),
              planned.change().variable().c_str(), planned.change().from(), planned.change().to(),
              planned.finding().rule().c_str(), v1::Verdict_Name(f.iteration().verdict()).c_str(),
              f.iteration().speedup_over_parent(), f.iteration().speedup_over_start(), planned.why().c_str());
    }
    campaign.Apply(finished);
    Note(campaign.best() == nullptr ? -INFINITY : space.Find(campaign.best()->variant())->log_speed, &run);
  }
  return run;
}

Run RandomSearch(const MeasuredSpace& space, const Entry& start, int evaluations, uint64_t seed) {
  SeededRandom random(seed);
  std::vector<size_t> left;
  for (size_t i = 0; i < space.entries.size(); ++i) {
    if (&space.entries[i] != &start) left.push_back(i);
  }
  Run run;
  Note(start.log_speed, &run);
  while (static_cast<int>(run.size()) < evaluations && !left.empty()) {
    std::swap(left[random.Below(left.size())], left.back());
    const Entry& entry = space.entries[left.back()];
    left.pop_back();
    Note(entry.ok ? entry.log_speed : -INFINITY, &run);
  }
  return run;
}

// One variable to any other value, in random order, the first improvement taken; a random restart where none is left.
Run HillClimbing(const MeasuredSpace& space, const Entry& start, int evaluations, uint64_t seed) {
  SeededRandom random(seed);
  std::set<const Entry*> seen;
  Run run;
  auto evaluate = [&](const Entry& entry) {
    if (seen.insert(&entry).second) Note(entry.ok ? entry.log_speed : -INFINITY, &run);
    return entry.ok ? entry.log_speed : -INFINITY;
  };
  const Entry* at = &start;
  while (static_cast<int>(run.size()) < evaluations && seen.size() < space.entries.size()) {
    const double speed = evaluate(*at);
    std::vector<const Entry*> around;
    Point point = PointOf(space.bundle, at->variant.values());
    for (size_t i = 0; i < point.size(); ++i) {
      const uint16_t own = point[i];
      for (uint16_t place = 0; place < space.bundle.variables(static_cast<int>(i)).values_size(); ++place) {
        if (place == own) continue;
        point[i] = place;
        const auto found = space.places.find(point);
        if (found != space.places.end()) around.push_back(&space.entries[found->second]);
      }
      point[i] = own;
    }
    const Entry* next = nullptr;
    while (!around.empty() && next == nullptr && static_cast<int>(run.size()) < evaluations) {
      std::swap(around[random.Below(around.size())], around.back());
      if (evaluate(*around.back()) > speed) next = around.back();
      around.pop_back();
    }
    at = next != nullptr ? next : &space.entries[random.Below(space.entries.size())];
  }
  run.resize(std::min<size_t>(run.size(), static_cast<size_t>(evaluations)));
  return run;
}

// The tree with what its rules want dealt out anew.
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
  std::function<Run(const MeasuredSpace&, const Entry&, int evaluations, uint64_t seed)> search;
};

// In the middle of the runs.
template <typename T>
T Median(std::vector<T> values) {
  std::sort(values.begin(), values.end());
  return values[(values.size() - 1) / 2];
}

int EvaluationsTo(const Run& run, double log_target) {
  for (size_t i = 0; i < run.size(); ++i) {
    if (run[i] >= log_target) return static_cast<int>(i) + 1;
  }
  return INT32_MAX;
}

std::string CountText(int evaluations) { return evaluations == INT32_MAX ? "never" : absl::StrCat(evaluations); }

void PrintRow(const MeasuredSpace& space, const Method& method, const std::vector<Run>& runs,
              const std::vector<int>& marks) {
  printf("| %s | %s |", space.name.c_str(), method.name);
  for (const double within : {0.10, 0.05, 0.01}) {
    std::vector<int> counts;
    for (const Run& run : runs) counts.push_back(EvaluationsTo(run, space.best - std::log1p(within)));
    printf(" %s |", CountText(Median(counts)).c_str());
  }
  for (const int mark : marks) {
    std::vector<double> shares;
    for (const Run& run : runs) shares.push_back(std::exp(run[std::min<size_t>(run.size(), mark) - 1] - space.best));
    printf(" %.3f |", Median(shares));
  }
  printf("\n");
  fflush(stdout);
}

}  // namespace
}  // namespace pawl

int main(int argc, char** argv) {
  using namespace pawl;
  int runs = 100;
  std::string only, methods = "abcd";
  std::vector<std::pair<std::string, double*>> knobs = {
      {"explore", &g_settings.explore}, {"momentum", &g_settings.momentum}, {"branch", &g_settings.branch},
      {"sample", &g_settings.sample}, {"gain", &g_settings.rules.gain}, {"later", &g_settings.rules.later_phase},
      {"next", &g_settings.rules.next_want}, {"misfit", &g_settings.rules.misfit}, {"opposed", &g_settings.rules.opposed},
      {"failed", &g_settings.rules.failed}, {"came_true", &g_settings.rules.came_true},
      {"pairs", &g_settings.model.pairs}, {"near", &g_settings.model.nearness}, {"noise", &g_settings.model.noise},
      {"spread", &g_settings.model.min_spread}};
  int evaluations_public = 300;
  for (int i = 1; i < argc; ++i) {
    const std::vector<std::string> parts = absl::StrSplit(argv[i], '=');
    if (parts.size() != 2) return 2;
    if (parts[0] == "runs") runs = atoi(parts[1].c_str());
    if (parts[0] == "only") only = parts[1];
    if (parts[0] == "methods") methods = parts[1];
    if (parts[0] == "trace") g_trace = true;
    if (parts[0] == "acq") g_settings.acquisition = atoi(parts[1].c_str());
    if (parts[0] == "parents") g_settings.parents = atoi(parts[1].c_str());
    if (parts[0] == "points") g_settings.model.max_points = atoi(parts[1].c_str());
    if (parts[0] == "n") evaluations_public = atoi(parts[1].c_str());
    for (auto& [name, knob] : knobs) {
      if (parts[0] == name) *knob = atof(parts[1].c_str());
    }
  }
  const TreeChooser tree_chooser(DecisionTree::Default(), g_settings);
  const TimedChooser chooser(tree_chooser);
  const Method all[] = {
      {"a: Pawl", [&](auto& space, auto& start, int n, uint64_t seed) { return Engine(space, start, chooser, n, seed); }},
      {"b: random", RandomSearch},
      {"c: hill climbing", HillClimbing},
      {"d: rules shuffled", [&](auto& space, auto& start, int n, uint64_t seed) {
         const DecisionTree tree = Shuffled(seed);
         return Engine(space, start, TreeChooser(tree, g_settings), n, seed);
       }}};
  const char* checkout_name = getenv("PAWL_SOURCE_DIR");
  const std::filesystem::path checkout = checkout_name == nullptr ? "." : checkout_name;
  if (only.empty() || absl::StrContains("attention reduce_sum rmsnorm softmax transpose recorded", only)) {
    printf("| space | method | to 10 %% | 5 %% | 1 %% | after 10 | 20 | 50 | 100 |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
    for (const char* bundle : {"attention", "reduce_sum", "rmsnorm", "softmax", "transpose"}) {
      if (!only.empty() && only != bundle && only != "recorded") continue;
      const absl::StatusOr<MeasuredSpace> space = RecordedSpace(checkout, bundle);
      if (!space.ok()) {
        fprintf(stderr, "%s\n", space.status().ToString().c_str());
        return 1;
      }
      for (const Method& method : all) {
        if (methods.find(method.name[0]) == std::string::npos) continue;
        std::vector<Run> results;
        for (int i = 0; i < runs; ++i) {
          results.push_back(method.search(*space, *space->Find(StartVariant(space->bundle).values()), 100, i));
        }
        PrintRow(*space, method, results, {10, 20, 50, 100});
      }
    }
  }
  if (only.empty() || absl::StrContains("convolution gemm dedispersion public", only)) {
    const absl::StatusOr<std::vector<MeasuredSpace>> spaces = PublicSpaces(checkout / "bench/spaces");
    if (!spaces.ok()) {
      fprintf(stderr, "%s\n", spaces.status().ToString().c_str());
      return 1;
    }
    printf("\n| space | method | to 10 %% | 5 %% | 1 %% | after 20 | 50 | 100 | 200 |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
    for (const MeasuredSpace& space : *spaces) {
      if (!only.empty() && only != "public" && !absl::StartsWith(space.name, only)) continue;
      for (const Method& method : all) {
        if (method.name[0] == 'd' || methods.find(method.name[0]) == std::string::npos) continue;
        std::vector<Run> results;
        for (int i = 0; i < runs; ++i) {
          SeededRandom random(1000 + i);
          const Entry* start = nullptr;
          while (start == nullptr || !start->ok) start = &space.entries[random.Below(space.entries.size())];
          results.push_back(method.search(space, *start, evaluations_public, i));
        }
        PrintRow(space, method, results, {20, 50, 100, 200});
      }
    }
  }
  fprintf(stderr, "choice: mean %.3f ms, worst %.3f ms\n", 1e3 * g_total / std::max(1L, g_choices), 1e3 * g_worst);
}
