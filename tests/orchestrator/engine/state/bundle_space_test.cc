#include "orchestrator/engine/state/bundle_space.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "tests/orchestrator/engine/tiny_bundle.h"

namespace pawl {
namespace {

std::shared_ptr<const BundleSpace> Space() {
  return std::make_shared<const BundleSpace>(std::make_shared<const v1::Bundle>(TinyBundle()));
}

TEST(BundleSpaceTest, JudgesEachGpuByItsOwnLimits) {
  const auto space = Space();
  const v1::Variant start = StartVariant(space->bundle());
  const v1::Size& size = space->bundle().sizes(0);
  v1::GpuInfo large = TypicalGpu(), small = large;
  small.set_max_threads_per_block(1);
  for (int twice = 0; twice < 2; ++twice) {  // what is remembered of one is not the other's
    EXPECT_EQ(space->BeyondLimits(start, size, large, BundleSpace::ModelOf(large)), "");
    EXPECT_NE(space->BeyondLimits(start, size, small, BundleSpace::ModelOf(small)), "");
  }
}

TEST(BundleSpaceTest, RefusesWhatIsNoVariantOfTheBundle) {
  const auto space = Space();
  EXPECT_TRUE(*space->Allows(StartVariant(space->bundle())));
  EXPECT_FALSE(space->Allows(v1::Variant()).ok());
  EXPECT_EQ(
      space->BeyondLimits(v1::Variant(), space->bundle().sizes(0), TypicalGpu(), BundleSpace::ModelOf(TypicalGpu())),
      "")
      << "the worker says why";
}

TEST(BundleSpaceTest, AnswersSeveralThreads) {
  const auto space = Space();
  const v1::Variant start = StartVariant(space->bundle());
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 100; ++j) {
        EXPECT_TRUE(*space->Allows(start));
        EXPECT_TRUE(space->PlanOf(start, space->bundle().sizes(0), TypicalGpu()).ok());
        EXPECT_EQ(
            space->BeyondLimits(start, space->bundle().sizes(0), TypicalGpu(), BundleSpace::ModelOf(TypicalGpu())), "");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace pawl
