#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "pawl/v1/plan.pb.h"
#include "pawl/v1/runner.pb.h"
#include "worker/runner/support.h"

namespace pawl {

// Where bytes lie in GPU memory that were handed over for tensors, by their names.
using Sources = std::map<std::string, CUdeviceptr>;

// Where the tensors of one call lie in a run of device memory.
class Arena {
 public:
  // Each tensor between two guard bands, one behind another. The band behind an input is all ones (NaN in every float
  // type, an index of -1), so that a read past the end shows; the other bands are random bytes. There is room for the
  // larger of the two plans' tensors, matched by index: candidate and parent share their buffers. Each tensor starts at
  // a multiple of its alignment, and of 256 where that is less, or so many bytes behind one: its shift, less than twice
  // that, by index; empty: 0. However they are shifted, an arena has the same size, a multiple of every tensor's
  // alignment. Its base must be one too.
  static Arena For(const v1::Plan& plan, const std::vector<uint64_t>& shifts = {}) { return For(plan, plan, shifts); }
  static Arena For(const v1::Plan& a, const v1::Plan& b, const std::vector<uint64_t>& shifts = {});
  // The tensors at these offsets, without bands (placement.h).
  static Arena At(const v1::Plan& a, const v1::Plan& b, const std::vector<uint64_t>& offsets);

  uint64_t bytes() const { return bytes_; }
  uint64_t Offset(int tensor) const { return slots_[tensor].offset; }

  // Of all tensors.
  std::vector<CUdeviceptr> Addresses(CUdeviceptr base) const;

  // Segments of one call whose arena starts at `base`. Streams of poison differ from those of inputs. Of the draw, its
  // distribution and magnitude count. Static tensors have the same content in every call.
  std::vector<Segment> Inputs(CUdeviceptr base, uint32_t call, const v1::InputDraw& draw = {},
                              const Sources& sources = {}) const;
  std::vector<Segment> InOuts(CUdeviceptr base, uint32_t call, const v1::InputDraw& draw = {},
                              const Sources& sources = {}) const;
  std::vector<Segment> Poisons(CUdeviceptr base, uint32_t call) const;  // outputs and scratch
  std::vector<Segment> Bands(CUdeviceptr base, uint32_t call) const;

  // What a changed byte of a segment means, in words: "16 bytes behind the end of out".
  std::string Describe(CUdeviceptr base, const Segment& segment, uint64_t offset) const;

 private:
  struct Slot {
    v1::PlanTensor tensor;
    uint64_t offset;  // of the data
    uint64_t bytes;
    uint64_t begin;  // of the band before it
    uint64_t end;    // of the band behind it
  };
  static constexpr uint64_t kBand = 4096;

  static Segment Placed(Segment segment, const Slot& slot, CUdeviceptr base, uint32_t stream, uint32_t call);
  std::vector<Segment> Filled(v1::TensorRole role, CUdeviceptr base, uint32_t call, const v1::InputDraw& draw,
                              const Sources& sources) const;

  std::vector<Slot> slots_;
  uint64_t bytes_ = 0;
};

// Bytes that a tensor's address is a multiple of, at least.
uint64_t AlignOf(const v1::PlanTensor& tensor);

// Bytes that tensor i of either plan needs.
uint64_t SharedTensorBytes(const v1::Plan& a, const v1::Plan& b, int i);

// Outputs of a plan, tensors that are changed in place included, laid out one after another, 256-byte aligned: how they
// travel to the reference process.
struct OutputSlot {
  int tensor;
  int buffer;  // the tensor in whose place the call leaves it
  uint64_t offset;
  uint64_t bytes;
};
std::vector<OutputSlot> OutputSlots(const v1::Plan& plan);
uint64_t OutputBytes(const v1::Plan& plan);

// The same slots where pieces of large outputs travel (worker/validate/output_pieces.h).
std::vector<OutputSlot> PieceSlots(const v1::Plan& plan);
uint64_t PieceBytes(const v1::Plan& plan);

}  // namespace pawl
