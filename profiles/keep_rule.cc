#include "profiles/keep_rule.h"

#include <algorithm>
#include <boost/math/distributions/fisher_f.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace pawl {
namespace {

// Without arithmetic in long double, which some machines only emulate.
using Policy = boost::math::policies::policy<boost::math::policies::promote_double<false>>;

// Extending is worth its time if it takes away this share of the variance.
constexpr double kWorthExtending = 0.1;

double Percent(double log_ratio) { return 100 * std::expm1(log_ratio); }
std::string Counted(int count, const char* what, const char* plural) {
  return absl::StrCat(count, " ", count == 1 ? what : plural);
}

// A variance and the degrees of freedom with which it is known.
struct Variance {
  double value = 0;
  double degrees = 1;
};

// Satterthwaite's degrees of freedom.
Variance Sum(const Variance& a, const Variance& b) {
  const double value = a.value + b.value;
  if (!(value > 0)) return {0, a.degrees + b.degrees};
  return {value, value * value / (a.value * a.value / a.degrees + b.value * b.value / b.degrees)};
}

// Added to the variance of pairs that are too few to tell: larger than that of any kernel in tests/profiles/series,
// whose largest standard deviation is 0.024.
constexpr Variance kAssumed = {0.04 * 0.04, 20};

Variance Scaled(const Variance& variance, double by) { return {variance.value * by, variance.degrees}; }

// What the pairs of a comparison say before they are judged.
struct Figures {
  std::vector<double> means;  // of the processes
  double mean = 0;            // of these
  Variance by_pairs;          // of a process's mean: what the variance of its pairs adds to it
  Variance further_pairs;     // the same of a further process's mean about the mean of these
  double noise_share = 0;     // of the variance between processes: the sum of the squared weights
  // By how much log speedup falls short of `mean` over all pairs together, each counted by the time that it took. A
  // kernel that is fast with most inputs and very slow with some has a good mean of logarithms.
  double shortfall = 0;
};

// Of one size.
Figures FiguresOf(std::span<const PairBatch> processes, const KeepRule& rule) {
  Figures figures;
  const double k = static_cast<double>(processes.size());
  double squares = 0, degrees = 0, share = 0, most = 0;  // share: the mean of 1 / pairs
  double relative_time = 0;                              // of the candidate to the parent
  for (const PairBatch& process : processes) {
    const double n = static_cast<double>(process.log_ratios.size());
    double sum = 0;
    for (const double r : process.log_ratios) {
      sum += r;
      relative_time += std::exp(-r) / n / k;
    }
    const double mean = sum / n;
    for (const double r : process.log_ratios) squares += (r - mean) * (r - mean);
    figures.means.push_back(mean);
    figures.mean += mean / k;
    share += 1 / n / k;
    most = std::max(most, n);
    degrees += n - 1;
  }
  Variance pairs = {squares / degrees, degrees};
  if (most < rule.first_pairs) {
    pairs = Sum(pairs, kAssumed);
    most = rule.first_pairs;
  }
  figures.by_pairs = Scaled(pairs, share);
  figures.further_pairs = Scaled(pairs, 1 / most + share / k);
  figures.noise_share = 1;
  figures.shortfall = figures.mean + std::log(relative_time);
  return figures;
}

// Of those sizes that were timed, as often as all of them were: the weighted sum, whatever the weights add up to.
Figures FiguresOf(std::span<const SizePairs> sizes, size_t processes, const KeepRule& rule) {
  Figures all;
  all.means.resize(processes);
  for (const SizePairs& size : sizes) {
    if (size.processes.empty()) continue;
    const Figures one = FiguresOf(std::span(size.processes).first(processes), rule);
    const double square = size.weight * size.weight;
    for (size_t i = 0; i < processes; ++i) all.means[i] += size.weight * one.means[i];
    all.mean += size.weight * one.mean;
    all.shortfall += size.weight * one.shortfall;
    const bool first = all.noise_share == 0;
    const Variance by_pairs = Scaled(one.by_pairs, square), further = Scaled(one.further_pairs, square);
    all.by_pairs = first ? by_pairs : Sum(all.by_pairs, by_pairs);
    all.further_pairs = first ? further : Sum(all.further_pairs, further);
    all.noise_share += square;
  }
  return all;
}

v1::ProcessNoise Known(const v1::ProcessNoise& noise) {
  return noise.variance() > 0 && noise.degrees() > 0 ? noise : UnknownNoise();
}

struct Predictive {
  Variance variance;      // of a further process's mean about the mean of these
  bool disagree = false;  // the processes differ by more than the noise explains
};

Predictive PredictiveOf(const Figures& figures, const v1::ProcessNoise& known, const KeepRule& rule) {
  const double k = static_cast<double>(figures.means.size());
  Variance process = Scaled({known.variance(), known.degrees()}, figures.noise_share);
  Predictive predictive;
  if (k > 1) {
    double squares = 0;
    for (const double mean : figures.means) squares += (mean - figures.mean) * (mean - figures.mean);
    const Variance own = {squares / (k - 1), k - 1};
    const Variance expected = Sum(process, figures.by_pairs);
    const boost::math::fisher_f_distribution<double, Policy> distribution(own.degrees, expected.degrees);
    predictive.disagree = boost::math::cdf(distribution, own.value / expected.value) > rule.disagreement;
    if (predictive.disagree && figures.means.size() >= static_cast<size_t>(rule.max_processes)) {
      predictive.variance = Scaled(own, 1 + 1 / k);
      return predictive;
    }
    const double beyond_pairs = std::max(0.0, own.value - figures.by_pairs.value);
    process = {(process.value * process.degrees + beyond_pairs * own.degrees) / (process.degrees + own.degrees),
               process.degrees + own.degrees};
  }
  predictive.variance = Sum(Scaled(process, 1 + 1 / k), figures.further_pairs);
  return predictive;
}

// Of the interval about the mean.
double ReachOf(const Predictive& predictive, const KeepRule& rule) {
  const boost::math::students_t_distribution<double, Policy> distribution(predictive.variance.degrees);
  return boost::math::quantile(distribution, (1 + rule.confidence) / 2) * std::sqrt(predictive.variance.value);
}

std::string Interval(const v1::Comparison& c, const KeepRule& rule) {
  return absl::StrFormat("%+.2f %% (%g %% of further measurements lie between %+.2f %% and %+.2f %%; %s, %s)",
                         Percent(c.mean_log_ratio()), 100 * rule.confidence, Percent(c.lower()), Percent(c.upper()),
                         Counted(c.processes(), "process", "processes"), Counted(c.pairs(), "pair", "pairs"));
}

// How much of a goal was timed.
struct Coverage {
  size_t processes = 0;              // that timed all of `timed`
  int timed = 0;                     // sizes
  double weight = 0;                 // of these
  std::vector<std::string> untimed;  // sizes
};

Coverage CoverageOf(std::span<const SizePairs> sizes) {
  Coverage coverage;
  for (const SizePairs& size : sizes) {
    if (size.processes.empty()) {
      coverage.untimed.push_back(size.size);
      continue;
    }
    const size_t processes = size.processes.size();
    coverage.processes = coverage.timed == 0 ? processes : std::min(coverage.processes, processes);
    coverage.timed += 1;
    coverage.weight += size.weight;
  }
  // Weights are rounded numbers; those of a whole goal are as good as 1.
  if (coverage.untimed.empty()) coverage.weight = 1;
  return coverage;
}

std::string Reason(const v1::Comparison& c, const Figures& figures, bool disagree, const Coverage& coverage,
                   const KeepRule& rule) {
  const std::string interval = Interval(c, rule);
  const std::string gain = absl::StrFormat("%g %%", 100 * rule.min_gain);
  if (!coverage.untimed.empty()) {
    return absl::StrFormat("%s: %s; not timed at %s: with %gx there it would reach %+.2f %% at most",
                           c.result() == v1::SLOWER ? "Slower" : "Unclear", interval,
                           absl::StrJoin(coverage.untimed, ", "), rule.untimed_speedup, Percent(c.upper()));
  }
  switch (c.result()) {
    case v1::FASTER:
      return absl::StrCat("Faster: ", interval);
    case v1::SLOWER:
      return absl::StrCat("Slower: ", interval);
    case v1::SAME:
      return absl::StrCat("The same: ", interval, "; all of it within ", gain);
    default:
      break;
  }
  if (disagree) {
    return absl::StrCat("Unclear: ", interval, "; the processes differ by more than their noise: ",
                        absl::StrJoin(figures.means, ", ", [](std::string* out, double mean) {
                          absl::StrAppendFormat(out, "%+.2f %%", Percent(mean));
                        }));
  }
  if (c.lower() > std::log1p(rule.min_gain)) {
    if (c.processes() < rule.min_processes) {
      return absl::StrCat("Unclear: ", interval, "; not confirmed in a second process");
    }
    return absl::StrFormat(
        "Unclear: %s; but some pairs took far longer than others: over the time of all it is %+.2f %%", interval,
        Percent(figures.mean - figures.shortfall));
  }
  const bool above = c.upper() > std::log1p(rule.min_gain), below = c.lower() < -std::log1p(rule.min_gain);
  return absl::StrCat("Unclear: ", interval, "; the interval includes ", above ? "+" : "-", gain,
                      above && below ? absl::StrCat(" and -", gain) : "");
}

v1::Comparison Unclear(v1::Comparison comparison, std::string reason) {
  comparison.set_result(v1::UNCLEAR);
  comparison.set_reason(std::move(reason));
  return comparison;
}

}  // namespace

KeepRule KeepRuleOf(const v1::KeepSettings& settings) {
  KeepRule rule;
  if (settings.min_gain() > 0) rule.min_gain = settings.min_gain();
  return rule;
}

KeepRule StepRuleOf(const v1::KeepSettings& settings) {
  KeepRule rule = KeepRuleOf(settings);
  rule.min_processes = rule.max_processes = 1;
  return rule;
}

v1::ProcessNoise UnknownNoise() {
  v1::ProcessNoise noise;
  noise.set_variance(0.005 * 0.005);
  noise.set_degrees(10);
  noise.set_anchor_variance(0.01 * 0.01);
  noise.set_anchor_degrees(10);
  return noise;
}

v1::Comparison Compare(std::span<const PairBatch> processes, const v1::ProcessNoise& noise, const KeepRule& rule) {
  const SizePairs only{"", 1, {processes.begin(), processes.end()}};
  return CompareSizes({&only, 1}, noise, rule);
}

v1::Comparison CompareSizes(std::span<const SizePairs> sizes, const v1::ProcessNoise& noise, const KeepRule& rule) {
  v1::Comparison c;
  const Coverage coverage = CoverageOf(sizes);
  c.set_processes(static_cast<int>(coverage.processes));
  const int needed = std::max(rule.first_pairs, 2);
  std::optional<int> fewest;
  bool finite = true;
  for (const SizePairs& size : sizes) {
    for (size_t i = 0; i < size.processes.size(); ++i) {
      const PairBatch& process = size.processes[i];
      const int pairs = static_cast<int>(process.log_ratios.size());
      c.set_discarded(c.discarded() + process.discarded);
      if (i >= coverage.processes) continue;
      c.set_pairs(c.pairs() + pairs);
      fewest = std::min(fewest.value_or(pairs), pairs);
      for (const double r : process.log_ratios) finite = finite && std::isfinite(r);
    }
  }
  if (!finite) return Unclear(c, "Unclear: the time of a pair is not a positive number");
  const bool some = fewest.value_or(0) > 0;
  const Figures figures = some ? FiguresOf(sizes, coverage.processes, rule) : Figures();
  if (some) c.set_mean_log_ratio(figures.mean / coverage.weight);
  if (c.discarded() >= rule.max_discarded * std::max(1, coverage.timed)) {
    return Unclear(c,
                   absl::StrFormat("Unclear: %d pairs were discarded because clocks or throttling changed during them; "
                                   "let the GPU cool down, or stop other work on it",
                                   c.discarded()));
  }
  const int few = fewest.value_or(0);
  const auto too_few = [&] {
    return Unclear(c, absl::StrFormat("Unclear: only %s measured; a comparison needs %d",
                                      few == 1 ? "1 pair was" : absl::StrCat(few, " pairs were"), needed));
  };
  const bool may_be_few =
      rule.sure_pairs > 0 && few >= std::max(rule.sure_pairs, 2) && sizes.size() == 1 && coverage.processes == 1;
  if (few < needed && !may_be_few) return too_few();
  const Predictive predictive = PredictiveOf(figures, Known(noise), rule);
  const double reach = ReachOf(predictive, rule), threshold = std::log1p(rule.min_gain);
  if (few < needed && figures.mean + reach >= -threshold) return too_few();
  c.set_lower(figures.mean - reach);
  c.set_upper(figures.mean + reach);
  if (!coverage.untimed.empty()) {
    // What was not timed may be as much slower, or faster, as is assumed, or as what was timed is.
    const double most = std::log(rule.untimed_speedup), rest = 1 - coverage.weight;
    c.set_lower(c.lower() + rest * std::min(-most, c.lower() / coverage.weight));
    c.set_upper(c.upper() + rest * std::max(most, c.upper() / coverage.weight));
  }

  const bool settled = !predictive.disagree || c.processes() >= rule.max_processes;
  if (c.lower() - figures.shortfall > threshold && c.processes() >= rule.min_processes && settled &&
      coverage.untimed.empty()) {
    c.set_result(v1::FASTER);
  } else if (c.upper() < -threshold) {
    c.set_result(v1::SLOWER);
  } else if (c.lower() > -threshold && c.upper() < threshold) {
    c.set_result(v1::SAME);
  } else {
    c.set_result(v1::UNCLEAR);
  }
  c.set_reason(Reason(c, figures, predictive.disagree, coverage, rule));
  return c;
}

double SureBelow(const v1::ProcessNoise& noise, const KeepRule& rule) {
  const PairBatch equal{std::vector<double>(static_cast<size_t>(std::max(rule.sure_pairs, 2)))};
  return -std::log1p(rule.min_gain) - ReachOf(PredictiveOf(FiguresOf({&equal, 1}, rule), Known(noise), rule), rule);
}

bool SurelySlower(std::span<const double> log_ratios, const v1::ProcessNoise& noise, const KeepRule& rule) {
  if (rule.sure_pairs == 0 || log_ratios.size() < static_cast<size_t>(rule.sure_pairs)) return false;
  const double below = SureBelow(noise, rule);
  return std::all_of(log_ratios.begin(), log_ratios.end(), [&](double r) { return r < below; });
}

std::vector<size_t> WantMorePairs(std::span<const SizePairs> sizes, const v1::ProcessNoise& noise,
                                  const KeepRule& rule) {
  const v1::Comparison c = CompareSizes(sizes, noise, rule);
  const Coverage coverage = CoverageOf(sizes);
  const bool looks_faster = c.lower() > std::log1p(rule.min_gain);
  if (c.result() != v1::UNCLEAR || looks_faster || c.discarded() >= rule.max_discarded * std::max(1, coverage.timed) ||
      coverage.processes != 1 || !coverage.untimed.empty()) {
    return {};
  }
  std::vector<size_t> more;
  const double all = PredictiveOf(FiguresOf(sizes, 1, rule), Known(noise), rule).variance.value;
  double removed = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const int pairs = static_cast<int>(sizes[i].processes[0].log_ratios.size());
    if (pairs < rule.first_pairs || pairs >= rule.extended_pairs) continue;
    const double by_pairs =
        sizes[i].weight * sizes[i].weight * FiguresOf(std::span(sizes[i].processes).first(1), rule).further_pairs.value;
    const double of_this = by_pairs * (1 - static_cast<double>(pairs) / rule.extended_pairs);
    removed += of_this;
    if (of_this > kWorthExtending * all / static_cast<double>(sizes.size())) more.push_back(i);
  }
  if (removed <= kWorthExtending * all) more.clear();
  return more;
}

bool SurelyBelow(const SizePairs& size, double worst, const v1::ProcessNoise& noise, const KeepRule& rule) {
  if (!(worst > 0) || size.processes.empty()) return false;
  const v1::Comparison c = Compare(size.processes, noise, rule);
  return c.upper() < std::log(worst);
}

bool WantsProcess(const v1::Comparison& c, const KeepRule& rule, size_t sizes) {
  if (c.discarded() >= rule.max_discarded * static_cast<int>(sizes) || c.pairs() < rule.first_pairs ||
      c.processes() >= rule.max_processes) {
    return false;
  }
  return c.result() == v1::UNCLEAR && c.mean_log_ratio() > std::log1p(rule.min_gain);
}

v1::Comparison MeanInterval(std::span<const double> log_ratios, double confidence) {
  v1::Comparison interval;
  const auto n = static_cast<int>(log_ratios.size());
  if (!std::all_of(log_ratios.begin(), log_ratios.end(), [](double r) { return std::isfinite(r); })) {
    interval.set_result(v1::UNCLEAR);
    return interval;
  }
  interval.set_pairs(n);
  double sum = 0;
  for (const double ratio : log_ratios) sum += ratio;
  const double mean = n > 0 ? sum / n : 0;
  interval.set_mean_log_ratio(mean);
  interval.set_lower(mean);
  interval.set_upper(mean);
  if (n < 2) {
    interval.set_result(v1::UNCLEAR);
    return interval;
  }
  double squares = 0;
  for (const double ratio : log_ratios) squares += (ratio - mean) * (ratio - mean);
  const double reach =
      boost::math::quantile(boost::math::students_t(n - 1), (1 + confidence) / 2) * std::sqrt(squares / (n - 1) / n);
  interval.set_lower(mean - reach);
  interval.set_upper(mean + reach);
  return interval;
}

}  // namespace pawl
