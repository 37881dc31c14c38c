#include "worker/runner/arena.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "worker/runner/tensor_bytes.h"

namespace pawl {
namespace {

uint64_t AlignUp(uint64_t offset) { return (offset + 255) / 256 * 256; }

// By name, not by index: the reference's plan has no scratch tensors, and must make the same inputs.
uint32_t StreamOf(const std::string& tensor) {
  uint32_t hash = 2166136261u;
  for (unsigned char c : tensor) hash = (hash ^ c) * 16777619u;
  return hash & ~3u;
}

}  // namespace

Arena Arena::For(const v1::Plan& a, const v1::Plan& b) {
  Arena arena;
  uint64_t offset = 0;
  for (int i = 0; i < a.tensors_size(); ++i) {
    Slot slot;
    slot.tensor = a.tensors(i);
    slot.bytes = TensorBytes(a.tensors(i));
    if (i < b.tensors_size()) slot.bytes = std::max<uint64_t>(slot.bytes, TensorBytes(b.tensors(i)));
    slot.offset = offset + kBand;
    slot.end = AlignUp(slot.offset + slot.bytes) + kBand;
    offset = slot.end;
    arena.slots_.push_back(slot);
  }
  arena.bytes_ = offset;
  return arena;
}

std::vector<Segment> Arena::Contents(CUdeviceptr base, uint32_t call, bool inputs) const {
  std::vector<Segment> segments;
  for (const Slot& slot : slots_) {
    if ((slot.tensor.role() == v1::TENSOR_ROLE_INPUT) != inputs || slot.bytes == 0) continue;
    const Content content = inputs && slot.tensor.fill() == v1::FILL_UNIFORM ? kUniform : kNormal;
    segments.push_back({base + slot.offset, slot.bytes, content, static_cast<uint32_t>(slot.tensor.type()),
                        StreamOf(slot.tensor.name()) + (inputs ? 0 : 3), call});
  }
  return segments;
}

std::vector<Segment> Arena::Inputs(CUdeviceptr base, uint32_t call) const { return Contents(base, call, true); }

std::vector<Segment> Arena::Poisons(CUdeviceptr base, uint32_t call) const { return Contents(base, call, false); }

std::vector<Segment> Arena::Bands(CUdeviceptr base, uint32_t call) const {
  std::vector<Segment> segments;
  for (const Slot& slot : slots_) {
    const uint64_t data_end = slot.offset + slot.bytes;
    const Content behind = slot.tensor.role() == v1::TENSOR_ROLE_INPUT ? kAllOnes : kRandomBytes;
    const uint32_t stream = StreamOf(slot.tensor.name());
    segments.push_back({base + slot.offset - kBand, kBand, kRandomBytes, v1::DATA_TYPE_I32, stream + 1, call});
    segments.push_back({base + data_end, slot.end - data_end, behind, v1::DATA_TYPE_I32, stream + 2, call});
  }
  return segments;
}

std::string Arena::Describe(CUdeviceptr base, const Segment& segment, uint64_t offset) const {
  const uint64_t at = segment.address + offset - base;
  const Slot& slot = *std::find_if(slots_.begin(), slots_.end() - 1, [&](const Slot& s) { return at < s.end; });
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
