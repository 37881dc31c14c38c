#include "kernels/contract.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "kernels/read/bundle_reader.h"
#include "tests/kernels/bundle_folder.h"

namespace pawl {
namespace {

class ContractTest : public testing::Test {
 protected:
  ContractTest() : old_(ReadBundle(BundleFolder::Golden()).bundle), new_(old_) {}

  std::string Difference() const { return ContractDifference(old_, new_, "old/", "new/"); }

  v1::Bundle old_, new_;
};

TEST_F(ContractTest, IsTheSameWhateverTheImplementationIs) {
  EXPECT_EQ(Difference(), "");
  new_.set_name("other");
  new_.set_summary("other");
  new_.mutable_source()->set_text("// other\n");
  new_.set_compiler(v1::COMPILER_NVCC);
  new_.add_options("-G");
  new_.clear_variables();
  new_.clear_constraints();
  new_.clear_launches();
  new_.add_include("cub");
  new_.add_files()->set_path("more.cuh");
  new_.add_symbols()->set_name("table");
  v1::StructArgument& own = *new_.add_structs();
  own.set_name("own");
  v1::Tensor& scratch = *new_.add_tensors();
  scratch.set_name("more");
  scratch.set_role(v1::TENSOR_ROLE_SCRATCH);
  new_.mutable_tensors()->SwapElements(0, 1);
  new_.mutable_scalars()->SwapElements(0, 1);
  EXPECT_EQ(Difference(), "");
}

TEST_F(ContractTest, LeavesTheGoalOut) {
  new_.mutable_goal()->set_speedup(3);
  new_.mutable_goal()->set_size("tiny");
  EXPECT_EQ(Difference(), "") << "the same work is compared, whenever a campaign would stop";
}

TEST_F(ContractTest, NamesTheFirstFieldThatDiffers) {
  const std::pair<std::function<void(v1::Bundle&)>, const char*> changes[] = {
      {[](v1::Bundle& b) { (*b.mutable_sizes(1)->mutable_values())["ROWS"] = 2048; },
       "[[size]] main ROWS is 1024 in old/, 2048 in new/"},
      {[](v1::Bundle& b) { b.add_sizes()->set_name("large"); }, "only new/ has [[size]] large"},
      {[](v1::Bundle& b) { b.mutable_sizes()->RemoveLast(); }, "only old/ has [[size]] main"},
      {[](v1::Bundle& b) { b.mutable_sizes()->SwapElements(0, 1); }, "[[size]] tiny is at another position in new/"},
      {[](v1::Bundle& b) { b.mutable_tensors(0)->set_type(v1::DATA_TYPE_F32); },
       "[[tensor]] in type is DATA_TYPE_F16 in old/, DATA_TYPE_F32 in new/"},
      {[](v1::Bundle& b) { b.mutable_tensors(0)->set_shape(1, "COLS + 1"); },
       "[[tensor]] in shape 2 is COLS in old/, COLS + 1 in new/"},
      {[](v1::Bundle& b) { b.mutable_tensors(1)->clear_tolerance(); },
       "only old/ has [[tensor]] out tolerance absolute"},
      {[](v1::Bundle& b) { b.mutable_scalars(0)->set_value("2"); },
       "[[scalar]] factor value is 1 / sqrt(COLS) in old/, 2 in new/"},
      {[](v1::Bundle& b) { (*b.mutable_hidden())["ROWS"].set_high(601); },
       "[hidden] ROWS high is 600 in old/, 601 in new/"},
      {[](v1::Bundle& b) { b.mutable_reference()->mutable_launches(0)->set_grid(0, "1"); },
       "[reference] launches 1 grid 1 is ROWS in old/, 1 in new/"},
      {[](v1::Bundle& b) { b.set_timing(v1::TIMING_MODE_WARM); },
       "timing is TIMING_MODE_COLD in old/, TIMING_MODE_WARM in new/"},
      {[](v1::Bundle& b) { b.set_nondeterministic(false); }, "only old/ has deterministic = false"},
      {[](v1::Bundle& b) { b.set_baseline_command(1, "other.py"); },
       "[baseline] command 2 is baseline.py in old/, other.py in new/"},
      {[](v1::Bundle& b) { b.mutable_data_files()->Add()->set_path("x.npy"); }, "only new/ has data file x.npy"},
      {[](v1::Bundle& b) { b.mutable_reference()->add_files()->set_path("x.cuh"); },
       "only new/ has [reference] files x.cuh"},
      {[](v1::Bundle& b) { b.add_problem_files("x.npy"); }, "only new/ has data 1"},
  };
  for (const auto& [change, expected] : changes) {
    new_ = old_;
    change(new_);
    EXPECT_EQ(Difference(), expected);
  }
}

TEST_F(ContractTest, NamesTheLineFromWhichAReferenceDiffers) {
  std::string text = "// one\n// two\n" + old_.reference().source().text();
  old_.mutable_reference()->mutable_source()->set_text(text);
  text.replace(text.find("two"), 3, "2nd");
  new_.mutable_reference()->mutable_source()->set_text(text);
  EXPECT_EQ(Difference(), "[reference] source text differs from line 2 on");
}

}  // namespace
}  // namespace pawl
