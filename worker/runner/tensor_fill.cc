#include "worker/runner/tensor_fill.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "kernels/data_type.h"

namespace pawl {
namespace {

constexpr double kLargestIndex = 1023;  // of whole numbers without a range

constexpr std::pair<v1::Distribution, Content> kContents[] = {{v1::DISTRIBUTION_WIDE_NORMAL, kWideNormal},
                                                              {v1::DISTRIBUTION_HEAVY_TAILS, kHeavyTails},
                                                              {v1::DISTRIBUTION_LARGE, kLarge},
                                                              {v1::DISTRIBUTION_EQUAL, kEqual},
                                                              {v1::DISTRIBUTION_SORTED, kSorted},
                                                              {v1::DISTRIBUTION_ZEROS, kZeros},
                                                              {v1::DISTRIBUTION_DENORMAL, kDenormal},
                                                              {v1::DISTRIBUTION_EXTREMES, kExtremes},
                                                              {v1::DISTRIBUTION_STRIPED, kStriped}};

// The content where the fill allows no other.
Content StructuredContent(v1::Fill fill) {
  switch (fill) {
    case v1::FILL_ZEROS:
    case v1::FILL_ONES:
    case v1::FILL_CONSTANT:
      return kEqual;  // the range has one value
    case v1::FILL_IOTA:
      return kIota;
    case v1::FILL_PERMUTATION:
      return kPermutation;
    case v1::FILL_CSR_OFFSETS:
      return kCsrOffsets;
    case v1::FILL_BYTES:
      return kRandomBytes;
    default:
      return Content{};
  }
}

Content ContentOf(v1::Fill fill, v1::Distribution distribution) {
  if (const Content structured = StructuredContent(fill)) return structured;
  // Of those that rise or fall, only these do.
  const bool rises = distribution == v1::DISTRIBUTION_EQUAL || distribution == v1::DISTRIBUTION_ZEROS;
  if (fill == v1::FILL_SORTED && !rises) return kSorted;
  for (const auto& [drawn, content] : kContents) {
    if (drawn == distribution) return content;
  }
  return fill == v1::FILL_NORMAL || fill == v1::FILL_UNSPECIFIED ? kNormal : kUniform;
}

// In 64 bits of two's complement, which hold the whole numbers of every type. Doubles just beyond them are clamped.
u64 WholeOf(double value, v1::DataType type) {
  if (type == v1::DATA_TYPE_U64) return value <= 0 ? 0 : value >= 0x1p64 ? ~u64{0} : static_cast<u64>(value);
  if (value >= 0x1p63) return static_cast<u64>(std::numeric_limits<int64_t>::max());
  return static_cast<u64>(value <= -0x1p63 ? std::numeric_limits<int64_t>::min() : static_cast<int64_t>(value));
}

void SetRange(double low, double high, v1::DataType type, Segment& segment) {
  segment.low = low;
  segment.high = high;
  // Rounding to the type leaves the range otherwise, and 1 - x may be 0 where it can't.
  const double least = RoundedUp(type, low), most = RoundedDown(type, high);
  if (IsFloat(type) && least <= most) {
    segment.low = least;
    segment.high = most;
  }
  segment.first = WholeOf(low, type);
  segment.extent = WholeOf(high, type) - segment.first;
  segment.zero = WholeOf(std::clamp(0.0, low, std::max(low, high)), type);
}

// Rows of floats that a file holds: their order is hardly part of the contract, and what depends on it shows.
bool MayPermuteRows(const v1::PlanTensor& tensor) {
  return tensor.fill() == v1::FILL_FILE && tensor.file_holds() == v1::FILL_UNSPECIFIED && IsFloat(tensor.type()) &&
         tensor.shape_size() > 1 && tensor.shape(0) > 1;
}

Segment CopyFill(const v1::PlanTensor& tensor, const v1::InputDraw& draw, u64 source) {
  Segment segment;
  segment.content = kCopy;
  segment.source = source;
  if (draw.distribution() != v1::DISTRIBUTION_UNSPECIFIED && MayPermuteRows(tensor)) {
    segment.row_bytes = TensorBytes(tensor) / tensor.shape(0);
  }
  return segment;
}

void SetInputRange(const v1::PlanTensor& tensor, const v1::InputDraw& draw, Segment& segment) {
  const v1::DataType type = tensor.type();
  const bool own = draw.distribution() == v1::DISTRIBUTION_UNSPECIFIED;
  const bool uniform = tensor.fill() == v1::FILL_UNIFORM;
  double low = uniform || tensor.fill() == v1::FILL_SORTED ? 0 : -4, high = low == 0 ? 1 : 4;
  if (tensor.fill() == v1::FILL_ZEROS || tensor.fill() == v1::FILL_ONES) {
    low = high = tensor.fill() == v1::FILL_ONES;
  } else if (tensor.fill() == v1::FILL_CONSTANT) {
    low = high = tensor.low();
  } else if (tensor.fill() == v1::FILL_CSR_OFFSETS) {
    low = 0;
    high = tensor.high();
  } else if (tensor.has_low() && tensor.has_high()) {
    low = tensor.low();
    high = tensor.high();
    // What is timed depends on the range as little as it can: a uniform fill stays in [0, 1] where the range holds some
    // of that.
    if (own && uniform && IsFloat(type) && low < 1 && high > 0) {
      low = std::max(low, 0.0);
      high = std::min(high, 1.0);
    }
  } else if (segment.whole) {
    low = 0;
    high = std::min(kLargestIndex, LargestOf(type));
  } else if (!own && draw.magnitude() > 0) {
    high = std::min(draw.magnitude(), LargestOf(type));
    low = -high;
  }
  SetRange(low, high, type, segment);
}

}  // namespace

bool IsFixedFill(v1::Fill fill) {
  switch (fill) {
    case v1::FILL_ZEROS:
    case v1::FILL_ONES:
    case v1::FILL_CONSTANT:
    case v1::FILL_IOTA:
    case v1::FILL_FILE:
    case v1::FILL_PROBLEM:
      return true;
    default:
      return false;
  }
}

Segment InputFill(const v1::PlanTensor& tensor, const v1::InputDraw& draw, u64 source) {
  Segment segment;
  if (source != 0) {
    segment = CopyFill(tensor, draw, source);
  } else {
    segment.content = ContentOf(tensor.fill(), draw.distribution());
    segment.whole = !IsFloat(tensor.type()) || tensor.fill() == v1::FILL_INTEGERS;
    SetInputRange(tensor, draw, segment);
    if (segment.content == kHeavyTails && !segment.whole) {
      Segment usual;
      SetInputRange(tensor, {}, usual);
      segment.usual = ContentOf(tensor.fill(), v1::DISTRIBUTION_UNSPECIFIED);
      segment.usual_low = usual.low;
      segment.usual_high = usual.high;
    }
  }
  segment.type = static_cast<u32>(tensor.type());
  segment.elements = static_cast<u64>(tensor.elements());
  segment.shared = tensor.is_static();
  return segment;
}

Segment PoisonFill(const v1::PlanTensor& tensor) {
  Segment segment;
  segment.content = kPoison;
  segment.shared = tensor.is_static();
  segment.type = static_cast<u32>(tensor.type());
  segment.whole = !IsFloat(tensor.type());
  if (segment.whole) {
    SetRange(0, std::min(kLargestIndex, LargestOf(tensor.type())), tensor.type(), segment);
  } else {
    SetRange(-4, 4, tensor.type(), segment);
  }
  return segment;
}

std::array<std::vector<Segment>, 2> PoisonsInTurn(const std::vector<Segment>& poisons, SecretRandom& random) {
  std::array<std::vector<Segment>, 2> turns = {poisons, poisons};
  for (size_t i = 0; i < poisons.size(); ++i) {
    const uint64_t first = random.Below(2);
    turns[first][i].content = kNormal;
    turns[1 - first][i].content = kGarbage;
  }
  return turns;
}

}  // namespace pawl
