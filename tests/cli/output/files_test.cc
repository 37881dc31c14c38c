#include "cli/output/files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <iterator>
#include <thread>

#include "worker/process/temporary_folder.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

std::string TextOf(const fs::path& file) {
  std::ifstream in(file);
  return std::string(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
}

class FilesTest : public testing::Test {
 protected:
  const TemporaryFolder folder_{"pawl-files-"};
  const fs::path file_ = folder_.path() / "report.html";
};

TEST_F(FilesTest, ReplacesAFileAndNothingBesideIt) {
  std::ofstream(file_) << "old";
  std::ofstream(file_.string() + ".new") << "somebody's";
  ASSERT_TRUE(WriteTextFile(file_, "text").ok());
  EXPECT_EQ(TextOf(file_), "text");
  EXPECT_EQ(TextOf(file_.string() + ".new"), "somebody's");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), {}), 2);
}

TEST_F(FilesTest, WritesWhatALinkLeadsTo) {
  const fs::path link = folder_.path() / "link.html";
  std::ofstream(file_) << "old";
  fs::create_symlink("report.html", link);
  ASSERT_TRUE(WriteTextFile(link, "text").ok());
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(TextOf(file_), "text");
}

TEST_F(FilesTest, WritesIntoAPipeAndLeavesItThere) {
  ASSERT_EQ(mkfifo(file_.c_str(), 0600), 0);
  std::string read;
  std::thread reader([&] { read = TextOf(file_); });
  EXPECT_TRUE(WriteTextFile(file_, "text").ok());
  reader.join();
  EXPECT_EQ(read, "text");
  EXPECT_TRUE(fs::is_fifo(file_));
}

TEST_F(FilesTest, SaysWhatItCantWrite) {
  const absl::Status status = WriteTextFile(folder_.path() / "none" / "report.html", "text");
  EXPECT_NE(status.message().find("report.html: No such file or directory"), std::string::npos) << status;
}

}  // namespace
}  // namespace pawl
