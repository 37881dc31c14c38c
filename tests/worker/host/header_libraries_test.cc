#include "worker/host/header_libraries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "worker/process/temporary_folder.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

void Touch(const fs::path& file) {
  fs::create_directories(file.parent_path());
  std::ofstream(file) << "\n";
}

TEST(HeaderLibrariesTest, KnowsThoseOfTheToolkitWhereverItKeepsThem) {
  const TemporaryFolder old("pawl-old-"), fresh("pawl-fresh-");
  Touch(old.path() / "cub/block/block_reduce.cuh");
  Touch(fresh.path() / "cccl/cub/block/block_reduce.cuh");
  for (const std::string& include : {old.path().string(), fresh.path().string()}) {
    const absl::StatusOr<std::vector<std::string>> folders = IncludeFolders({"cub"}, include, {});
    ASSERT_TRUE(folders.ok()) << folders.status();
    EXPECT_THAT(*folders, IsEmpty()) << "they are searched anyway";
    EXPECT_THAT(std::string(IncludeFolders({"thrust"}, include, {}).status().message()),
                HasSubstr("this worker has no header library thrust; it has cub. Its administrator"));
  }
  EXPECT_THAT(ToolkitFolders(old.path().string()), ElementsAre(old.path().string()));
  EXPECT_THAT(ToolkitFolders(fresh.path().string()),
              ElementsAre(fresh.path().string(), (fresh.path() / "cccl").string()));
}

TEST(HeaderLibrariesTest, TakesAnAdministratorsBeforeTheToolkits) {
  const std::map<std::string, std::string> allowed = {{"cub", "/opt/cub"}, {"cutlass", "/opt/cutlass/include"}};
  EXPECT_THAT(*IncludeFolders({"cutlass", "cub"}, "", allowed), ElementsAre("/opt/cutlass/include", "/opt/cub"));
  EXPECT_THAT(std::string(IncludeFolders({"eigen"}, "", allowed).status().message()),
              HasSubstr("it has cub, cutlass."));
}

TEST(HeaderLibrariesTest, ReadsWhatAnAdministratorWrites) {
  const TemporaryFolder folder("pawl-library-");
  std::map<std::string, std::string> allowed;
  EXPECT_EQ(AddLibrary("mylib=" + folder.path().string(), &allowed), "");
  EXPECT_EQ(allowed.at("mylib"), fs::canonical(folder.path()).string());
  for (const char* bad : {"", "mylib", "mylib=", "=/tmp", "my lib=/tmp", "a/b=/tmp"}) {
    EXPECT_THAT(AddLibrary(bad, &allowed), HasSubstr("is not NAME=FOLDER")) << bad;
  }
  EXPECT_EQ(AddLibrary("mylib=/no/such/folder", &allowed), "there is no folder /no/such/folder");
  EXPECT_THAT(AddLibrary("mylib=/", &allowed), HasSubstr("too much to show"));
  EXPECT_THAT(AddLibrary("mylib=/usr", &allowed), HasSubstr("too much to show"));
  EXPECT_EQ(allowed.size(), 1u);
}

}  // namespace
}  // namespace pawl
