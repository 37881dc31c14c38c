#include "worker/runner/arena.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/data_type.h"
#include "kernels/plan.h"
#include "worker/build/plan_arguments.h"
#include "worker/runner/tensor_fill.h"
#include "worker/validate/output_pieces.h"

namespace pawl {
namespace {

constexpr uint64_t kAlignment = 256;

uint64_t AlignUp(uint64_t offset, uint64_t align = kAlignment) { return (offset + align - 1) / align * align; }

// So much of each output, at most.
std::vector<OutputSlot> SlotsOf(const v1::Plan& plan, uint64_t most) {
  std::vector<OutputSlot> slots;
  const std::vector<int> buffers = BuffersAfter(plan);
  uint64_t offset = 0;
  for (int i = 0; i < plan.tensors_size(); ++i) {
    if (!IsCompared(plan.tensors(i).role())) continue;
    const uint64_t bytes = std::min<uint64_t>(TensorBytes(plan.tensors(i)), most);
    slots.push_back({i, buffers[i], offset, bytes});
    offset += AlignUp(bytes);
  }
  return slots;
}

uint64_t BytesOf(const std::vector<OutputSlot>& slots) {
  return slots.empty() ? 0 : AlignUp(slots.back().offset + slots.back().bytes);
}

// By name, not by index: the reference's plan has no scratch tensors, and must make the same inputs.
uint32_t StreamOf(const std::string& tensor) {
  uint32_t hash = 2166136261u;
  for (unsigned char c : tensor) hash = (hash ^ c) * 16777619u;
  return hash & ~3u;
}

}  // namespace

uint64_t AlignOf(const v1::PlanTensor& tensor) { return tensor.align() > 0 ? tensor.align() : kAlignment; }

uint64_t SharedTensorBytes(const v1::Plan& a, const v1::Plan& b, int i) {
  const uint64_t bytes = TensorBytes(a.tensors(i));
  return i < b.tensors_size() ? std::max<uint64_t>(bytes, TensorBytes(b.tensors(i))) : bytes;
}

Arena Arena::For(const v1::Plan& a, const v1::Plan& b, const std::vector<uint64_t>& shifts) {
  Arena arena;
  uint64_t unit = kAlignment;
  for (const v1::PlanTensor& tensor : a.tensors()) unit = std::max<uint64_t>(unit, tensor.align());
  for (int i = 0; i < a.tensors_size(); ++i) {
    Slot slot;
    slot.tensor = a.tensors(i);
    slot.bytes = SharedTensorBytes(a, b, i);
    slot.begin = arena.bytes_;
    const uint64_t unshifted = AlignUp(slot.begin + kBand, unit), align = AlignOf(slot.tensor);
    const uint64_t most = 2 * std::max(align, kAlignment) - align;
    slot.offset = unshifted + (static_cast<size_t>(i) < shifts.size() ? std::min(shifts[i], most) : 0);
    slot.end = AlignUp(AlignUp(unshifted + most + slot.bytes) + kBand, unit);
    arena.bytes_ = slot.end;
    arena.slots_.push_back(slot);
  }
  return arena;
}

Arena Arena::At(const v1::Plan& a, const v1::Plan& b, const std::vector<uint64_t>& offsets) {
  Arena arena;
  for (int i = 0; i < a.tensors_size(); ++i) {
    const uint64_t bytes = SharedTensorBytes(a, b, i);
    arena.slots_.push_back({a.tensors(i), offsets[i], bytes, offsets[i], offsets[i] + bytes});
    arena.bytes_ = std::max(arena.bytes_, offsets[i] + bytes);
  }
  return arena;
}

Segment Arena::Placed(Segment segment, const Slot& slot, CUdeviceptr base, uint32_t stream, uint32_t call) {
  segment.address = base + slot.offset;
  segment.bytes = slot.bytes;
  segment.stream = StreamOf(slot.tensor.name()) + stream;
  segment.call = segment.shared ? 0 : call;
  return segment;
}

std::vector<Segment> Arena::Filled(v1::TensorRole role, CUdeviceptr base, uint32_t call, const v1::InputDraw& draw,
                                   const Sources& sources) const {
  std::vector<Segment> segments;
  for (const Slot& slot : slots_) {
    if (slot.tensor.role() != role || slot.bytes == 0) continue;
    const auto source = sources.find(slot.tensor.name());
    const Segment fill = InputFill(slot.tensor, draw, source == sources.end() ? 0 : source->second);
    segments.push_back(Placed(fill, slot, base, 0, call));
  }
  return segments;
}

std::vector<Segment> Arena::Inputs(CUdeviceptr base, uint32_t call, const v1::InputDraw& draw,
                                   const Sources& sources) const {
  return Filled(v1::TENSOR_ROLE_INPUT, base, call, draw, sources);
}

std::vector<Segment> Arena::InOuts(CUdeviceptr base, uint32_t call, const v1::InputDraw& draw,
                                   const Sources& sources) const {
  return Filled(v1::TENSOR_ROLE_INOUT, base, call, draw, sources);
}

std::vector<Segment> Arena::Poisons(CUdeviceptr base, uint32_t call) const {
  std::vector<Segment> segments;
  for (const Slot& slot : slots_) {
    if (IsFilled(slot.tensor.role()) || slot.bytes == 0) continue;
    Segment segment = Placed(PoisonFill(slot.tensor), slot, base, 3, call);
    segment.elements = slot.bytes * 8 / ElementBits(slot.tensor.type());
    segments.push_back(segment);
  }
  return segments;
}

std::vector<Segment> Arena::Bands(CUdeviceptr base, uint32_t call) const {
  std::vector<Segment> segments;
  for (const Slot& slot : slots_) {
    const uint64_t data_end = slot.offset + slot.bytes;
    Segment before;
    before.address = base + slot.begin;
    before.bytes = slot.offset - slot.begin;
    before.content = kRandomBytes;
    before.stream = StreamOf(slot.tensor.name()) + 1;
    before.call = call;
    Segment behind = before;
    behind.address = base + data_end;
    behind.bytes = slot.end - data_end;
    behind.content = IsFilled(slot.tensor.role()) ? kAllOnes : kRandomBytes;
    behind.stream = StreamOf(slot.tensor.name()) + 2;
    segments.push_back(before);
    segments.push_back(behind);
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
  return absl::StrCat("element ", (at - slot.offset) * 8 / ElementBits(slot.tensor.type()), " of ", slot.tensor.name());
}

std::vector<CUdeviceptr> Arena::Addresses(CUdeviceptr base) const {
  std::vector<CUdeviceptr> addresses;
  for (const Slot& slot : slots_) addresses.push_back(base + slot.offset);
  return addresses;
}

std::vector<OutputSlot> OutputSlots(const v1::Plan& plan) { return SlotsOf(plan, UINT64_MAX); }

uint64_t OutputBytes(const v1::Plan& plan) { return BytesOf(OutputSlots(plan)); }

std::vector<OutputSlot> PieceSlots(const v1::Plan& plan) { return SlotsOf(plan, PieceShare(OutputSlots(plan).size())); }

uint64_t PieceBytes(const v1::Plan& plan) { return BytesOf(PieceSlots(plan)); }

}  // namespace pawl
