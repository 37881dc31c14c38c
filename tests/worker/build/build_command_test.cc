#include <gtest/gtest.h>

#include "worker/build/built_variant.h"

namespace pawl {
namespace {

TEST(BuildCommand, CanBePastedIntoAShell) {
  v1::Bundle bundle;
  bundle.mutable_source()->set_path("src/softmax.cu");
  bundle.mutable_source()->set_text("int n = SIZE_COLS;");
  bundle.add_options("-DTEXT=it's two words");
  v1::Variable* block = bundle.add_variables();
  block->set_name("BLOCK");
  v1::Variable* registers = bundle.add_variables();
  registers->set_name("REGISTERS");
  registers->set_option("-maxrregcount={}");
  v1::Size size;
  (*size.mutable_values())["COLS"] = 128;
  v1::Variant variant;
  (*variant.mutable_values())["BLOCK"] = 64;
  (*variant.mutable_values())["REGISTERS"] = 32;
  EXPECT_EQ(
      BuildCommand(bundle, variant, size, "sm_90"),
      "nvcc -cubin -arch=sm_90 --std=c++17 '-DTEXT=it'\\''s two words' -DBLOCK=64 -maxrregcount=32 -DSIZE_COLS=128 "
      "-o softmax.cubin src/softmax.cu");
  bundle.clear_options();
  bundle.add_options("--std=c++20");
  EXPECT_EQ(BuildCommand(bundle, variant, size, "sm_90").find("c++17"), std::string::npos);
}

TEST(FindSize, IsByName) {
  v1::Bundle bundle;
  bundle.add_sizes()->set_name("tiny");
  EXPECT_EQ(FindSize(bundle, "tiny"), &bundle.sizes(0));
  EXPECT_EQ(FindSize(bundle, "main"), nullptr);
}

}  // namespace
}  // namespace pawl
