#include "worker/build/cubin.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

namespace pawl {
namespace {

std::string Golden() {
  std::ifstream file(std::string(getenv("PAWL_SOURCE_DIR")) + "/tests/worker/golden/two_entries.cubin",
                     std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Cubin, NamesItsEntriesAndNoDeviceFunctions) {
  const absl::StatusOr<std::vector<std::string>> names = EntryNames(Golden());
  ASSERT_TRUE(names.ok()) << names.status();
  EXPECT_EQ(*names, (std::vector<std::string>{"add", "scale"}));
}

TEST(Cubin, RefusesWhatIsNone) {
  EXPECT_TRUE(absl::IsInvalidArgument(EntryNames("").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(EntryNames("not a cubin").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(EntryNames(std::string(100000, 'x')).status()));
  std::ifstream program("/proc/self/exe", std::ios::binary);
  const std::string elf(std::istreambuf_iterator<char>(program), {});
  EXPECT_TRUE(absl::IsInvalidArgument(EntryNames(elf).status()));
}

TEST(Cubin, RefusesOneThatIsCutOffAnywhere) {
  const std::string cubin = Golden();
  // The section table follows everything that is read; after it only program headers come.
  for (size_t size = 0; size + 512 < cubin.size(); size += 7) {
    EXPECT_FALSE(EntryNames(cubin.substr(0, size)).ok()) << size;
  }
}

TEST(Cubin, ReadsNothingOutsideOfDamagedOnes) {
  const std::string cubin = Golden();
  for (size_t at = 0; at < cubin.size(); ++at) {
    std::string damaged = cubin;
    damaged[at] = static_cast<char>(~damaged[at]);
    (void)EntryNames(damaged);  // must not crash; the sanitizers watch
  }
  std::string damaged = cubin;
  damaged[40] = damaged[41] = damaged[46] = '\xff';  // the section table's place
  EXPECT_FALSE(EntryNames(damaged).ok());
}

}  // namespace
}  // namespace pawl
