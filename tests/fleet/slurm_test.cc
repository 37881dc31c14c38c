// Slurm's commands as scripts: what is asked of them, and what becomes of a Slurm that is down, slow or refuses.
#include "fleet/slurm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "worker/process/temporary_folder.h"

namespace pawl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using State = FleetJob::State;

class SlurmTest : public testing::Test {
 protected:
  SlurmTest() : path_(getenv("PATH")) { setenv("PATH", (folder_.path().string() + ":" + path_).c_str(), 1); }
  ~SlurmTest() override { setenv("PATH", path_.c_str(), 1); }

  void Command(const std::string& name, const std::string& body) {
    const std::filesystem::path file = folder_.path() / name;
    std::ofstream(file) << "#!/bin/sh\n" << body << "\n";
    std::filesystem::permissions(file, std::filesystem::perms(0755));
  }
  std::string File(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(folder_.path() / name).rdbuf();
    return text.str();
  }
  Slurm Made(absl::Duration deadline = absl::Seconds(20)) {
    SlurmOptions options;
    options.partition = "gpu";
    options.script = "/opt/worker.sbatch";
    options.logs = "/home/ann";
    options.sbatch = {"--time=60"};
    options.worker = {"--orchestrator", "head:7465"};
    options.deadline = deadline;
    return Slurm(options);
  }

  const TemporaryFolder folder_{"pawl-slurm-test-"};
  const std::string path_;
};

TEST_F(SlurmTest, SubmitsAJobOfItsOwnName) {
  Command("sbatch", absl::StrCat("printf '%s\\n' \"$@\" > ", folder_.path().string(), "/words; echo '4711;cluster'"));
  EXPECT_EQ(Made().Submit({"H200", "gpu:h200:1"}).value(), 4711);
  EXPECT_EQ(File("words"),
            "--parsable\n--job-name=pawl-worker:H200\n--partition=gpu\n--output=/home/ann/pawl-worker-%j.log\n"
            "--gres=gpu:h200:1\n--time=60\n/opt/worker.sbatch\n--orchestrator\nhead:7465\n");
}

TEST_F(SlurmTest, TellsARefusalFromAnOutage) {
  Command("sbatch", "echo 'sbatch: error: Requested node configuration is not available' >&2; exit 1");
  absl::Status status = Made().Submit({}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("Requested node configuration is not available"));
  Command("sbatch", "echo 'sbatch: error: Unable to contact slurm controller (connect failure)' >&2; exit 1");
  EXPECT_TRUE(absl::IsUnavailable(Made().Submit({}).status()));
  Command("sbatch", "echo unexpected");
  EXPECT_TRUE(absl::IsFailedPrecondition(Made().Submit({}).status()));
}

TEST_F(SlurmTest, DoesNotWaitForASlowSlurm) {
  for (const char* command : {"squeue", "sbatch", "scancel"}) Command(command, "sleep 60");
  const absl::Time begin = absl::Now();
  const Slurm slurm = Made(absl::Milliseconds(200));
  EXPECT_TRUE(absl::IsUnavailable(slurm.Jobs().status()));
  EXPECT_TRUE(absl::IsUnavailable(slurm.Submit({}).status()));
  EXPECT_TRUE(absl::IsUnavailable(slurm.CancelPending({1})));
  EXPECT_LT(absl::Now() - begin, absl::Seconds(20));
}

TEST_F(SlurmTest, CancelsOnlyWhatIsPending) {
  Command("scancel", absl::StrCat("echo \"$@\" > ", folder_.path().string(), "/words"));
  EXPECT_TRUE(Made().CancelPending({7, 8}).ok());
  EXPECT_EQ(File("words"), "--state=PENDING 7 8\n");
}

TEST_F(SlurmTest, IsMissing) {
  setenv("PATH", folder_.path().c_str(), 1);
  const absl::Status status = Made().Jobs().status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("squeue"));
}

TEST_F(SlurmTest, KnowsItsJobsByNameAndUser) {
  const std::string user = absl::StrCat(geteuid());
  Command("squeue", absl::StrCat(R"(cat <<'END'
{"jobs": [
 {"job_id": 1, "name": "pawl-worker", "user_id": )",
                                 user, R"(, "job_state": "RUNNING", "start_time": 5, "end_time": 9},
 {"job_id": 2, "name": "pawl-worker:L4", "user_id": )",
                                 user, R"(, "job_state": "PENDING", "state_reason": "Resources"},
 {"job_id": 3, "name": "pawl-workers", "user_id": )",
                                 user, R"(, "job_state": "RUNNING"},
 {"job_id": 4, "name": "pawl-worker", "user_id": 99999, "job_state": "RUNNING"},
 {"job_id": 5, "name": "pawl-worker", "user_id": )",
                                 user, R"(, "job_state": "FAILED", "start_time": 5, "end_time": 6}
]}
END)"));
  const std::vector<FleetJob> jobs = Made().Jobs().value();
  ASSERT_EQ(jobs.size(), 3u);
  EXPECT_EQ(jobs[0].state, State::kRunning);
  EXPECT_EQ(jobs[1].state, State::kPending);
  EXPECT_EQ(jobs[1].gpu, "L4");
  EXPECT_EQ(jobs[1].reason, "Resources");
  EXPECT_EQ(jobs[2].state, State::kFailed);
  EXPECT_EQ(jobs[2].seconds, 1);
}

TEST_F(SlurmTest, ReadsBothFormsOfNumbersAndStates) {
  const std::vector<FleetJob> jobs =
      ReadJobs(R"({"jobs": [{"job_id": 7, "name": "w", "user_id": 1, "job_state": ["RUNNING", "COMPLETING"]},
                            {"job_id": 8, "name": "w", "user_id": 1, "job_state": ["OUT_OF_MEMORY"],
                             "start_time": {"set": true, "number": 10}, "end_time": {"set": true, "number": 13}},
                            {"job_id": 9, "name": "w", "user_id": 1, "job_state": ["PREEMPTED"]},
                            {"job_id": 10, "name": "w", "user_id": 1, "job_state": "PENDING", "state_reason": "BeginTime"}]})",
               "w", 1)
          .value();
  ASSERT_EQ(jobs.size(), 4u);
  EXPECT_EQ(jobs[0].state, State::kEnding);
  EXPECT_EQ(jobs[1].state, State::kFailed);
  EXPECT_EQ(jobs[1].seconds, 3);
  EXPECT_EQ(jobs[2].state, State::kEnded) << "preempted is not failed";
  EXPECT_EQ(jobs[3].state, State::kHeld) << "as after a requeue";
  EXPECT_FALSE(ReadJobs("slurm_load_jobs error", "w", 1).ok());
  EXPECT_FALSE(ReadJobs("{}", "w", 1).ok());
}

}  // namespace
}  // namespace pawl
