#include "worker/runner/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "kernels/data_type.h"

namespace pawl {
namespace {

constexpr CUdeviceptr kBase = 0x7f0000000000;

void AddTensor(const std::string& name, v1::DataType type, v1::TensorRole role, int64_t elements, v1::Plan& plan) {
  v1::PlanTensor& tensor = *plan.add_tensors();
  tensor.set_name(name);
  tensor.set_type(type);
  tensor.set_role(role);
  tensor.set_elements(elements);
  tensor.set_fill(v1::FILL_NORMAL);
}

// Sizes are odd on purpose.
v1::Plan Plan(int scratch_elements = 33) {
  v1::Plan plan;
  AddTensor("q", v1::DATA_TYPE_F16, v1::TENSOR_ROLE_INPUT, 7, plan);
  if (scratch_elements > 0) {
    AddTensor("partial", v1::DATA_TYPE_F32, v1::TENSOR_ROLE_SCRATCH, scratch_elements, plan);
  }
  AddTensor("k", v1::DATA_TYPE_F32, v1::TENSOR_ROLE_INPUT, 5000, plan);
  AddTensor("out", v1::DATA_TYPE_F64, v1::TENSOR_ROLE_OUTPUT, 1001, plan);
  return plan;
}

std::vector<Segment> All(const Arena& arena) {
  std::vector<Segment> all;
  for (const auto& some : {arena.Inputs(kBase, 0), arena.Poisons(kBase, 0), arena.Bands(kBase, 0)}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

TEST(Arena, StartsEveryTensorAligned) {
  const v1::Plan plan = Plan();
  const Arena arena = Arena::For(plan);
  for (int i = 0; i < plan.tensors_size(); ++i) EXPECT_EQ(arena.Offset(i) % 256, 0u) << plan.tensors(i).name();
}

// Aligned to 4, the default, 1024 and 8 bytes.
v1::Plan AlignedPlan() {
  v1::Plan plan = Plan();
  plan.mutable_tensors(0)->set_align(4);
  plan.mutable_tensors(2)->set_align(1024);
  plan.mutable_tensors(3)->set_align(8);
  return plan;
}

TEST(Arena, StartsTensorsAtMultiplesOfLargerAlignments) {
  const Arena arena = Arena::For(AlignedPlan());
  EXPECT_EQ(arena.Offset(0) % 256, 0u);
  EXPECT_EQ(arena.Offset(1) % 256, 0u);
  EXPECT_EQ(arena.Offset(2) % 1024, 0u);
  EXPECT_EQ(arena.Offset(3) % 256, 0u);
  EXPECT_EQ(arena.bytes() % 1024, 0u) << "another one fits behind it";
}

TEST(Arena, StartsTensorsBehindSuchMultiplesWhereTheyAreShifted) {
  const v1::Plan plan = AlignedPlan();
  const Arena unshifted = Arena::For(plan), arena = Arena::For(plan, {252, 0, 0, 8});
  EXPECT_EQ(arena.Offset(0), unshifted.Offset(0) + 252);
  EXPECT_EQ(arena.Offset(1), unshifted.Offset(1));
  EXPECT_EQ(arena.Offset(2), unshifted.Offset(2));
  EXPECT_EQ(arena.Offset(3), unshifted.Offset(3) + 8);
  EXPECT_EQ(arena.bytes(), unshifted.bytes()) << "room that was reserved for one is enough for the other";
}

TEST(Arena, PutsBandsRightBeforeAndBehindEveryTensor) {
  const v1::Plan plan = AlignedPlan();
  const Arena arena = Arena::For(plan, {4, 0, 0, 248});
  std::map<uint64_t, Segment> starts, ends;
  for (const Segment& band : arena.Bands(kBase, 0)) {
    EXPECT_GE(band.bytes, 4096u);
    starts[band.address] = band;
    ends[band.address + band.bytes] = band;
  }
  EXPECT_EQ(starts.size(), 2u * plan.tensors_size());
  for (int i = 0; i < plan.tensors_size(); ++i) {
    const uint64_t address = kBase + arena.Offset(i);
    EXPECT_TRUE(ends.count(address)) << plan.tensors(i).name();
    EXPECT_TRUE(starts.count(address + TensorBytes(plan.tensors(i)))) << plan.tensors(i).name();
  }
}

TEST(Arena, GivesEveryByteToExactlyOneSegment) {
  for (const int scratch : {0, 1, 33, 1 << 16}) {
    for (const Arena& arena : {Arena::For(Plan(scratch)), Arena::For(AlignedPlan(), {252, 0, 0, 8})}) {
      std::vector<Segment> all = All(arena);
      std::sort(all.begin(), all.end(), [](const Segment& a, const Segment& b) { return a.address < b.address; });
      uint64_t next = kBase;
      for (const Segment& segment : all) {
        EXPECT_EQ(segment.address, next);
        next = segment.address + segment.bytes;
      }
      EXPECT_EQ(next, kBase + arena.bytes());
    }
  }
}

TEST(Arena, PutsNotANumberBehindInputsOnly) {
  const v1::Plan plan = Plan();
  const Arena arena = Arena::For(plan);
  std::map<uint64_t, uint32_t> behind;
  for (const Segment& band : arena.Bands(kBase, 0)) behind[band.address - kBase] = band.content;
  int bands_of_ones = 0;
  for (int i = 0; i < plan.tensors_size(); ++i) {
    const bool input = plan.tensors(i).role() == v1::TENSOR_ROLE_INPUT;
    EXPECT_EQ(behind[arena.Offset(i) + TensorBytes(plan.tensors(i))], input ? kAllOnes : kRandomBytes);
  }
  for (const auto& [offset, content] : behind) bands_of_ones += content == kAllOnes;
  EXPECT_EQ(bands_of_ones, 2);
}

TEST(Arena, FillsInputsAsTheBundleSaysAndPoisonsTheRest) {
  v1::Plan plan = Plan();
  plan.mutable_tensors(0)->set_fill(v1::FILL_UNIFORM);
  plan.mutable_tensors(0)->set_low(-2);
  plan.mutable_tensors(0)->set_high(3);
  const std::vector<Segment> inputs = Arena::For(plan).Inputs(kBase, 0);
  ASSERT_EQ(inputs.size(), 2u);
  EXPECT_EQ(inputs[0].content, kUniform);
  EXPECT_EQ(inputs[0].type, static_cast<uint32_t>(v1::DATA_TYPE_F16));
  EXPECT_EQ(inputs[0].low, 0) << "a uniform fill stays in [0, 1] where the range holds some of that";
  EXPECT_EQ(inputs[0].high, 1);
  EXPECT_EQ(inputs[1].content, kNormal);
  plan.mutable_tensors(0)->set_low(2);
  EXPECT_EQ(Arena::For(plan).Inputs(kBase, 0)[0].low, 2) << "a range that holds none of it is used as it is";
  EXPECT_EQ(Arena::For(plan).Inputs(kBase, 0)[0].high, 3);
  const std::vector<Segment> poisons = Arena::For(plan).Poisons(kBase, 0);
  ASSERT_EQ(poisons.size(), 2u);
  for (const Segment& poison : poisons) EXPECT_EQ(poison.content, kPoison);
}

TEST(Arena, DrawsInputsFromTheDistributionThatIsAskedForWithinTheirRange) {
  v1::Plan plan = Plan();
  plan.mutable_tensors(0)->set_low(0);
  plan.mutable_tensors(0)->set_high(0.5);
  v1::InputDraw draw;
  draw.set_distribution(v1::DISTRIBUTION_LARGE);
  draw.set_magnitude(1e6);
  const std::vector<Segment> inputs = Arena::For(plan).Inputs(kBase, 0, draw);
  EXPECT_EQ(inputs[0].content, kLarge);
  EXPECT_EQ(inputs[0].low, 0);
  EXPECT_EQ(inputs[0].high, 0.5);
  EXPECT_EQ(inputs[1].content, kLarge);
  EXPECT_EQ(inputs[1].low, -1e6);
  EXPECT_EQ(inputs[1].high, 1e6);
  plan.mutable_tensors(0)->clear_low();
  EXPECT_EQ(Arena::For(plan).Inputs(kBase, 0, draw)[0].high, 65504) << "more than an f16 holds";
}

TEST(Arena, DrawsEverySegmentFromAStreamOfItsOwn) {
  std::set<uint32_t> streams;
  const std::vector<Segment> all = All(Arena::For(Plan()));
  for (const Segment& segment : all) streams.insert(segment.stream);
  EXPECT_EQ(streams.size(), all.size());
  // Nor does poison look like what the same tensor would hold as an input.
  v1::Plan plan = Plan();
  const uint32_t as_output = Arena::For(plan).Poisons(kBase, 0)[1].stream;
  plan.mutable_tensors(3)->set_role(v1::TENSOR_ROLE_INPUT);
  EXPECT_NE(Arena::For(plan).Inputs(kBase, 0)[2].stream, as_output);
}

TEST(Arena, DrawsTheSameInputsWhereThePlanHasNoScratch) {
  const std::vector<Segment> with = Arena::For(Plan()).Inputs(kBase, 3);
  const std::vector<Segment> without = Arena::For(Plan(0)).Inputs(kBase, 3);
  ASSERT_EQ(with.size(), without.size());
  for (size_t i = 0; i < with.size(); ++i) {
    EXPECT_EQ(with[i].stream, without[i].stream);
    EXPECT_EQ(with[i].call, 3u);
    EXPECT_EQ(with[i].bytes, without[i].bytes);
  }
  EXPECT_NE(with[0].stream, with[1].stream);
}

v1::Plan InPlacePlan() {
  v1::Plan plan = Plan();
  plan.mutable_tensors(3)->set_role(v1::TENSOR_ROLE_INOUT);
  AddTensor("nibbles", v1::DATA_TYPE_U4, v1::TENSOR_ROLE_OUTPUT, 101, plan);
  return plan;
}

TEST(Arena, FillsWhatIsChangedInPlaceAndDoesNotKeepIt) {
  const v1::Plan plan = InPlacePlan();
  const Arena arena = Arena::For(plan);
  const std::vector<Segment> in_place = arena.InOuts(kBase, 2);
  ASSERT_EQ(in_place.size(), 1u);
  EXPECT_EQ(in_place[0].address, kBase + arena.Offset(3));
  EXPECT_EQ(in_place[0].elements, 1001u);
  EXPECT_EQ(in_place[0].call, 2u);
  for (const std::vector<Segment>& others : {arena.Inputs(kBase, 2), arena.Poisons(kBase, 2)}) {
    for (const Segment& segment : others) EXPECT_NE(segment.address, in_place[0].address);
  }
  int ones = 0;
  for (const Segment& band : arena.Bands(kBase, 0)) ones += band.content == kAllOnes;
  EXPECT_EQ(ones, 3) << "a read past the end of what is changed in place shows too";
}

TEST(Arena, CopiesFromWhatWasHandedOver) {
  const v1::Plan plan = InPlacePlan();
  const Arena arena = Arena::For(plan);
  const Sources sources = {{"k", 0x5000}, {"out", 0x6000}};
  const std::vector<Segment> inputs = arena.Inputs(kBase, 0, {}, sources);
  EXPECT_EQ(inputs[0].content, static_cast<uint32_t>(kNormal));
  EXPECT_EQ(inputs[1].content, static_cast<uint32_t>(kCopy));
  EXPECT_EQ(inputs[1].source, 0x5000u);
  EXPECT_EQ(inputs[1].bytes, 20000u);
  EXPECT_EQ(arena.InOuts(kBase, 0, {}, sources)[0].source, 0x6000u);
}

TEST(Arena, DrawsStaticTensorsTheSameForEveryCall) {
  v1::Plan plan = Plan();
  plan.mutable_tensors(0)->set_is_static(true);
  const std::vector<Segment> inputs = Arena::For(plan).Inputs(kBase, 5);
  EXPECT_EQ(inputs[0].call, 0u);
  EXPECT_NE(inputs[0].shared, 0u);
  EXPECT_EQ(inputs[1].call, 5u);
}

TEST(Arena, CountsPackedElements) {
  const v1::Plan plan = InPlacePlan();
  const Arena arena = Arena::For(plan);
  const Segment nibbles = arena.Poisons(kBase, 0)[1];
  EXPECT_EQ(nibbles.bytes, 51u);
  EXPECT_EQ(arena.Describe(kBase, nibbles, 3), "element 6 of nibbles");
}

TEST(Arena, SaysWhatAByteIs) {
  const Arena arena = Arena::For(Plan());
  const std::vector<Segment> bands = arena.Bands(kBase, 0);
  const Segment& before_k = bands[4];
  const Segment& behind_k = bands[5];
  EXPECT_EQ(arena.Describe(kBase, before_k, before_k.bytes - 1), "1 bytes before the start of k");
  EXPECT_EQ(arena.Describe(kBase, before_k, 0), "4096 bytes before the start of k");
  EXPECT_EQ(arena.Describe(kBase, behind_k, 16), "16 bytes behind the end of k");
  EXPECT_EQ(arena.Describe(kBase, behind_k, behind_k.bytes - 1).substr(4), " bytes behind the end of k");
  EXPECT_EQ(arena.Describe(kBase, bands[7], 0), "0 bytes behind the end of out");
  EXPECT_EQ(arena.Describe(kBase, arena.Inputs(kBase, 0)[1], 10), "element 2 of k");
  EXPECT_EQ(arena.Describe(kBase, arena.Inputs(kBase, 0)[0], 0), "element 0 of q");
  const Arena shifted = Arena::For(AlignedPlan(), {4, 0, 0, 8});
  const Segment before_q = shifted.Bands(kBase, 0)[0];
  EXPECT_EQ(shifted.Describe(kBase, before_q, before_q.bytes - 1), "1 bytes before the start of q");
  EXPECT_EQ(shifted.Describe(kBase, shifted.Inputs(kBase, 0)[1], 10), "element 2 of k");
}

TEST(Arena, HasRoomForTheLargerTensorOfTwoPlans) {
  const v1::Plan small = Plan(33), large = Plan(9000);
  const Arena arena = Arena::For(small, large), mirrored = Arena::For(large, small), alone = Arena::For(large);
  EXPECT_EQ(arena.bytes(), alone.bytes());
  EXPECT_EQ(mirrored.bytes(), alone.bytes());
  for (int i = 0; i < small.tensors_size(); ++i) {
    EXPECT_EQ(arena.Offset(i), alone.Offset(i));
    EXPECT_EQ(mirrored.Offset(i), alone.Offset(i));
  }
  EXPECT_EQ(arena.Poisons(kBase, 0)[0].bytes, 9000u * 4);
}

TEST(OutputSlots, AreReadWhereTheCallLeavesThem) {
  v1::Plan plan;
  for (const char* name : {"ping", "pong"}) {
    AddTensor(name, v1::DATA_TYPE_F32, v1::TENSOR_ROLE_SCRATCH, 64, plan);
  }
  plan.mutable_tensors(0)->set_role(v1::TENSOR_ROLE_INOUT);
  v1::PlanLaunch& launch = *plan.add_launches();
  launch.add_swap(0);
  launch.add_swap(1);
  for (const auto& [repeat, buffer] : {std::pair{6, 0}, {7, 1}}) {
    launch.set_repeat(repeat);
    const std::vector<OutputSlot> slots = OutputSlots(plan);
    ASSERT_EQ(slots.size(), 1u);
    EXPECT_EQ(slots[0].tensor, 0);
    EXPECT_EQ(slots[0].buffer, buffer);
  }
}

TEST(OutputSlots, LieAlignedOneBehindAnother) {
  v1::Plan plan = Plan();
  AddTensor("sum", v1::DATA_TYPE_F32, v1::TENSOR_ROLE_OUTPUT, 3, plan);
  AddTensor("last", v1::DATA_TYPE_F16, v1::TENSOR_ROLE_OUTPUT, 129, plan);
  const std::vector<OutputSlot> slots = OutputSlots(plan);
  ASSERT_EQ(slots.size(), 3u);
  const int tensors[] = {3, 4, 5};
  const uint64_t bytes[] = {8008, 12, 258};
  uint64_t end = 0;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(slots[i].tensor, tensors[i]);
    EXPECT_EQ(slots[i].bytes, bytes[i]);
    EXPECT_EQ(slots[i].offset % 256, 0u);
    EXPECT_GE(slots[i].offset, end);
    end = slots[i].offset + slots[i].bytes;
  }
  EXPECT_GE(OutputBytes(plan), end);
  EXPECT_EQ(OutputBytes(plan) % 256, 0u);
  EXPECT_EQ(OutputBytes(v1::Plan()), 0u);
}

}  // namespace
}  // namespace pawl
