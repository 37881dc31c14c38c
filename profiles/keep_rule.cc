#include "profiles/keep_rule.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace pawl {
namespace {

double Percent(double log_ratio) { return 100 * std::expm1(log_ratio); }

std::string Bounds(const v1::Comparison& c, const KeepRule& rule) {
  return absl::StrFormat("%+.2f %% (%g %% bounds %+.2f %% to %+.2f %%, %d pairs)", Percent(c.mean_log_ratio()),
                         100 * rule.confidence, Percent(c.lower()), Percent(c.upper()), c.pairs());
}

std::string Reason(const v1::Comparison& c, const KeepRule& rule) {
  const std::string gain = absl::StrFormat("%g %%", 100 * rule.min_gain);
  switch (c.result()) {
    case v1::FASTER:
      return absl::StrCat("Faster: speed ", Bounds(c, rule), "; the lower bound is above +", gain);
    case v1::SLOWER:
      return absl::StrCat("Slower: speed ", Bounds(c, rule), "; the upper bound is below -", gain);
    case v1::SAME:
      return absl::StrCat("The same: speed ", Bounds(c, rule), "; both bounds lie within ", gain);
    default:
      return absl::StrCat("Unclear: speed ", Bounds(c, rule), "; the bounds include +", gain, " or -", gain);
  }
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

v1::Comparison Compare(std::span<const double> log_ratios, int discarded, const KeepRule& rule) {
  v1::Comparison c;
  const int n = static_cast<int>(log_ratios.size());
  c.set_pairs(n);
  c.set_discarded(discarded);
  if (!std::all_of(log_ratios.begin(), log_ratios.end(), [](double r) { return std::isfinite(r); })) {
    return Unclear(c, "Unclear: the time of a pair is not a positive number");
  }
  double sum = 0;
  for (double r : log_ratios) sum += r;
  const double mean = n > 0 ? sum / n : 0;
  c.set_mean_log_ratio(mean);
  if (discarded >= rule.max_discarded) {
    return Unclear(c,
                   absl::StrFormat("Unclear: %d pairs were discarded because clocks or throttling changed during them; "
                                   "let the GPU cool down, or stop other work on it",
                                   discarded));
  }
  if (n < std::max(rule.first_pairs, 2)) {
    return Unclear(c, absl::StrFormat("Unclear: only %d pairs were measured; a comparison needs %d", n,
                                      std::max(rule.first_pairs, 2)));
  }
  double squares = 0;
  for (double r : log_ratios) squares += (r - mean) * (r - mean);
  const double error = std::sqrt(squares / (n - 1) / n);
  const double reach = boost::math::quantile(boost::math::students_t(n - 1), rule.confidence) * error;
  c.set_lower(mean - reach);
  c.set_upper(mean + reach);

  const double threshold = std::log1p(rule.min_gain);
  if (c.lower() > threshold) {
    c.set_result(v1::FASTER);
  } else if (c.upper() < -threshold) {
    c.set_result(v1::SLOWER);
  } else if (c.lower() > -threshold && c.upper() < threshold) {
    c.set_result(v1::SAME);
  } else {
    c.set_result(v1::UNCLEAR);
  }
  c.set_reason(Reason(c, rule));
  return c;
}

bool WantsMorePairs(const v1::Comparison& c, const KeepRule& rule) {
  return c.result() == v1::UNCLEAR && c.discarded() < rule.max_discarded && c.pairs() < rule.extended_pairs;
}

v1::Comparison Confirm(const v1::Comparison& first, const v1::Comparison& fresh, const KeepRule& rule) {
  if (first.result() != v1::FASTER) return first;
  v1::Comparison c = fresh;
  if (fresh.result() == v1::FASTER) {
    c.set_reason(absl::StrCat("Faster, confirmed in a second process: ", Bounds(fresh, rule), " after ",
                              Bounds(first, rule), " in the first"));
    return c;
  }
  return Unclear(std::move(c),
                 absl::StrCat("Unclear: ", Bounds(first, rule),
                              " in the first process, not confirmed in a second process. ", fresh.reason()));
}

std::optional<std::string> ParentDrift(double stored_us, double measured_us, const KeepRule& rule) {
  if (!(stored_us > 0)) return std::nullopt;
  const double drift = measured_us / stored_us - 1;
  if (std::abs(drift) <= rule.max_parent_drift) return std::nullopt;
  return absl::StrFormat(
      "the parent took %.3f us next to this candidate, but %.3f us is stored for it (%+.1f %%, limit %g %%): a second "
      "process decides",
      measured_us, stored_us, 100 * drift, 100 * rule.max_parent_drift);
}

}  // namespace pawl
