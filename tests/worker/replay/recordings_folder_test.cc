#include <gtest/gtest.h>

#include "worker/process/temporary_folder.h"
#include "worker/replay/recording.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

TEST(FindRecordingsFolder, IsThatOfThePackageOrOfTheCheckoutAbove) {
  const TemporaryFolder folder("pawl-recordings-test-");
  const fs::path root = folder.path();
  fs::create_directories(root / "build/dev/bin");
  EXPECT_EQ(FindRecordingsFolder(root / "build/dev/bin"), "");
  fs::create_directories(root / "profiles/recordings");
  EXPECT_EQ(FindRecordingsFolder(root / "build/dev/bin"), root / "profiles/recordings");
  fs::create_directories(root / "build/dev/share/pawl/profiles/recordings");
  EXPECT_EQ(FindRecordingsFolder(root / "build/dev/bin"), root / "build/dev/share/pawl/profiles/recordings");
}

TEST(FindRecordingsFolder, FindsThoseThatShip) { EXPECT_NE(FindRecordingsFolder(), ""); }

}  // namespace
}  // namespace pawl
