// The program pawl-worker itself: what it says and how it ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "tests/instrumented.h"
#include "worker/process/spawn.h"
#include "worker/process/subprocess.h"
#include "worker/process/temporary_folder.h"

namespace pawl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

ProcessResult RunWorker(std::vector<std::string> words, absl::Duration timeout = absl::Seconds(20)) {
  const char* bin = std::getenv("PAWL_BIN_DIR");
  ProcessOptions options;
  options.argv = std::move(words);
  options.argv.insert(options.argv.begin(), std::string(bin == nullptr ? "." : bin) + "/pawl-worker");
  options.timeout = timeout;
  options.grace = absl::Seconds(10) * kSlowdown;
  absl::StatusOr<ProcessResult> result = RunProcess(options);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : ProcessResult();
}

class WorkerProgram : public testing::Test {
 protected:
  const TemporaryFolder folder_{"pawl-worker-test-"};
  const std::string nobody_ = "unix:" + (folder_.path() / "nobody").string();
};

TEST_F(WorkerProgram, SaysHowItIsUsed) {
  const ProcessResult help = RunWorker({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.out,
              AllOf(HasSubstr("--orchestrator"), HasSubstr("--device"), HasSubstr("PAWL_DEVICE for --device")));
  const ProcessResult wrong = RunWorker({"--orchestrator", nobody_, "--device", "gpu"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("\"gpu\" is not a device"));
}

TEST_F(WorkerProgram, FailsWithoutRecordings) {
  const ProcessResult empty =
      RunWorker({"--orchestrator", nobody_, "--device", "replay", "--recordings", folder_.path().string()});
  EXPECT_EQ(empty.exit_code, 1);
  EXPECT_THAT(empty.err, AllOf(HasSubstr("no recordings"), HasSubstr("pawl record")));
}

TEST_F(WorkerProgram, FailsOnAGpuThatIsNotThere) {
  const ProcessResult result = RunWorker({"--orchestrator", nobody_, "--device", "cuda:99"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("cuda:99"));
}

// Until its time is up; the TERM that then comes must end it in order.
TEST_F(WorkerProgram, WaitsForAnOrchestratorAndDrainsWhenToldTo) {
  const ProcessResult result = RunWorker({"--orchestrator", nobody_, "--device", "replay"}, absl::Seconds(2));
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(result.signal, 0) << "it ended by itself";
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("the orchestrator at " + nobody_ + " does not answer"), HasSubstr("drained")));
}

// Each device has a worker of its own; what ends one that was told to end them all ends them all.
TEST_F(WorkerProgram, StartsAWorkerForEachOfSeveralDevices) {
  const ProcessResult result =
      RunWorker({"--orchestrator", nobody_, "--name", "crew", "--device", "replay,replay"}, absl::Seconds(3));
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(result.signal, 0) << "it ended by itself";
  EXPECT_EQ(result.exit_code, 0) << result.err;
  size_t drained = 0;
  for (size_t at = result.err.find("drained"); at != result.err.npos; at = result.err.find("drained", at + 1))
    ++drained;
  EXPECT_EQ(drained, 2u) << result.err;
}

TEST_F(WorkerProgram, GoesOnWithTheOtherDevicesWhereOneFails) {
  const ProcessResult result = RunWorker({"--orchestrator", nobody_, "--device=cuda:99,replay"}, absl::Seconds(3));
  EXPECT_TRUE(result.timed_out) << result.err;
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("the worker of cuda:99 exited with code 1; 1 still run"), HasSubstr("drained")));
}

TEST_F(WorkerProgram, RefusesListsThatMakeNoSense) {
  EXPECT_EQ(RunWorker({"--orchestrator", nobody_, "--device", "auto,replay"}).exit_code, 2);
  EXPECT_EQ(RunWorker({"--orchestrator", nobody_, "--device", "replay,"}).exit_code, 2);
}

}  // namespace
}  // namespace pawl
