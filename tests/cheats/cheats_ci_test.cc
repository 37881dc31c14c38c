// What can be said of the cheats without a GPU. tests/gpu runs all of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/plan.h"
#include "kernels/read/bundle_reader.h"
#include "kernels/space.h"
#include "tests/cheats/cheat_list.h"
#include "worker/build/builder.h"

namespace pawl {
namespace {

std::filesystem::path Folder() {
  const char* source = std::getenv("PAWL_SOURCE_DIR");
  return std::filesystem::path(source == nullptr ? "." : source) / "tests" / "cheats";
}

CheatList List() {
  absl::StatusOr<CheatList> list = ReadCheatList(Folder() / "cheats.toml");
  EXPECT_TRUE(list.ok()) << list.status();
  return list.ok() ? *std::move(list) : CheatList();
}

std::string ProblemText(const BundleReading& reading) {
  return absl::StrJoin(reading.problems, "\n",
                       [](std::string* out, const Problem& problem) { *out += FormatProblem(problem); });
}

v1::GpuInfo H200() {
  v1::GpuInfo gpu;
  gpu.set_name("NVIDIA H200");
  gpu.set_compute_major(9);
  gpu.set_sm_count(132);
  gpu.set_max_threads_per_sm(2048);
  gpu.set_max_threads_per_block(1024);
  gpu.set_max_blocks_per_sm(32);
  gpu.set_registers_per_sm(65536);
  gpu.set_shared_per_sm(233472);
  gpu.set_shared_per_block_optin(232448);
  gpu.set_l2_bytes(int64_t{50} << 20);
  gpu.set_memory_bytes(int64_t{140} << 30);
  return gpu;
}

// The first size at which the launch limits refuse the start variant.
std::optional<v1::Failure> FailedLimits(const v1::Bundle& bundle) {
  std::vector<v1::Size> sizes(bundle.sizes().begin(), bundle.sizes().end());
  for (const v1::Size& size : HiddenSizes(bundle, 7)) sizes.push_back(size);
  for (const v1::Size& size : sizes) {
    absl::StatusOr<v1::Plan> plan = MakePlan(bundle, StartVariant(bundle), size, H200());
    EXPECT_TRUE(plan.ok()) << bundle.name() << " at " << size.name() << ": " << plan.status();
    if (!plan.ok()) continue;
    if (std::optional<v1::Failure> failure = CheckLaunchLimits(*plan, H200())) return failure;
  }
  return std::nullopt;
}

v1::BuildRequest RequestFor(const v1::Bundle& bundle, const v1::Variant& variant, const v1::Size& size) {
  v1::BuildRequest request;
  request.set_compiler(bundle.compiler());
  request.set_source(bundle.source().text());
  request.set_name(bundle.source().path());
  request.set_architecture("sm_90");
  for (const std::string& option : CompileOptions(bundle, variant, size)) request.add_options(option);
  for (const v1::Launch& launch : bundle.launches()) request.add_entries(launch.entry());
  return request;
}

bool Expected(const Cheat& cheat, v1::Check check) {
  return std::find(cheat.expect.begin(), cheat.expect.end(), check) != cheat.expect.end();
}

TEST(Cheats, HaveEnoughEntriesAndAFolderForEach) {
  const CheatList list = List();
  EXPECT_GE(list.cheats.size(), 65u);
  EXPECT_GE(list.controls.size(), 20u);
  std::vector<std::string> listed;
  for (const Cheat& cheat : list.cheats) listed.push_back(cheat.name);
  for (const Control& control : list.controls) listed.push_back(control.name);
  std::sort(listed.begin(), listed.end());
  std::vector<std::string> folders;
  for (const auto& entry : std::filesystem::directory_iterator(Folder())) {
    if (entry.is_directory()) folders.push_back(entry.path().filename());
  }
  std::sort(folders.begin(), folders.end());
  EXPECT_EQ(listed, folders);
}

TEST(Cheats, HaveAtLeastFiveOfEachClassThatWasKeptBefore) {
  std::map<std::string, int> count;
  for (const Cheat& cheat : List().cheats) ++count[cheat.kind];
  for (const char* kind : {"check", "seat", "inputs", "sizes", "bounds", "tolerance", "memory"}) {
    EXPECT_GE(count[kind], 5) << kind;
  }
}

// The start variant with these values instead. Fails for a variable or a value that the bundle lacks.
v1::Variant Changed(const v1::Bundle& bundle, const std::map<std::string, int32_t>& values) {
  v1::Variant variant = StartVariant(bundle);
  for (const auto& [name, value] : values) {
    const auto variable = std::find_if(bundle.variables().begin(), bundle.variables().end(),
                                       [&](const v1::Variable& candidate) { return candidate.name() == name; });
    EXPECT_NE(variable, bundle.variables().end()) << bundle.name() << " has no variable " << name;
    if (variable == bundle.variables().end()) continue;
    EXPECT_NE(std::find(variable->values().begin(), variable->values().end(), value), variable->values().end())
        << bundle.name() << ": " << name << " is never " << value;
    (*variant.mutable_values())[name] = value;
  }
  return variant;
}

TEST(Cheats, ChangeOneVariableAtATime) {
  const auto differences = [](const v1::Variant& a, const v1::Variant& b) {
    int different = 0;
    for (const auto& [name, value] : a.values()) different += b.values().at(name) != value;
    return different;
  };
  for (const Cheat& cheat : List().cheats) {
    if (cheat.variant.empty()) continue;
    const v1::Bundle bundle = ReadBundle(Folder() / cheat.name).bundle;
    const v1::Variant first = Changed(bundle, cheat.variant);
    EXPECT_EQ(differences(StartVariant(bundle), first), 1) << cheat.name;
    if (!cheat.then.empty()) {
      EXPECT_EQ(differences(first, Changed(bundle, cheat.then)), 1) << cheat.name;
    }
  }
}

// What ReadCheatList says of a list with this one entry.
absl::Status ReadEntry(const std::string& entry) {
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "cheats_entry.toml";
  std::ofstream(file) << entry;
  return ReadCheatList(file).status();
}

TEST(Cheats, WithMistakesInTheListAreRefused) {
  const std::string fine = "[[cheat]]\nname = \"a\"\nwhat = \"b\"\nby = \"gpu\"\nexpect = [\"seat\"]\n";
  const std::string seat = absl::StrCat(fine, "class = \"seat\"\n");
  EXPECT_TRUE(
      ReadEntry(absl::StrCat(seat, "variant = \"A=1\"\nthen = \"A=1,B=2\"\nstamped = 9\nspares = \"C=1\"\n")).ok());
  for (const std::string& wrong : {
           fine,
           absl::StrCat(fine, "class = \"seats\"\n"),
           absl::StrCat(seat, "varient = \"A=1\"\n"),
           absl::StrCat(seat, "variant = \"A\"\n"),
           absl::StrCat(seat, "variant = \"A=one\"\n"),
           absl::StrCat(seat, "variant = \"A=1,A=2\"\n"),
           absl::StrCat(seat, "variant = 1\n"),
           absl::StrCat(seat, "then = \"A=1\"\n"),
           absl::StrCat(seat, "spares = \"A=1\"\n"),
           absl::StrCat(seat, "variant = \"A=1\"\nspares = \"A\"\n"),
           absl::StrCat(seat, "variant = \"A=1\"\nstamped = 9\n"),
           absl::StrCat(seat, "variant = \"A=1\"\nthen = \"B=2\"\nstamped = \"now\"\n"),
           std::string("[[control]]\nname = \"a\"\nwhat = \"b\"\nclass = \"seat\"\n"),
       }) {
    EXPECT_FALSE(ReadEntry(wrong).ok()) << wrong;
  }
}

TEST(Cheats, AreReadWithoutProblemsUnlessTheReaderIsMeantToRefuseThem) {
  const CheatList list = List();
  for (const Cheat& cheat : list.cheats) {
    const BundleReading reading = ReadBundle(Folder() / cheat.name);
    EXPECT_EQ(!reading.problems.empty(), cheat.by == CaughtBy::kReader) << cheat.name << "\n" << ProblemText(reading);
    if (reading.problems.empty()) {
      EXPECT_EQ(reading.bundle.name(), cheat.name);
    }
  }
  for (const Control& control : list.controls) {
    const BundleReading reading = ReadBundle(Folder() / control.name);
    EXPECT_TRUE(reading.problems.empty()) << ProblemText(reading);
    if (reading.problems.empty()) {
      EXPECT_EQ(reading.bundle.name(), control.name);
    }
  }
}

TEST(Cheats, WithAToleranceThatZerosPassAreRefusedForThatOnly) {
  const BundleReading reading = ReadBundle(Folder() / "lenient_tolerance");
  ASSERT_EQ(reading.problems.size(), 1u) << ProblemText(reading);
  EXPECT_NE(reading.problems[0].message.find("relative"), std::string::npos) << ProblemText(reading);
}

TEST(Cheats, ThatStartFromAForbiddenVariantAreRefusedForThatOnly) {
  const BundleReading reading = ReadBundle(Folder() / "forbidden_start");
  ASSERT_EQ(reading.problems.size(), 1u) << ProblemText(reading);
  EXPECT_NE(reading.problems[0].message.find("BLOCK <= 64"), std::string::npos) << ProblemText(reading);
}

TEST(Cheats, BeyondTheLaunchLimitsAreRefusedBeforeCompilingAndNoOthers) {
  const CheatList list = List();
  for (const Cheat& cheat : list.cheats) {
    if (cheat.by == CaughtBy::kReader) continue;
    const BundleReading reading = ReadBundle(Folder() / cheat.name);
    ASSERT_TRUE(reading.problems.empty()) << ProblemText(reading);
    const std::optional<v1::Failure> failure = FailedLimits(reading.bundle);
    ASSERT_EQ(failure.has_value(), cheat.by == CaughtBy::kLimits)
        << cheat.name << (failure ? ": " + failure->message() : "");
    if (failure) {
      EXPECT_TRUE(Expected(cheat, failure->check())) << cheat.name << ": " << failure->message();
    }
  }
  for (const Control& control : list.controls) {
    const BundleReading reading = ReadBundle(Folder() / control.name);
    ASSERT_TRUE(reading.problems.empty()) << ProblemText(reading);
    const std::optional<v1::Failure> failure = FailedLimits(reading.bundle);
    EXPECT_FALSE(failure) << control.name << ": " << failure->message();
  }
}

// The compilers, where there are any.
class CheatBuilds : public testing::Test {
 protected:
  // Leaves no builder, after a skip, where this machine has no compiler.
  void Open(bool skip_sandbox) {
    BuilderOptions options;
    options.allow_unsandboxed = true;
    options.skip_sandbox = skip_sandbox;
    absl::StatusOr<std::unique_ptr<Builder>> builder = Builder::Create(options);
    if (absl::IsUnavailable(builder.status())) GTEST_SKIP() << builder.status().message();
    ASSERT_TRUE(builder.ok()) << builder.status();
    builder_ = *std::move(builder);
  }

  // Nothing where this machine lacks the compiler that the bundle wants.
  std::optional<v1::BuildReply> Build(const v1::Bundle& bundle, const v1::Variant& variant, const v1::Size& size) {
    absl::StatusOr<v1::BuildReply> reply = builder_->Build(RequestFor(bundle, variant, size));
    if (absl::IsFailedPrecondition(reply.status())) {
      missing_.emplace(reply.status().message());
      return std::nullopt;
    }
    EXPECT_TRUE(reply.ok()) << bundle.name() << ": " << reply.status();
    if (!reply.ok()) return std::nullopt;
    return *std::move(reply);
  }

  void RefuseThefts() {
    for (const Cheat& cheat : List().cheats) {
      if (cheat.by != CaughtBy::kBuild) continue;
      const BundleReading reading = ReadBundle(Folder() / cheat.name);
      ASSERT_TRUE(reading.problems.empty()) << ProblemText(reading);
      v1::Variant variant = StartVariant(reading.bundle);
      for (const auto& [name, value] : cheat.variant) (*variant.mutable_values())[name] = value;
      const std::optional<v1::BuildReply> reply = Build(reading.bundle, variant, reading.bundle.sizes(0));
      if (!reply) continue;
      ASSERT_TRUE(reply->has_failure()) << cheat.name << " was built";
      const std::string& message = reply->failure().message();
      EXPECT_TRUE(Expected(cheat, reply->failure().check())) << cheat.name << ": " << message;
      EXPECT_TRUE(reply->cubin().empty()) << cheat.name;
      EXPECT_EQ((message + reply->log()).find("root:"), std::string::npos) << cheat.name << " tells what it read";
    }
  }

  // The start variant with these values instead, at every size that is built apart.
  void ExpectBuilds(const std::string& name, const std::map<std::string, int32_t>& values) {
    const BundleReading reading = ReadBundle(Folder() / name);
    ASSERT_TRUE(reading.problems.empty()) << ProblemText(reading);
    for (const v1::Size& size : reading.bundle.sizes()) {
      const std::optional<v1::BuildReply> reply = Build(reading.bundle, Changed(reading.bundle, values), size);
      if (reply) {
        EXPECT_FALSE(reply->has_failure()) << name << ": " << reply->failure().message();
      }
      if (!FixesSizes(reading.bundle)) break;
    }
  }

  void TearDown() override {
    if (!missing_.empty() && !HasFailure()) GTEST_SKIP() << absl::StrJoin(missing_, "\n");
  }

  std::unique_ptr<Builder> builder_;
  std::set<std::string> missing_;  // what this machine said it lacks
};

TEST_F(CheatBuilds, AreRefusedByTheSandboxAndTellNothingOfTheFile) {
  Open(/*skip_sandbox=*/false);
  if (builder_ == nullptr) return;
  if (!builder_->sandboxed()) GTEST_SKIP() << "this machine allows no sandbox";
  RefuseThefts();
}

TEST_F(CheatBuilds, AreRefusedByTheScanOfTheSourceWhereThereIsNoSandbox) {
  Open(/*skip_sandbox=*/true);
  if (builder_ == nullptr) return;
  RefuseThefts();
}

TEST_F(CheatBuilds, SucceedForAllThatAreCaughtLaterAndForTheControls) {
  Open(/*skip_sandbox=*/false);
  if (builder_ == nullptr) return;
  const CheatList list = List();
  for (const Cheat& cheat : list.cheats) {
    if (cheat.by != CaughtBy::kGpu) continue;
    ExpectBuilds(cheat.name, {});
    if (!cheat.variant.empty()) ExpectBuilds(cheat.name, cheat.variant);
    if (!cheat.then.empty()) ExpectBuilds(cheat.name, cheat.then);
  }
  for (const Control& control : list.controls) ExpectBuilds(control.name, {});
}

}  // namespace
}  // namespace pawl
