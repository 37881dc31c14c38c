#include "worker/runner/placement.h"

#include <algorithm>
#include <cstring>

#include "base/hash/hash.h"

namespace pawl {
namespace {

constexpr uint64_t kAlign = 256;  // as cudaMalloc gives
constexpr uint64_t kMaxGap = 4096;
constexpr size_t kPool = 256;

uint64_t RoundUp(uint64_t offset, uint64_t align) { return (offset + align - 1) / align * align; }

struct Item {
  int call;
  int tensor;
  uint64_t bytes;
  uint64_t align;
};

}  // namespace

uint64_t SecretRandom::Bits() {
  if (pool_.empty()) {
    const std::string bytes = RandomBytes(kPool * sizeof(uint64_t));
    pool_.resize(kPool);
    memcpy(pool_.data(), bytes.data(), bytes.size());
  }
  const uint64_t bits = pool_.back();
  pool_.pop_back();
  return bits;
}

uint64_t SecretRandom::Below(uint64_t below) {
  return below == 0 ? 0 : Bits() % below;  // `below` is far from 2^64: no number is favoured by more than 2^-24
}

std::vector<uint64_t> DrawShifts(const v1::Plan& plan, SecretRandom& random) {
  const uint64_t style = random.Below(4);
  std::vector<uint64_t> shifts;
  for (const v1::PlanTensor& tensor : plan.tensors()) {
    const uint64_t align = AlignOf(tensor), places = kAlign / align;
    uint64_t shift = 0;
    if (places > 1 && style == 1) {  // some have their start at a multiple of 256, and others have not
      shift = random.Below(2) * random.Below(places) * align;
    } else if (places > 1 && style > 1) {
      shift = (2 * random.Below(places / 2) + 1) * align;
    }
    shifts.push_back(shift + random.Below(2) * std::max(align, kAlign));
  }
  return shifts;
}

uint64_t PlacementBytes(const v1::Plan& a, const v1::Plan& b, int calls) {
  uint64_t bytes = 0;
  for (int i = 0; i < a.tensors_size(); ++i) {
    const uint64_t align = std::max(AlignOf(a.tensors(i)), kAlign);
    const uint64_t copies = a.tensors(i).is_static() ? 1 : calls;
    bytes += (RoundUp(SharedTensorBytes(a, b, i), align) + align + kMaxGap) * copies;
  }
  return bytes;
}

std::vector<Arena> DrawPlacement(const v1::Plan& a, const v1::Plan& b, int calls, uint64_t bytes, PlacementStyle style,
                                 SecretRandom& random) {
  std::vector<Item> items;
  uint64_t needed = 0;
  for (int call = 0; call < calls; ++call) {
    for (int i = 0; i < a.tensors_size(); ++i) {
      if (call > 0 && a.tensors(i).is_static()) continue;
      items.push_back({call, i, SharedTensorBytes(a, b, i), AlignOf(a.tensors(i))});
      needed += RoundUp(items.back().bytes, items.back().align) + items.back().align;
    }
  }
  std::shuffle(items.begin(), items.end(), random);
  const uint64_t spare = bytes - std::min(bytes, needed);
  // Room before each item. Scattered: the spare bytes cut at random places, so that every arrangement is as likely.
  std::vector<uint64_t> before(items.size(), 0);
  if (style == PlacementStyle::kScattered) {
    std::vector<uint64_t> cuts(items.size());
    for (uint64_t& cut : cuts) cut = random.Below(spare + 1);
    std::sort(cuts.begin(), cuts.end());
    for (size_t i = 0; i < cuts.size(); ++i) before[i] = cuts[i] - (i > 0 ? cuts[i - 1] : 0);
  } else if (!before.empty()) {
    uint64_t left = spare;
    if (style == PlacementStyle::kGaps) {
      for (uint64_t& gap : before) {
        gap = random.Below(std::min(left, kMaxGap) + 1);
        left -= gap;
      }
    }
    before[0] += random.Below(left + 1);
  }
  std::vector<std::vector<uint64_t>> offsets(calls, std::vector<uint64_t>(a.tensors_size()));
  uint64_t next = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    const uint64_t offset = RoundUp(next + before[i], items[i].align);
    offsets[items[i].call][items[i].tensor] = offset;
    next = offset + items[i].bytes;
  }
  for (int i = 0; i < a.tensors_size(); ++i) {
    if (!a.tensors(i).is_static()) continue;
    for (int call = 1; call < calls; ++call) offsets[call][i] = offsets[0][i];
  }
  std::vector<Arena> arenas;
  for (int call = 0; call < calls; ++call) arenas.push_back(Arena::At(a, b, offsets[call]));
  return arenas;
}

}  // namespace pawl
