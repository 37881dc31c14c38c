#include "kernels/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <set>

#include "kernels/read/bundle_reader.h"
#include "kernels/space.h"
#include "tests/kernels/bundle_folder.h"

namespace pawl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

v1::Bundle Golden() { return ReadBundle(BundleFolder::Golden()).bundle; }

v1::GpuInfo H200() {
  v1::GpuInfo gpu;
  gpu.set_name("NVIDIA H200");
  gpu.set_compute_major(9);
  gpu.set_sm_count(132);
  gpu.set_max_threads_per_sm(2048);
  gpu.set_max_threads_per_block(1024);
  gpu.set_registers_per_sm(65536);
  gpu.set_shared_per_sm(233472);
  gpu.set_shared_per_block_optin(232448);
  gpu.set_l2_bytes(62914560);
  gpu.set_memory_bytes(150754820096);
  return gpu;
}

v1::Variant With(v1::Variant variant, const std::string& name, int32_t value) {
  (*variant.mutable_values())[name] = value;
  return variant;
}

TEST(PlanTest, EvaluatesEverythingOfTheStartVariant) {
  const v1::Bundle bundle = Golden();
  const absl::StatusOr<v1::Plan> plan = MakePlan(bundle, StartVariant(bundle), bundle.sizes(1), H200());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->size(), "main");
  EXPECT_EQ(plan->sizes().at("COLS"), 4096);
  ASSERT_EQ(plan->tensors_size(), 5);
  EXPECT_EQ(plan->tensors(0).elements(), 1024 * 4096);
  EXPECT_THAT(plan->tensors(2).shape(), ElementsAre(1, 1024, 2));
  ASSERT_EQ(plan->launches_size(), 1);  // SPLITS is 1: nothing to combine
  const v1::PlanLaunch& launch = plan->launches(0);
  EXPECT_EQ(launch.entry(), "scale_rows");
  EXPECT_EQ(launch.grid().x(), 64);
  EXPECT_EQ(launch.grid().y(), 1024);
  EXPECT_EQ(launch.grid().z(), 1);
  EXPECT_EQ(launch.block().x(), 64);
  EXPECT_EQ(launch.block().y(), 1);
  EXPECT_EQ(launch.shared_bytes(), 256);
  ASSERT_EQ(launch.arguments_size(), 9);
  EXPECT_EQ(launch.arguments(2).tensor(), 2);
  EXPECT_EQ(launch.arguments(3).i32(), 1024);
  EXPECT_EQ(launch.arguments(5).f32(), 1.0f / 64);
  EXPECT_EQ(launch.arguments(6).i32(), 64);
  EXPECT_EQ(plan->flops(), 1024.0 * 4096);
  EXPECT_EQ(plan->bytes(), 6 * 1024.0 * 4096);
  EXPECT_EQ(plan->tolerance().relative(), 0.001);
}

TEST(PlanTest, HasTheLaunchesWhoseConditionHolds) {
  const v1::Bundle bundle = Golden();
  const v1::Variant split = With(StartVariant(bundle), "SPLITS", 2);
  const absl::StatusOr<v1::Plan> plan = MakePlan(bundle, split, bundle.sizes(0), H200());
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->launches_size(), 2);
  EXPECT_EQ(plan->launches(1).entry(), "combine");
  EXPECT_EQ(plan->launches(1).grid().x(), 8);
}

TEST(PlanTest, RefusesAGeometryThatIsNoWholeNumber) {
  const v1::Bundle bundle = Golden();
  const v1::Variant split = With(StartVariant(bundle), "SPLITS", 4);
  const absl::Status status = MakePlan(bundle, split, bundle.sizes(0), H200()).status();
  EXPECT_EQ(status.message(),
            "launch combine at size tiny: grid: \"ROWS / (SPLITS - 1)\" is 2.66667, not a whole number");
}

TEST(PlanTest, TheReferenceKnowsNoScratchAndNoVariables) {
  const v1::Bundle bundle = Golden();
  const absl::StatusOr<v1::Plan> plan = MakeReferencePlan(bundle, bundle.sizes(0), H200());
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->tensors_size(), 4);
  EXPECT_EQ(plan->tensors(1).name(), "out");
  ASSERT_EQ(plan->launches_size(), 1);
  EXPECT_EQ(plan->launches(0).entry(), "scale_rows_reference");
  EXPECT_EQ(plan->launches(0).grid().x(), 8);
  EXPECT_EQ(plan->launches(0).arguments(1).tensor(), 1);
}

TEST(PlanTest, AnExpressionMayUseTheGpusLimits) {
  v1::Bundle bundle = Golden();
  bundle.mutable_launches(0)->set_grid(0, "SM_COUNT * 2");
  EXPECT_EQ(MakePlan(bundle, StartVariant(bundle), bundle.sizes(0), H200())->launches(0).grid().x(), 264);
}

TEST(PlanTest, KnowsWhatAGpuCanNotLaunch) {
  const v1::Bundle bundle = Golden();
  const v1::Plan good = *MakePlan(bundle, StartVariant(bundle), bundle.sizes(1), H200());
  EXPECT_FALSE(CheckLaunchLimits(good, H200()).has_value());
  const auto failure = [&](auto change) {
    v1::Plan plan = good;
    change(*plan.mutable_launches(0));
    return CheckLaunchLimits(plan, H200()).value_or(v1::Failure());
  };
  const v1::Failure shared = failure([](v1::PlanLaunch& launch) { launch.set_shared_bytes(232449); });
  EXPECT_EQ(shared.stage(), v1::STAGE_STATIC_CHECK);
  EXPECT_EQ(shared.check(), v1::CHECK_LAUNCH_LIMITS);
  EXPECT_EQ(shared.size(), "main");
  EXPECT_EQ(shared.message(),
            "launch scale_rows: shared memory in bytes is 232449; the limit of NVIDIA H200 is 232448");
  EXPECT_THAT(failure([](v1::PlanLaunch& launch) { launch.mutable_block()->set_y(17); }).message(),
              HasSubstr("64 x 17 x 1 = 1088 threads; the limit of NVIDIA H200 is 1024"));
  EXPECT_THAT(failure([](v1::PlanLaunch& launch) {
                launch.mutable_block()->set_x(1);
                launch.mutable_block()->set_z(65);
              }).message(),
              HasSubstr("block z 65"));
  EXPECT_THAT(failure([](v1::PlanLaunch& launch) { launch.mutable_grid()->set_y(65536); }).message(),
              HasSubstr("grid y 65536"));
  EXPECT_THAT(failure([](v1::PlanLaunch& launch) { launch.mutable_grid()->set_z(65536); }).message(),
              HasSubstr("grid z 65536"));
  v1::Plan huge = good;
  huge.mutable_tensors(0)->set_elements(int64_t{1} << 40);
  EXPECT_EQ(CheckLaunchLimits(huge, H200())->check(), v1::CHECK_OUT_OF_MEMORY);
  v1::GpuInfo unknown;
  EXPECT_FALSE(CheckLaunchLimits(huge, unknown).has_value());
}

TEST(PlanTest, AllowsEveryLimitOfALaunchAndNothingBeyondIt) {
  const v1::Bundle bundle = Golden();
  const v1::Plan good = *MakePlan(bundle, StartVariant(bundle), bundle.sizes(1), H200());
  v1::GpuInfo any;  // without a limit of threads, which would come first
  v1::GpuInfo h200 = H200();
  const struct {
    const char* what;
    const v1::GpuInfo& gpu;
    int limit;
    std::function<void(v1::PlanLaunch&, int)> set;
  } limits[] = {
      {"block x", any, 1024, [](v1::PlanLaunch& launch, int to) { launch.mutable_block()->set_x(to); }},
      {"block y", any, 1024, [](v1::PlanLaunch& launch, int to) { launch.mutable_block()->set_y(to); }},
      {"block z", any, 64, [](v1::PlanLaunch& launch, int to) { launch.mutable_block()->set_z(to); }},
      {"grid y", any, 65535, [](v1::PlanLaunch& launch, int to) { launch.mutable_grid()->set_y(to); }},
      {"grid z", any, 65535, [](v1::PlanLaunch& launch, int to) { launch.mutable_grid()->set_z(to); }},
      {"shared memory", h200, 232448, [](v1::PlanLaunch& launch, int to) { launch.set_shared_bytes(to); }},
      {"threads", h200, 1024, [](v1::PlanLaunch& launch, int to) { launch.mutable_block()->set_x(to); }},
  };
  for (const auto& [what, gpu, limit, set] : limits) {
    SCOPED_TRACE(what);
    for (const int beyond : {0, 1}) {
      v1::Plan plan = good;
      v1::PlanLaunch& launch = *plan.mutable_launches(0);
      for (v1::Dim3* dim : {launch.mutable_block(), launch.mutable_grid()}) {
        dim->set_x(1);
        dim->set_y(1);
        dim->set_z(1);
      }
      set(launch, limit + beyond);
      const std::optional<v1::Failure> failure = CheckLaunchLimits(plan, gpu);
      EXPECT_EQ(failure.has_value(), beyond == 1);
      EXPECT_THAT(failure.value_or(v1::Failure()).message(), HasSubstr(beyond == 1 ? what : ""));
    }
  }
  v1::Plan full = good;
  full.clear_tensors();
  v1::PlanTensor& tensor = *full.add_tensors();
  tensor.set_type(v1::DATA_TYPE_F32);
  tensor.set_elements(h200.memory_bytes() / 4);
  EXPECT_FALSE(CheckLaunchLimits(full, h200).has_value());
  tensor.set_elements(h200.memory_bytes() / 4 + 1);
  EXPECT_TRUE(CheckLaunchLimits(full, h200).has_value());
}

TEST(PlanTest, CompilesVariablesAsMacrosOrOptionsAndSizesThatAreMentioned) {
  v1::Bundle bundle = Golden();
  EXPECT_THAT(CompileOptions(bundle, StartVariant(bundle), bundle.sizes(0)),
              ElementsAre("--use_fast_math", "-DSPLITS=1", "-DTILE=64", "-maxrregcount=255", "-DSIZE_COLS=32"));
  EXPECT_TRUE(FixesSizes(bundle));
  EXPECT_TRUE(ContractCompileOptions(bundle.reference().source(), bundle.sizes(0)).empty());
  bundle.mutable_source()->set_text("int SIZE_COLS2, MY_SIZE_COLS, SIZE_OTHER;");
  EXPECT_FALSE(FixesSizes(bundle));
  EXPECT_EQ(CompileOptions(bundle, StartVariant(bundle), bundle.sizes(0)).back(), "-maxrregcount=255");
  bundle.mutable_source()->set_text("SIZE_ROWS");
  EXPECT_TRUE(FixesSizes(bundle));
}

TEST(PlanTest, CompilesNoSizeThatOnlyALeftOutBranchMentions) {
  v1::Bundle bundle = Golden();
  bundle.mutable_source()->set_text("#if SPLITS > 1\nint fixed = SIZE_COLS;\n#else\nint n;\n#endif\n");
  v1::Variant variant = StartVariant(bundle);
  EXPECT_EQ(CompileOptions(bundle, variant, bundle.sizes(0)), CompileOptions(bundle, variant, bundle.sizes(1)));
  (*variant.mutable_values())["SPLITS"] = 2;
  EXPECT_EQ(CompileOptions(bundle, variant, bundle.sizes(0)).back(), "-DSIZE_COLS=32");
  EXPECT_EQ(CompileOptions(bundle, variant, bundle.sizes(1)).back(), "-DSIZE_COLS=4096");
}

TEST(PlanTest, SaysWhatValuesAlignmentAndToleranceEachTensorHas) {
  const v1::Bundle bundle = Golden();
  const v1::Plan plan = *MakePlan(bundle, StartVariant(bundle), bundle.sizes(1), TypicalGpu());
  const auto tensor = [&](const std::string& name) {
    for (const v1::PlanTensor& each : plan.tensors()) {
      if (each.name() == name) return each;
    }
    return v1::PlanTensor();
  };
  EXPECT_EQ(tensor("in").low(), -1000);
  EXPECT_EQ(tensor("in").high(), 1000);
  EXPECT_EQ(tensor("in").align(), 16);
  EXPECT_EQ(tensor("first").high(), 4095) << "COLS - 1";
  EXPECT_FALSE(tensor("out").has_low());
  EXPECT_EQ(ToleranceOf(plan, tensor("out")).relative(), 0.0005);
  EXPECT_TRUE(ToleranceOf(plan, tensor("copied")).exact());
  EXPECT_EQ(ToleranceOf(plan, tensor("partial")).relative(), 0.001) << "the bundle's";
}

v1::Bundle Graph() { return ReadBundle(BundleFolder::Golden("graph_steps")).bundle; }

TEST(PlanTest, EvaluatesStructsRepetitionsAndSetup) {
  const v1::Bundle bundle = Graph();
  const v1::Variant variant = With(With(StartVariant(bundle), "ACC", 1), "UNROLL", 2);
  const absl::StatusOr<v1::Plan> plan = MakePlan(bundle, variant, bundle.sizes(1), H200());
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->launches_size(), 2);
  const v1::PlanLaunch& advance = plan->launches(0);
  EXPECT_EQ(advance.entry(), "steps::advance<double, 2, false>");
  EXPECT_EQ(advance.repeat(), 32);
  EXPECT_THAT(advance.swap(), ElementsAre(0, 1));
  EXPECT_EQ(advance.cluster().x(), 2);
  EXPECT_EQ(advance.cluster().z(), 1);
  EXPECT_FALSE(advance.cooperative());
  const v1::PlanStruct& graph = advance.arguments(0).fields();
  ASSERT_EQ(graph.fields_size(), 4);
  EXPECT_EQ(graph.fields(0).tensor(), 2);
  EXPECT_EQ(graph.fields(3).raw(), std::string("\x00\x71\x02\x00\x00\x00\x00\x00", 8)) << "160000 as an i64";
  EXPECT_FALSE(graph.in_memory());
  EXPECT_TRUE(advance.arguments(1).fields().in_memory());
  EXPECT_EQ(advance.arguments(8).raw(), std::string("\x00\x30", 2)) << "0.125 as an f16";
  EXPECT_TRUE(advance.arguments(9).index());
  EXPECT_TRUE(plan->launches(1).cooperative());
  EXPECT_EQ(plan->launches(1).repeat(), 0) << "once";
  EXPECT_EQ(CountLaunches(*plan), 33);
  ASSERT_EQ(plan->setup_size(), 1);
  EXPECT_EQ(plan->setup(0).arguments(0).tensor(), 7);
  EXPECT_TRUE(plan->tensors(7).is_static());
  EXPECT_EQ(plan->tensors(7).file(), "table.npy");
  EXPECT_EQ(plan->tensors(2).high(), 160000) << "csr_offsets end at the number of edges";
  EXPECT_FALSE(plan->tensors(0).tolerance().exact());
  EXPECT_TRUE(plan->tensors(10).tolerance().exact()) << "integers are";
}

TEST(PlanTest, TheReferenceInPythonHasNoLaunches) {
  const v1::Bundle bundle = Graph();
  const absl::StatusOr<v1::Plan> plan = MakeReferencePlan(bundle, bundle.sizes(0), H200());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->launches_size(), 0);
  EXPECT_EQ(plan->setup_size(), 0);
  EXPECT_EQ(plan->tensors_size(), 9) << "no scratch";
}

TEST(PlanTest, LeavesOutALaunchThatIsRepeatedZeroTimes) {
  v1::Bundle bundle = Graph();
  bundle.mutable_launches(0)->set_repeat("STEPS - 5");
  const absl::StatusOr<v1::Plan> plan = MakePlan(bundle, StartVariant(bundle), bundle.sizes(0), H200());
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->launches_size(), 1);
  EXPECT_EQ(plan->launches(0).entry(), "count_visits");
}

v1::Bundle Club() { return ReadBundle(BundleFolder::Golden("club_steps")).bundle; }

TEST(PlanTest, RepeatsTheLaunchesOfALoopTogetherAndExchangesAfterTheLast) {
  v1::Bundle bundle = Club();
  *bundle.add_launches() = bundle.launches(1);
  bundle.mutable_launches(2)->clear_loop();
  bundle.mutable_launches(2)->set_arguments(2, "NODES");
  const absl::StatusOr<v1::Plan> plan = MakePlan(bundle, StartVariant(bundle), bundle.sizes(0), H200());
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->launches_size(), 3);
  EXPECT_EQ(plan->launches(0).loop(), 2);
  EXPECT_EQ(plan->launches(1).loop(), 0);
  EXPECT_EQ(plan->launches(2).loop(), 0);
  EXPECT_EQ(plan->launches(0).repeat(), 5);
  EXPECT_EQ(plan->launches(1).repeat(), 5);
  EXPECT_EQ(plan->launches(2).repeat(), 0);
  EXPECT_THAT(plan->launches(0).swap(), ElementsAre());
  EXPECT_THAT(plan->launches(1).swap(), ElementsAre(0, 1));
  EXPECT_TRUE(plan->launches(0).arguments(6).index());
  EXPECT_TRUE(plan->launches(1).arguments(2).index()) << "the loop's";
  EXPECT_EQ(CountLaunches(*plan), 11);
}

TEST(PlanTest, LeavesLaunchesOfALoopOut) {
  v1::Bundle bundle = Club();
  bundle.mutable_launches(0)->set_when("0");
  absl::StatusOr<v1::Plan> plan = MakePlan(bundle, StartVariant(bundle), bundle.sizes(0), H200());
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->launches_size(), 1);
  EXPECT_EQ(plan->launches(0).loop(), 0);
  EXPECT_EQ(plan->launches(0).repeat(), 5);
  EXPECT_THAT(plan->launches(0).swap(), ElementsAre(0, 1));
  *bundle.add_launches() = bundle.launches(1);
  bundle.mutable_launches(2)->clear_loop();
  bundle.mutable_launches(2)->set_arguments(2, "NODES");
  bundle.mutable_launches(0)->set_repeat("0");
  plan = MakePlan(bundle, StartVariant(bundle), bundle.sizes(0), H200());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->launches_size(), 1) << "nothing of a loop that is repeated zero times";
  bundle.mutable_launches(0)->set_when("1");
  bundle.mutable_launches(0)->set_repeat("5001");
  EXPECT_THAT(MakePlan(bundle, StartVariant(bundle), bundle.sizes(0), H200()).status().message(),
              HasSubstr("launch damp at size club: a call has more than 10000 launches"));
}

TEST(PlanTest, HasTheSymbolsWithTheirTensors) {
  v1::Bundle bundle = Club();
  const absl::StatusOr<v1::Plan> plan = MakePlan(bundle, StartVariant(bundle), bundle.sizes(0), H200());
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->symbols_size(), 1);
  EXPECT_EQ(plan->symbols(0).name(), "club::weights");
  EXPECT_EQ(plan->tensors(plan->symbols(0).tensor()).name(), "weights");
  const absl::StatusOr<v1::Plan> reference = MakeReferencePlan(bundle, bundle.sizes(0), H200());
  ASSERT_TRUE(reference.ok()) << reference.status();
  ASSERT_EQ(reference->symbols_size(), 1);
  EXPECT_EQ(reference->tensors(reference->symbols(0).tensor()).name(), "weights") << "there is no scratch before it";
  bundle.mutable_tensors(5)->set_is_static(false);
  EXPECT_EQ(MakePlan(bundle, StartVariant(bundle), bundle.sizes(0), H200()).status().message(),
            "symbol club::weights: weights is not static");
}

TEST(PlanTest, CompilesSizesThatAFileOfTheReferenceMentions) {
  v1::Bundle bundle = Club();
  const v1::Reference& reference = bundle.reference();
  EXPECT_THAT(ContractCompileOptions(reference.source(), bundle.sizes(0), reference.files()), ElementsAre());
  bundle.mutable_reference()->mutable_files(0)->mutable_text()->append("int x[SIZE_NODES];\n");
  EXPECT_THAT(ContractCompileOptions(reference.source(), bundle.sizes(0), reference.files()),
              ElementsAre("-DSIZE_NODES=34"));
}

TEST(PlanTest, CompilesWordsFlagsAndEveryFile) {
  v1::Bundle bundle = Graph();
  const v1::Variant variant = With(With(With(StartVariant(bundle), "ACC", 1), "STAGED", 1), "FAST_MATH", 1);
  EXPECT_THAT(CompileOptions(bundle, variant, bundle.sizes(0)),
              ElementsAre("-DACC=double", "-DUNROLL=1", "-DSTAGED=1", "--use_fast_math"));
  EXPECT_THAT(CompileOptions(bundle, StartVariant(bundle), bundle.sizes(0)),
              ElementsAre("-DACC=float", "-DUNROLL=1", "-DSTAGED=0"));
  EXPECT_FALSE(FixesSizes(bundle));
  v1::Bundle by_entry = bundle;
  by_entry.mutable_launches(1)->set_entry("count<SIZE_NODES>");
  EXPECT_TRUE(FixesSizes(by_entry));
  bundle.mutable_files(0)->set_text("constexpr int kNodes = SIZE_NODES;");
  EXPECT_TRUE(FixesSizes(bundle));
  EXPECT_EQ(CompileOptions(bundle, variant, bundle.sizes(0)).back(), "-DSIZE_NODES=1000");
  bundle.mutable_files(0)->set_text("#if STAGED\n__device__ int n = SIZE_NODES;\n#endif\n");
  EXPECT_EQ(CompileOptions(bundle, variant, bundle.sizes(0)).back(), "-DSIZE_NODES=1000");
  EXPECT_EQ(CompileOptions(bundle, StartVariant(bundle), bundle.sizes(0)).back(), "-DSTAGED=0");
  bundle.mutable_source()->set_text("#undef STAGED\n#define STAGED 1\n");
  EXPECT_EQ(CompileOptions(bundle, StartVariant(bundle), bundle.sizes(0)).back(), "-DSIZE_NODES=1000")
      << "another file may define it again";
  bundle.mutable_source()->set_path("kernel.ptx");
  EXPECT_THAT(CompileOptions(bundle, variant, bundle.sizes(0)), ElementsAre("--use_fast_math")) << "PTX has no macros";
}

TEST(PlanTest, ChecksClustersAndCooperativeGrids) {
  const v1::Bundle bundle = Graph();
  const v1::Plan good = *MakePlan(bundle, StartVariant(bundle), bundle.sizes(1), H200());
  EXPECT_FALSE(CheckLaunchLimits(good, H200()).has_value());
  const auto message = [&](const v1::GpuInfo& gpu, auto change) {
    v1::Plan plan = good;
    change(plan);
    return CheckLaunchLimits(plan, gpu).value_or(v1::Failure()).message();
  };
  v1::GpuInfo old = H200();
  old.set_compute_major(8);
  EXPECT_THAT(message(old, [](v1::Plan&) {}), HasSubstr("has no thread block clusters"));
  EXPECT_THAT(message(H200(), [](v1::Plan& plan) { plan.mutable_launches(0)->mutable_grid()->set_x(79); }),
              HasSubstr("the grid of 79 x 1 x 1 blocks is not a multiple of the cluster of 2 x 1 x 1"));
  const auto clusters = [](v1::Plan& plan, int blocks) {
    plan.mutable_launches(0)->mutable_grid()->set_x(10 * blocks);
    plan.mutable_launches(0)->mutable_cluster()->set_x(blocks);
  };
  EXPECT_EQ(message(H200(), [&](v1::Plan& plan) { clusters(plan, 16); }), "");
  EXPECT_THAT(message(H200(), [&](v1::Plan& plan) { clusters(plan, 17); }), HasSubstr("at most 16 are allowed"));
  EXPECT_THAT(message(H200(), [](v1::Plan& plan) { plan.mutable_launches(1)->mutable_grid()->set_x(132 * 8 + 1); }),
              HasSubstr("a cooperative grid of 1057 x 1 x 1 = 1057 blocks; at most 1056 fit on NVIDIA H200 at once"));
  EXPECT_EQ(message(H200(), [](v1::Plan& plan) { plan.mutable_launches(1)->mutable_grid()->set_x(132 * 8); }), "");
  EXPECT_THAT(message(H200(), [](v1::Plan& plan) { plan.mutable_launches(1)->set_shared_bytes(200000); }), "")
      << "79 blocks on 132 multiprocessors";
  EXPECT_THAT(message(H200(), [](v1::Plan& plan) { plan.mutable_setup(0)->mutable_block()->set_x(2000); }),
              HasSubstr("launch transpose_table"));
}

TEST(PlanTest, CountsPackedElementsAsHalfBytes) {
  v1::Plan plan;
  v1::PlanTensor& tensor = *plan.add_tensors();
  tensor.set_type(v1::DATA_TYPE_U4);
  tensor.set_elements(2000);
  v1::GpuInfo gpu;
  gpu.set_memory_bytes(1000);
  EXPECT_FALSE(CheckLaunchLimits(plan, gpu).has_value());
  gpu.set_memory_bytes(999);
  EXPECT_TRUE(CheckLaunchLimits(plan, gpu).has_value());
}

TEST(PlanTest, KeepsBundlesOfVersion010Usable) {
  v1::Bundle bundle = Golden();
  for (v1::Tensor& tensor : *bundle.mutable_tensors()) {
    tensor.clear_low();
    tensor.clear_high();
    tensor.clear_tolerance();
    tensor.clear_align();
  }
  const absl::StatusOr<v1::Plan> plan = MakePlan(bundle, StartVariant(bundle), bundle.sizes(0), TypicalGpu());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_FALSE(plan->tensors(0).has_low());
  EXPECT_EQ(plan->tensors(3).low(), 0) << "integers as they were drawn";
  EXPECT_EQ(plan->tensors(3).high(), 1023);
  EXPECT_TRUE(plan->tensors(4).tolerance().exact()) << "integers are exact";
}

TEST(PlanTest, RefusesARangeThatTheTypeDoesNotHold) {
  v1::Bundle bundle = Golden();
  bundle.mutable_tensors(0)->set_high("70000");
  EXPECT_THAT(std::string(MakePlan(bundle, StartVariant(bundle), bundle.sizes(0), TypicalGpu()).status().message()),
              HasSubstr("tensor in at size tiny: range: \"70000\" is 70000, which the tensor's type can't hold"));
  bundle.mutable_tensors(0)->set_high("COLS - 2000");
  EXPECT_THAT(std::string(MakePlan(bundle, StartVariant(bundle), bundle.sizes(0), TypicalGpu()).status().message()),
              HasSubstr("the lowest value is -1000, the highest -1968"));
}

bool IsPrime(int n) {
  for (int d = 2; d * d <= n; ++d) {
    if (n % d == 0) return false;
  }
  return n > 1;
}

// A kernel that is wrong for every size of one kind. Each trial must catch it, whatever it draws.
struct WrongKernel {
  const char* name;
  std::function<bool(int)> is_wrong;
};

const WrongKernel kWrongKernels[] = {
    {"even sizes", [](int n) { return n % 2 == 0; }},
    {"odd sizes", [](int n) { return n % 2 == 1; }},
    {"powers of two", [](int n) { return (n & (n - 1)) == 0; }},
    {"powers of two above 1", [](int n) { return n > 1 && (n & (n - 1)) == 0; }},
    {"everything but powers of two", [](int n) { return (n & (n - 1)) != 0; }},
    {"multiples of 16", [](int n) { return n % 16 == 0; }},
    {"multiples of 8", [](int n) { return n % 8 == 0; }},
    {"multiples of 4", [](int n) { return n % 4 == 0; }},
    {"multiples of 2 that are none of 4", [](int n) { return n % 4 == 2; }},
    {"multiples of 8 in the upper half", [](int n) { return n % 8 == 0 && n >= 300; }},
    {"powers of two that the ladder has not", [](int n) { return n > 1 && (n & (n - 1)) == 0 && n != 8 && n != 1024; }},
    {"whatever is no multiple of 2", [](int n) { return n % 2 != 0; }},
    {"whatever is no multiple of 16", [](int n) { return n % 16 != 0; }},
    {"primes", [](int n) { return IsPrime(n); }},
    {"1", [](int n) { return n == 1; }},
    {"the largest", [](int n) { return n == 600; }},
    {"the largest tenth", [](int n) { return n > 540; }},
};

TEST(HiddenSizesTest, CatchAKernelThatIsWrongForOneKindInEveryTrial) {
  v1::Bundle bundle = Golden();
  bundle.mutable_hidden()->erase("COLS");
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const std::vector<v1::Size> sizes = HiddenSizes(bundle, seed);
    ASSERT_LE(sizes.size(), kHiddenSizes);
    for (const WrongKernel& kernel : kWrongKernels) {
      EXPECT_TRUE(std::any_of(sizes.begin(), sizes.end(),
                              [&](const v1::Size& size) { return kernel.is_wrong(size.values().at("ROWS")); }))
          << kernel.name << " with seed " << seed;
    }
    for (const v1::Size& size : sizes) {
      EXPECT_EQ(size.name(), "hidden ROWS=" + std::to_string(size.values().at("ROWS")));
      EXPECT_EQ(size.values().at("COLS"), 32);  // as in the smallest size
      seen.insert(size.name());
    }
    EXPECT_EQ(HiddenSizes(bundle, seed).back().name(), sizes.back().name());
  }
  EXPECT_GT(seen.size(), 100u) << "what is drawn differs from trial to trial";
}

TEST(HiddenSizesTest, AreMoreAndOfMoreKindsForWhatIsAboutToBeKept) {
  v1::Bundle bundle = Golden();
  bundle.mutable_hidden()->erase("COLS");
  const WrongKernel further[] = {{"multiples of 4 that are none of 8", [](int n) { return n % 8 == 4; }},
                                 {"multiples of 8 that are none of 16", [](int n) { return n % 16 == 8; }},
                                 {"2", [](int n) { return n == 2; }},
                                 {"one less than the largest", [](int n) { return n == 599; }}};
  std::set<int> residues;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const std::vector<v1::Size> sizes = MoreHiddenSizes(bundle, seed);
    for (const WrongKernel& kernel : further) {
      EXPECT_TRUE(std::any_of(sizes.begin(), sizes.end(),
                              [&](const v1::Size& size) { return kernel.is_wrong(size.values().at("ROWS")); }))
          << kernel.name << " with seed " << seed;
    }
    for (const v1::Size& size : sizes) residues.insert(size.values().at("ROWS") % 16);
  }
  EXPECT_EQ(residues.size(), 16u);
}

TEST(HiddenSizesTest, OneLiesBesideTheTimedSizeWhereHiddenOnesEndFarBelow) {
  v1::Bundle bundle = Golden();
  v1::Size goal = bundle.sizes(bundle.sizes_size() - 1);
  (*goal.mutable_values())["ROWS"] = 4096;
  (*goal.mutable_values())["COLS"] = 8192;
  (*bundle.mutable_hidden())["ROWS"].set_high(600);
  (*bundle.mutable_hidden())["COLS"].set_high(600);
  (*bundle.mutable_hidden())["COLS"].set_multiple(8);
  std::set<int> rows;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const std::optional<v1::Size> beside = SizeBeside(bundle, goal, seed);
    ASSERT_TRUE(beside);
    rows.insert(beside->values().at("ROWS"));
    EXPECT_LT(beside->values().at("ROWS"), 4096);
    EXPECT_GT(beside->values().at("ROWS"), 4000);
    EXPECT_LT(beside->values().at("COLS"), 8192);
    EXPECT_EQ(beside->values().at("COLS") % 8, 0);
  }
  EXPECT_GT(rows.size(), 4u) << "nobody can foresee it";
  (*bundle.mutable_hidden())["ROWS"].set_high(4096);
  (*bundle.mutable_hidden())["COLS"].set_high(8192);
  EXPECT_FALSE(SizeBeside(bundle, goal, 1)) << "hidden sizes reach it";
}

TEST(HiddenSizesTest, OneLiesAnywhereBetweenTheHiddenOnesAndTheTimedSize) {
  v1::Bundle bundle = Golden();
  v1::Size goal = bundle.sizes(bundle.sizes_size() - 1);
  (*goal.mutable_values())["ROWS"] = 1 << 20;
  (*goal.mutable_values())["COLS"] = 1024;
  (*bundle.mutable_hidden())["ROWS"].set_high(600);
  (*bundle.mutable_hidden())["COLS"].set_high(1016);
  (*bundle.mutable_hidden())["COLS"].set_multiple(8);
  std::set<int> magnitudes;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const std::optional<v1::Size> between = SizeBetween(bundle, goal, seed);
    ASSERT_TRUE(between);
    const int rows = between->values().at("ROWS");
    EXPECT_GT(rows, 600);
    EXPECT_LT(rows, 1 << 20);
    magnitudes.insert(static_cast<int>(std::log2(rows)));
    EXPECT_EQ(between->values().at("COLS"), 1024) << "no multiple of 8 lies between";
  }
  EXPECT_EQ(magnitudes.size(), 11u) << "from 2^9 to 2^19";
  (*bundle.mutable_hidden())["ROWS"].set_high(1 << 20);
  EXPECT_FALSE(SizeBetween(bundle, goal, 1)) << "hidden sizes reach it";
}

// A kernel may take for granted that what is long is wide as well.
TEST(HiddenSizesTest, SomeHaveFewInOneDimensionAndAsManyAsTheTimedSizeInAnother) {
  v1::Bundle bundle = Golden();
  v1::Size goal = bundle.sizes(bundle.sizes_size() - 1);
  (*goal.mutable_values())["ROWS"] = 4096;
  (*goal.mutable_values())["COLS"] = 8192;
  (*bundle.mutable_hidden())["ROWS"].set_low(1);
  (*bundle.mutable_hidden())["ROWS"].set_high(600);
  (*bundle.mutable_hidden())["COLS"].set_low(8);
  (*bundle.mutable_hidden())["COLS"].set_high(600);
  (*bundle.mutable_hidden())["COLS"].set_multiple(8);
  std::set<int> few_rows, many_cols;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const std::vector<v1::Size> mixed = MixedSizes(bundle, {goal}, seed);
    ASSERT_EQ(mixed.size(), 2u);
    std::set<std::string> few;
    for (const v1::Size& size : mixed) {
      const int rows = size.values().at("ROWS"), cols = size.values().at("COLS");
      EXPECT_EQ(cols % 8, 0);
      EXPECT_LE(rows, 4096);
      EXPECT_LE(cols, 8192);
      EXPECT_THAT(size.name(), testing::StartsWith(absl::StrCat("beside ", goal.name(), " ")));
      if (rows <= 600) {
        few.insert("ROWS");
        few_rows.insert(rows);
        many_cols.insert(cols);
        EXPECT_GT(cols, 8000);
      } else {
        few.insert("COLS");
        EXPECT_LE(cols, 600);
        EXPECT_GT(rows, 4000);
      }
    }
    EXPECT_EQ(few.size(), 2u) << "each dimension once";
  }
  EXPECT_TRUE(few_rows.contains(1));
  EXPECT_GT(few_rows.size(), 20u) << "nobody can foresee them";
  EXPECT_TRUE(many_cols.contains(8192));
  EXPECT_GT(many_cols.size(), 4u);
}

TEST(HiddenSizesTest, OfManyDimensionsAndTimedSizesFourAreMixed) {
  v1::Bundle bundle = Golden();
  bundle.clear_hidden();
  std::vector<v1::Size> timed(3, bundle.sizes(0));
  for (int i = 0; i < 6; ++i) {
    const std::string name = absl::StrCat("D", i);
    (*bundle.mutable_hidden())[name].set_low(2);
    (*bundle.mutable_hidden())[name].set_high(i == 5 ? 4000 : 20);
    for (size_t k = 0; k < timed.size(); ++k) {
      timed[k].set_name(absl::StrCat("timed", k));
      (*timed[k].mutable_values())[name] = 100 * static_cast<int>(k + 1);
    }
  }
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const std::vector<v1::Size> mixed = MixedSizes(bundle, timed, seed);
    EXPECT_EQ(mixed.size(), 4u);
    std::set<std::string> few;
    for (const v1::Size& size : mixed) {
      int above = 0;
      for (const auto& [name, value] : size.values()) {
        EXPECT_LE(value, timed.back().values().at(name)) << "it takes no more memory than what is timed";
        if (!absl::StartsWith(name, "D")) continue;
        above += name != "D5" && value > 20;
        if (name == "D5" ? value % 100 != 0 : value <= 20) few.insert(name);
      }
      EXPECT_GT(above, 0) << size.name() << " is no hidden size";
    }
    EXPECT_GE(few.size(), 5u);
  }
}

TEST(HiddenSizesTest, NoneIsMixedWhereTheHiddenOnesReachEachCombination) {
  v1::Bundle bundle = Golden();
  v1::Size goal = bundle.sizes(bundle.sizes_size() - 1);
  (*goal.mutable_values())["ROWS"] = 4096;
  (*goal.mutable_values())["COLS"] = 512;
  (*bundle.mutable_hidden())["ROWS"].set_high(600);
  (*bundle.mutable_hidden())["COLS"].set_high(600);
  const std::vector<v1::Size> one = MixedSizes(bundle, {goal}, 1);
  ASSERT_EQ(one.size(), 1u) << "few rows with 512 columns are a hidden size";
  EXPECT_GT(one[0].values().at("ROWS"), 600);
  EXPECT_LT(one[0].values().at("COLS"), 512);
  (*bundle.mutable_hidden())["ROWS"].set_high(4096);
  EXPECT_THAT(MixedSizes(bundle, {goal}, 1), testing::IsEmpty());
  (*bundle.mutable_hidden())["ROWS"].set_high(600);
  bundle.mutable_hidden()->erase("COLS");
  EXPECT_THAT(MixedSizes(bundle, {goal}, 1), testing::IsEmpty()) << "COLS must not change";
}

TEST(HiddenSizesTest, CatchAKernelThatIsWrongForSquareMatrices) {
  v1::Bundle bundle = Golden();
  (*bundle.mutable_hidden())["COLS"].clear_multiple();
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const std::vector<v1::Size> sizes = HiddenSizes(bundle, seed);
    EXPECT_TRUE(std::any_of(sizes.begin(), sizes.end(), [](const v1::Size& size) {
      return size.values().at("ROWS") == size.values().at("COLS") && size.values().at("ROWS") % 32 != 0;
    })) << seed;
  }
}

TEST(HiddenSizesTest, CombineTheLargestAndTheSmallestOfAllDimensions) {
  v1::Bundle bundle = Golden();
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const std::vector<v1::Size> sizes = HiddenSizes(bundle, seed);
    EXPECT_EQ(sizes.front().name(), "hidden COLS=32 ROWS=1");
    EXPECT_EQ(sizes.back().name(), "hidden COLS=720 ROWS=600");
    for (const v1::Size& size : sizes) EXPECT_EQ(size.values().at("COLS") % 16, 0) << "multiple = 16";
  }
}

TEST(HiddenSizesTest, StayWithinTheRange) {
  v1::Bundle bundle = Golden();
  bundle.clear_hidden();
  EXPECT_TRUE(HiddenSizes(bundle, 1).empty());
  v1::HiddenRange& range = (*bundle.mutable_hidden())["ROWS"];
  for (const auto& [low, high] : {std::pair{24, 28}, {1, 1}, {2147483647, 2147483647}, {2147483000, 2147483647}}) {
    range.set_low(low);
    range.set_high(high);
    for (uint64_t seed = 0; seed < 20; ++seed) {
      for (const v1::Size& size : HiddenSizes(bundle, seed)) {
        EXPECT_GE(size.values().at("ROWS"), low);
        EXPECT_LE(size.values().at("ROWS"), high);
      }
    }
  }
}

}  // namespace
}  // namespace pawl
