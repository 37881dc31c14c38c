#include "base/messages/finite.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "pawl/v1/worker_service.pb.h"

namespace pawl {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

v1::CompleteTrialRequest Whole() {
  v1::CompleteTrialRequest request;
  v1::TrialResult& result = *request.mutable_result();
  result.set_warm_us(1);
  result.add_pairs()->set_parent_us(2);
  result.add_errors()->set_relative(0.5);
  (*result.mutable_evidence()->add_launches()->mutable_metrics())["waves"] = 3;
  return request;
}

TEST(FiniteTest, NamesTheFieldOfANumberThatIsNot) {
  EXPECT_EQ(FirstNonFinite(Whole()), std::nullopt);
  for (const double bad : {std::nan(""), kInfinity, -kInfinity}) {
    v1::CompleteTrialRequest request = Whole();
    request.mutable_result()->set_warm_us(bad);
    EXPECT_EQ(FirstNonFinite(request), "result.warm_us");
    request = Whole();
    request.mutable_result()->mutable_errors(0)->set_relative(bad);
    EXPECT_EQ(FirstNonFinite(request), "result.errors[0].relative");
    request = Whole();
    (*request.mutable_result()->mutable_evidence()->mutable_launches(0)->mutable_metrics())["waves"] = bad;
    EXPECT_EQ(FirstNonFinite(request), "result.evidence.launches[0].metrics[0].value");
  }
}

TEST(FiniteTest, TakesThemOutAndLeavesTheRest) {
  v1::CompleteTrialRequest request = Whole();
  ClearNonFinite(&request);
  EXPECT_EQ(request.SerializeAsString(), Whole().SerializeAsString());
  request.mutable_result()->set_warm_us(std::nan(""));
  request.mutable_result()->mutable_pairs(0)->set_candidate_us(kInfinity);
  auto& metrics = *request.mutable_result()->mutable_evidence()->mutable_launches(0)->mutable_metrics();
  metrics["a"] = kInfinity;
  metrics["b"] = std::nan("");
  ClearNonFinite(&request);
  EXPECT_EQ(FirstNonFinite(request), std::nullopt);
  EXPECT_EQ(request.result().warm_us(), 0);
  EXPECT_EQ(request.result().pairs(0).parent_us(), 2);
  EXPECT_EQ(request.result().evidence().launches(0).metrics().size(), 1u);
  EXPECT_EQ(request.result().evidence().launches(0).metrics().at("waves"), 3);
}

}  // namespace
}  // namespace pawl
