#include "worker/runner/arena.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/data_type.h"

namespace pawl {
namespace {

uint64_t AlignUp(uint64_t offset) { return (offset + 255) / 256 * 256; }

// By name, not by index: the reference's plan has no scratch tensors, and must make the same inputs.
uint32_t StreamOf(const std::string& tensor) {
  uint32_t hash = 2166136261u;
  for (unsigned char c : tensor) hash = (hash ^ c) * 16777619u;
  return hash & ~3u;
}

struct Values {
  uint32_t content;
  double low, high;
};

// The largest finite value of a type.
double Largest(v1::DataType type) {
  switch (type) {
    case v1::DATA_TYPE_F16:
      return 65504;
    case v1::DATA_TYPE_F64:
      return std::numeric_limits<double>::max();
    default:
      return std::numeric_limits<float>::max();  // bf16's is a little less, and a conversion stays below it by 2^-8
  }
}

constexpr std::pair<v1::Distribution, Content> kContents[] = {{v1::DISTRIBUTION_WIDE_NORMAL, kWideNormal},
                                                              {v1::DISTRIBUTION_HEAVY_TAILS, kHeavyTails},
                                                              {v1::DISTRIBUTION_LARGE, kLarge},
                                                              {v1::DISTRIBUTION_EQUAL, kEqual},
                                                              {v1::DISTRIBUTION_SORTED, kSorted},
                                                              {v1::DISTRIBUTION_ZEROS, kZeros},
                                                              {v1::DISTRIBUTION_DENORMAL, kDenormal},
                                                              {v1::DISTRIBUTION_EXTREMES, kExtremes},
                                                              {v1::DISTRIBUTION_STRIPED, kStriped}};

// What an input is filled with. A range that the contract states holds for every distribution, the fill's own included.
Values InputValues(const v1::PlanTensor& tensor, const v1::InputDraw& draw) {
  Values values;
  const bool integer = tensor.type() == v1::DATA_TYPE_I32;
  const bool uniform = tensor.fill() == v1::FILL_UNIFORM;
  values.content = uniform ? kUniform : kNormal;
  for (const auto& [distribution, content] : kContents) {
    if (distribution == draw.distribution()) values.content = content;
  }
  const bool own = draw.distribution() == v1::DISTRIBUTION_UNSPECIFIED;
  if (tensor.has_low() && tensor.has_high()) {
    values.low = tensor.low();
    values.high = tensor.high();
    // What is timed depends on the range as little as it can: a uniform fill stays in [0, 1] where the range holds some
    // of that.
    if (own && uniform && !integer && values.low < 1 && values.high > 0) {
      values.low = std::max(values.low, 0.0);
      values.high = std::min(values.high, 1.0);
    }
  } else if (integer) {
    values.low = 0;
    values.high = 1023;
  } else if (own || draw.magnitude() <= 0) {
    values.low = uniform ? 0 : -4;
    values.high = uniform ? 1 : 4;
  } else {
    values.high = std::min(draw.magnitude(), Largest(tensor.type()));
    values.low = -values.high;
  }
  return values;
}

Values PoisonValues(const v1::PlanTensor& tensor) {
  if (tensor.type() == v1::DATA_TYPE_I32) return {kNormal, 0, 1023};
  return {kNormal, -4, 4};
}

}  // namespace

uint64_t SharedTensorBytes(const v1::Plan& a, const v1::Plan& b, int i) {
  const uint64_t bytes = TensorBytes(a.tensors(i));
  return i < b.tensors_size() ? std::max<uint64_t>(bytes, TensorBytes(b.tensors(i))) : bytes;
}

Arena Arena::For(const v1::Plan& a, const v1::Plan& b) {
  Arena arena;
  uint64_t offset = 0;
  for (int i = 0; i < a.tensors_size(); ++i) {
    Slot slot;
    slot.tensor = a.tensors(i);
    slot.bytes = SharedTensorBytes(a, b, i);
    slot.offset = offset + kBand;
    slot.end = AlignUp(slot.offset + slot.bytes) + kBand;
    offset = slot.end;
    arena.slots_.push_back(slot);
  }
  arena.bytes_ = offset;
  return arena;
}

Arena Arena::At(const v1::Plan& a, const v1::Plan& b, const std::vector<uint64_t>& offsets) {
  Arena arena;
  for (int i = 0; i < a.tensors_size(); ++i) {
    const uint64_t bytes = SharedTensorBytes(a, b, i);
    arena.slots_.push_back({a.tensors(i), offsets[i], bytes, offsets[i] + bytes});
    arena.bytes_ = std::max(arena.bytes_, offsets[i] + bytes);
  }
  return arena;
}

std::vector<Segment> Arena::Inputs(CUdeviceptr base, uint32_t call, const v1::InputDraw& draw) const {
  std::vector<Segment> segments;
  for (const Slot& slot : slots_) {
    if (slot.tensor.role() != v1::TENSOR_ROLE_INPUT || slot.bytes == 0) continue;
    const Values values = InputValues(slot.tensor, draw);
    segments.push_back({base + slot.offset, slot.bytes, values.low, values.high, values.content,
                        static_cast<uint32_t>(slot.tensor.type()), StreamOf(slot.tensor.name()), call});
  }
  return segments;
}

std::vector<Segment> Arena::Poisons(CUdeviceptr base, uint32_t call) const {
  std::vector<Segment> segments;
  for (const Slot& slot : slots_) {
    if (slot.tensor.role() == v1::TENSOR_ROLE_INPUT || slot.bytes == 0) continue;
    const Values values = PoisonValues(slot.tensor);
    segments.push_back({base + slot.offset, slot.bytes, values.low, values.high, values.content,
                        static_cast<uint32_t>(slot.tensor.type()), StreamOf(slot.tensor.name()) + 3, call});
  }
  return segments;
}

std::vector<Segment> Arena::Bands(CUdeviceptr base, uint32_t call) const {
  std::vector<Segment> segments;
  for (const Slot& slot : slots_) {
    const uint64_t data_end = slot.offset + slot.bytes;
    const Content behind = slot.tensor.role() == v1::TENSOR_ROLE_INPUT ? kAllOnes : kRandomBytes;
    const uint32_t stream = StreamOf(slot.tensor.name());
    segments.push_back({base + slot.offset - kBand, kBand, 0, 0, kRandomBytes, v1::DATA_TYPE_I32, stream + 1, call});
    segments.push_back({base + data_end, slot.end - data_end, 0, 0, behind, v1::DATA_TYPE_I32, stream + 2, call});
  }
  return segments;
}

std::string Arena::Describe(CUdeviceptr base, const Segment& segment, uint64_t offset) const {
  const uint64_t at = segment.address + offset - base;
  auto found = std::find_if(slots_.begin(), slots_.end(),
                            [&](const Slot& s) { return s.offset <= at && at < s.offset + s.bytes; });
  if (found == slots_.end()) {  // in a band
    found = std::find_if(slots_.begin(), slots_.end() - 1, [&](const Slot& s) { return at < s.end; });
  }
  const Slot& slot = *found;
  if (at < slot.offset) return absl::StrCat(slot.offset - at, " bytes before the start of ", slot.tensor.name());
  if (at >= slot.offset + slot.bytes) {
    return absl::StrCat(at - slot.offset - slot.bytes, " bytes behind the end of ", slot.tensor.name());
  }
  return absl::StrCat("element ", (at - slot.offset) / ElementBytes(slot.tensor.type()), " of ", slot.tensor.name());
}

std::vector<OutputSlot> OutputSlots(const v1::Plan& plan) {
  std::vector<OutputSlot> slots;
  uint64_t offset = 0;
  for (int i = 0; i < plan.tensors_size(); ++i) {
    if (plan.tensors(i).role() != v1::TENSOR_ROLE_OUTPUT) continue;
    const uint64_t bytes = TensorBytes(plan.tensors(i));
    slots.push_back({i, offset, bytes});
    offset += AlignUp(bytes);
  }
  return slots;
}

uint64_t OutputBytes(const v1::Plan& plan) {
  const std::vector<OutputSlot> slots = OutputSlots(plan);
  return slots.empty() ? 0 : AlignUp(slots.back().offset + slots.back().bytes);
}

}  // namespace pawl
