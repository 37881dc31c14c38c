#include "kernels/substitution.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "kernels/bundle_message.h"
#include "kernels/plan.h"
#include "kernels/read/bundle_reader.h"
#include "kernels/read/implementation_toml.h"
#include "kernels/space.h"
#include "tests/kernels/bundle_folder.h"

namespace pawl {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

v1::Bundle TiledBundle() {
  v1::Bundle bundle;
  bundle.mutable_source()->set_path("tiled.cu");
  bundle.mutable_source()->set_text("constexpr int TILE = 32;\n#define UNROLL 4\n__global__ void k() {}\n");
  v1::Variable* tile = bundle.add_variables();
  tile->set_name("TILE");
  tile->add_values(16);
  tile->add_values(32);
  tile->set_start(32);
  tile->set_replaces("constexpr int TILE = {};");
  v1::Variable* unroll = bundle.add_variables();
  unroll->set_name("UNROLL");
  unroll->add_values(4);
  unroll->add_values(16);
  unroll->set_start(4);
  unroll->set_replaces("#define UNROLL {}");
  v1::Size* size = bundle.add_sizes();
  size->set_name("main");
  (*size->mutable_values())["N"] = 64;
  return bundle;
}

v1::Variant VariantOf(int tile, int unroll) {
  v1::Variant variant;
  (*variant.mutable_values())["TILE"] = tile;
  (*variant.mutable_values())["UNROLL"] = unroll;
  return variant;
}

TEST(PlacesOf, FindsTheValueBetweenItsSurroundings) {
  const std::vector<TextPlace> places = PlacesOf("int A = {};", "8", "int A = 8; int A = 80; xint A = 8;");
  ASSERT_THAT(places, SizeIs(1));
  EXPECT_EQ(places[0].begin, 8u);
  EXPECT_EQ(places[0].end, 9u);
}

TEST(PlacesOf, DoesNotTakePartOfANumber) {
  EXPECT_THAT(PlacesOf("#define N {}", "25", "#define N 256\n"), IsEmpty());
  EXPECT_THAT(PlacesOf("#define N {}", "256", "#define N 256"), SizeIs(1));
}

TEST(FilesToCompile, WritesValuesIntoTheSourceAndLeavesTheBundle) {
  const v1::Bundle bundle = TiledBundle();
  const absl::StatusOr<CompiledFiles> files = FilesToCompile(bundle, VariantOf(16, 16));
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(files->source.text(), "constexpr int TILE = 16;\n#define UNROLL 16\n__global__ void k() {}\n");
  EXPECT_THAT(bundle.source().text(), HasSubstr("TILE = 32"));
  EXPECT_THAT(files->options, IsEmpty());
}

TEST(FilesToCompile, WritesIntoTheFileThatHasTheText) {
  v1::Bundle bundle = TiledBundle();
  v1::SourceFile* header = bundle.add_files();
  header->set_path("tile.cuh");
  header->set_text("constexpr int TILE = 32;\n");
  bundle.mutable_source()->set_text("#include \"tile.cuh\"\n#define UNROLL 4\n");
  const absl::StatusOr<CompiledFiles> files = FilesToCompile(bundle, VariantOf(16, 4));
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(files->files[0].text(), "constexpr int TILE = 16;\n");
}

TEST(FilesToCompile, RefusesATextThatIsNotThereOnce) {
  v1::Bundle bundle = TiledBundle();
  bundle.mutable_source()->set_text("#define UNROLL 4\n");
  EXPECT_THAT(std::string(FilesToCompile(bundle, VariantOf(16, 4)).status().message()), HasSubstr("occurs nowhere"));
  bundle.mutable_source()->set_text("#define UNROLL 4\nconstexpr int TILE = 32;\nconstexpr int TILE = 32;\n");
  EXPECT_THAT(std::string(FilesToCompile(bundle, VariantOf(16, 4)).status().message()), HasSubstr("occurs 2 times"));
}

TEST(FilesToCompile, SkipsHostCodeOnlyWhereTheBundleSaysSo) {
  v1::Bundle bundle = TiledBundle();
  bundle.mutable_source()->set_text(bundle.source().text() + "#include <ATen/ATen.h>\nint main() {}\n");
  EXPECT_THAT(FilesToCompile(bundle, VariantOf(32, 4))->source.text(), HasSubstr("int main"));
  bundle.set_skip_host_code(true);
  const absl::StatusOr<CompiledFiles> files = FilesToCompile(bundle, VariantOf(32, 4));
  EXPECT_THAT(files->source.text(), Not(HasSubstr("int main")));
  EXPECT_THAT(files->options, ElementsAre("-default-device"));
  ASSERT_THAT(files->files, SizeIs(2));
  EXPECT_EQ(files->files[0].path(), "ATen/ATen.h");
}

TEST(CompileOptions, HaveNoMacroForAVariableThatIsWrittenIn) {
  const v1::Bundle bundle = TiledBundle();
  EXPECT_THAT(CompileOptions(bundle, VariantOf(16, 4), bundle.sizes(0)), Each(Not(HasSubstr("TILE"))));
}

TEST(CompileOptions, SeeSizesThatAWrittenValueSwitchesOn) {
  v1::Bundle bundle = TiledBundle();
  bundle.mutable_source()->set_text("#define UNROLL 4\nconstexpr int TILE = 32;\nint n = SIZE_N;\n");
  EXPECT_THAT(CompileOptions(bundle, VariantOf(16, 4), bundle.sizes(0)), Contains("-DSIZE_N=64"));
}

TEST(Hashes, DependOnWhatIsReplacedAndSkipped) {
  const v1::Bundle bundle = TiledBundle();
  v1::Bundle other = bundle;
  other.mutable_variables(0)->clear_replaces();
  EXPECT_NE(BundleHash(bundle), BundleHash(other));
  EXPECT_NE(VariantHash(bundle, VariantOf(16, 4), "sm_90a"), VariantHash(other, VariantOf(16, 4), "sm_90a"));
  other = bundle;
  other.set_skip_host_code(true);
  EXPECT_NE(BundleHash(bundle), BundleHash(other));
}

// The reader of kernel.toml.

std::string OnlyProblem(const BundleFolder& folder) {
  const BundleReading reading = ReadBundle(folder.path());
  return reading.problems.size() == 1 ? reading.problems[0].message
                                      : std::to_string(reading.problems.size()) + " problems";
}

class ReplacesTest : public testing::Test {
 protected:
  // One more variable, at the end of kernel.toml.
  void Add(const std::string& replaces) {
    folder_.Replace("[[launch]]", "[[variable]]\nname = \"ROUNDS\"\nvalues = [1, 2]\nstart = 1\nreplaces = " +
                                      replaces + "\n\n[[launch]]");
  }
  void AppendToSource(const std::string& text) {
    const BundleReading reading = ReadBundle(BundleFolder::Golden());
    folder_.Write(reading.bundle.source().path(), reading.bundle.source().text() + text);
  }
  BundleFolder folder_;
};

TEST_F(ReplacesTest, IsReadWhereItsTextStandsOnce) {
  AppendToSource("\nconstexpr int kRounds = 1;\n");
  Add("\"constexpr int kRounds = {};\"");
  const BundleReading reading = ReadBundle(folder_.path());
  ASSERT_THAT(reading.problems, IsEmpty()) << FormatProblem(reading.problems[0]);
  EXPECT_EQ(reading.bundle.variables(reading.bundle.variables_size() - 1).replaces(), "constexpr int kRounds = {};");
  EXPECT_THAT(BundleProblems(reading.bundle), IsEmpty());
}

TEST_F(ReplacesTest, NeedsOnePlaceForTheValue) {
  Add("\"constexpr int kRounds = 1;\"");
  EXPECT_THAT(OnlyProblem(folder_), HasSubstr("needs one {} where the value is"));
}

TEST_F(ReplacesTest, MustStandInTheSource) {
  Add("\"constexpr int kRounds = {};\"");
  EXPECT_THAT(OnlyProblem(folder_), HasSubstr("with 1 for {}, which occurs nowhere in the source; expected once"));
}

TEST_F(ReplacesTest, MayHaveSeveralLines) {
  AppendToSource("\n#pragma unroll 1\n\tfor (;;);\r\n");
  Add("\"#pragma unroll {}\\n\\tfor (;;);\\r\\n\"");
  const BundleReading reading = ReadBundle(folder_.path());
  ASSERT_THAT(reading.problems, IsEmpty()) << FormatProblem(reading.problems[0]);
  EXPECT_THAT(BundleProblems(reading.bundle), IsEmpty());
  v1::Variant variant = StartVariant(reading.bundle);
  (*variant.mutable_values())["ROUNDS"] = 2;
  EXPECT_THAT(FilesToCompile(reading.bundle, variant)->source.text(), HasSubstr("#pragma unroll 2\n\tfor (;;);\r\n"));
  // As an edited implementation is stored.
  v1::Bundle stored = reading.bundle;
  ASSERT_TRUE(ReadStoredToml(ImplementationToml(reading.bundle), &stored).ok());
  EXPECT_EQ(stored.variables(stored.variables_size() - 1).replaces(), "#pragma unroll {}\n\tfor (;;);\r\n");
}

TEST_F(ReplacesTest, HasNoOtherControlCharacters) {
  for (const char* text : {"\"a\\u0000{}\"", "\"a\\u001B[{}\"", "\"a\\r{}\"", "\"a\\u007F{}\""}) {
    BundleFolder folder;
    folder.Replace("[[launch]]",
                   std::string("[[variable]]\nname = \"ROUNDS\"\nvalues = [1, 2]\nstart = 1\nreplaces = ") + text +
                       "\n\n[[launch]]");
    EXPECT_THAT(OnlyProblem(folder), HasSubstr("replaces has a control character; expected lines of text"));
  }
  v1::Bundle bundle = ReadBundle(folder_.path()).bundle;
  bundle.mutable_source()->mutable_text()->append("\x1b[1");
  bundle.mutable_variables(0)->set_replaces("\x1b[{}");
  EXPECT_THAT(BundleProblems(bundle), Contains(HasSubstr("control character")));
}

TEST_F(ReplacesTest, ExcludesAnOption) {
  AppendToSource("\nconstexpr int kRounds = 1;\n");
  Add("\"constexpr int kRounds = {};\"\noption = \"-maxrregcount={}\"");
  EXPECT_THAT(OnlyProblem(folder_), HasSubstr("replaces and option exclude each other"));
}

TEST_F(ReplacesTest, HostCodeIsSkippedOrKept) {
  folder_.Replace("compiler = \"nvrtc\"", "compiler = \"nvrtc\"\nhost_code = \"skip\"");
  EXPECT_TRUE(ReadBundle(folder_.path()).bundle.skip_host_code());
  folder_.Replace("\"skip\"", "\"drop\"");
  EXPECT_THAT(OnlyProblem(folder_), HasSubstr("host_code"));
}

}  // namespace
}  // namespace pawl
