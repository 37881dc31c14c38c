#include "profiles/student_t.h"

#include <gtest/gtest.h>

namespace pawl {
namespace {

TEST(StudentT, AgreesWithPublishedQuantiles) {
  EXPECT_NEAR(StudentTQuantile(0.99, 1), 31.820516, 1e-5);
  EXPECT_NEAR(StudentTQuantile(0.99, 2), 6.964557, 1e-6);
  EXPECT_NEAR(StudentTQuantile(0.99, 3), 4.540703, 1e-6);
  EXPECT_NEAR(StudentTQuantile(0.99, 6), 3.142668, 1e-6);
  EXPECT_NEAR(StudentTQuantile(0.99, 14), 2.624494, 1e-6);
  EXPECT_NEAR(StudentTQuantile(0.975, 5), 2.570582, 1e-6);
  EXPECT_NEAR(StudentTQuantile(0.95, 10), 1.812461, 1e-6);
  EXPECT_NEAR(StudentTQuantile(0.995, 29), 2.756386, 1e-6);
}

TEST(StudentT, ApproachesTheNormalDistribution) { EXPECT_NEAR(StudentTQuantile(0.99, 100000), 2.326348, 1e-4); }

TEST(StudentT, IsZeroAtTheMedian) { EXPECT_NEAR(StudentTQuantile(0.5, 6), 0, 1e-9); }

}  // namespace
}  // namespace pawl
