#include "worker/check/reference_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace pawl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Sums of rows of so many values.
v1::Bundle BundleWith(const std::string& reference, int columns = 100'000, double relative = 1e-5) {
  v1::Bundle bundle;
  bundle.mutable_reference()->mutable_source()->set_path("reference.cu");
  bundle.mutable_reference()->mutable_source()->set_text(reference);
  v1::Size* size = bundle.add_sizes();
  size->set_name("main");
  (*size->mutable_values())["ROWS"] = 10;
  (*size->mutable_values())["COLS"] = columns;
  for (const bool output : {false, true}) {
    v1::Tensor* tensor = bundle.add_tensors();
    tensor->set_name(output ? "out" : "x");
    tensor->set_type(v1::DATA_TYPE_F32);
    tensor->set_role(output ? v1::TENSOR_ROLE_OUTPUT : v1::TENSOR_ROLE_INPUT);
    tensor->add_shape("ROWS");
    if (!output) tensor->add_shape("COLS");
  }
  bundle.mutable_tolerance()->set_absolute(1e-4);
  bundle.mutable_tolerance()->set_relative(relative);
  return bundle;
}

TEST(RoundingOfReference, WarnsOfAFloatThatALoopAddsTo) {
  for (const char* sum : {"sum += x[i];", "{ sum += x[i]; }", "sum = sum + x[i];", "sum = fmaf(x[i], x[i], sum);"}) {
    const std::string source =
        std::string("__global__ void k(const float* x, float* out, int n) {\n  float sum = 0;\n") +
        "  for (int i = 0; i < n; ++i) " + sum + "\n  out[0] = sum;\n}\n";
    EXPECT_THAT(RoundingOfReference(BundleWith(source)),
                AllOf(HasSubstr("line 3 of reference.cu adds up `sum` in float"), HasSubstr("100000 values"),
                      HasSubstr("make it a double")))
        << sum;
  }
}

TEST(RoundingOfReference, SaysNothingOfExactOnes) {
  const auto said = [](const std::string& body) { return RoundingOfReference(BundleWith("void k() {" + body + "}")); };
  EXPECT_EQ(said("double sum = 0; for (int i = 0; i < n; ++i) sum += x[i];"), "");
  EXPECT_EQ(said("for (int i = 0; i < n; ++i) { float y = x[i]; y += 1; out[i] = y; }"), "") << "each for itself";
  EXPECT_EQ(said("float y = x[i]; y += 1;"), "");
  EXPECT_EQ(said("float most = 0; for (int i = 0; i < n; ++i) most = fmaxf(most, x[i]);"), "");
  EXPECT_EQ(said("float sum = 0; for (int i = 0"), "") << "no C++";
}

// Linear, or the test would take minutes.
TEST(RoundingOfReference, TakesSourcesThatNest) {
  for (const char* piece : {"for (", "for (;;) ", "while (1) { float s = 0; s = fmaf(", "for (;;) { float s = 0; "}) {
    std::string source = "void k() {";
    for (int i = 0; i < 100'000; ++i) source += piece;
    EXPECT_EQ(RoundingOfReference(BundleWith(source)), "") << piece;
  }
}

TEST(RoundingOfReference, SaysNothingWhereItsRoundingIsBelowTheTolerance) {
  const std::string source = "void k() { float sum = 0; for (int i = 0; i < n; ++i) sum += x[i]; }";
  EXPECT_NE(RoundingOfReference(BundleWith(source, 1000)), "");
  EXPECT_EQ(RoundingOfReference(BundleWith(source, 100)), "");
  EXPECT_EQ(RoundingOfReference(BundleWith(source, 1000, 1e-3)), "");
}

}  // namespace
}  // namespace pawl
