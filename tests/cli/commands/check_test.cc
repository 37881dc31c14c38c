// Runs the built `pawl check` as a user does.
#include <gmock/gmock.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "pawl/v1/check.pb.h"
#include "tests/kernels/bundle_folder.h"
#include "tests/kernels/contract_alone.h"

namespace pawl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Outcome {
  int exit_code = -1;
  std::string out, err;
};

std::string Slurp(const std::filesystem::path& path) {
  std::stringstream buffer;
  buffer << std::ifstream(path).rdbuf();
  return buffer.str();
}

Outcome Pawl(const std::string& arguments) {
  const BundleFolder scratch;
  const std::string out = scratch.path() / "out", err = scratch.path() / "err";
  const char* bin = std::getenv("PAWL_BIN_DIR");
  const std::string command =
      std::string(bin == nullptr ? "build/dev/bin" : bin) + "/pawl " + arguments + " >" + out + " 2>" + err;
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), Slurp(out), Slurp(err)};
}

v1::CheckReport Report(const std::string& json) {
  v1::CheckReport report;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(json, &report).ok()) << json;
  return report;
}

// Without a compiler or a sandbox nothing is built and nothing fails.
bool WasBuilt(const v1::CheckReport& report) { return !report.compiler().empty(); }

TEST(PawlTest, SaysItsVersionAndHelps) {
  const Outcome version = Pawl("--version");
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_THAT(version.out, HasSubstr("pawl 0."));
  const Outcome help = Pawl("--help");
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.out, HasSubstr("Example: pawl run"));
  EXPECT_THAT(Pawl("check --help").out, HasSubstr("Example: pawl check"));
}

// Otherwise every proposal would be rejected for it.
TEST(PawlTest, CompilesTheReferenceOfAContractAlone) {
  const BundleFolder folder;
  folder.Write("kernel.toml", kContractToml);
  const auto write = [&](const std::string& statement) {
    folder.Write("reference.cu", absl::StrCat("extern \"C\" __global__ void scale_rows_reference(const float* in, ",
                                              "float* out) { ", statement, " }\n"));
  };
  write("out[blockIdx.x] = in[blockIdx.x];");
  const std::string check = absl::StrCat("check --json ", folder.path().string());
  const v1::CheckReport good = Report(Pawl(check).out);
  EXPECT_TRUE(good.ok());
  if (!WasBuilt(good)) GTEST_SKIP() << "nothing is compiled here";
  write("oops();");
  const v1::CheckReport bad = Report(Pawl(check).out);
  EXPECT_FALSE(bad.ok());
  ASSERT_EQ(bad.problems_size(), 1);
  EXPECT_THAT(bad.problems(0).message(), HasSubstr("reference.cu"));
}

TEST(CheckTest, WarnsOfAContractWhoseReferenceRounds) {
  const BundleFolder folder;
  const std::string toml =
      absl::StrReplaceAll(kContractToml, {{"shape = [\"N\"]\nrole  = \"output\"", "shape = [1]\nrole  = \"output\""},
                                          {"relative = 0.001", "relative = 0.000001"}});
  ASSERT_NE(toml, kContractToml);
  folder.Write("kernel.toml", toml);
  folder.Write("reference.cu",
               "extern \"C\" __global__ void scale_rows_reference(const float* in, float* out) {\n  float sum = 0;\n"
               "  for (int i = 0; i < 64; ++i) sum += in[i];\n  out[0] = sum;\n}\n");
  EXPECT_THAT(Pawl("check --no-build " + folder.path().string()).err,
              HasSubstr("line 3 of reference.cu adds up `sum` in float"));
}

TEST(PawlTest, AnswersWrongUsageWithTwo) {
  EXPECT_EQ(Pawl("").exit_code, 2);
  EXPECT_EQ(Pawl("chekc x").exit_code, 2);
  EXPECT_EQ(Pawl("check").exit_code, 2);
  EXPECT_EQ(Pawl("check x --nonsense").exit_code, 2);
}

TEST(CheckTest, TellsAboutAGoodBundle) {
  const Outcome outcome = Pawl("check --no-build " + BundleFolder::Golden().string());
  EXPECT_EQ(outcome.exit_code, 0) << "SPLITS = 4 has no whole grid, which costs trials but no campaign";
  EXPECT_THAT(outcome.out, HasSubstr("scale_rows: 18 variants, 14 allowed by the constraints"));
  EXPECT_THAT(outcome.out, HasSubstr("start: MAX_REGISTERS=255 SPLITS=1 TILE=64"));
  EXPECT_THAT(outcome.out, HasSubstr("grid 64 x 1024 x 1, block 64 x 1 x 1, shared 256 bytes"));
  EXPECT_THAT(outcome.out, HasSubstr("NVIDIA H200"));
  EXPECT_THAT(outcome.err, HasSubstr("4 of 14 variants have no valid geometry"));
}

TEST(CheckTest, PrintsOneJsonObject) {
  BundleFolder folder;
  folder.Replace("\"ROWS / (SPLITS - 1)\"", "\"ROWS\"");
  const Outcome outcome = Pawl("check --json --no-build --gpu h200 " + folder.path().string());
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const v1::CheckReport report = Report(outcome.out);
  EXPECT_TRUE(report.ok());
  EXPECT_EQ(report.space(), 18);
  EXPECT_EQ(report.allowed(), 14);
  EXPECT_EQ(report.bundle_hash().size(), 64u);
  ASSERT_EQ(report.sizes_size(), 2);
  EXPECT_EQ(report.sizes(0).launches(0).grid().y(), 8);
  ASSERT_EQ(report.gpus_size(), 1);
  EXPECT_EQ(report.gpus(0).name(), "NVIDIA H200");
  EXPECT_EQ(report.gpus(0).architecture(), "sm_90a");
  EXPECT_TRUE(report.gpus(0).can_run());
}

TEST(CheckTest, ReportsProblemsWithFileAndLineOnStderr) {
  BundleFolder folder;
  const int first = folder.Replace("summary ", "sumary ");
  const int second = folder.Replace("start   = 64", "start   = 65");
  const std::string file = (folder.path() / "kernel.toml").string();
  const Outcome outcome = Pawl("check " + folder.path().string());
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr(file + ":" + std::to_string(first) + ": unknown key sumary"));
  EXPECT_THAT(outcome.err, HasSubstr(file + ":" + std::to_string(second) + ": [[variable]] TILE: start is 65"));
  EXPECT_THAT(outcome.err, HasSubstr("2 problems"));
  const Outcome json = Pawl("check --json " + folder.path().string());
  EXPECT_EQ(json.exit_code, 1);
  const v1::CheckReport report = Report(json.out);
  ASSERT_EQ(report.problems_size(), 2);
  EXPECT_EQ(report.problems(0).line(), first);
  EXPECT_FALSE(report.ok());
}

// A Python with NumPy for problem.py; false: there is none.
bool FindNumpy() {
  for (const char* python :
       std::initializer_list<const char*>{std::getenv("PAWL_PYTHON"), "python3", "/usr/bin/python3"}) {
    if (python == nullptr || std::system((std::string(python) + " -c 'import numpy' 2>/dev/null").c_str()) != 0)
      continue;
    return setenv("PAWL_PYTHON", python, 1) == 0;
  }
  return false;
}

TEST(CheckTest, RunsProblemPy) {
  if (!FindNumpy()) GTEST_SKIP() << "no Python with NumPy: scripts/setup installs it";
  const char* source = std::getenv("PAWL_SOURCE_DIR");
  const std::filesystem::path example = std::filesystem::path(source == nullptr ? "." : source) / "examples/csr_spmm";
  const Outcome good = Pawl("check " + example.string());
  EXPECT_EQ(good.exit_code, 0) << good.err;
  EXPECT_THAT(good.out + good.err, Not(HasSubstr("problem.py")));

  const BundleFolder scratch;
  const std::filesystem::path folder = scratch.path() / "copy";
  std::filesystem::copy(example, folder);
  std::string text = Slurp(folder / "problem.py");
  const std::string offsets = "offsets.astype(np.int32)";
  ASSERT_NE(text.find(offsets), std::string::npos);
  std::ofstream(folder / "problem.py") << text.replace(text.find(offsets), offsets.size(),
                                                       "offsets[::-1].astype(np.int32)");
  const Outcome bad = Pawl("check " + folder.string());
  if (bad.err.find("was not run") != std::string::npos) GTEST_SKIP() << bad.err;
  EXPECT_EQ(bad.exit_code, 1) << bad.out;
  EXPECT_THAT(bad.err, HasSubstr("CSR offsets must not fall"));
}

TEST(CheckTest, LeavesNothingBehindWhenItIsEndedWhileProblemPyHangs) {
  if (!FindNumpy()) GTEST_SKIP() << "no Python with NumPy: scripts/setup installs it";
  const char* source = std::getenv("PAWL_SOURCE_DIR");
  const char* bin = std::getenv("PAWL_BIN_DIR");
  const BundleFolder scratch;
  const std::filesystem::path folder = scratch.path() / "copy", temporary = scratch.path() / "tmp";
  std::filesystem::copy(std::filesystem::path(source == nullptr ? "." : source) / "examples/csr_spmm", folder);
  std::ofstream(folder / "problem.py", std::ios::app) << "\nimport time\ntime.sleep(600)\n";
  for (const char* signal : {"TERM", "INT"}) {
    std::filesystem::create_directory(temporary);
    // A shell's commands in the background ignore INT, Python's do not.
    const std::string script = absl::StrCat(
        "import glob, os, signal, subprocess, sys, time\n"
        "check = subprocess.Popen(['",
        bin == nullptr ? "build/dev/bin" : bin, "/pawl', 'check', '", folder.string(),
        "'], env=dict(os.environ, TMPDIR='", temporary.string(), "'))\n",
        "while check.poll() is None and not glob.glob('", temporary.string(), "/pawl-problem-*/pawl_problem.py'):\n",
        "    time.sleep(0.02)\n"
        "time.sleep(0.5)\n"
        "check.send_signal(signal.SIG",
        signal, ")\n", "sys.exit(check.wait(60) % 256)\n");
    std::ofstream(scratch.path() / "end.py") << script;
    const int status = std::system(absl::StrCat("python3 ", (scratch.path() / "end.py").string()).c_str());
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (code == 0) GTEST_SKIP() << "problem.py was not run";
    EXPECT_EQ(code, 130) << signal;
    EXPECT_TRUE(std::filesystem::is_empty(temporary)) << signal;
    std::filesystem::remove_all(temporary);
  }
}

TEST(CheckTest, CompilesForOneArchitectureUnlessAskedForAll) {
  BundleFolder folder("club_steps");
  v1::CheckReport report = Report(Pawl("check --json " + folder.path().string()).out);
  if (!WasBuilt(report)) GTEST_SKIP() << "no compiler";
  std::set<std::string> compiled, others;
  const auto sort_out = [&] {
    compiled.clear(), others.clear();
    for (const v1::CheckGpu& gpu : report.gpus()) {
      (gpu.build() == v1::CHECK_BUILD_DONE ? compiled : others).insert(gpu.architecture());
    }
  };
  sort_out();
  EXPECT_EQ(compiled.size(), 1u);
  EXPECT_GE(others.size(), 3u);
  EXPECT_TRUE(report.ok());
  EXPECT_THAT(Pawl("check " + folder.path().string()).out, HasSubstr("; --all-gpus compiles for the others too"));
  report = Report(Pawl("check --json --all-gpus " + folder.path().string()).out);
  sort_out();
  EXPECT_GE(compiled.size(), 4u);
  EXPECT_EQ(others.size(), 0u);
  folder.Write("club.cu", "this is no code\n");
  const Outcome broken = Pawl("check " + folder.path().string());
  EXPECT_EQ(broken.exit_code, 1) << "nothing is known to run";
  EXPECT_THAT(broken.out, Not(HasSubstr("ok, ")));
}

TEST(CheckTest, NamesASymbolOfAnotherSizeAndAConstantThatNothingFills) {
  BundleFolder folder("club_steps");
  const std::string source = Slurp(folder.path() / "club.cu");
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = source;
    changed.replace(changed.find(from), from.size(), to);
    folder.Write("club.cu", changed);
    return Pawl("check --gpu h200 " + folder.path().string());
  };
  Outcome outcome = with("weights[8];", "weights[9];");
  if (outcome.err.find("not compiled") != std::string::npos) GTEST_SKIP() << outcome.err;
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.out, HasSubstr("club::weights: the variable has 36 bytes, the tensor weights 32 at size club"));
  std::string used = absl::StrCat("__constant__ float more[2];\n", source);
  used.replace(used.find("float sum = 0;"), 14, "float sum = more[step % 2];");
  folder.Write("club.cu", used);
  outcome = Pawl("check --gpu h200 " + folder.path().string());
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out;
  EXPECT_THAT(outcome.err, HasSubstr("the __constant__ variable more holds zeros"));
}

TEST(CheckTest, SaysThatNothingCanBeMeasuredWithoutCodeAndRecordings) {
  const BundleFolder folder;
  folder.Write("scale_rows.cu", "#error \"no code\"\n");
  const Outcome check = Pawl("check --json --gpu h200 " + folder.path().string());
  EXPECT_EQ(check.exit_code, 1) << check.err;
  const v1::CheckReport report = Report(check.out);
  EXPECT_FALSE(report.ok());
  ASSERT_EQ(report.gpus_size(), 1);
  EXPECT_FALSE(report.gpus(0).can_run());
  EXPECT_THAT(check.err, HasSubstr("it has no code but #error, and there is no recording of this bundle: nothing can "
                                   "be measured"));
  EXPECT_THAT(check.err, HasSubstr("warning: scale_rows.cu is not compiled: no code"));
}

TEST(CheckTest, SaysWhatIsNoBundleAndNoGpu) {
  const Outcome nowhere = Pawl("check /nonexistent/bundle");
  EXPECT_EQ(nowhere.exit_code, 1);
  EXPECT_THAT(nowhere.err, HasSubstr("/nonexistent/bundle: there is no such folder"));
  const Outcome gpu = Pawl("check --gpu h2000 " + BundleFolder::Golden().string());
  EXPECT_EQ(gpu.exit_code, 2);
  EXPECT_THAT(gpu.err, HasSubstr("unknown GPU h2000; expected "));
  EXPECT_THAT(gpu.err, HasSubstr("did you mean h200?"));
}

TEST(CheckTest, NamesTheGpuThatCanNotRunItAndWhy) {
  BundleFolder folder;
  folder.Replace("shared    = \"TILE * 4\"",
                 "shared    = \"TILE * 2048\"");  // 131072 bytes at the start, 262144 at most
  const Outcome outcome = Pawl("check --json --no-build " + folder.path().string());
  const v1::CheckReport report = Report(outcome.out);
  bool l4 = false, h200 = false;
  for (const v1::CheckGpu& gpu : report.gpus()) {
    if (gpu.name() == "NVIDIA L4") {
      l4 = true;
      EXPECT_FALSE(gpu.can_run());
      ASSERT_GT(gpu.failures_size(), 0);
      EXPECT_EQ(gpu.failures(0).check(), v1::CHECK_LAUNCH_LIMITS);
      EXPECT_THAT(gpu.failures(0).message(), HasSubstr("131072; the limit of NVIDIA L4 is 101376"));
    } else if (gpu.name() == "NVIDIA H200") {
      h200 = true;
      EXPECT_TRUE(gpu.can_run());
    }
  }
  EXPECT_TRUE(l4 && h200);
  EXPECT_THAT(outcome.err, HasSubstr("exceed every known GPU"));
  EXPECT_EQ(Pawl("check --no-build --gpu l4 " + folder.path().string()).exit_code, 1);
}

TEST(CheckTest, WarnsOfVariantsThatCanNotBeLaunchedAtASmallerSize) {
  BundleFolder folder;
  folder.Replace("\"ROWS / (SPLITS - 1)\"", "\"ROWS\"");
  folder.Replace("ceil_div(COLS, TILE)\", \"ROWS\"", "floor(2 * COLS / TILE)\", \"ROWS\"");  // 0 of 128 at 32 columns
  const Outcome outcome = Pawl("check --no-build --gpu h200 " + folder.path().string());
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("variants have no valid geometry; forbid them by a [[constraint]]"));
  EXPECT_THAT(outcome.err, HasSubstr("TILE=128 at tiny: "));
}

TEST(CheckTest, CompilesTheStartVariantWhereACompilerIs) {
  BundleFolder folder;
  folder.Replace("\"ROWS / (SPLITS - 1)\"", "\"ROWS\"");
  const std::string flags = "check --json --allow-unsandboxed --gpu h200 ";
  const v1::CheckReport good = Report(Pawl(flags + folder.path().string()).out);
  if (!WasBuilt(good)) {
    EXPECT_TRUE(good.ok());
    EXPECT_EQ(good.gpus(0).build(), v1::CHECK_BUILD_SKIPPED);
    ASSERT_GT(good.warnings_size(), 0);
    EXPECT_THAT(good.warnings(0), HasSubstr("not compiled"));
    GTEST_SKIP() << good.warnings(0);
  }
  EXPECT_TRUE(good.ok());
  EXPECT_EQ(good.gpus(0).build(), v1::CHECK_BUILD_DONE);

  folder.Write("scale_rows.cu", "extern \"C\" __global__ void scale_rows() {\n  int x = undefined_thing;\n}\n");
  const Outcome outcome = Pawl("check --allow-unsandboxed --gpu h200 " + folder.path().string());
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.out, HasSubstr("scale_rows.cu(2)"));
  EXPECT_THAT(outcome.out, HasSubstr("undefined_thing;"));

  folder.Write("scale_rows.cu", "extern \"C\" __global__ void other() {}\n");
  const Outcome entry = Pawl("check --allow-unsandboxed --gpu h200 " + folder.path().string());
  EXPECT_EQ(entry.exit_code, 1);
  EXPECT_THAT(entry.out, HasSubstr("other"));
}

}  // namespace
}  // namespace pawl
