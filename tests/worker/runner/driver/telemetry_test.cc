#include "worker/runner/driver/telemetry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pawl {
namespace {

using ::testing::HasSubstr;

v1::GpuState State(int sm_clock_mhz, uint64_t throttle_reasons = 0) {
  v1::GpuState state;
  state.set_sm_clock_mhz(sm_clock_mhz);
  state.set_throttle_reasons(throttle_reasons);
  return state;
}

std::string Between(const v1::GpuState& before, const v1::GpuState& after) { return DisturbanceBetween(before, after); }

TEST(Disturbance, IsAClockThatDiffersByMoreThanTwoPercent) {
  EXPECT_EQ(Between(State(1980), State(1980)), "");
  EXPECT_EQ(Between(State(2000), State(1960)), "");
  EXPECT_EQ(Between(State(1960), State(2000)), "");
  EXPECT_THAT(Between(State(2000), State(1959)), HasSubstr("the SM clock changed"));
  EXPECT_THAT(Between(State(1959), State(2000)), HasSubstr("the SM clock changed"));
}

TEST(Disturbance, IsAThrottleReasonThatComesOrGoes) {
  EXPECT_EQ(Between(State(1980, 4), State(1980, 4)), "") << "a power cap that holds all the time";
  EXPECT_THAT(Between(State(1980, 0), State(1980, 4)), HasSubstr("throttle reasons changed"));
  EXPECT_THAT(Between(State(1980, 4), State(1980, 8)), HasSubstr("throttle reasons changed"));
}

TEST(Disturbance, IsAGpuThatProtectsItself) {
  EXPECT_THAT(Between(State(1200, 0x40), State(1200, 0x40)), HasSubstr("too hot"));
  EXPECT_THAT(Between(State(1200, 0x20), State(1200, 0x24)), HasSubstr("too hot"));
  EXPECT_THAT(Between(State(1200, 0x8), State(1200, 0x8)), HasSubstr("power supply"));
  EXPECT_THAT(Between(State(1200, 0x80), State(1200, 0x80)), HasSubstr("power supply"));
}

TEST(Disturbance, IsAnEccErrorOrMemoryThatFails) {
  v1::GpuState errors = State(1980), pending = State(1980);
  errors.set_ecc_errors(1);
  pending.set_retirement_pending(true);
  EXPECT_THAT(Between(State(1980), errors), HasSubstr("ECC"));
  EXPECT_EQ(Between(errors, errors), "") << "of before";
  EXPECT_THAT(Between(State(1980), pending), HasSubstr("waits to be retired"));
  EXPECT_EQ(Between(pending, pending), "");
}

TEST(Disturbance, IsNotTemperatureOrPower) {
  v1::GpuState warm = State(1980);
  warm.set_temperature_c(80);
  warm.set_power_mw(700'000);
  EXPECT_EQ(Between(State(1980), warm), "");
}

TEST(Disturbance, IsNotAStateThatCouldNotBeRead) {
  EXPECT_EQ(Between(v1::GpuState(), v1::GpuState()), "");
  EXPECT_EQ(Between(State(1980), v1::GpuState()), "");
}

}  // namespace
}  // namespace pawl
