#include "worker/build/cubin.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>

namespace pawl {
namespace {

std::string Golden(const std::string& name = "two_entries") {
  std::ifstream file(std::string(getenv("PAWL_SOURCE_DIR")) + "/tests/worker/golden/" + name + ".cubin",
                     std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Cubin, NamesItsEntriesAndNoDeviceFunctions) {
  const absl::StatusOr<std::vector<std::string>> names = EntryNames(Golden());
  ASSERT_TRUE(names.ok()) << names.status();
  EXPECT_EQ(*names, (std::vector<std::string>{"add", "scale"}));
}

TEST(Cubin, NamesTheDriversFunctionsThatItCalls) {
  const absl::StatusOr<std::vector<std::string>> none = DriverFunctions(Golden()),
                                                 some = DriverFunctions(Golden("heap"));
  ASSERT_TRUE(none.ok() && some.ok()) << none.status() << some.status();
  EXPECT_EQ(*none, std::vector<std::string>());
  EXPECT_EQ(*some, (std::vector<std::string>{"free", "malloc", "vprintf"}));
  EXPECT_TRUE(absl::IsInvalidArgument(DriverFunctions("not a cubin").status()));
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

TEST(Cubin, SaysWhatParametersEachEntryTakes) {
  const auto parameters = EntryParameters(Golden("parameters"));
  ASSERT_TRUE(parameters.ok()) << parameters.status();
  EXPECT_EQ(parameters->at("five"), (std::vector<int>{8, 8, 8, 4, 4}));
  EXPECT_EQ(parameters->at("mixed"), (std::vector<int>{4, 8, 8, 1, 72}));
  EXPECT_EQ(parameters->at("none"), std::vector<int>());
  EXPECT_EQ(parameters->at("_Z5otherIiEvPT_"), std::vector<int>{8});
  EXPECT_EQ(EntryParameters(Golden())->at("add"), std::vector<int>{8});
  EXPECT_TRUE(absl::IsInvalidArgument(EntryParameters("not a cubin").status()));
}

TEST(Cubin, SaysWhatStructsByValueTake) {
  const auto parameters = EntryParameters(Golden("structs"));
  ASSERT_TRUE(parameters.ok()) << parameters.status();
  EXPECT_EQ(parameters->at("structs"), (std::vector<int>{40, 8, 16, 1, 8, 4}));
}

TEST(Cubin, NamesItsGlobalVariables) {
  const absl::StatusOr<std::vector<GlobalVariable>> variables = GlobalVariables(Golden("structs"));
  ASSERT_TRUE(variables.ok()) << variables.status();
  std::vector<std::string> names, zeros;
  for (const GlobalVariable& variable : *variables) (variable.zero ? zeros : names).push_back(variable.name);
  EXPECT_EQ(names, std::vector<std::string>({"table"}));
  EXPECT_EQ(zeros, (std::vector<std::string>{"counter", "hidden"}));
  EXPECT_EQ(*GlobalVariables(Golden()), std::vector<GlobalVariable>());
  EXPECT_TRUE(absl::IsInvalidArgument(GlobalVariables("not a cubin").status()));
}

TEST(Cubin, KnowsWhatItTakesOfTheGpusMemory) {
  EXPECT_EQ(LoadedBytes(Golden()), static_cast<int64_t>(Golden().size()));
  // Three bytes that lie 4096 apart, and 3 MiB, which take two pages of their own.
  EXPECT_EQ(LoadedBytes(Golden("padded")), static_cast<int64_t>(Golden("padded").size()) + 3 * 4096 + (4 << 20));
  EXPECT_EQ(LoadedBytes("not a cubin"), 11);
}

TEST(Cubin, SaysWhereVariablesLieInTheirSection) {
  const absl::StatusOr<std::vector<GlobalVariable>> variables = GlobalVariables(Golden("padded"));
  ASSERT_TRUE(variables.ok()) << variables.status();
  std::set<uint64_t> offsets;
  for (const GlobalVariable& variable : *variables) {
    EXPECT_EQ(variable.section, (*variables)[0].section);
    EXPECT_GE(variable.section_bytes, variable.offset + variable.bytes);
    offsets.insert(variable.offset);
  }
  EXPECT_EQ(offsets.size(), variables->size());
  EXPECT_TRUE(offsets.contains(4096) && offsets.contains(8192))
      << "bytes that are aligned to 4096 have gaps between them";
}

TEST(Cubin, KnowsConstantsTheirBytesAndWhetherTheyAreGiven) {
  const absl::StatusOr<std::vector<GlobalVariable>> variables = GlobalVariables(Golden("symbols"));
  ASSERT_TRUE(variables.ok()) << variables.status();
  const auto expect = [&](const std::string& name, uint64_t bytes, bool constant, bool blank) {
    SCOPED_TRACE(name);
    const GlobalVariable* variable = FindVariable(*variables, name);
    ASSERT_NE(variable, nullptr);
    EXPECT_EQ(variable->bytes, bytes);
    EXPECT_EQ(variable->constant, constant);
    EXPECT_EQ(variable->blank, blank);
  };
  expect("club::weights", 32, true, true);
  expect("::club::weights", 32, true, true);
  expect("limits", 16, true, true);
  expect("given", 8, true, false);
  expect("state", 24, false, true);
  expect("order", 12, true, true);
  EXPECT_EQ(FindVariable(*variables, "weights"), nullptr) << "it lies in a namespace";
}

TEST(Cubin, ReadsNoParametersOutsideOfDamagedOnes) {
  const std::string cubin = Golden("parameters");
  for (size_t at = 0; at < cubin.size(); ++at) {
    for (const int bits : {0xff, 0x01, 0x80}) {
      std::string damaged = cubin;
      damaged[at] = static_cast<char>(damaged[at] ^ bits);
      (void)EntryParameters(damaged);  // must not crash; the sanitizers watch
    }
  }
  for (size_t size = 0; size < cubin.size(); size += 7) (void)EntryParameters(cubin.substr(0, size));
}

}  // namespace
}  // namespace pawl
