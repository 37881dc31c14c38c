#include "worker/build/cached_compiler.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "worker/process/temporary_folder.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

class CountingCompiler : public Compiler {
 public:
  absl::StatusOr<v1::BuildReply> Build(const v1::BuildRequest& request, const Stopped&) override {
    ++built;
    v1::BuildReply reply;
    reply.set_seconds(1.5);
    if (request.source() == "wrong") {
      reply.mutable_failure()->set_message("expected a ;");
      return reply;
    }
    reply.set_cubin(absl::StrCat("cubin of ", request.source(), std::string(1000, 'x')));
    reply.set_log("a warning");
    (*reply.mutable_lowered())["f<1>"] = "_Z1f";
    (*reply.mutable_lowered())["f<2>"] = "_Z2f";
    return reply;
  }
  int built = 0;
};

v1::BuildRequest Source(const std::string& text) {
  v1::BuildRequest request;
  request.set_source(text);
  request.set_architecture("sm_90a");
  return request;
}

class BuildCache : public ::testing::Test {
 protected:
  CachedCompiler Open() { return CachedCompiler(compiler_, options_); }
  std::vector<fs::path> Files() {
    std::vector<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(options_.folder)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
    return files;
  }

  TemporaryFolder folder_{"pawl-cache-test-"};
  CountingCompiler compiler_;
  BuildCacheOptions options_{.folder = folder_.path() / "builds", .toolchain = "NVRTC 13.0"};
};

TEST_F(BuildCache, AnswersTheSecondTimeWithoutTheCompilerEvenAfterARestart) {
  const v1::BuildReply first = Open().Build(Source("a")).value();
  CachedCompiler again = Open();
  v1::BuildRequest patient = Source("a");
  patient.set_deadline_seconds(99);  // no part of what is built
  v1::BuildReply second = again.Build(patient).value();
  EXPECT_EQ(compiler_.built, 1);
  EXPECT_EQ(second.seconds(), 0);
  second.set_seconds(first.seconds());
  EXPECT_EQ(second.cubin(), first.cubin());
  EXPECT_EQ(second.log(), first.log());
  EXPECT_EQ(second.lowered().at("f<2>"), "_Z2f");
  const BuildCounts builds = again.TakeCounts();
  EXPECT_EQ(builds.cached, 1);
  EXPECT_EQ(builds.compiled, 0);
  EXPECT_EQ(again.TakeCounts().cached, 0) << "they were taken";
}

TEST_F(BuildCache, BuildsWhatDiffersInAnything) {
  CachedCompiler cache = Open();
  ASSERT_TRUE(cache.Build(Source("a")).ok());
  v1::BuildRequest other = Source("a");
  other.add_options("-DTILE=16");
  ASSERT_TRUE(cache.Build(other).ok());
  other = Source("a");
  other.add_files()->set_path("b.cuh");
  ASSERT_TRUE(cache.Build(other).ok());
  EXPECT_EQ(compiler_.built, 3);
  options_.toolchain = "NVRTC 13.1";
  ASSERT_TRUE(Open().Build(Source("a")).ok());
  EXPECT_EQ(compiler_.built, 4);
}

TEST_F(BuildCache, BuildsOnlyWhatIsMissingOfSeveral) {
  CachedCompiler cache = Open();
  ASSERT_TRUE(cache.Build(Source("b")).ok());
  const auto replies = cache.BuildBeside({Source("a"), Source("b"), Source("c")}, nullptr);
  EXPECT_EQ(compiler_.built, 3);
  ASSERT_EQ(replies.size(), 3u);
  EXPECT_EQ(replies[0]->cubin().substr(0, 10), "cubin of a");
  EXPECT_EQ(replies[1]->cubin().substr(0, 10), "cubin of b");
  EXPECT_EQ(replies[2]->cubin().substr(0, 10), "cubin of c");
}

TEST_F(BuildCache, BuildsAgainWhatIncludesALibraryThatMayChange) {
  options_.uncached = {"ours"};
  CachedCompiler cache = Open();
  v1::BuildRequest request = Source("a");
  request.add_include("cub");
  ASSERT_TRUE(cache.Build(request).ok());
  ASSERT_TRUE(cache.Build(request).ok());
  EXPECT_EQ(compiler_.built, 1);
  request.add_include("ours");
  ASSERT_TRUE(cache.Build(request).ok());
  ASSERT_TRUE(cache.Build(request).ok());
  EXPECT_EQ(compiler_.built, 3);
}

TEST_F(BuildCache, KeepsNoFailures) {
  CachedCompiler cache = Open();
  EXPECT_TRUE(cache.Build(Source("wrong"))->has_failure());
  EXPECT_TRUE(cache.Build(Source("wrong"))->has_failure());
  EXPECT_EQ(compiler_.built, 2);
}

TEST_F(BuildCache, BuildsAgainWhatIsDamagedOrCutOff) {
  ASSERT_TRUE(Open().Build(Source("a")).ok());
  ASSERT_EQ(Files().size(), 1u);
  {
    std::fstream file(Files()[0], std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(200);
    file << "damage";
  }
  EXPECT_EQ(Open().Build(Source("a"))->cubin().size(), 1010u);
  EXPECT_EQ(compiler_.built, 2);
  fs::resize_file(Files()[0], 30);
  EXPECT_EQ(Open().Build(Source("a"))->cubin().size(), 1010u);
  EXPECT_EQ(compiler_.built, 3);
  EXPECT_EQ(Open().Build(Source("a"))->cubin().size(), 1010u);
  EXPECT_EQ(compiler_.built, 3);
}

TEST_F(BuildCache, WorksWhereNothingCanBeWrittenAndSaysWhy) {
  std::ofstream(options_.folder) << "a file where the folder should be";
  CachedCompiler cache = Open();
  EXPECT_TRUE(cache.Build(Source("a")).ok());
  EXPECT_TRUE(cache.Build(Source("a")).ok());
  EXPECT_EQ(compiler_.built, 2);
  EXPECT_NE(cache.fault().find(options_.folder.string()), std::string::npos) << cache.fault();
}

TEST_F(BuildCache, StaysBelowItsLimitAndDropsWhatWasUsedLeastRecently) {
  options_.max_bytes = 10'000;
  CachedCompiler cache = Open();
  for (int i = 0; i < 30; ++i) {
    ASSERT_TRUE(cache.Build(Source(absl::StrCat("source ", i))).ok());
    ASSERT_TRUE(cache.Build(Source("source 0")).ok());  // in use all the time
  }
  int64_t bytes = 0;
  for (const fs::path& file : Files()) bytes += static_cast<int64_t>(fs::file_size(file));
  EXPECT_LE(bytes, 10'000);
  EXPECT_EQ(compiler_.built, 30);
}

TEST_F(BuildCache, IsOffWithoutAFolder) {
  options_.folder.clear();
  CachedCompiler cache = Open();
  ASSERT_TRUE(cache.Build(Source("a")).ok());
  ASSERT_TRUE(cache.Build(Source("a")).ok());
  EXPECT_EQ(compiler_.built, 2);
  EXPECT_EQ(cache.fault(), "");
}

TEST(DefaultBuildCache, IsTheUsersUnlessTheEnvironmentSaysOtherwise) {
  unsetenv("PAWL_BUILD_CACHE");
  unsetenv("XDG_CACHE_HOME");
  setenv("HOME", "/home/someone", 1);
  EXPECT_EQ(DefaultBuildCache(), "/home/someone/.cache/pawl/builds");
  setenv("XDG_CACHE_HOME", "/var/cache/someone", 1);
  EXPECT_EQ(DefaultBuildCache(), "/var/cache/someone/pawl/builds");
  setenv("PAWL_BUILD_CACHE", "", 1);
  EXPECT_EQ(DefaultBuildCache(), "");
  unsetenv("PAWL_BUILD_CACHE");
  unsetenv("XDG_CACHE_HOME");
  unsetenv("HOME");
  EXPECT_EQ(DefaultBuildCache(), "");
}

}  // namespace
}  // namespace pawl
