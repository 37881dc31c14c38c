#include "kernels/hidden_sizes.h"

#include <algorithm>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"

namespace pawl {
namespace {

// SplitMix64: the standard library's distributions differ between libraries, and a seed must mean the same everywhere.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  int64_t Between(int64_t low, int64_t high) {
    state_ += 0x9e3779b97f4a7c15;
    uint64_t z = state_;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return low + static_cast<int64_t>((z ^ z >> 31) % static_cast<uint64_t>(high - low + 1));
  }

 private:
  uint64_t state_;
};

bool IsPrime(int64_t n) {
  if (n < 2) return false;
  for (int64_t d = 2; d * d <= n; ++d) {
    if (n % d == 0) return false;
  }
  return true;
}

// Gaps between primes below 2^31 are under 300, so the search is short.
int64_t Prime(int64_t low, int64_t high, Random& random) {
  const int64_t first = random.Between(low, high);
  for (int64_t n = first; n <= high; ++n) {
    if (IsPrime(n)) return n;
  }
  for (int64_t n = first - 1; n >= low; --n) {
    if (IsPrime(n)) return n;
  }
  return first;
}

int64_t BesideAMultiple(int64_t low, int64_t high, const std::vector<int64_t>& steps, Random& random) {
  const int64_t step = steps[random.Between(0, static_cast<int64_t>(steps.size()) - 1)];
  const int64_t multiple = std::max(step, random.Between(low, high) / step * step);
  const int64_t beside = multiple + (random.Between(0, 1) == 0 ? -1 : 1);
  return std::clamp(beside, low, high);
}

const v1::Size& Smallest(const v1::Bundle& bundle) {
  const auto volume = [](const v1::Size& size) {
    double product = 1;
    for (const auto& [name, value] : size.values()) product *= value;
    return product;
  };
  return *std::min_element(bundle.sizes().begin(), bundle.sizes().end(),
                           [&](const v1::Size& a, const v1::Size& b) { return volume(a) < volume(b); });
}

}  // namespace

std::vector<v1::Size> HiddenSizes(const v1::Bundle& bundle, uint64_t seed) {
  if (bundle.hidden().empty() || bundle.sizes().empty()) return {};
  std::vector<int64_t> steps = {8, 16, 32, 64, 128};
  for (const v1::Variable& variable : bundle.variables()) {
    for (int32_t value : variable.values()) {
      if (value >= 4 && value <= 4096) steps.push_back(value);
    }
  }
  const std::map<std::string, v1::HiddenRange> ranges(bundle.hidden().begin(), bundle.hidden().end());
  Random random(seed);
  std::vector<v1::Size> sizes;
  for (const bool prime : {true, false}) {
    v1::Size& size = sizes.emplace_back(Smallest(bundle));
    std::string name = "hidden";
    for (const auto& [dimension, range] : ranges) {
      const int64_t low = range.low(), high = std::max<int64_t>(range.low(), range.high());
      const int64_t value = prime ? Prime(low, high, random) : BesideAMultiple(low, high, steps, random);
      (*size.mutable_values())[dimension] = static_cast<int32_t>(value);
      absl::StrAppend(&name, " ", dimension, "=", value);
    }
    size.set_name(name);
  }
  return sizes;
}

}  // namespace pawl
