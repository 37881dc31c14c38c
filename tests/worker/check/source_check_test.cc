#include "worker/check/source_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "worker/replay/recording.h"

namespace pawl {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

v1::Bundle BundleWith(const std::string& source, const std::string& variable) {
  v1::Bundle bundle;
  bundle.mutable_source()->set_path("k.cu");
  bundle.mutable_source()->set_text(source);
  v1::Variable* made = bundle.add_variables();
  made->set_name(variable);
  made->add_values(1);
  made->set_start(1);
  bundle.add_launches()->set_entry("k");
  return bundle;
}

TEST(UnusedVariables, NamesOneThatAppearsNowhereAndWhatWasMeant) {
  EXPECT_THAT(UnusedVariables(BundleWith("#if STREAMING\n#endif\n__global__ void k() {}", "STREAMINGX")),
              ElementsAre("the variable STREAMINGX appears nowhere in the source, its files, the launches, shapes and "
                          "scalars; did you mean STREAMING?"));
}

TEST(UnusedVariables, DoesNotCountCommentsAndStrings) {
  EXPECT_THAT(UnusedVariables(BundleWith("// TILE\nconst char* s = \"TILE\";", "TILE")),
              ElementsAre(HasSubstr("TILE appears nowhere")));
}

TEST(UnusedVariables, CountsDirectivesFilesGeometryEntriesShapesAndScalars) {
  EXPECT_THAT(UnusedVariables(BundleWith("#ifdef TILE\n#endif", "TILE")), IsEmpty());
  v1::Bundle bundle = BundleWith("__global__ void k() {}", "TILE");
  bundle.add_files()->set_text("int a[TILE];");
  EXPECT_THAT(UnusedVariables(bundle), IsEmpty());
  bundle = BundleWith("__global__ void k() {}", "TILE");
  bundle.mutable_launches(0)->add_grid("ceil_div(N, TILE)");
  EXPECT_THAT(UnusedVariables(bundle), IsEmpty());
  bundle = BundleWith("__global__ void k() {}", "TILE");
  bundle.mutable_launches(0)->set_entry("k<TILE>");
  EXPECT_THAT(UnusedVariables(bundle), IsEmpty());
  bundle = BundleWith("__global__ void k() {}", "TILE");
  bundle.add_tensors()->add_shape("N * TILE");
  EXPECT_THAT(UnusedVariables(bundle), IsEmpty());
  bundle = BundleWith("__global__ void k() {}", "TILE");
  bundle.add_scalars()->set_value("TILE / 2");
  EXPECT_THAT(UnusedVariables(bundle), IsEmpty());
}

TEST(UnusedVariables, LeavesOptionsAndWrittenValuesAlone) {
  v1::Bundle bundle = BundleWith("__global__ void k() {}", "MAX_REGISTERS");
  bundle.mutable_variables(0)->set_option("-maxrregcount={}");
  EXPECT_THAT(UnusedVariables(bundle), IsEmpty());
}

std::vector<std::string> Redefined(const std::string& source, int start = 16) {
  v1::Bundle bundle = BundleWith(source, "TILE");
  bundle.mutable_variables(0)->set_values(0, start);
  bundle.mutable_variables(0)->set_start(start);
  return RedefinedVariables(bundle);
}

TEST(RedefinedVariables, NamesADefinitionThatDoesNotAsk) {
  EXPECT_THAT(Redefined("#include <a.h>\n#define TILE 16\nint x[TILE];\n"),
              ElementsAre("line 2 of k.cu defines TILE itself, whatever the variable says: put #ifndef TILE and #endif "
                          "around it, or give the variable replaces = '#define TILE {}'"));
  EXPECT_THAT(Redefined("#  define  TILE\t16  // rows\nint x[TILE];\n"),
              ElementsAre(HasSubstr("replaces = '#  define  TILE\t{}'")));
  EXPECT_THAT(Redefined("#define TILE 16\nint x[TILE];\n", 8), ElementsAre(EndsWith("and #endif around it")))
      << "with its start the text stands nowhere";
  EXPECT_THAT(Redefined("#define TILE (16)\nint x[TILE];\n"), ElementsAre(EndsWith("and #endif around it")));
  EXPECT_THAT(Redefined("#ifndef K_H\n#define K_H\n#define TILE 16\nint x[TILE];\n#endif\n"),
              ElementsAre(HasSubstr("line 3 of k.cu")))
      << "an include guard";
  v1::Bundle header = BundleWith("#include \"a.cuh\"\nint x[TILE];\n", "TILE");
  v1::SourceFile* file = header.add_files();
  file->set_path("a.cuh");
  file->set_text("#pragma once\n#define TILE 16\n");
  EXPECT_THAT(RedefinedVariables(header), ElementsAre(HasSubstr("line 2 of a.cuh")));
}

TEST(RedefinedVariables, HasNothingAgainstOnesThatAskOrDoNotMatter) {
  for (const char* source :
       {"#ifndef TILE\n#define TILE 16\n#endif\nint x[TILE];\n",
        "#if !defined(TILE)\n#define TILE 16\n#endif\nint x[TILE];\n", "#define SIZE (2 * TILE)\nint x[TILE];\n",
        "#if 0\n#define TILE 16\n#endif\nint x[TILE];\n",
        "#ifdef __HIP__\n#define TILE 16\n#else\n#define OTHER\n#endif\nint x[TILE];\n",
        "int x[TILE];\n#undef TILE\n#define TILE 16\n"}) {
    EXPECT_THAT(Redefined(source), IsEmpty()) << source;
  }
  v1::Bundle written = BundleWith("#define TILE 16\nint x[TILE];\n", "TILE");
  written.mutable_variables(0)->set_replaces("#define TILE {}");
  EXPECT_THAT(RedefinedVariables(written), IsEmpty());
}

// Linear, or the test would take minutes.
TEST(SourceCheck, TakesSourcesThatNest) {
  std::string calls, grids, loops;
  for (int i = 0; i < 100'000; ++i) {
    calls += "k(";
    grids += "cg::this_grid(";
    loops += "#if A\nk(\n#else\n(\n#endif\n";
  }
  for (const std::string& source : {calls, "__global__ void k() {" + grids, loops}) {
    EXPECT_THAT(LaunchesWithoutCooperation(BundleWith(source, "X")), IsEmpty());
    EXPECT_THAT(LaunchesWithoutClusters(BundleWith(source, "X")), IsEmpty());
    EXPECT_THAT(RedefinedVariables(BundleWith(source, "X")), IsEmpty());
  }
}

constexpr char kGridSync[] =
    "namespace cg = cooperative_groups;\n"
    "__global__ void other(int* x) {}\n"
    "__global__ void k(int* x) {\n"
    "  cg::grid_group grid = cg::this_grid();\n"
    "  grid.sync();\n"
    "}\n";

TEST(LaunchesWithoutCooperation, NamesAGridSyncAndItsLine) {
  v1::Bundle bundle = BundleWith(kGridSync, "X");
  EXPECT_THAT(LaunchesWithoutCooperation(bundle),
              ElementsAre("the launch of k is not cooperative, and its kernel calls grid.sync() in line 5 of k.cu: add "
                          "cooperative = true"));
  bundle.mutable_launches(0)->set_entry("ns::k<float>");
  EXPECT_THAT(LaunchesWithoutCooperation(bundle), ElementsAre(HasSubstr("ns::k<float>")));
}

TEST(LaunchesWithoutCooperation, HasNothingAgainstCooperativeLaunchesAndOtherKernels) {
  v1::Bundle bundle = BundleWith(kGridSync, "X");
  bundle.mutable_launches(0)->set_cooperative(true);
  EXPECT_THAT(LaunchesWithoutCooperation(bundle), IsEmpty());
  bundle = BundleWith(kGridSync, "X");
  bundle.mutable_launches(0)->set_entry("other");
  EXPECT_THAT(LaunchesWithoutCooperation(bundle), IsEmpty());
}

TEST(LaunchesWithoutCooperation, SeesACallWithoutAVariable) {
  EXPECT_THAT(LaunchesWithoutCooperation(BundleWith("__global__ void k() { cg::this_grid().sync(); }", "X")),
              ElementsAre(HasSubstr("line 1")));
  EXPECT_THAT(LaunchesWithoutCooperation(BundleWith("__global__ void k() { cg::this_thread_block().sync(); }", "X")),
              IsEmpty());
}

TEST(LaunchesWithoutClusters, NamesWhatTheKernelUsesAndItsLine) {
  EXPECT_THAT(LaunchesWithoutClusters(BundleWith("__global__ void k() {\n  auto c = cg::this_cluster();\n}", "X")),
              ElementsAre("the launch of k has no cluster, and its kernel uses this_cluster() in line 2 of k.cu: every "
                          "block is a cluster of its own; add cluster = [2] or as many blocks as it needs"));
  EXPECT_THAT(LaunchesWithoutClusters(BundleWith("__global__ void k() { asm(\"barrier.cluster.arrive;\"); }", "X")),
              ElementsAre(HasSubstr("`barrier.cluster` in line 1")));
  EXPECT_THAT(LaunchesWithoutClusters(BundleWith("__global__ void k() { asm(\"mapa.u32 %0, %1, 0;\"); }", "X")),
              ElementsAre(HasSubstr("`mapa.`")));
  EXPECT_THAT(LaunchesWithoutClusters(
                  BundleWith("__global__ void __cluster_dims__(2, 1, 1) k() { cg::this_cluster().sync(); }", "X")),
              ElementsAre(HasSubstr("has __cluster_dims__ in line 1 of k.cu: add cluster = [2, 1, 1], so that")));
  EXPECT_THAT(LaunchesWithoutClusters(BundleWith("__global__ void __cluster_dims__(max(1, CL), 1, 1, 1) k() {}", "X")),
              ElementsAre(HasSubstr("add cluster = [...] with the numbers of (max(1,CL), 1, 1), so that grids")));
}

TEST(LaunchesWithoutClusters, HasNothingAgainstLaunchesWithOneAndOtherKernels) {
  v1::Bundle bundle = BundleWith("__global__ void k() { cg::this_cluster().sync(); }", "X");
  bundle.mutable_launches(0)->add_cluster("2");
  EXPECT_THAT(LaunchesWithoutClusters(bundle), IsEmpty());
  EXPECT_THAT(LaunchesWithoutClusters(BundleWith("__global__ void __cluster_dims__(2) other() {}\n"
                                                 "__global__ void k() { cg::this_thread_block().sync(); }",
                                                 "X")),
              IsEmpty());
}

TEST(WhyNoCode, IsWhatASourceOfNothingElseSays) {
  EXPECT_EQ(WhyNoCode(BundleWith("// Imported.\n#error \"no device code\"\n", "X")), "no device code");
  EXPECT_EQ(WhyNoCode(BundleWith("#error no device code\n", "X")), "no device code");
  EXPECT_THAT(UnusedVariables(BundleWith("#error \"no device code\"\n", "X")), SizeIs(1));
  EXPECT_THAT(UnusedVariables(BundleWith(absl::StrCat("#error \"", kImportedCode, "\"\n"), "X")), IsEmpty());
  for (const char* code : {"", "__global__ void k() {}", "#ifndef A\n#error \"define A\"\n#endif\n",
                           "#error \"x\"\n__global__ void k() {}"}) {
    EXPECT_EQ(WhyNoCode(BundleWith(code, "X")), "") << code;
  }
}

std::string GoldenCubin(const std::string& name) {
  const char* source = std::getenv("PAWL_SOURCE_DIR");
  std::ifstream stream(std::filesystem::path(source == nullptr ? "." : source) / "tests/worker/golden" / name,
                       std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

TEST(UnfilledConstants, NamesThoseThatNeitherTheSourceNorASymbolFills) {
  std::ifstream file(std::string(getenv("PAWL_SOURCE_DIR")) + "/tests/worker/golden/symbols.cubin", std::ios::binary);
  const std::string cubin{std::istreambuf_iterator<char>(file), {}};
  v1::Bundle bundle;
  bundle.add_symbols()->set_name("club::weights");
  bundle.add_symbols()->set_name("order");
  const std::vector<std::string> warnings = UnfilledConstants(bundle, cubin);
  ASSERT_EQ(warnings.size(), 1u) << "neither what has an initialiser, nor what is not constant";
  EXPECT_THAT(warnings[0], HasSubstr("the __constant__ variable limits holds zeros: it has no initialiser"));
}

TEST(EntriesOf, HasEveryKernelWithItsParameters) {
  const std::vector<v1::CheckEntry> entries = EntriesOf(GoldenCubin("two_entries.cubin"));
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_FALSE(entries[0].name().empty());
  EXPECT_GT(entries[0].parameter_bytes_size(), 0);
  EXPECT_THAT(EntriesOf("no cubin"), IsEmpty());
}

}  // namespace
}  // namespace pawl
