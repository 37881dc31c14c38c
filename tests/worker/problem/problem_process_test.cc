// ProblemProcess with a real Python and NumPy, outside of a sandbox and in one.
#include "worker/problem/problem_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/sync/steady_time.h"
#include "worker/host/toolkit.h"
#include "worker/process/subprocess.h"

namespace pawl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kScale[] = R"(import numpy as np


def inputs(sizes, seed):
    rng = np.random.default_rng(seed)
    return {"x": rng.standard_normal(sizes["N"], dtype=np.float32)}


def reference(x):
    return {"y": 2 * x}
)";

bool HasNumpy() {
  ProcessOptions options;
  options.argv = {ProblemProcess::DefaultPython(), "-c", "import numpy"};
  const absl::StatusOr<ProcessResult> result = RunProcess(options);
  return result.ok() && result->ok();
}

v1::Bundle BundleOf(const std::string& source) {
  v1::Bundle bundle;
  bundle.set_name("scale");
  bundle.mutable_problem()->set_path("problem.py");
  bundle.mutable_problem()->set_text(source);
  return bundle;
}

v1::Plan PlanOf(int64_t n, const std::string& size = "tiny") {
  v1::Plan plan;
  plan.set_size(size);
  (*plan.mutable_sizes())["N"] = static_cast<int32_t>(n);
  for (const auto& [name, role] : {std::pair{"x", v1::TENSOR_ROLE_INPUT}, std::pair{"y", v1::TENSOR_ROLE_OUTPUT}}) {
    v1::PlanTensor& tensor = *plan.add_tensors();
    tensor.set_name(name);
    tensor.set_type(v1::DATA_TYPE_F32);
    tensor.set_role(role);
    tensor.add_shape(n);
    tensor.set_elements(n);
  }
  plan.mutable_tensors(0)->set_fill(v1::FILL_PROBLEM);
  return plan;
}

EntryRequest Entry(uint32_t entry = 0, uint64_t seed = uint64_t{7} << 40) {
  EntryRequest request;
  request.pool = "p";
  request.entry = entry;
  request.seed = seed;
  request.strict = true;
  return request;
}

class ProblemProcessTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!HasNumpy()) GTEST_SKIP() << ProblemProcess::DefaultPython() << " has no NumPy: set PAWL_PYTHON";
    options_.shared_fd = shared_.get();
    options_.deadline = absl::Seconds(20);
  }

  ProblemProcess& process() {
    if (process_ == nullptr) process_ = std::make_unique<ProblemProcess>(options_);
    return *process_;
  }

  absl::Status MakeOf(const std::string& source, int64_t n = 8) {
    return process().Make(BundleOf(source), PlanOf(n), Entry()).status();
  }

  std::vector<float> Read(const v1::ProvideRequest::Part& part) {
    std::vector<float> values(static_cast<size_t>(part.bytes()) / sizeof(float));
    EXPECT_EQ(pread(shared_.get(), values.data(), static_cast<size_t>(part.bytes()), part.offset()), part.bytes());
    return values;
  }

  Fd shared_{memfd_create("pawl-test", MFD_CLOEXEC)};
  ProblemProcess::Options options_;
  std::unique_ptr<ProblemProcess> process_;
};

std::string With(const std::string& old_text, const std::string& new_text) {
  return absl::StrReplaceAll(kScale, {{old_text, new_text}});
}

TEST_F(ProblemProcessTest, PutsInputsAndExpectedOutputsIntoSharedMemory) {
  const absl::StatusOr<StagedEntry> made = process().Make(BundleOf(kScale), PlanOf(1000), Entry());
  ASSERT_TRUE(made.ok()) << made.status();
  ASSERT_EQ(made->inputs.size(), 1u);
  ASSERT_EQ(made->expected.size(), 1u);
  EXPECT_EQ(made->inputs[0].tensor(), "x");
  EXPECT_EQ(made->expected[0].tensor(), "y");
  EXPECT_EQ(made->bytes(), 8000);
  const std::vector<float> x = Read(made->inputs[0]), y = Read(made->expected[0]);
  for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(y[i], 2 * x[i]);
  EXPECT_NE(x[0], x[1]);
}

TEST_F(ProblemProcessTest, StagesAnEntryAgainAndForgetsThoseOfAnotherProblem) {
  const v1::Bundle bundle = BundleOf(kScale);
  const absl::StatusOr<StagedEntry> first = process().Make(bundle, PlanOf(8), Entry(0));
  ASSERT_TRUE(first.ok()) << first.status();
  const std::vector<float> x = Read(first->inputs[0]);
  ASSERT_TRUE(process().Make(bundle, PlanOf(8), Entry(1, uint64_t{9} << 40)).ok());
  const absl::StatusOr<StagedEntry> again = process().Stage(bundle, "p", 0, 0);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(Read(again->inputs[0]), x);
  ASSERT_TRUE(process().Make(BundleOf(With("2 * x", "3 * x")), PlanOf(8), Entry()).ok());
  EXPECT_TRUE(absl::IsNotFound(process().Stage(bundle, "p", 1, 0).status()));
}

TEST_F(ProblemProcessTest, AnswersWhatWasAskedAhead) {
  const v1::Bundle bundle = BundleOf(kScale);
  const absl::StatusOr<StagedEntry> first = process().Make(bundle, PlanOf(8), Entry(0));
  ASSERT_TRUE(first.ok()) << first.status();
  const std::vector<float> x = Read(first->inputs[0]);
  EntryRequest next = Entry(1, uint64_t{9} << 40);
  next.offset = first->end();
  process().MakeAhead(bundle, PlanOf(8), next);
  const absl::StatusOr<StagedEntry> second = process().Make(bundle, PlanOf(8), next);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_GE(second->inputs[0].offset(), first->end());
  EXPECT_EQ(Read(first->inputs[0]), x) << "the first is still there";
  const std::vector<float> y = Read(second->inputs[0]);
  EXPECT_NE(x, y);
  process().StageAhead(bundle, "p", 0, second->end());
  const absl::StatusOr<StagedEntry> other = process().Stage(bundle, "p", 1, 0);
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ(Read(other->inputs[0]), y) << "not what was asked ahead";
  process().StageAhead(bundle, "p", 0, other->end());
  const absl::StatusOr<StagedEntry> again = process().Stage(bundle, "p", 0, other->end());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(Read(again->inputs[0]), x);
}

TEST_F(ProblemProcessTest, OpensAProblemAgainThatEndedWhenAskedAhead) {
  const v1::Bundle bundle =
      BundleOf("import os\n" + With("    rng =", "    if sizes['N'] == 9:\n        os._exit(1)\n    rng ="));
  ASSERT_TRUE(process().Make(bundle, PlanOf(8), Entry(0)).ok());
  process().MakeAhead(bundle, PlanOf(9), Entry(1));
  EXPECT_TRUE(absl::IsInvalidArgument(process().Make(bundle, PlanOf(9), Entry(1)).status()));
  ASSERT_TRUE(process().Make(bundle, PlanOf(8), Entry(0)).ok());
  process().MakeAhead(bundle, PlanOf(9), Entry(1));
  const absl::StatusOr<StagedEntry> made = process().Make(bundle, PlanOf(8), Entry(0));
  EXPECT_TRUE(made.ok()) << "nobody asked for what failed: " << made.status();
}

TEST_F(ProblemProcessTest, StaysForOtherProblemsAndLeavesNothingOfTheLast) {
  ASSERT_TRUE(MakeOf("import os\nos.pawl_mark = 1\n" + std::string(kScale)).ok());
  const pid_t pid = process().pid();
  EXPECT_THAT(MakeOf("import os\nassert not hasattr(os, 'pawl_mark')\n" + std::string(kScale)), absl::OkStatus());
  EXPECT_EQ(process().pid(), pid);
}

TEST_F(ProblemProcessTest, SaysInOneLineWhatIsWrongWithAProblem) {
  const std::pair<std::string, std::string> bad[] = {
      {With("2 * x", "x / undefined"), "problem.py:10 in reference(): NameError"},
      {"def inputs(sizes, seed:\n", "problem.py:1: SyntaxError"},
      {With("return {\"y\"", "return {\"z\""), "reference() returned 'z'"},
      {With("sizes[\"N\"]", "3"), "x of inputs() has shape [3], kernel.toml says [8]"},
      {With(", dtype=np.float32", ""), "x of inputs() has type float64, kernel.toml says f32"},
      {With("default_rng(seed)", "default_rng()"), "gives other data for the same seed"},
      {With("    return {\"y\"", "    x += 1\n    return {\"y\""), "reference() changed its input 'x'"},
      {With("2 * x", "x * float('nan')"), "y of reference()[0] is NaN"},
      {With("2 * x", "x[::0]"), "problem.py:10 in reference(): ValueError"},
      {"import os\nos._exit(3)\n", "its process ended in its own statements"},
      {"import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n", "died of signal 11"},
  };
  for (const auto& [source, expected] : bad) {
    const absl::Status status = MakeOf(source);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status << "\n" << source;
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(expected), Not(HasSubstr("\n")))) << source;
  }
  EXPECT_THAT(MakeOf(kScale), absl::OkStatus()) << "a good one after bad ones";
}

TEST_F(ProblemProcessTest, ChecksDataAgainstWhatKernelTomlStates) {
  v1::Plan plan = PlanOf(4);
  v1::PlanTensor& x = *plan.mutable_tensors(0);
  x.set_type(v1::DATA_TYPE_I32);
  x.set_fill(v1::FILL_CSR_OFFSETS);
  x.set_high(9);
  const auto message = [&](const std::string& values) {
    const std::string source = With("rng.standard_normal(sizes[\"N\"], dtype=np.float32)",
                                    absl::StrCat("np.array([", values, "], dtype=np.int32)"));
    const std::string whole = absl::StrReplaceAll(source, {{"2 * x", "2.0 * x"}});
    return std::string(process().Make(BundleOf(whole), plan, Entry()).status().message());
  };
  EXPECT_EQ(message("0, 3, 5, 9"), "");
  EXPECT_THAT(message("0, 5, 3, 9"), HasSubstr("x of inputs() falls from 5 to 3 at [2]: CSR offsets must not fall"));
  EXPECT_THAT(message("0, 3, 5, 8"), HasSubstr("CSR offsets must end with 9"));
  x.set_fill(v1::FILL_INTEGERS);
  x.set_low(0);
  EXPECT_THAT(message("0, 3, 10, 9"), HasSubstr("x of inputs()[2] is 10, outside of the range of kernel.toml, [0, 9]"));
}

TEST_F(ProblemProcessTest, TheReferenceAlsoGetsTheDataOfFiles) {
  v1::Bundle bundle =
      BundleOf("def inputs(sizes, seed):\n    return {}\n\n\ndef reference(x):\n    return {'y': x + 1}\n");
  v1::Tensor& x = *bundle.add_tensors();
  x.set_name("x");
  x.set_type(v1::DATA_TYPE_F32);
  x.set_file("x.bin");
  const std::vector<float> values = {3, 1, 4, 1};
  v1::DataFile& file = *bundle.add_data_files();
  file.set_path("x.bin");
  file.set_data(std::string(reinterpret_cast<const char*>(values.data()), 16));
  v1::Plan plan = PlanOf(4);
  plan.mutable_tensors(0)->set_fill(v1::FILL_FILE);
  const absl::StatusOr<StagedEntry> made = process().Make(bundle, plan, Entry());
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(Read(made->inputs[0]), values);
  EXPECT_THAT(Read(made->expected[0]), ElementsAre(4, 2, 5, 2));
}

// Adds a file of `data` to a bundle.
void AddData(const std::string& path, const std::string& data, v1::Bundle* bundle) {
  v1::DataFile& file = *bundle->add_data_files();
  file.set_path(path);
  file.set_data(data);
  bundle->add_problem_files(path);
}

TEST_F(ProblemProcessTest, FindsItsDataAndModulesBesideIt) {
  v1::Bundle bundle = BundleOf(R"(import os
from pathlib import Path

import numpy as np

from helper import plus

HERE = Path(__file__).parent


def inputs(sizes, seed):
    assert os.stat(HERE / "tables/x.bin").st_mode & 0o222 == 0, "it can be written"
    return {"x": np.frombuffer((HERE / "tables/x.bin").read_bytes(), np.float32).copy()}


def reference(x):
    return {"y": plus(x)}
)");
  const std::vector<float> values = {3, 1, 4, 1};
  AddData("helper.py", "def plus(x):\n    return x + 1\n", &bundle);
  AddData("tables/x.bin", std::string(reinterpret_cast<const char*>(values.data()), 16), &bundle);
  absl::StatusOr<StagedEntry> made = process().Make(bundle, PlanOf(4), Entry());
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(Read(made->inputs[0]), values);
  EXPECT_THAT(Read(made->expected[0]), ElementsAre(4, 2, 5, 2));
  // The same problem.py with other data is another problem.
  bundle.mutable_data_files(0)->set_data("def plus(x):\n    return x + 2\n");
  made = process().Make(bundle, PlanOf(4), Entry(1));
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_THAT(Read(made->expected[0]), ElementsAre(5, 3, 6, 3));
}

TEST_F(ProblemProcessTest, EndsAProblemThatHangsAndGoesOn) {
  options_.deadline = absl::Seconds(2);
  const absl::Status status = MakeOf(With("    return {\"y\"", "    while True: pass\n    return {\"y\""));
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("problem.py: reference() at size tiny did not end within 2 s"));
  const pid_t pid = process().pid();
  EXPECT_THAT(MakeOf(kScale), absl::OkStatus());
  EXPECT_EQ(process().pid(), pid);
}

TEST_F(ProblemProcessTest, EndsAProcessThatAnswersNothing) {
  options_.deadline = options_.grace = absl::Milliseconds(100);
  process().Warm();
  process().Settle();
  ASSERT_EQ(kill(-process().pid(), SIGSTOP), 0);
  bool late = false;
  process().StopWhen([&late, begin = SteadyNow()] { return late = SteadyNow() - begin > absl::Seconds(20); });
  EXPECT_THAT(std::string(MakeOf(kScale).message()), HasSubstr("did not answer in time"));
  EXPECT_FALSE(late);
}

TEST_F(ProblemProcessTest, EndsAProblemThatTakesTooMuchMemory) {
  options_.memory_bytes = int64_t{256} << 20;
  const absl::Status status = MakeOf(
      With("    return {\"y\"", "    kept = []\n    while True: kept.append(np.ones(1 << 20))\n    return {\"y\""));
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("took more than 256 MiB of main memory"));
}

TEST_F(ProblemProcessTest, LeavesNoProcessOfAProblemBehind) {
  const std::string marker = absl::StrCat("8", getpid(), "7");
  ASSERT_TRUE(MakeOf(absl::StrCat("import subprocess\nsubprocess.Popen(['sleep', '", marker,
                                  "'], start_new_session=True)\n", kScale))
                  .ok());
  ASSERT_TRUE(MakeOf(kScale).ok());  // another problem: the first one's processes are ended
  ProcessOptions look;
  look.argv = {"pgrep", "-f", absl::StrCat("^sleep ", marker)};
  const absl::StatusOr<ProcessResult> found = RunProcess(look);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->exit_code, 1) << found->out;
}

TEST_F(ProblemProcessTest, WhatAProblemPrintsIsNoAnswer) {
  EXPECT_THAT(MakeOf("print('hello')\nimport os\nos.write(1, b'there')\n" + std::string(kScale)), absl::OkStatus());
}

TEST_F(ProblemProcessTest, ItsOwnCheckJudgesOutputsInSharedMemory) {
  const v1::Bundle bundle =
      BundleOf(absl::StrCat(kScale,
                            "\n\ndef check(got, expected):\n    if not np.array_equal(got['y'], expected['y']):\n"
                            "        return f\"{int((got['y'] != expected['y']).sum())} values differ\"\n"));
  const v1::Plan plan = PlanOf(8);
  const absl::StatusOr<StagedEntry> made = process().Make(bundle, plan, Entry());
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(*process().HasCheck(bundle), true);
  std::vector<float> y = Read(made->expected[0]);
  std::vector<char> outputs(256 + 32);
  memcpy(outputs.data(), y.data(), 32);
  y[3] += 1;
  memcpy(outputs.data() + 256, y.data(), 32);  // the next call's
  ASSERT_EQ(pwrite(shared_.get(), outputs.data(), outputs.size(), 0), static_cast<ssize_t>(outputs.size()));
  v1::InputDraw draw;
  draw.set_pool("p");
  const absl::StatusOr<OwnCheck> check = process().Check(bundle, plan, {draw, draw}, /*self_test=*/true);
  ASSERT_TRUE(check.ok()) << check.status();
  EXPECT_THAT(check->verdicts, ElementsAre("", "1 values differ"));
  EXPECT_TRUE(check->lenient.empty());
}

TEST_F(ProblemProcessTest, WithoutPyTorchThereIsNoBaseline) {
  const absl::Status status = process().TimeBaseline(BundleOf(kScale), PlanOf(8)).status();
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("there is no baseline"));
}

TEST_F(ProblemProcessTest, AMissingPyTorchIsNoFaultOfTheProblem) {
  const absl::Status status = MakeOf(absl::StrCat("import sys\nsys.modules['torch'] = None\nimport torch\n", kScale));
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("problem.py needs PyTorch"));
}

// A script that says what it was given, and what of the worker it can reach.
constexpr char kScript[] = R"(import os, sys
import helper
import pawl_baseline
numpy_was_there = "numpy" in sys.modules
print(sys.argv[1:], sys.stdin.read(), helper.VALUE, open("data/file.bin", "rb").read(), numpy_was_there, __name__)
print("talk", file=sys.stderr)
left = [fd for fd in os.listdir("/proc/self/fd") if "memfd:pawl-test" in os.path.realpath(f"/proc/self/fd/{fd}")]
sys.exit(7 if left else 0)
)";

absl::StatusOr<ProcessResult> RunScript(ProblemProcess& process, const std::string& script,
                                        absl::Duration deadline = absl::Seconds(20)) {
  return process.RunScript(
      BundleOf(kScale), {ProblemProcess::DefaultPython(), "in/baseline.py", "--flag"},
      {{"in/baseline.py", script}, {"in/helper.py", "VALUE = 41\n"}, {"data/file.bin", std::string("a\0\xff", 3)}},
      "asked", deadline);
}

TEST_F(ProblemProcessTest, RunsAScriptAsPythonWouldWithEverythingImported) {
  ASSERT_TRUE(process().CanRun({ProblemProcess::DefaultPython(), "in/baseline.py"}));
  const absl::StatusOr<ProcessResult> result = RunScript(process(), kScript);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->ok()) << EndText(*result) << result->err;
  EXPECT_EQ(result->out, "['--flag'] asked 41 b'a\\x00\\xff' True __main__\n");
  EXPECT_EQ(result->err, "talk\n");
  const pid_t pid = process().pid();
  EXPECT_TRUE(RunScript(process(), "pass")->ok()) << "a folder of its own each time";
  EXPECT_EQ(process().pid(), pid);
}

TEST_F(ProblemProcessTest, RunsNoOtherCommandsThanScriptsOfItsInterpreter) {
  const std::string python = ProblemProcess::DefaultPython();
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"other-python", "baseline.py"}, {python}, {python, "-m", "baseline"}, {}}) {
    EXPECT_FALSE(process().CanRun(command));
  }
}

TEST_F(ProblemProcessTest, AScriptImportsNothingThatAnotherLeftForIt) {
  // Into the folder of Pawl's own modules, which is the only one that outlives a script.
  ASSERT_TRUE(RunScript(process(),
                        "import os, pawl_tensors\n"
                        "folder = os.path.dirname(os.path.abspath(pawl_tensors.__file__))\n"
                        "open(os.path.join(folder, 'planted.py'), 'w').write('VALUE = 1\\n')\n")
                  ->ok());
  const absl::StatusOr<ProcessResult> result =
      RunScript(process(),
                "import subprocess, sys\ntry:\n    import planted\n    print('planted')\nexcept ImportError:\n    "
                "print('clean')\n"
                "print(subprocess.run([sys.executable, '-c', 'import planted'], capture_output=True).returncode)\n");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->out, "clean\n1\n") << result->err;
}

TEST_F(ProblemProcessTest, AScriptThatFailsIsAResult) {
  const absl::StatusOr<ProcessResult> raised = RunScript(process(), "raise ValueError('no such device')");
  ASSERT_TRUE(raised.ok()) << raised.status();
  EXPECT_EQ(raised->exit_code, 1);
  EXPECT_THAT(raised->err, HasSubstr("ValueError: no such device"));
  EXPECT_EQ(RunScript(process(), "import sys; sys.exit(3)")->exit_code, 3);
  EXPECT_EQ(RunScript(process(), "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")->signal, SIGSEGV);
  const absl::StatusOr<ProcessResult> hangs =
      RunScript(process(), "import time; time.sleep(600)", absl::Milliseconds(300));
  ASSERT_TRUE(hangs.ok()) << hangs.status();
  EXPECT_TRUE(hangs->timed_out);
}

TEST_F(ProblemProcessTest, AScriptLeavesTheOpenProblemOfItsBundleAsItIs) {
  const v1::Bundle bundle = BundleOf(kScale);
  ASSERT_TRUE(process().Make(bundle, PlanOf(8), Entry(0)).ok());
  ASSERT_TRUE(RunScript(process(), "import subprocess; subprocess.Popen(['sleep', '600'])")->ok());
  EXPECT_TRUE(process().Stage(bundle, "p", 0, 0).ok()) << "its entries are still there";
}

TEST_F(ProblemProcessTest, AScriptNeverRunsBesideTheProblemOfAnotherBundle) {
  const v1::Bundle other = BundleOf(With("2 * x", "3 * x"));
  ASSERT_TRUE(process().Make(other, PlanOf(8), Entry(0)).ok());
  const absl::StatusOr<ProcessResult> result = RunScript(process(), R"py(import os
def parent(pid):
    return int(open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[1])
pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
print(sum(parent(pid) == os.getppid() for pid in pids if os.path.exists(f"/proc/{pid}/stat")))
)py");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->out, "1\n") << result->err;
  EXPECT_TRUE(absl::IsNotFound(process().Stage(other, "p", 0, 0).status()));
}

TEST_F(ProblemProcessTest, StartsInTheBackground) {
  process().Warm();
  const pid_t pid = process().pid();
  EXPECT_GT(pid, 0);
  EXPECT_EQ(process().start_seconds(), 0) << "it does not wait for the imports";
  process().Settle();
  EXPECT_GT(process().start_seconds(), 0);
  process().Warm();
  EXPECT_TRUE(RunScript(process(), "pass")->ok());
  EXPECT_EQ(process().pid(), pid) << "it is the same process";
}

TEST_F(ProblemProcessTest, WhatIsMissingInTheBackgroundShowsWhereItIsNeeded) {
  options_.python = "no-such-python";
  process().Warm();
  process().Settle();
  const absl::Status status =
      process().RunScript(BundleOf(kScale), {"no-such-python", "a.py"}, {}, "", absl::Seconds(5)).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("no-such-python"));
}

TEST_F(ProblemProcessTest, AMissingPythonIsNamedWithTheFix) {
  options_.python = "python-there-is-none";
  const absl::Status status = MakeOf(kScale);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("set PAWL_PYTHON"));
}

TEST_F(ProblemProcessTest, StopsWhenItsAnswerIsNotWantedAnyMore) {
  process().StopWhen([] { return true; });
  EXPECT_TRUE(absl::IsCancelled(MakeOf(kScale)));
  process().StopWhen(nullptr);
  EXPECT_THAT(MakeOf(kScale), absl::OkStatus());
}

TEST_F(ProblemProcessTest, WorksInTheBaselinesSandbox) {
  const absl::StatusOr<Sandboxing> sandboxing = Sandboxing::Make(Toolkit(), "", /*allow_unsandboxed=*/false);
  if (!sandboxing.ok()) GTEST_SKIP() << sandboxing.status();
  options_.sandboxing = &*sandboxing;
  const std::string curious =
      absl::StrCat("import os\nassert not os.path.exists('/home') or not os.listdir('/home')\n", kScale);
  const absl::StatusOr<StagedEntry> made = process().Make(BundleOf(curious), PlanOf(1 << 20), Entry());
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(Read(made->inputs[0]).size(), size_t{1} << 20);
  const absl::StatusOr<ProcessResult> script =
      RunScript(process(), absl::StrCat("assert not __import__('os').path.exists('/root/.ssh')\n", kScript));
  ASSERT_TRUE(script.ok()) << script.status();
  EXPECT_TRUE(script->ok()) << EndText(*script) << script->err;
}

}  // namespace
}  // namespace pawl
