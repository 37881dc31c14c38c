#include "report/axis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "report/svg.h"

namespace pawl {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using Scale = Axis::Scale;

TEST(AxisTest, MapsItsEndsToTheirPlaces) {
  const Axis linear(Scale::kLinear, 0, 10, 100, 200);
  EXPECT_DOUBLE_EQ(linear.At(0), 100);
  EXPECT_DOUBLE_EQ(linear.At(5), 150);
  EXPECT_DOUBLE_EQ(linear.At(99), 200) << "nothing is drawn outside";
  const Axis log(Scale::kLog, 0.1, 10, 300, 100);
  EXPECT_DOUBLE_EQ(log.At(1), 200);
  EXPECT_DOUBLE_EQ(log.At(0), 300);
}

TEST(AxisTest, HasTicksAtRoundValues) {
  EXPECT_THAT(Axis(Scale::kLinear, 0, 15, 0, 1).Ticks(8), ElementsAre(0, 2, 4, 6, 8, 10, 12, 14));
  EXPECT_THAT(Axis(Scale::kLog, 0.3, 6, 0, 1).Ticks(6),
              ElementsAre(DoubleEq(0.5), DoubleEq(1), DoubleEq(2), DoubleEq(5)));
  EXPECT_THAT(Axis(Scale::kLog, 1, 1e9, 0, 1).Ticks(5).size(), testing::Le(6u));
  EXPECT_THAT(Axis(Scale::kLog, 0.98, 1.09, 0, 1).Ticks(6).size(), testing::Ge(3u)) << "a narrow range too";
}

TEST(AxisTest, MendsARangeThatIsNone) {
  for (const double odd : {0.0, 1.0, std::numeric_limits<double>::infinity()}) {
    for (const Scale scale : {Scale::kLinear, Scale::kLog}) {
      const Axis axis(scale, odd, odd, 0, 100);
      EXPECT_GE(axis.At(odd), 0);
      EXPECT_LE(axis.At(odd), 100);
      EXPECT_LT(axis.Ticks(10).size(), 30u);
    }
  }
}

TEST(AxisTest, WritesLongNumbersShort) {
  EXPECT_EQ(TickText(0.25), "0.25");
  EXPECT_EQ(TickText(5000), "5000");
  EXPECT_EQ(TickText(20000), "20k");
  EXPECT_EQ(TickText(1e6), "1M");
}

TEST(LabelPlacesTest, LetsNoTwoLabelsMeet) {
  LabelPlaces places(0, 0, 100, 100);
  EXPECT_TRUE(places.Take(0, 0, 50, 10));
  EXPECT_FALSE(places.Take(40, 5, 20, 10));
  EXPECT_TRUE(places.Take(50, 0, 20, 10));
  EXPECT_FALSE(places.Take(90, 50, 20, 10)) << "it would leave the field";
}

}  // namespace
}  // namespace pawl
