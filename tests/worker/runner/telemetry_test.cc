#include "worker/runner/telemetry.h"

#include <gtest/gtest.h>

namespace pawl {
namespace {

v1::GpuState State(int sm_clock_mhz, uint64_t throttle_reasons = 0) {
  v1::GpuState state;
  state.set_sm_clock_mhz(sm_clock_mhz);
  state.set_throttle_reasons(throttle_reasons);
  return state;
}

TEST(SteadyBetween, AllowsClocksWithinTwoPercent) {
  EXPECT_TRUE(SteadyBetween(State(1980), State(1980)));
  EXPECT_TRUE(SteadyBetween(State(2000), State(1960)));
  EXPECT_TRUE(SteadyBetween(State(1960), State(2000)));
  EXPECT_FALSE(SteadyBetween(State(2000), State(1959)));
  EXPECT_FALSE(SteadyBetween(State(1959), State(2000)));
}

TEST(SteadyBetween, WantsTheSameThrottleReasons) {
  EXPECT_TRUE(SteadyBetween(State(1980, 4), State(1980, 4)));
  EXPECT_FALSE(SteadyBetween(State(1980, 0), State(1980, 4)));
  EXPECT_FALSE(SteadyBetween(State(1980, 4), State(1980, 8)));
}

TEST(SteadyBetween, TakesNoOffenceAtTemperatureAndPower) {
  v1::GpuState warm = State(1980);
  warm.set_temperature_c(80);
  warm.set_power_mw(700'000);
  EXPECT_TRUE(SteadyBetween(State(1980), warm));
}

TEST(SteadyBetween, KnowsNothingAgainstStatesThatCouldNotBeRead) {
  EXPECT_TRUE(SteadyBetween(v1::GpuState(), v1::GpuState()));
  EXPECT_TRUE(SteadyBetween(State(1980), v1::GpuState()));
}

}  // namespace
}  // namespace pawl
