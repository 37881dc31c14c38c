#include "cli/text/differences.h"

#include <gtest/gtest.h>

#include "tests/cli/some_iterations.h"

namespace pawl {
namespace {

v1::LaunchEvidence* AddLaunch(v1::Iteration* iteration, int grid, int registers, double waves) {
  v1::LaunchEvidence* launch = iteration->mutable_evidence()->add_launches();
  launch->set_entry("attention_forward");
  launch->mutable_geometry()->mutable_grid()->set_x(grid);
  launch->mutable_geometry()->mutable_grid()->set_y(1);
  launch->mutable_geometry()->mutable_grid()->set_z(1);
  launch->mutable_resources()->set_registers(registers);
  (*launch->mutable_metrics())["waves"] = waves;
  (*launch->mutable_metrics())["occupancy"] = 50;
  return launch;
}

TEST(DifferencesTest, ShowsOnlyWhatDiffersOfIterations) {
  v1::Iteration first = SomeIterations()[0], second = SomeIterations()[1];
  first.set_cubin_hash("aaaabbbbccccdddd");
  (*AddLaunch(&first, 2, 64, 0.015)->mutable_metrics())["instructions"] = 1000;
  v1::LaunchEvidence* launch = AddLaunch(&second, 4, 128, 0.03);
  launch->mutable_resources()->set_local_bytes(16);
  (*launch->mutable_metrics())["instructions"] = 2500;
  (*launch->mutable_metrics())["only_here"] = 1;
  v1::LaunchEvidence* combine = second.mutable_evidence()->add_launches();
  combine->set_entry("attention_combine");
  Differences differences;
  differences.Iterations(first, second);
  EXPECT_EQ(differences.TableText("iteration 0", "iteration 1", 0),
            "                                             iteration 0  iteration 1   ratio\n"
            "outcome\n"
            "  time                                          20.12 us     13.41 us  0.667x\n"
            "  speedup over the baseline                       0.300x       0.450x\n"
            "  speedup over the start                          1.000x       1.500x\n"
            "variables\n"
            "  TILE_M                                              64           32\n"
            "generated code\n"
            "  cubin                                     aaaabbbbcccc            -\n"
            "  attention_forward: registers                        64          128      2x\n"
            "  attention_forward: local bytes (spills)              0           16\n"
            "  attention_forward: instructions executed          1000         2500    2.5x\n"
            "launch attention_forward\n"
            "  grid                                         2 x 1 x 1    4 x 1 x 1\n"
            "  waves                                            0.015         0.03      2x\n"
            "launch attention_combine\n"
            "  launched                                            no          yes\n");
}

TEST(DifferencesTest, IsEmptyForTheSameIteration) {
  Differences differences;
  differences.Iterations(SomeIterations()[1], SomeIterations()[1]);
  EXPECT_TRUE(differences.empty());
}

TEST(DifferencesTest, ComparesCampaigns) {
  v1::Campaign first, second;
  first.set_bundle("attention");
  second.set_bundle("attention");
  first.set_device("NVIDIA H200");
  second.set_device("NVIDIA L4");
  second.mutable_spec()->set_gpu("L4");
  first.set_state(v1::FINISHED);
  second.set_state(v1::RUNNING);
  first.mutable_counts()->set_tried(40);
  second.mutable_counts()->set_tried(20);
  second.set_best(0);
  first.set_start_us(20);
  second.set_start_us(60);
  Differences differences;
  differences.Campaigns(first, second);
  EXPECT_EQ(differences.TableText("campaigns/7", "campaigns/8", 0),
            "                  campaigns/7  campaigns/8  ratio\n"
            "campaign\n"
            "  only on                   -           L4\n"
            "  device          NVIDIA H200    NVIDIA L4\n"
            "  state              finished      running\n"
            "  tried                    40           20   0.5x\n"
            "  best iteration            -            0\n"
            "  start              20.00 us     60.00 us     3x\n");
}

}  // namespace
}  // namespace pawl
