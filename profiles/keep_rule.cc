#include "profiles/keep_rule.h"

#include <algorithm>
#include <boost/math/distributions/fisher_f.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
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

Variance Scaled(const Variance& variance, double by) { return {variance.value * by, variance.degrees}; }

// What the pairs of a comparison say before they are judged.
struct Figures {
  std::vector<double> means;  // of the processes
  double mean = 0;            // of these
  Variance pairs;             // within a process
  double pairs_share = 0;     // of `pairs` in the variance of a process's mean: the mean of 1 / pairs
  double most_pairs = 0;      // of a process
};

Figures FiguresOf(std::span<const PairBatch> processes) {
  Figures figures;
  double squares = 0, degrees = 0;
  for (const PairBatch& process : processes) {
    const double n = static_cast<double>(process.log_ratios.size());
    double sum = 0;
    for (const double r : process.log_ratios) sum += r;
    const double mean = sum / n;
    for (const double r : process.log_ratios) squares += (r - mean) * (r - mean);
    figures.means.push_back(mean);
    figures.mean += mean / static_cast<double>(processes.size());
    figures.pairs_share += 1 / n / static_cast<double>(processes.size());
    figures.most_pairs = std::max(figures.most_pairs, n);
    degrees += n - 1;
  }
  figures.pairs = {squares / degrees, degrees};
  return figures;
}

v1::ProcessNoise Known(const v1::ProcessNoise& noise) {
  return noise.variance() > 0 && noise.degrees() > 0 ? noise : UnknownNoise();
}

struct Spread {
  Variance further;       // of a further process's mean about the mean of these
  double pairs_part = 0;  // of that variance
  bool disagree = false;  // the processes differ by more than the noise explains
};

Spread SpreadOf(const Figures& figures, const v1::ProcessNoise& known, const KeepRule& rule) {
  const double k = static_cast<double>(figures.means.size());
  const Variance by_pairs = Scaled(figures.pairs, figures.pairs_share);
  Variance process = {known.variance(), known.degrees()};
  Spread spread;
  if (k > 1) {
    double squares = 0;
    for (const double mean : figures.means) squares += (mean - figures.mean) * (mean - figures.mean);
    const Variance own = {squares / (k - 1), k - 1};
    const Variance expected = Sum(process, by_pairs);
    const boost::math::fisher_f_distribution<double, Policy> distribution(own.degrees, expected.degrees);
    spread.disagree = boost::math::cdf(distribution, own.value / expected.value) > rule.disagreement;
    if (spread.disagree && figures.means.size() >= static_cast<size_t>(rule.max_processes)) {
      spread.further = Scaled(own, 1 + 1 / k);
      return spread;
    }
    const double beyond_pairs = std::max(0.0, own.value - by_pairs.value);
    process = {(process.value * process.degrees + beyond_pairs * own.degrees) / (process.degrees + own.degrees),
               process.degrees + own.degrees};
  }
  const Variance pairs = Scaled(figures.pairs, 1 / figures.most_pairs + figures.pairs_share / k);
  spread.further = Sum(Scaled(process, 1 + 1 / k), pairs);
  spread.pairs_part = pairs.value;
  return spread;
}

std::string Interval(const v1::Comparison& c, const KeepRule& rule) {
  return absl::StrFormat("%+.2f %% (%g %% of further measurements lie between %+.2f %% and %+.2f %%; %s, %s)",
                         Percent(c.mean_log_ratio()), 100 * rule.confidence, Percent(c.lower()), Percent(c.upper()),
                         Counted(c.processes(), "process", "processes"), Counted(c.pairs(), "pair", "pairs"));
}

std::string Reason(const v1::Comparison& c, const Figures& figures, bool disagree, const KeepRule& rule) {
  const std::string interval = Interval(c, rule);
  const std::string gain = absl::StrFormat("%g %%", 100 * rule.min_gain);
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
    return absl::StrCat("Unclear: ", interval, "; not confirmed in a second process");
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

v1::ProcessNoise UnknownNoise() {
  v1::ProcessNoise noise;
  noise.set_variance(0.005 * 0.005);
  noise.set_degrees(10);
  noise.set_anchor_variance(0.01 * 0.01);
  noise.set_anchor_degrees(10);
  return noise;
}

v1::Comparison Compare(std::span<const PairBatch> processes, const v1::ProcessNoise& noise, const KeepRule& rule) {
  v1::Comparison c;
  c.set_processes(static_cast<int>(processes.size()));
  const int needed = std::max(rule.first_pairs, 2);
  int fewest = processes.empty() ? 0 : static_cast<int>(processes[0].log_ratios.size());
  bool finite = true;
  for (const PairBatch& process : processes) {
    const int pairs = static_cast<int>(process.log_ratios.size());
    c.set_pairs(c.pairs() + pairs);
    c.set_discarded(c.discarded() + process.discarded);
    fewest = std::min(fewest, pairs);
    for (const double r : process.log_ratios) finite = finite && std::isfinite(r);
  }
  if (!finite) return Unclear(c, "Unclear: the time of a pair is not a positive number");
  if (fewest > 0) c.set_mean_log_ratio(FiguresOf(processes).mean);
  if (c.discarded() >= rule.max_discarded) {
    return Unclear(c,
                   absl::StrFormat("Unclear: %d pairs were discarded because clocks or throttling changed during them; "
                                   "let the GPU cool down, or stop other work on it",
                                   c.discarded()));
  }
  if (fewest < needed) {
    return Unclear(c, absl::StrFormat("Unclear: only %s measured; a comparison needs %d",
                                      fewest == 1 ? "1 pair was" : absl::StrCat(fewest, " pairs were"), needed));
  }
  const Figures figures = FiguresOf(processes);
  const Spread spread = SpreadOf(figures, Known(noise), rule);
  const boost::math::students_t_distribution<double, Policy> distribution(spread.further.degrees);
  const double reach = boost::math::quantile(distribution, (1 + rule.confidence) / 2) * std::sqrt(spread.further.value);
  c.set_lower(figures.mean - reach);
  c.set_upper(figures.mean + reach);

  const double threshold = std::log1p(rule.min_gain);
  const bool settled = !spread.disagree || c.processes() >= rule.max_processes;
  if (c.lower() > threshold && c.processes() >= rule.min_processes && settled) {
    c.set_result(v1::FASTER);
  } else if (c.upper() < -threshold) {
    c.set_result(v1::SLOWER);
  } else if (c.lower() > -threshold && c.upper() < threshold) {
    c.set_result(v1::SAME);
  } else {
    c.set_result(v1::UNCLEAR);
  }
  c.set_reason(Reason(c, figures, spread.disagree, rule));
  return c;
}

bool WantsMorePairs(const PairBatch& first, const v1::ProcessNoise& noise, const KeepRule& rule) {
  const v1::Comparison c = Compare({&first, 1}, noise, rule);
  const bool looks_faster = c.lower() > std::log1p(rule.min_gain);
  if (c.result() != v1::UNCLEAR || looks_faster || c.discarded() >= rule.max_discarded ||
      c.pairs() < rule.first_pairs || c.pairs() >= rule.extended_pairs) {
    return false;
  }
  const Spread spread = SpreadOf(FiguresOf({&first, 1}), Known(noise), rule);
  const double removed = spread.pairs_part * (1 - static_cast<double>(c.pairs()) / rule.extended_pairs);
  return removed > kWorthExtending * spread.further.value;
}

bool WantsProcess(const v1::Comparison& c, const KeepRule& rule) {
  if (c.discarded() >= rule.max_discarded || c.pairs() < rule.first_pairs || c.processes() >= rule.max_processes) {
    return false;
  }
  return c.result() == v1::UNCLEAR && c.mean_log_ratio() > std::log1p(rule.min_gain);
}

}  // namespace pawl
