#include "kernels/hidden_sizes.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
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

  // Of every magnitude: half of them are uniform, the others' logarithms are.
  int64_t Any(Random& random) const {
    const int64_t first = std::max<int64_t>(1, low / step), last = high / step;
    if (last <= first || random.Between(0, 1) == 0) return random.Between(low / step, last) * step;
    constexpr int64_t kParts = 1 << 20;
    const double share = static_cast<double>(random.Between(0, kParts)) / kParts;
    const double drawn = first * std::exp(share * std::log(static_cast<double>(last + 1) / first));
    return std::clamp(static_cast<int64_t>(drawn), first, last) * step;
  }

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

  // None that the ladder has, where there are others: a kernel may be right for those alone.
  int64_t PowerOfTwo(const std::set<int64_t>& ladder, Random& random) const {
    std::vector<int64_t> powers, others;
    for (int64_t n = 1; n <= high; n *= 2) {
      if (n < low || n % step != 0) continue;
      powers.push_back(n);
      if (n > 1 && !ladder.contains(n)) others.push_back(n);  // 1 is the lowest value already
    }
    if (!others.empty()) powers = others;
    return powers.empty() ? Any(random) : powers[random.Between(0, static_cast<int64_t>(powers.size()) - 1)];
  }

  HiddenValues UpperHalf() const { return {low + (high - low) / 2 / step * step, high, step}; }
};

HiddenValues HiddenValuesOf(const v1::HiddenRange& range) {
  const int64_t step = std::max(1, range.multiple());
  const int64_t low = (range.low() + step - 1) / step * step;
  return {low, std::max(low, range.high() / step * step), step};
}

enum class Kind {
  kLowest,
  kHighest,
  kEqual,  // in all dimensions, as far as they have values in common
  kPowerOfTwo,
  kPrime,
  kTwiceOdd,
  kMultipleOf16,  // in the upper half of the range, beyond most tiles
  kBesideATile,
  kFourTimesOdd,
  kEightTimesOdd,
  kNextToLowest,
  kNextToHighest,
  kMultipleOfATile,
  kAny,
};
// Those that come together in all dimensions, and those that are combined at random: of every trial, and of what is
// about to be kept.
constexpr Kind kTogether[] = {Kind::kLowest, Kind::kHighest, Kind::kEqual};
constexpr Kind kMixed[] = {Kind::kPowerOfTwo, Kind::kPrime, Kind::kTwiceOdd, Kind::kMultipleOf16, Kind::kBesideATile};
constexpr Kind kMoreTogether[] = {Kind::kEqual, Kind::kNextToLowest, Kind::kNextToHighest};
constexpr Kind kMoreMixed[] = {Kind::kFourTimesOdd,    Kind::kEightTimesOdd, Kind::kPowerOfTwo, Kind::kBesideATile,
                               Kind::kMultipleOfATile, Kind::kAny,           Kind::kAny};
// Of a dimension that is small where others are large: the lowest as often as not.
constexpr Kind kFew[] = {Kind::kLowest, Kind::kLowest, Kind::kPrime, Kind::kBesideATile};
static_assert(std::size(kTogether) + std::size(kMixed) == kHiddenSizes);
static_assert(std::size(kMoreTogether) + std::size(kMoreMixed) == kMoreHiddenSizes);

struct Dimension {
  HiddenValues values;
  std::set<int64_t> ladder;  // what the bundle's own sizes have
  int64_t equal;             // for this draw
};

int64_t Draw(Kind kind, const Dimension& dimension, const std::vector<int64_t>& tiles, Random& random) {
  const HiddenValues& values = dimension.values;
  const auto odd_times = [&](int64_t factor) {
    return values.Near([&](int64_t n) { return n % factor == 0 && n / factor % 2 == 1; }, random);
  };
  const int64_t tile = tiles[random.Between(0, static_cast<int64_t>(tiles.size()) - 1)];
  switch (kind) {
    case Kind::kLowest:
      return values.low;
    case Kind::kHighest:
      return values.high;
    case Kind::kEqual:
      return dimension.equal;
    case Kind::kPowerOfTwo:
      return values.PowerOfTwo(dimension.ladder, random);
    case Kind::kPrime:
      return values.Near([](int64_t n) { return n > 2 && IsPrime(n); }, random);
    case Kind::kTwiceOdd:
      return odd_times(2);
    case Kind::kMultipleOf16:
      return values.UpperHalf().Near([](int64_t n) { return n % 16 == 0 && !IsPowerOfTwo(n); }, random);
    case Kind::kBesideATile: {
      const int64_t beside = random.Between(0, 1) == 0 ? 1 : tile - 1;
      return values.Near([&](int64_t n) { return n > 1 && n % tile == beside; }, random);
    }
    case Kind::kFourTimesOdd:
      return odd_times(4);
    case Kind::kEightTimesOdd:
      return odd_times(8);
    case Kind::kNextToLowest:
      return std::min(values.low + values.step, values.high);
    case Kind::kNextToHighest:
      return std::max(values.high - values.step, values.low);
    case Kind::kMultipleOfATile:
      return values.Near([&](int64_t n) { return n % tile == 0 && !dimension.ladder.contains(n); }, random);
    case Kind::kAny:
      break;
  }
  return values.Any(random);
}

// A value that all dimensions have, a prime where there is one; nothing where they have none in common.
std::optional<int64_t> InCommon(const std::map<std::string, Dimension>& dimensions, Random& random) {
  HiddenValues common = {1, std::numeric_limits<int32_t>::max(), 1};
  for (const auto& [name, dimension] : dimensions) {
    common.low = std::max(common.low, dimension.values.low);
    common.high = std::min(common.high, dimension.values.high);
    common.step = std::lcm(common.step, dimension.values.step);
  }
  common.low = (common.low + common.step - 1) / common.step * common.step;
  common.high = common.high / common.step * common.step;
  if (common.low > common.high) return std::nullopt;
  return common.Near([](int64_t n) { return n > 2 && IsPrime(n); }, random);
}

// The kinds of one dimension: those that come together first, in their order, then the others in any.
std::vector<Kind> KindsOf(bool more, Random& random) {
  std::vector<Kind> kinds, mixed;
  if (more) {
    kinds.assign(std::begin(kMoreTogether), std::end(kMoreTogether));
    mixed.assign(std::begin(kMoreMixed), std::end(kMoreMixed));
  } else {
    kinds.assign(std::begin(kTogether), std::end(kTogether));
    mixed.assign(std::begin(kMixed), std::end(kMixed));
  }
  while (!mixed.empty()) {
    const auto chosen = mixed.begin() + random.Between(0, static_cast<int64_t>(mixed.size()) - 1);
    kinds.push_back(*chosen);
    mixed.erase(chosen);
  }
  return kinds;
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

std::vector<int64_t> TilesOf(const v1::Bundle& bundle) {
  std::vector<int64_t> tiles = {8, 16, 32, 64, 128};
  for (const v1::Variable& variable : bundle.variables()) {
    for (int32_t value : variable.values()) {
      if (value >= 4 && value <= 4096) tiles.push_back(value);
    }
  }
  return tiles;
}

std::vector<v1::Size> DrawSizes(const v1::Bundle& bundle, uint64_t seed, bool more) {
  if (bundle.hidden().empty() || bundle.sizes().empty()) return {};
  const std::vector<int64_t> tiles = TilesOf(bundle);
  Random random(seed);
  std::map<std::string, Dimension> dimensions;
  for (const auto& [name, range] : bundle.hidden()) {
    Dimension& dimension = dimensions[name];
    dimension.values = HiddenValuesOf(range);
    for (const v1::Size& size : bundle.sizes()) {
      const auto value = size.values().find(name);
      if (value != size.values().end()) dimension.ladder.insert(value->second);
    }
  }
  const std::optional<int64_t> common = InCommon(dimensions, random);
  std::vector<v1::Size> sizes(more ? kMoreHiddenSizes : kHiddenSizes, Smallest(bundle));
  std::vector<std::string> names(sizes.size(), "hidden");
  for (auto& [name, dimension] : dimensions) {
    dimension.equal = common ? *common : dimension.values.Any(random);
    const std::vector<Kind> kinds = KindsOf(more, random);
    for (size_t i = 0; i < sizes.size(); ++i) {
      const int64_t value = Draw(kinds[i], dimension, tiles, random);
      (*sizes[i].mutable_values())[name] = static_cast<int32_t>(value);
      absl::StrAppend(&names[i], " ", name, "=", value);
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

// At most `most` of them, the lowest and the highest first.
std::vector<int64_t> SpreadValues(const HiddenValues& values, int64_t most) {
  const int64_t last = (values.high - values.low) / values.step;
  std::vector<int64_t> steps = {0, last};
  for (int64_t i = 1; i < most / 2; ++i) steps.push_back(i);
  for (int64_t i = 1; i < most / 4; ++i) steps.push_back(last - i);
  for (int64_t i = 1; i < most / 4; ++i) steps.push_back(last * i / (most / 4));
  std::vector<int64_t> spread;
  for (const int64_t step : steps) {
    const int64_t value = values.low + step * values.step;
    const bool inside = step >= 0 && step <= last;
    if (inside && std::find(spread.begin(), spread.end(), value) == spread.end()) spread.push_back(value);
  }
  return spread;
}

// A smaller value for each [hidden] dimension of the size that is above its range, of the value, the highest of the
// range and its step. Nothing where no dimension is, or none has a value between.
template <typename Less>
std::optional<v1::Size> BelowSize(const v1::Bundle& bundle, const v1::Size& size, const Less& less_than) {
  v1::Size below = size;
  std::string name = absl::StrCat("beside ", size.name());
  bool differs = false;
  const std::map<std::string, v1::HiddenRange> ranges(bundle.hidden().begin(), bundle.hidden().end());
  for (const auto& [dimension, range] : ranges) {
    const auto value = size.values().find(dimension);
    if (value == size.values().end() || value->second <= range.high()) continue;
    const int64_t less = less_than(value->second, range.high(), std::max(1, range.multiple()));
    if (less <= range.high() || less >= value->second) continue;
    (*below.mutable_values())[dimension] = static_cast<int32_t>(less);
    absl::StrAppend(&name, " ", dimension, "=", less);
    differs = true;
  }
  if (!differs) return std::nullopt;
  below.set_name(name);
  return below;
}

bool IsAbove(const v1::Size& size, const std::string& dimension, const v1::HiddenRange& range) {
  const auto value = size.values().find(dimension);
  return value != size.values().end() && value->second > range.high();
}

// The hidden values that are less than the size's; nothing where there are none.
std::optional<HiddenValues> HiddenBelow(const v1::Size& size, const std::string& dimension,
                                        const v1::HiddenRange& range) {
  HiddenValues values = HiddenValuesOf(range);
  const auto value = size.values().find(dimension);
  if (value == size.values().end() || value->second <= values.low) return std::nullopt;
  values.high = std::min(values.high, (value->second - 1) / values.step * values.step);
  return values;
}

}  // namespace

std::vector<v1::Size> HiddenSpread(const v1::Bundle& bundle, size_t most) {
  if (bundle.hidden().empty() || bundle.sizes().empty()) return {};
  std::map<std::string, std::vector<int64_t>> dimensions;
  constexpr int64_t kMostOfOne = 256;
  const auto share = static_cast<int64_t>(most / (static_cast<size_t>(bundle.hidden_size()) + 1));
  for (const auto& [name, range] : bundle.hidden()) {
    dimensions[name] = SpreadValues(HiddenValuesOf(range), std::clamp<int64_t>(share, 2, kMostOfOne));
  }
  std::vector<v1::Size> sizes;
  // The value of each dimension: its own in `of`, of all of them where that is empty, and the lowest of the others.
  const auto add = [&](const std::string& of, size_t i) {
    v1::Size& size = sizes.emplace_back(Smallest(bundle));
    std::string text = "hidden";
    for (const auto& [name, values] : dimensions) {
      const int64_t value = of.empty() || of == name ? values[std::min(i, values.size() - 1)] : values[0];
      (*size.mutable_values())[name] = static_cast<int32_t>(value);
      absl::StrAppend(&text, " ", name, "=", value);
    }
    size.set_name(text);
  };
  size_t longest = 0;
  for (const auto& [name, values] : dimensions) longest = std::max(longest, values.size());
  for (size_t i = 0; i < longest && sizes.size() < most; ++i) add("", i);
  if (dimensions.size() == 1) return sizes;
  for (const auto& [name, values] : dimensions) {
    for (size_t i = 1; i < values.size() && sizes.size() < most; ++i) add(name, i);
  }
  return sizes;
}

std::vector<v1::Size> HiddenSizes(const v1::Bundle& bundle, uint64_t seed) { return DrawSizes(bundle, seed, false); }

std::vector<v1::Size> MoreHiddenSizes(const v1::Bundle& bundle, uint64_t seed) { return DrawSizes(bundle, seed, true); }

std::optional<v1::Size> SizeBeside(const v1::Bundle& bundle, const v1::Size& size, uint64_t seed) {
  constexpr int64_t kMostSteps = 8;
  Random random(seed);
  return BelowSize(bundle, size, [&](int64_t value, int64_t, int64_t step) {
    return (value - 1) / step * step - step * random.Between(0, kMostSteps - 1);
  });
}

std::optional<v1::Size> SizeBetween(const v1::Bundle& bundle, const v1::Size& size, uint64_t seed) {
  constexpr int64_t kParts = 1 << 20;
  Random random(seed);
  return BelowSize(bundle, size, [&](int64_t value, int64_t above, int64_t step) {
    const double share = static_cast<double>(random.Between(0, kParts)) / kParts;
    const double drawn = std::exp(std::log(above + 1) + share * (std::log(value) - std::log(above + 1)));
    const int64_t steps = std::min(static_cast<int64_t>(drawn) / step, (value - 1) / step);
    return std::max(steps, above / step + 1) * step;
  });
}

std::vector<v1::Size> MixedSizes(const v1::Bundle& bundle, const std::vector<v1::Size>& timed, uint64_t seed) {
  constexpr size_t kMost = 4;
  Random random(seed);
  const auto below = [&random](size_t end) {
    return static_cast<size_t>(random.Between(0, static_cast<int64_t>(end) - 1));
  };
  const std::vector<int64_t> tiles = TilesOf(bundle);
  const std::map<std::string, v1::HiddenRange> ranges(bundle.hidden().begin(), bundle.hidden().end());
  std::vector<std::string> order;
  for (const auto& [dimension, range] : ranges) order.insert(order.begin() + below(order.size() + 1), dimension);
  std::vector<v1::Size> mixed;
  for (size_t turn = 0; turn < std::min(order.size(), kMost); ++turn) {
    // Of more dimensions than sizes, every fourth has its turn.
    const auto has_turn = [&](size_t i) { return i % kMost == turn; };
    std::vector<std::pair<const v1::Size*, std::string>> choices;  // and a dimension that stays large
    for (const v1::Size& size : timed) {
      if (!HiddenBelow(size, order[turn], ranges.at(order[turn]))) continue;
      for (size_t i = 0; i < order.size(); ++i) {
        if (!has_turn(i) && IsAbove(size, order[i], ranges.at(order[i]))) choices.emplace_back(&size, order[i]);
      }
    }
    if (choices.empty()) continue;
    const auto& [of, large] = choices[below(choices.size())];
    v1::Size size = *of;
    if (random.Between(0, 1) == 0) size = SizeBeside(bundle, *of, below(1 << 30)).value_or(*of);
    for (size_t i = 0; i < order.size(); ++i) {
      if (order[i] == large || (!has_turn(i) && random.Between(0, 1) == 0)) continue;
      const std::optional<HiddenValues> values = HiddenBelow(*of, order[i], ranges.at(order[i]));
      if (!values) continue;
      const Kind kind = kFew[below(std::size(kFew))];
      (*size.mutable_values())[order[i]] = static_cast<int32_t>(Draw(kind, {*values, {}, 0}, tiles, random));
    }
    std::string name = absl::StrCat("beside ", of->name());
    for (const auto& [dimension, range] : ranges) {
      const auto value = size.values().find(dimension);
      if (value != size.values().end()) absl::StrAppend(&name, " ", dimension, "=", value->second);
    }
    size.set_name(name);
    mixed.push_back(std::move(size));
  }
  return mixed;
}

}  // namespace pawl
