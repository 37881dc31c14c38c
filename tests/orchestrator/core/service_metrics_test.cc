// What /metrics says of an orchestrator, and in which form.
#include "orchestrator/core/service_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orchestrator/meters/exposition.h"
#include "tests/orchestrator/scripted_worker.h"
#include "tests/orchestrator/world.h"

namespace pawl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string MetricsOf(World& world) { return ServiceMetrics(*world, world.store()).value(); }

TEST(ExpositionTest, EscapesLabelsAndAddsUpBuckets) {
  Exposition text;
  text.Family("things_total", "counter", "Things.");
  text.Sample({{"name", "a \"b\"\\\nc"}, {"kind", "\xff"}}, 3);
  LatencyHistogram histogram;
  for (const double seconds : {0.0001, 0.001, 0.3, 60.0}) histogram.Observe(seconds);
  text.Family("took_seconds", "histogram", "Took.");
  text.Histogram({{"of", "x"}}, histogram);
  EXPECT_THAT(text.text(), HasSubstr("# HELP things_total Things.\n# TYPE things_total counter\n"
                                     "things_total{name=\"a \\\"b\\\"\\\\\\nc\",kind=\"?\"} 3\n"));
  EXPECT_THAT(text.text(), HasSubstr("took_seconds_bucket{of=\"x\",le=\"0.0005\"} 1\n"
                                     "took_seconds_bucket{of=\"x\",le=\"0.001\"} 2\n"));
  EXPECT_THAT(text.text(), HasSubstr("took_seconds_bucket{of=\"x\",le=\"10\"} 3\n"
                                     "took_seconds_bucket{of=\"x\",le=\"+Inf\"} 4\n"
                                     "took_seconds_sum{of=\"x\"} 60.3011\ntook_seconds_count{of=\"x\"} 4\n"));
}

TEST(ServiceMetricsTest, NamesTheGpuThatNoWorkerHas) {
  World world;
  v1::CampaignSpec spec;
  spec.set_gpu("B300");
  world.Submit(spec);
  world.Submit();
  ScriptedWorker worker(world, "a");
  const std::string text = MetricsOf(world);
  EXPECT_THAT(text, HasSubstr("\npawl_trials_queued{gpu=\"B300\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\npawl_trials_unserved{gpu=\"B300\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\npawl_trials_queued{gpu=\"any\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\npawl_trials_unserved{gpu=\"any\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("\npawl_workers{gpu=\"NVIDIA H200\",state=\"idle\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\npawl_campaigns_waiting{for=\"device\"} 1\n"));
}

TEST(ServiceMetricsTest, FollowsATrialFromTheQueueToItsVerdict) {
  World world;
  world.Submit();
  ScriptedWorker worker(world, "a");
  const v1::LeaseTrialResponse leased = worker.MustLease();
  world.Pass(absl::Seconds(3));
  std::string text = MetricsOf(world);
  EXPECT_THAT(text, HasSubstr("\npawl_trials_queued{gpu=\"NVIDIA H200\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("\npawl_trials_leased{gpu=\"NVIDIA H200\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\npawl_trials_oldest_leased_seconds{gpu=\"NVIDIA H200\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("\npawl_workers{gpu=\"NVIDIA H200\",state=\"busy\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\npawl_campaigns{state=\"running\"} 1\n"));
  const Measure builds = [](const v1::Trial& trial) {
    v1::TrialResult result = NothingHelps(trial);
    result.set_cached_builds(2);
    result.set_compiled_builds(5);
    return result;
  };
  ASSERT_TRUE(worker.Complete(leased, builds).ok());
  worker.RunAll();
  text = MetricsOf(world);
  EXPECT_THAT(text, HasSubstr("\npawl_builds_total{gpu=\"NVIDIA H200\",from=\"cache\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("\npawl_builds_total{gpu=\"NVIDIA H200\",from=\"compiler\"} 5\n"));
  EXPECT_THAT(text, HasSubstr("\npawl_trials_finished_total{gpu=\"NVIDIA H200\",verdict=\"kept\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\npawl_trials_finished_total{gpu=\"NVIDIA H200\",verdict=\"reverted\"} "));
  EXPECT_THAT(text, HasSubstr("\npawl_campaigns_ended_total{state=\"finished\"} 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("pawl_trials_queued{")));
  EXPECT_THAT(text, HasSubstr("\npawl_commit_seconds_count "));
  EXPECT_THAT(text, HasSubstr("\npawl_gpu_seconds_total{author="));
}

TEST(ServiceMetricsTest, CountsLostLeasesByReason) {
  World world;
  world.Submit();
  ScriptedWorker worker(world, "a");
  const v1::LeaseTrialResponse leased = worker.MustLease();
  ASSERT_TRUE(worker.Renew(leased.lease()).ok());
  world.Pass(absl::Seconds(20));
  const std::string text = MetricsOf(world);
  EXPECT_THAT(text, HasSubstr("\npawl_leases_lost_total{reason=\"expired\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\npawl_trials_unserved{gpu=\"NVIDIA H200\"} 1\n")) << "its worker is gone";
}

size_t LinesWith(const std::string& text, const std::string& begin) {
  size_t lines = 0;
  for (size_t at = text.find("\n" + begin); at != std::string::npos; at = text.find("\n" + begin, at + 1)) ++lines;
  return lines;
}

TEST(ServiceMetricsTest, NamesThatOthersChooseHaveALimitedNumberOfLabels) {
  World world;
  for (size_t i = 0; i < kMostNames + 20; ++i) {
    v1::SubmitCampaignRequest request;
    *request.mutable_bundle() = TinyBundle();
    request.mutable_spec()->set_gpu("GPU " + std::to_string(i));
    request.mutable_spec()->mutable_budget()->set_iterations(1);
    request.set_author("author " + std::to_string(i));
    ASSERT_TRUE(world->Submit(request).ok());
  }
  std::string text = MetricsOf(world);
  EXPECT_EQ(LinesWith(text, "pawl_trials_queued{"), kMostNames + 1);
  EXPECT_THAT(text, HasSubstr("\npawl_trials_queued{gpu=\"other\"} 20\n"));
  for (size_t i = 0; i < kMostNames + 20; ++i) {
    ScriptedWorker worker(world, std::to_string(i), MadeDevice("GPU " + std::to_string(i)));
    ASSERT_TRUE(worker
                    .Complete(worker.MustLease(),
                              [&](const v1::Trial& trial) {
                                v1::TrialResult result = NothingHelps(trial);
                                result.set_device("called " + std::to_string(i));  // by itself
                                return result;
                              })
                    .ok());
  }
  text = MetricsOf(world);
  EXPECT_EQ(LinesWith(text, "pawl_workers{"), kMostNames + 1);
  EXPECT_EQ(LinesWith(text, "pawl_gpu_seconds_total{"), kMostNames + 1);
  EXPECT_LE(LinesWith(text, "pawl_trials_leased_total{"), kMostNames + 1);
  EXPECT_LE(LinesWith(text, "pawl_trials_finished_total{"), kMostNames + 1);
  EXPECT_THAT(text, HasSubstr("pawl_trials_finished_total{gpu=\"other\",verdict=\"kept\"}"));
}

TEST(ServiceMetricsTest, AddsUpBlobsOnceEach) {
  World world;
  world.Submit();
  const StoreSizes before = world.store().Sizes().value();
  EXPECT_GT(before.blobs, 0);
  EXPECT_GT(before.database + before.wal, before.blobs);
  EXPECT_GT(before.disk, before.free);
  world.Submit();  // the same bundle: no blob more
  const StoreSizes after = world.store().Sizes().value();
  EXPECT_EQ(after.blobs, before.blobs);
  EXPECT_EQ(after.blob_count, before.blob_count);
}

}  // namespace
}  // namespace pawl
