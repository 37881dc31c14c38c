#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pawl {

// How often something took how long. Not thread-safe.
class LatencyHistogram {
 public:
  static constexpr std::array kBounds = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                         0.1,    0.25,  0.5,    1.0,   2.5,  5.0,   10.0};  // seconds

  void Observe(double seconds);

  // Of those up to each bound, and then of all.
  std::array<int64_t, kBounds.size() + 1> Cumulative() const;
  double sum() const { return sum_; }

 private:
  std::array<int64_t, kBounds.size() + 1> counts_ = {};
  double sum_ = 0;
};

// Labels that others choose (authors, GPUs) must not be without number: so many have an entry of their own, the rest is
// "other".
constexpr size_t kMostNames = 500;
template <typename Value>
std::string NameOrOther(const std::map<std::string, Value>& by_name, const std::string& name) {
  return by_name.contains(name) || by_name.size() < kMostNames ? name : "other";
}
template <typename Value>
Value& NamedEntry(std::map<std::string, Value>& by_name, const std::string& name) {
  return by_name[NameOrOther(by_name, name)];
}

// Text of Prometheus' exposition format (0.0.4), family by family. Not thread-safe.
class Exposition {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;

  // What the samples that follow are of. `kind`: counter, gauge or histogram.
  void Family(std::string_view name, std::string_view kind, std::string_view help);
  void Sample(const Labels& labels, double value);
  void Histogram(const Labels& labels, const LatencyHistogram& histogram);

  const std::string& text() const { return text_; }

 private:
  void Line(std::string_view suffix, const Labels& labels, std::string_view value);

  std::string name_;
  std::string text_;
};

}  // namespace pawl
