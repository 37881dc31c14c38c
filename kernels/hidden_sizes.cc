#include "kernels/hidden_sizes.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

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

bool IsPowerOfTwo(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

// The values of one dimension: multiples of `step` from `low` to `high`, both of them multiples.
struct HiddenValues {
  int64_t low, high, step;

  int64_t Any(Random& random) const { return random.Between(low / step, high / step) * step; }

  // One that satisfies the predicate: the next one above a random value, or below it. Any, where none is near.
  template <typename Predicate>
  int64_t Near(Predicate predicate, Random& random) const {
    constexpr int64_t kSteps = 4096;  // gaps between primes below 2^31 are under 300
    const int64_t first = Any(random);
    for (int64_t i = 0, n = first; i < kSteps && n <= high; ++i, n += step) {
      if (predicate(n)) return n;
    }
    for (int64_t i = 0, n = first; i < kSteps && n >= low; ++i, n -= step) {
      if (predicate(n)) return n;
    }
    return first;
  }

  int64_t PowerOfTwo(Random& random) const {
    std::vector<int64_t> powers;
    for (int64_t n = 1; n <= high; n *= 2) {
      if (n >= low && n % step == 0) powers.push_back(n);
    }
    if (powers.empty()) return Any(random);
    // 1 is the lowest value already, where it is allowed.
    const int64_t first = powers.size() > 1 && powers[0] == 1 ? 1 : 0;
    return powers[random.Between(first, static_cast<int64_t>(powers.size()) - 1)];
  }
};

HiddenValues HiddenValuesOf(const v1::HiddenRange& range) {
  const int64_t step = std::max(1, range.multiple());
  const int64_t low = (range.low() + step - 1) / step * step;
  return {low, std::max(low, range.high() / step * step), step};
}

enum class Kind {
  kLowest,
  kHighest,
  kPowerOfTwo,
  kPrime,
  kMultipleOf16,
  kBesideATile,
  kTwiceOdd,
  kFourTimesOdd,
  kEightTimesOdd,
  kAny,
};
constexpr Kind kMixed[] = {Kind::kPowerOfTwo, Kind::kPrime, Kind::kMultipleOf16, Kind::kBesideATile};
constexpr int kKinds = static_cast<int>(Kind::kAny) + 1;

int64_t Draw(Kind kind, const HiddenValues& values, const std::vector<int64_t>& tiles, Random& random) {
  const auto odd_times = [&](int64_t factor) {
    return values.Near([&](int64_t n) { return n % factor == 0 && n / factor % 2 == 1; }, random);
  };
  switch (kind) {
    case Kind::kLowest:
      return values.low;
    case Kind::kHighest:
      return values.high;
    case Kind::kPowerOfTwo:
      return values.PowerOfTwo(random);
    case Kind::kPrime:
      return values.Near([](int64_t n) { return n > 2 && IsPrime(n); }, random);
    case Kind::kMultipleOf16:
      return values.Near([](int64_t n) { return n % 16 == 0 && !IsPowerOfTwo(n); }, random);
    case Kind::kBesideATile: {
      const int64_t tile = tiles[random.Between(0, static_cast<int64_t>(tiles.size()) - 1)];
      const int64_t beside = random.Between(0, 1) == 0 ? 1 : tile - 1;
      return values.Near([&](int64_t n) { return n > 1 && n % tile == beside; }, random);
    }
    case Kind::kTwiceOdd:
      return odd_times(2);
    case Kind::kFourTimesOdd:
      return odd_times(4);
    case Kind::kEightTimesOdd:
      return odd_times(8);
    case Kind::kAny:
      break;
  }
  return values.Any(random);
}

double Volume(const v1::Size& size) {
  double product = 1;
  for (const auto& [name, value] : size.values()) product *= value;
  return product;
}

const v1::Size& Smallest(const v1::Bundle& bundle) {
  return *std::min_element(bundle.sizes().begin(), bundle.sizes().end(),
                           [](const v1::Size& a, const v1::Size& b) { return Volume(a) < Volume(b); });
}

}  // namespace

std::vector<v1::Size> HiddenSizes(const v1::Bundle& bundle, uint64_t seed, int count) {
  if (bundle.hidden().empty() || bundle.sizes().empty()) return {};
  std::vector<int64_t> tiles = {8, 16, 32, 64, 128};
  for (const v1::Variable& variable : bundle.variables()) {
    for (int32_t value : variable.values()) {
      if (value >= 4 && value <= 4096) tiles.push_back(value);
    }
  }
  Random random(seed);
  std::vector<v1::Size> sizes(count, Smallest(bundle));
  std::vector<std::string> names(count, "hidden");
  const std::map<std::string, v1::HiddenRange> ranges(bundle.hidden().begin(), bundle.hidden().end());
  for (const auto& [dimension, range] : ranges) {
    std::vector<Kind> kinds = {Kind::kLowest, Kind::kHighest};
    std::vector<Kind> mixed(std::begin(kMixed), std::end(kMixed));
    while (!mixed.empty()) {
      const auto chosen = mixed.begin() + random.Between(0, static_cast<int64_t>(mixed.size()) - 1);
      kinds.push_back(*chosen);
      mixed.erase(chosen);
    }
    const HiddenValues values = HiddenValuesOf(range);
    for (size_t i = 0; i < sizes.size(); ++i) {
      const Kind kind = i < kinds.size() ? kinds[i] : static_cast<Kind>(random.Between(0, kKinds - 1));
      const int64_t value = Draw(kind, values, tiles, random);
      (*sizes[i].mutable_values())[dimension] = static_cast<int32_t>(value);
      absl::StrAppend(&names[i], " ", dimension, "=", value);
    }
  }
  for (size_t i = 0; i < sizes.size(); ++i) sizes[i].set_name(names[i]);
  std::sort(sizes.begin(), sizes.end(), [](const v1::Size& a, const v1::Size& b) {
    return std::pair(Volume(a), a.name()) < std::pair(Volume(b), b.name());
  });
  const auto same = [](const v1::Size& a, const v1::Size& b) { return a.name() == b.name(); };
  sizes.erase(std::unique(sizes.begin(), sizes.end(), same), sizes.end());
  return sizes;
}

}  // namespace pawl
