#include "orchestrator/meters/exposition.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "base/names/utf8.h"

namespace pawl {

void LatencyHistogram::Observe(double seconds) {
  const auto bucket = std::lower_bound(kBounds.begin(), kBounds.end(), seconds) - kBounds.begin();
  ++counts_[static_cast<size_t>(bucket)];
  sum_ += seconds;
}

std::array<int64_t, LatencyHistogram::kBounds.size() + 1> LatencyHistogram::Cumulative() const {
  auto cumulative = counts_;
  for (size_t i = 1; i < cumulative.size(); ++i) cumulative[i] += cumulative[i - 1];
  return cumulative;
}

void Exposition::Family(std::string_view name, std::string_view kind, std::string_view help) {
  name_ = std::string(name);
  absl::StrAppend(&text_, "# HELP ", name_, " ", std::string(help), "\n# TYPE ", name_, " ", std::string(kind), "\n");
}

void Exposition::Sample(const Labels& labels, double value) { Line("", labels, absl::StrFormat("%.15g", value)); }

void Exposition::Histogram(const Labels& labels, const LatencyHistogram& histogram) {
  const auto cumulative = histogram.Cumulative();
  for (size_t i = 0; i < cumulative.size(); ++i) {
    const bool last = i == LatencyHistogram::kBounds.size();
    Labels with_bound = labels;
    with_bound.emplace_back("le", last ? "+Inf" : absl::StrFormat("%g", LatencyHistogram::kBounds[i]));
    Line("_bucket", with_bound, absl::StrCat(cumulative[i]));
  }
  Line("_sum", labels, absl::StrFormat("%.15g", histogram.sum()));
  Line("_count", labels, absl::StrCat(cumulative.back()));
}

void Exposition::Line(std::string_view suffix, const Labels& labels, std::string_view value) {
  absl::StrAppend(&text_, name_, std::string(suffix));
  char before = '{';
  for (const auto& [name, text] : labels) {
    const std::string escaped = absl::StrReplaceAll(ValidUtf8(text), {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}});
    absl::StrAppend(&text_, std::string(1, before), name, "=\"", escaped, "\"");
    before = ',';
  }
  absl::StrAppend(&text_, labels.empty() ? " " : "} ", std::string(value), "\n");
}

}  // namespace pawl
