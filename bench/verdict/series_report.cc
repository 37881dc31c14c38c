#include "bench/verdict/series_report.h"

#include <boost/math/distributions/fisher_f.hpp>
#include <cmath>
#include <cstdio>
#include <map>
#include <random>

#include "absl/strings/str_cat.h"
#include "profiles/gates.h"
#include "profiles/gpus.h"
#include "profiles/keep_rule.h"
#include "profiles/seat_rule.h"

namespace pawl {
namespace {

constexpr int kDrawnTrials = 20'000;
constexpr size_t kAsCandidate = 2;  // processes that judged it when it was kept, the start's child
constexpr size_t kAsParent = 3;     // processes at most that confirm a child

// The variance between the processes of one comparison.
struct Between {
  double variance = 0;   // of their means
  double explained = 0;  // of it by the spread of pairs
  double degrees = 0;
};

Between BetweenOf(const std::vector<std::vector<double>>& processes, bool explain) {
  const double k = static_cast<double>(processes.size());
  Between between{.degrees = k - 1};
  std::vector<double> means;
  double all = 0;
  for (const std::vector<double>& process : processes) {
    const double n = static_cast<double>(process.size());
    double mean = 0, squares = 0;
    for (const double value : process) mean += value / n;
    for (const double value : process) squares += (value - mean) * (value - mean);
    if (explain) between.explained += squares / (n - 1) / n / k;
    means.push_back(mean);
    all += mean / k;
  }
  for (const double mean : means) between.variance += (mean - all) * (mean - all) / (k - 1);
  return between;
}

// Kernels differ in their noise. With its variance distributed over them as an inverse chi square with these degrees of
// freedom, the variance that a comparison shows, relative to the one expected, has the F distribution: the most likely
// parameters are what a comparison of the next kernel should assume.
void PrintFit(const char* name, const std::vector<Between>& all) {
  double best = -INFINITY, best_sd = 0, best_degrees = 0, sum = 0, degrees = 0;
  for (double sd = 1e-4; sd < 0.05; sd *= 1.03) {
    for (double assumed = 2; assumed < 300; assumed *= 1.1) {
      double likelihood = 0;
      for (const Between& one : all) {
        const double expected = sd * sd + one.explained;
        const boost::math::fisher_f distribution(one.degrees, assumed);
        likelihood += std::log(boost::math::pdf(distribution, one.variance / expected) / expected);
      }
      if (likelihood <= best) continue;
      best = likelihood;
      best_sd = sd;
      best_degrees = assumed;
    }
  }
  for (const Between& one : all) {
    sum += one.degrees * (one.variance - one.explained);
    degrees += one.degrees;
  }
  printf("%s_sd = %.5f\n%s_degrees = %.1f   # %zu comparisons, %.0f degrees in all, pooled %.5f\n", name, best_sd, name,
         best_degrees, all.size(), degrees, std::sqrt(std::max(0.0, sum / degrees)));
}

using Lists = std::vector<std::vector<double>>;

std::vector<double> LogRatios(const std::vector<double>& above, const std::vector<double>& below) {
  std::vector<double> logs;
  for (size_t i = 0; i < above.size() && i < below.size(); ++i) logs.push_back(std::log(above[i] / below[i]));
  return logs;
}

double MeanOfList(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// log(P / W) by process and role.
struct SeatSeries {
  Lists candidate, parent, biased;
};

// As the worker goes on: until the witness shows a bias or excludes it.
SeatTest DrawTrial(const Lists& as_candidate, const Lists& as_parent, const v1::ProcessNoise& noise,
                   std::mt19937_64& random) {
  const auto draw = [&](const Lists& from, size_t count) {
    Lists drawn;
    std::sample(from.begin(), from.end(), std::back_inserter(drawn), static_cast<ptrdiff_t>(count), random);
    std::shuffle(drawn.begin(), drawn.end(), random);
    return drawn;
  };
  const double share = Gates::Default().Get(GateKind::kSeat).threshold / 2;
  const v1::SeatTime before = SeatTimeOf(draw(as_candidate, kAsCandidate));
  const Lists all = draw(as_parent, kAsParent);
  SeatTest test;
  for (size_t count = 1; count <= all.size(); ++count) {
    test = TestSeat(before, SeatTimeOf({all.begin(), all.begin() + static_cast<ptrdiff_t>(count)}), noise, share);
    if (test.failed() || test.excluded) break;
  }
  return test;
}

}  // namespace

void PrintNoise(const std::vector<SeriesLine>& lines) {
  std::map<std::string, Lists> ratios, times;
  for (const SeriesLine& line : lines) {
    ratios[line.pair].push_back(line.log_ratios);
    times[absl::StrCat("parent ", line.pair)].push_back(LogRatios(line.parent, line.anchor));
    times[absl::StrCat("candidate ", line.pair)].push_back(LogRatios(line.candidate, line.anchor));
  }
  std::vector<Between> process, anchor;
  for (const auto& [pair, lists] : ratios) {
    if (lists.size() > 1) process.push_back(BetweenOf(lists, true));
  }
  for (const auto& [pair, lists] : times) {
    if (lists.size() > 1) anchor.push_back(BetweenOf(lists, false));
  }
  if (process.empty()) return;
  printf("[noise]\n");
  PrintFit("process", process);
  PrintFit("anchor", anchor);
}

void PrintCoverage(const std::vector<SeriesLine>& lines, const std::string& gpu) {
  // Of short kernels, the ratio depends on which GPU of a kind it is: an interval holds for the one that measured it.
  std::map<std::pair<std::string, std::string>, std::vector<PairBatch>> comparisons;
  for (const SeriesLine& line : lines) comparisons[{line.pair, line.gpu}].push_back({line.log_ratios, 0});
  const KeepRule rule;
  for (const int first_pairs : {rule.first_pairs, rule.extended_pairs}) {
    int inside = 0, all = 0, pairs = 0;
    for (const auto& [pair, processes] : comparisons) {
      if (processes.size() < 3) continue;
      std::vector<PairBatch> judged(processes.begin(), processes.begin() + 2);
      judged[0].log_ratios.resize(std::min<size_t>(judged[0].log_ratios.size(), first_pairs));
      const v1::Comparison comparison = Compare(judged, NoiseOf(gpu), rule);
      ++pairs;
      for (size_t i = 2; i < processes.size(); ++i) {
        const double mean = MeanOfList(processes[i].log_ratios);
        ++all;
        inside += comparison.lower() <= mean && mean <= comparison.upper();
      }
    }
    if (all == 0) return;
    printf(
        "%d of %d further processes of %d pairs (%.2f %%) lie in the 99 %% interval of the first two (%d blocks of "
        "the first)\n",
        inside, all, pairs, 100.0 * inside / all, first_pairs);
  }
}

void PrintSeatRates(const std::vector<SeriesLine>& lines, const std::string& gpu) {
  std::map<std::string, SeatSeries> kernels;
  for (const SeriesLine& line : lines) {
    const std::string name = line.pair.substr(std::min(line.pair.size(), line.role.size() + 2));
    if (line.role == "candidate") kernels[name].candidate.push_back(LogRatios(line.candidate, line.parent));
    if (line.role == "parent") kernels[name].parent.push_back(LogRatios(line.parent, line.witness));
    if (line.role == "biased") kernels[name].biased.push_back(LogRatios(line.parent, line.witness));
  }
  std::vector<const SeatSeries*> whole;
  for (const auto& [name, series] : kernels) {
    if (series.candidate.size() < kAsCandidate || series.parent.empty() || series.biased.empty()) continue;
    whole.push_back(&series);
    const double candidate = SeatTimeOf(series.candidate).log_time(), parent = SeatTimeOf(series.parent).log_time();
    printf("%s: %zu processes, as a parent %+.2f %%, biased %+.2f %%\n", name.c_str(), series.parent.size(),
           100 * std::expm1(parent - candidate), 100 * std::expm1(SeatTimeOf(series.biased).log_time() - candidate));
  }
  if (whole.empty()) return;
  std::mt19937_64 random(17);
  int honest = 0, found = 0;
  for (int i = 0; i < kDrawnTrials; ++i) {
    const SeatSeries& series = *whole[random() % whole.size()];
    honest += !DrawTrial(series.candidate, series.parent, NoiseOf(gpu), random).failed();
    found += DrawTrial(series.candidate, series.biased, NoiseOf(gpu), random).failed();
  }
  printf("of %zu kernels: %.2f %% of honest variants pass, %.2f %% of biased ones are found (%d draws of processes)\n",
         whole.size(), 100.0 * honest / kDrawnTrials, 100.0 * found / kDrawnTrials, kDrawnTrials);
}

}  // namespace pawl
