#include "kernels/read/bundle_reader.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <sstream>

#include "kernels/bundle_message.h"
#include "kernels/space.h"
#include "tests/kernels/bundle_folder.h"
#include "tests/kernels/contract_alone.h"

namespace pawl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

std::vector<std::string> Texts(const std::vector<Problem>& problems) {
  std::vector<std::string> texts;
  for (const Problem& problem : problems) texts.push_back(FormatProblem(problem));
  return texts;
}

TEST(BundleReaderTest, ReadsEveryTableOfTheGoldenBundle) {
  const BundleReading reading = ReadBundle(BundleFolder::Golden());
  ASSERT_THAT(Texts(reading.problems), IsEmpty());
  const v1::Bundle& bundle = reading.bundle;
  EXPECT_EQ(bundle.name(), "scale_rows");
  EXPECT_EQ(bundle.source().path(), "scale_rows.cu");
  EXPECT_THAT(bundle.source().text(), HasSubstr("__global__ void scale_rows("));
  EXPECT_EQ(bundle.compiler(), v1::COMPILER_NVRTC);
  EXPECT_EQ(bundle.timing(), v1::TIMING_MODE_COLD);
  EXPECT_TRUE(bundle.nondeterministic());
  EXPECT_THAT(bundle.options(), ElementsAre("--use_fast_math"));
  EXPECT_EQ(bundle.goal().size(), "main");
  EXPECT_EQ(bundle.goal().speedup(), 1.5);
  ASSERT_EQ(bundle.sizes_size(), 2);
  EXPECT_EQ(bundle.sizes(1).values().at("COLS"), 4096);
  ASSERT_EQ(bundle.tensors_size(), 5);
  EXPECT_EQ(bundle.tensors(0).type(), v1::DATA_TYPE_F16);
  EXPECT_EQ(bundle.tensors(0).role(), v1::TENSOR_ROLE_INPUT);
  EXPECT_EQ(bundle.tensors(0).fill(), v1::FILL_UNIFORM);
  EXPECT_EQ(bundle.tensors(1).role(), v1::TENSOR_ROLE_OUTPUT);
  EXPECT_THAT(bundle.tensors(2).shape(), ElementsAre("SPLITS", "ROWS", "2"));
  EXPECT_EQ(bundle.tensors(0).low(), "-1000");
  EXPECT_EQ(bundle.tensors(3).high(), "COLS - 1");
  EXPECT_EQ(bundle.tensors(0).align(), 16);
  EXPECT_EQ(bundle.tensors(1).tolerance().relative(), 0.0005);
  EXPECT_FALSE(bundle.tensors(1).tolerance().exact());
  EXPECT_TRUE(bundle.tensors(4).tolerance().exact());
  ASSERT_EQ(bundle.variables_size(), 3);
  EXPECT_THAT(bundle.variables(1).values(), ElementsAre(64, 32, 128));
  EXPECT_EQ(bundle.variables(2).option(), "-maxrregcount={}");
  ASSERT_EQ(bundle.variables(1).affects_size(), 1);
  EXPECT_EQ(bundle.variables(1).affects(0).resource(), v1::RESOURCE_SHARED_MEMORY);
  EXPECT_EQ(bundle.variables(1).affects(0).direction(), v1::DIRECTION_MORE);
  ASSERT_EQ(bundle.scalars_size(), 2);
  EXPECT_EQ(bundle.scalars(1).type(), v1::DATA_TYPE_I32);
  EXPECT_EQ(bundle.hidden().at("ROWS").high(), 600);
  EXPECT_EQ(bundle.hidden().at("ROWS").multiple(), 0);
  EXPECT_EQ(bundle.hidden().at("COLS").low(), 32);
  EXPECT_EQ(bundle.hidden().at("COLS").multiple(), 16);
  ASSERT_EQ(bundle.launches_size(), 2);
  EXPECT_EQ(bundle.launches(1).when(), "SPLITS > 1");
  EXPECT_THAT(bundle.launches(1).block(), ElementsAre("32", "1"));
  EXPECT_EQ(bundle.reference().launches(0).entry(), "scale_rows_reference");
  EXPECT_EQ(bundle.tolerance().relative(), 0.001);
  EXPECT_THAT(bundle.baseline_command(), ElementsAre("python3", "baseline.py"));
  EXPECT_EQ(bundle.work_bytes(), "6*ROWS*COLS");
}

TEST(BundleReaderTest, TakesAContractAlone) {
  const BundleFolder folder;
  folder.Write("kernel.toml", kContractToml);
  const BundleReading reading = ReadBundle(folder.path());
  ASSERT_THAT(Texts(reading.problems), IsEmpty());
  EXPECT_TRUE(IsContractAlone(reading.bundle));
  EXPECT_THAT(BundleProblems(reading.bundle), IsEmpty());
  EXPECT_FALSE(IsContractAlone(ReadBundle(BundleFolder::Golden()).bundle));
}

constexpr char kImplementation[] =
    "source = \"src/copy.cu\"\nfiles = [\"src/*.cuh\"]\noptions = [\"-O3\"]\n"
    "[[variable]]\nname = \"TILE\"\nvalues = [64, 128]\nstart = 128\n"
    "[[tensor]]\nname = \"part\"\ntype = \"f32\"\nshape = [\"TILE\"]\nrole = \"scratch\"\n"
    "[[launch]]\nentry = \"copy\"\ngrid = [\"ceil_div(N, TILE)\"]\nblock = [\"TILE\"]\n"
    "arguments = [\"in\", \"out\", \"part\", \"N\"]\n";

TEST(BundleReaderTest, ReadsTheImplementationOfAContractFromAFileBesideIt) {
  const BundleFolder folder;
  folder.Write("kernel.toml", kContractToml);
  std::filesystem::create_directory(folder.path() / "src");
  folder.Write("src/copy.cu", "__global__ void copy() { TILE; }\n");
  folder.Write("src/tile.cuh", "#pragma once\n");
  folder.Write("implementation.toml", kImplementation);
  const BundleReading reading = ReadBundle(folder.path());
  ASSERT_THAT(Texts(reading.problems), IsEmpty());
  const v1::Bundle& bundle = reading.bundle;
  EXPECT_EQ(bundle.name(), "copies");
  EXPECT_EQ(bundle.source().path(), "src/copy.cu");
  EXPECT_EQ(bundle.source().text(), "__global__ void copy() { TILE; }\n");
  ASSERT_EQ(bundle.files_size(), 1);
  EXPECT_EQ(bundle.files(0).path(), "src/tile.cuh");
  EXPECT_THAT(bundle.options(), ElementsAre("-O3"));
  EXPECT_EQ(StartVariant(bundle).values().at("TILE"), 128);
  ASSERT_EQ(bundle.tensors_size(), 3);
  EXPECT_EQ(bundle.tensors(2).role(), v1::TENSOR_ROLE_SCRATCH);
  EXPECT_EQ(bundle.reference().launches(0).entry(), "scale_rows_reference");
  EXPECT_THAT(BundleProblems(bundle), IsEmpty());
}

TEST(BundleReaderTest, SaysWhatIsWrongInTheFileOfAnImplementation) {
  const BundleFolder folder;
  folder.Write("copy.cu", "__global__ void copy() {}\n");
  const auto problems = [&](const std::string& contract, const std::string& implementation) {
    folder.Write("kernel.toml", contract);
    folder.Write("implementation.toml", implementation);
    return Texts(ReadBundle(folder.path()).problems);
  };
  const std::string launch = "[[launch]]\nentry = \"copy\"\ngrid = [1]\nblock = [1]\narguments = [\"in\", \"out\"]\n";
  const std::string source = "source = \"copy.cu\"\n";
  EXPECT_THAT(problems(kContractToml, source + launch), IsEmpty());
  EXPECT_THAT(problems(kContractToml, launch),
              ElementsAre(HasSubstr("/implementation.toml:1: the key source is missing")));
  EXPECT_THAT(problems(kContractToml, "source = \"no.cu\"\n" + launch), ElementsAre(HasSubstr("no.cu")));
  EXPECT_THAT(
      problems(kContractToml, source + launch + "[tolerance]\nabsolute = 1\n"),
      ElementsAre(HasSubstr("implementation.toml:7: [tolerance] belongs to the contract, which is in kernel.toml")));
  EXPECT_THAT(problems(kContractToml, source), ElementsAre(HasSubstr("there is no [[launch]]; expected at least one")));
  EXPECT_THAT(problems(source + kContractToml + launch, source + launch),
              ElementsAre(HasSubstr("implementation.toml: kernel.toml has the implementation, too")));
  EXPECT_THAT(problems("no" + std::string(kContractToml), source + launch),
              testing::Contains(HasSubstr("kernel.toml:")));
}

TEST(BundleReaderTest, SaysWhatAPartOfAnImplementationLacks) {
  const BundleFolder folder;
  const auto problems = [&](const std::string& first, const std::string& last) {
    folder.Write("kernel.toml", first + kContractToml + last);
    return Texts(ReadBundle(folder.path()).problems);
  };
  const std::string launch =
      "[[launch]]\nentry = \"scale_rows\"\ngrid = [1]\nblock = [1]\narguments = [\"in\", \"out\"]\n";
  const auto source_is_missing = HasSubstr("the key source is missing");
  const auto launch_is_missing = HasSubstr("there is no [[launch]]; expected at least one");
  EXPECT_THAT(problems("", launch), ElementsAre(source_is_missing));
  EXPECT_THAT(problems("source = \"scale_rows.cu\"\n", ""), ElementsAre(launch_is_missing));
  EXPECT_THAT(problems("options = [\"-O3\"]\n", ""), UnorderedElementsAre(source_is_missing, launch_is_missing));
  EXPECT_THAT(problems("", "[[variable]]\nname = \"A\"\nvalues = [1]\nstart = 1\n"),
              UnorderedElementsAre(source_is_missing, launch_is_missing));
  EXPECT_THAT(problems("", "[[tensor]]\nname = \"s\"\ntype = \"f32\"\nshape = [\"N\"]\nrole = \"scratch\"\n"),
              UnorderedElementsAre(source_is_missing, launch_is_missing));
}

TEST(BundleReaderTest, TakesTheFileItselfForTheFolder) {
  EXPECT_THAT(Texts(ReadBundle(BundleFolder::Golden() / "kernel.toml").problems), IsEmpty());
}

TEST(BundleReaderTest, HasDefaults) {
  BundleFolder folder;
  folder.Replace("compiler = \"nvrtc\"\n", "");
  folder.Replace("timing   = \"cold\"\n", "");
  folder.Replace("deterministic = false\n", "");
  folder.Replace("speedup = 1.5\n", "");
  folder.Replace("fill  = \"uniform\"\n", "");
  const BundleReading reading = ReadBundle(folder.path());
  ASSERT_THAT(Texts(reading.problems), IsEmpty());
  EXPECT_EQ(reading.bundle.compiler(), v1::COMPILER_NVRTC);
  EXPECT_EQ(reading.bundle.timing(), v1::TIMING_MODE_WARM);
  EXPECT_FALSE(reading.bundle.nondeterministic());
  EXPECT_EQ(reading.bundle.goal().speedup(), 1);
  EXPECT_EQ(reading.bundle.tensors(0).fill(), v1::FILL_NORMAL);
}

TEST(BundleReaderTest, ReadsFilesWordsFillsAndLaunchesAsPeopleHaveThem) {
  const BundleReading reading = ReadBundle(BundleFolder::Golden("graph_steps"));
  ASSERT_THAT(Texts(reading.problems), IsEmpty());
  const v1::Bundle& bundle = reading.bundle;
  ASSERT_EQ(bundle.files_size(), 2);
  EXPECT_EQ(bundle.files(0).path(), "include/detail/load.cuh") << "sorted";
  EXPECT_EQ(bundle.files(1).path(), "include/graph.cuh");
  EXPECT_THAT(bundle.files(1).text(), HasSubstr("struct Graph"));
  EXPECT_THAT(bundle.include(), ElementsAre("cooperative_groups"));
  EXPECT_THAT(bundle.problem().text(), HasSubstr("def reference("));
  EXPECT_FALSE(bundle.has_reference());
  EXPECT_FALSE(bundle.has_tolerance());
  EXPECT_EQ(bundle.goal().size(), "large") << "the heaviest stands for all";
  EXPECT_EQ(bundle.goal().sizes().at("small"), 0.25);
  EXPECT_EQ(bundle.goal().worst(), 0.98);
  const auto tensor = [&](const std::string& name) {
    for (const v1::Tensor& each : bundle.tensors()) {
      if (each.name() == name) return each;
    }
    return v1::Tensor();
  };
  EXPECT_EQ(tensor("state").role(), v1::TENSOR_ROLE_INOUT);
  EXPECT_EQ(tensor("state").fill(), v1::FILL_UNIFORM_RANGE);
  EXPECT_EQ(tensor("state").low(), "-1");
  EXPECT_EQ(tensor("offsets").fill(), v1::FILL_CSR_OFFSETS);
  EXPECT_EQ(tensor("offsets").high(), "EDGES");
  EXPECT_EQ(tensor("columns").fill(), v1::FILL_INTEGERS);
  EXPECT_EQ(tensor("columns").type(), v1::DATA_TYPE_I64);
  EXPECT_EQ(tensor("order").fill(), v1::FILL_PERMUTATION);
  EXPECT_EQ(tensor("segment").fill(), v1::FILL_SORTED);
  EXPECT_EQ(tensor("bias").fill(), v1::FILL_CONSTANT);
  EXPECT_EQ(tensor("bias").low(), "0.5");
  EXPECT_EQ(tensor("table").fill(), v1::FILL_FILE);
  EXPECT_EQ(tensor("table").file(), "table.npy");
  EXPECT_TRUE(tensor("table").is_static());
  EXPECT_EQ(tensor("weight").fill(), v1::FILL_PROBLEM);
  EXPECT_THAT(bundle.problem_files(), ElementsAre("graphs.py"));
  ASSERT_EQ(bundle.data_files_size(), 2);
  EXPECT_THAT(bundle.data_files(0).data(), HasSubstr("def edge_deviation"));
  EXPECT_EQ(bundle.data_files(1).data().size(), 384u);
  EXPECT_THAT(bundle.variables(0).words(), ElementsAre("float", "double"));
  EXPECT_THAT(bundle.variables(0).values(), ElementsAre(0, 1));
  EXPECT_EQ(bundle.variables(0).start(), 0);
  EXPECT_TRUE(bundle.variables(2).flag());
  EXPECT_TRUE(bundle.variables(3).flag());
  EXPECT_THAT(bundle.variables(3).values(), ElementsAre(0, 1)) << "without `values`";
  EXPECT_EQ(bundle.variables(3).option(), "--use_fast_math");
  EXPECT_EQ(bundle.scalars(0).type(), v1::DATA_TYPE_F16);
  EXPECT_THAT(bundle.structs(0).fields(), ElementsAre("offsets", "columns", "weight", "edges"));
  EXPECT_TRUE(bundle.structs(1).in_memory());
  EXPECT_EQ(bundle.constraints(0).that(), "ACC == \"float\" || UNROLL < 4");
  const v1::Launch& launch = bundle.launches(0);
  EXPECT_EQ(launch.entry(), "steps::advance<ACC, UNROLL, STAGED>");
  EXPECT_EQ(launch.repeat(), "STEPS");
  EXPECT_EQ(launch.index(), "step");
  EXPECT_THAT(launch.swap(), ElementsAre("state", "next"));
  EXPECT_THAT(launch.cluster(), ElementsAre("2"));
  EXPECT_TRUE(bundle.launches(1).cooperative());
  EXPECT_EQ(bundle.setup().launches(0).entry(), "transpose_table");
}

TEST(BundleReaderTest, ReadsStatedFilesLoopsSymbolsAndTheReferencesFiles) {
  const BundleReading reading = ReadBundle(BundleFolder::Golden("club_steps"));
  ASSERT_THAT(Texts(reading.problems), IsEmpty());
  const v1::Bundle& bundle = reading.bundle;
  EXPECT_EQ(bundle.tensors(2).fill(), v1::FILL_FILE);
  EXPECT_EQ(bundle.tensors(2).file_holds(), v1::FILL_CSR_OFFSETS);
  EXPECT_EQ(bundle.tensors(2).high(), "EDGES");
  EXPECT_EQ(bundle.tensors(3).file_holds(), v1::FILL_INTEGERS);
  EXPECT_EQ(bundle.tensors(4).file_holds(), v1::FILL_PERMUTATION);
  EXPECT_EQ(bundle.data_files_size(), 3);
  EXPECT_EQ(bundle.launches(0).loop(), "step");
  EXPECT_EQ(bundle.launches(1).loop(), "step");
  EXPECT_EQ(bundle.launches(1).repeat(), "");
  ASSERT_EQ(bundle.symbols_size(), 1);
  EXPECT_EQ(bundle.symbols(0).name(), "club::weights");
  EXPECT_EQ(bundle.symbols(0).tensor(), "weights");
  EXPECT_EQ(bundle.reference().symbols(0).name(), "weights");
  ASSERT_EQ(bundle.reference().files_size(), 1);
  EXPECT_EQ(bundle.reference().files(0).path(), "reference/sum.cuh");
  EXPECT_EQ(bundle.files_size(), 0);
}

TEST(BundleReaderTest, TakesIntegersOfEveryWidthByRangeOrByFill) {
  for (const char* type : {"i8", "u8", "i16", "u16", "u32", "i64", "u64", "i4", "u4"}) {
    SCOPED_TRACE(type);
    BundleFolder folder;
    folder.Replace("type  = \"i32\"\nshape = [\"ROWS\"]\nrange = [0, \"COLS - 1\"]",
                   std::string("type  = \"") + type + "\"\nshape = [\"2 * ROWS\"]\nrange = [0, 7]");
    const BundleReading reading = ReadBundle(folder.path());
    ASSERT_THAT(Texts(reading.problems), IsEmpty());
    EXPECT_EQ(reading.bundle.tensors(3).fill(), v1::FILL_INTEGERS);
    EXPECT_EQ(reading.bundle.tensors(3).high(), "7");
  }
  BundleFolder folder;
  folder.Replace("type  = \"i32\"\nshape = [\"ROWS\"]\nrange = [0, \"COLS - 1\"]",
                 "type  = \"bool\"\nshape = [\"ROWS\"]");
  const BundleReading reading = ReadBundle(folder.path());
  ASSERT_THAT(Texts(reading.problems), IsEmpty());
  EXPECT_EQ(reading.bundle.tensors(3).high(), "1") << "a bool has no other values";
  folder.Replace("type  = \"bool\"", "type  = \"u64\"\nfill = \"bytes\"");
  EXPECT_THAT(Texts(ReadBundle(folder.path()).problems), IsEmpty()) << "bytes need no range";
}

TEST(BundleReaderTest, FindsFilesByPattern) {
  BundleFolder folder("graph_steps");
  folder.Write("include/detail/deep/er/last.cuh", "// last\n");
  folder.Write("include/.hidden/secret.cuh", "// secret\n");
  folder.Write("include/readme.txt", "text\n");
  std::filesystem::create_directory_symlink("/etc", folder.path() / "include/etc");
  const auto paths = [&](const std::string& pattern) {
    folder.Replace("files   = [", "files   = [\"" + pattern + "\"] #");
    std::vector<std::string> found;
    const BundleReading reading = ReadBundle(folder.path());
    EXPECT_THAT(Texts(reading.problems), IsEmpty()) << pattern;
    for (const v1::SourceFile& file : reading.bundle.files()) found.push_back(file.path());
    folder.Replace("files   = [\"" + pattern + "\"] #", "files   = [");
    return found;
  };
  EXPECT_THAT(paths("include/**/*.cuh"),
              ElementsAre("include/detail/deep/er/last.cuh", "include/detail/load.cuh", "include/graph.cuh"));
  EXPECT_THAT(paths("include/*.cuh"), ElementsAre("include/graph.cuh"));
  EXPECT_THAT(paths("**/l*.cuh"), ElementsAre("include/detail/deep/er/last.cuh", "include/detail/load.cuh"));
  EXPECT_THAT(paths("*/*/*"), ElementsAre("include/detail/load.cuh"));
  EXPECT_THAT(paths("./include/graph.cuh"), ElementsAre("include/graph.cuh"));
  EXPECT_THAT(paths("*.cu"), ElementsAre("setup.cu")) << "without the source itself";
}

TEST(BundleReaderTest, TakesCodeThatAnotherCompilerMade) {
  BundleFolder folder;
  folder.Write("kernel.ptx", ".version 8.0\n.target sm_90\n.address_size 64\n");
  folder.Replace("source   = \"scale_rows.cu\"", "source   = \"kernel.ptx\"");
  const BundleReading ptx = ReadBundle(folder.path());
  ASSERT_THAT(Texts(ptx.problems), IsEmpty());
  EXPECT_THAT(ptx.bundle.source().text(), HasSubstr(".target"));
  folder.Write("kernel.cubin", std::string("\x7f"
                                           "ELF\0\xff",
                                           6));
  folder.Replace("source   = \"kernel.ptx\"", "source   = \"kernel.cubin\"");
  folder.Replace("option  = \"-maxrregcount={}\"\n", "");
  folder.Replace("options  = [\"--use_fast_math\"]\n", "");
  const BundleReading cubin = ReadBundle(folder.path());
  ASSERT_THAT(Texts(cubin.problems), IsEmpty());
  EXPECT_EQ(cubin.bundle.source().binary().size(), 6u);
  EXPECT_EQ(cubin.bundle.source().text(), "");
  folder.Write("kernel.cubin", "text");
  EXPECT_THAT(Texts(ReadBundle(folder.path()).problems), ElementsAre(HasSubstr("kernel.cubin is not a cubin")));
}

TEST(BundleReaderTest, RefusesOptionsWhereNothingIsCompiled) {
  BundleFolder folder;
  folder.Write("kernel.cubin", std::string("\x7f"
                                           "ELF\0\xff",
                                           6));
  folder.Replace("source   = \"scale_rows.cu\"", "source   = \"kernel.cubin\"");
  EXPECT_THAT(Texts(ReadBundle(folder.path()).problems),
              ElementsAre(HasSubstr("options: a cubin is not compiled; remove this key"),
                          HasSubstr("option: a cubin is not compiled; expected a variable that the launches use")));
}

TEST(BundleReaderTest, ReadsThousandsOfLaunches) {
  BundleFolder folder;
  std::string launches;
  for (int i = 0; i < 257; ++i) {
    launches += "[[launch]]\nentry = \"combine\"\nwhen = \"SPLITS > " + std::to_string(i) +
                "\"\ngrid = [\"ROWS\"]\nblock = [32]\narguments = [\"partial\", \"out\"]\n";
  }
  folder.Replace("[work]", launches + "[work]");
  const BundleReading reading = ReadBundle(folder.path());
  ASSERT_THAT(Texts(reading.problems), IsEmpty());
  EXPECT_EQ(reading.bundle.launches_size(), 259);
}

TEST(BundleReaderTest, SaysWhatIsNoBundle) {
  EXPECT_THAT(
      Texts(ReadBundle("/nonexistent/bundle").problems),
      ElementsAre("/nonexistent/bundle: there is no such folder; expected a bundle: a folder with a kernel.toml"));
  BundleFolder folder;
  std::filesystem::remove(folder.path() / "kernel.toml");
  EXPECT_THAT(Texts(ReadBundle(folder.path()).problems), ElementsAre(HasSubstr("the file kernel.toml can't be read")));
  std::filesystem::create_directory(folder.path() / "kernel.toml");
  EXPECT_THAT(Texts(ReadBundle(folder.path()).problems), ElementsAre(HasSubstr("kernel.toml is not a file")));
}

TEST(BundleReaderTest, ReadsNothingOutsideOfTheFolder) {
  BundleFolder outside;
  for (const std::string& path :
       {std::string("../../etc/passwd"), std::string("/etc/passwd"), std::string("a/../../b")}) {
    BundleFolder folder;
    const int line = folder.Replace("scale_rows.cu", path);
    const BundleReading reading = ReadBundle(folder.path());
    ASSERT_EQ(reading.problems.size(), 1u) << path;
    EXPECT_EQ(reading.problems[0].line, line);
    EXPECT_THAT(reading.problems[0].message, HasSubstr("expected a path inside it"));
    EXPECT_EQ(reading.bundle.source().text(), "");
  }
  BundleFolder folder;
  std::filesystem::remove(folder.path() / "scale_rows.cu");
  std::filesystem::create_symlink(outside.path() / "scale_rows.cu", folder.path() / "scale_rows.cu");
  const BundleReading reading = ReadBundle(folder.path());
  EXPECT_THAT(Texts(reading.problems), ElementsAre(HasSubstr("symbolic link to outside")));
  EXPECT_EQ(reading.bundle.source().text(), "");
}

TEST(BundleReaderTest, FollowsLinksInsideOfTheFolder) {
  BundleFolder folder;
  std::filesystem::rename(folder.path() / "scale_rows.cu", folder.path() / "real.cu");
  std::filesystem::create_symlink("real.cu", folder.path() / "scale_rows.cu");
  EXPECT_THAT(Texts(ReadBundle(folder.path()).problems), IsEmpty());
}

TEST(BundleReaderTest, RefusesSourcesThatAreNoText) {
  BundleFolder folder;
  folder.Write("scale_rows.cu", std::string((1 << 20) + 1, ' '));
  folder.Write("reference.cu", "// line 1\n// \xff\n");
  EXPECT_THAT(Texts(ReadBundle(folder.path()).problems), ElementsAre(HasSubstr("scale_rows.cu is larger than 1 MB"),
                                                                     HasSubstr("line 2 of reference.cu is not UTF-8")));
  folder.Write("scale_rows.cu", "\n");
  folder.Write("reference.cu", std::string("int a;\0int b;", 13));
  EXPECT_THAT(Texts(ReadBundle(folder.path()).problems),
              ElementsAre(HasSubstr("scale_rows.cu is empty"), HasSubstr("line 1 of reference.cu is not UTF-8")));
}

TEST(BundleReaderTest, TakesFilesThatTheBaselineNamesAlong) {
  BundleFolder folder;
  const std::string before = BundleHash(ReadBundle(folder.path()).bundle);
  std::filesystem::create_directory(folder.path() / "data");
  folder.Write("baseline.py", "print('hello')\n");
  folder.Write("data/shapes.json", "{}\n");
  folder.Write("other.py", "not named");
  folder.Replace(
      "command = [\"python3\", \"baseline.py\"]",
      "command = [\"python3\", \"baseline.py\", \"--shapes\", \"./data/shapes.json\", \"data\", \"none.py\", "
      "\"/bin/sh\", \"baseline.py\"]");
  const BundleReading reading = ReadBundle(folder.path());
  ASSERT_THAT(Texts(reading.problems), IsEmpty());
  ASSERT_EQ(reading.bundle.baseline_files_size(), 2);
  EXPECT_EQ(reading.bundle.baseline_files(0).path(), "baseline.py");
  EXPECT_EQ(reading.bundle.baseline_files(0).text(), "print('hello')\n");
  EXPECT_EQ(reading.bundle.baseline_files(1).path(), "./data/shapes.json");
  EXPECT_EQ(BundleHash(reading.bundle), before) << "a recording does not depend on the baseline";
}

TEST(BundleReaderTest, RefusesBaselineFilesThatAreElsewhereOrTooLarge) {
  BundleFolder folder, outside;
  std::filesystem::create_symlink(outside.path() / "scale_rows.cu", folder.path() / "baseline.py");
  EXPECT_THAT(Texts(ReadBundle(folder.path()).problems), ElementsAre(HasSubstr("symbolic link to outside")));
  std::filesystem::remove(folder.path() / "baseline.py");
  folder.Write("baseline.py", std::string((1 << 20) + 1, '#'));
  EXPECT_THAT(Texts(ReadBundle(folder.path()).problems),
              ElementsAre(HasSubstr("command: baseline.py is larger than 1 MB")));
  std::filesystem::remove(folder.path() / "baseline.py");
  folder.Replace("\"baseline.py\"", "\"../" + outside.path().filename().string() + "/scale_rows.cu\"");
  EXPECT_THAT(Texts(ReadBundle(folder.path()).problems), ElementsAre(HasSubstr("may lie outside")));
}

TEST(BundleReaderTest, SurvivesDeepAndLargeFiles) {
  BundleFolder folder;
  std::string dotted = "a";
  for (int i = 0; i < 1900; ++i) dotted += ".a";
  const std::vector<std::string> texts = {std::string(100000, '['),
                                          "x = " + std::string(100000, '['),
                                          "x = " + std::string(100000, '{'),
                                          dotted + " = 1\n",
                                          dotted + "." + dotted + " = 1\n",
                                          "x = 99999999999999999999999\n",
                                          std::string("\xff\xfe\x00", 3),
                                          "name = \"\\u0000\"\n",
                                          "\"\\u0000\" = 1\n",
                                          "x = " + std::string(900000, '1'),
                                          std::string(2 << 20, '#'),
                                          "[[size]]\nname=1979-05-27\n",
                                          "size = 1\nvariable = [1]\ngoal = []\n"};
  for (const std::string& text : texts) {
    folder.Write("kernel.toml", text);
    EXPECT_FALSE(ReadBundle(folder.path()).problems.empty()) << text.substr(0, 50);
  }
}

TEST(BundleReaderTest, SurvivesRandomDamage) {
  std::stringstream buffer;
  buffer << std::ifstream(BundleFolder::Golden() / "kernel.toml").rdbuf();
  const std::string golden = buffer.str();
  BundleFolder folder;
  std::mt19937 random(11);
  int damaged = 0;
  for (int i = 0; i < 400; ++i) {
    std::string text = golden;
    for (int n = 1 + random() % 3; n > 0; --n) {
      const size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = static_cast<char>(random() % 256);
          break;
        case 1:
          text.erase(at, 1 + random() % 20);
          break;
        case 2:
          text.insert(at, golden.substr(random() % golden.size(), random() % 30));
          break;
        default:
          text.insert(at, std::to_string(static_cast<int64_t>(random()) * random()));
      }
    }
    folder.Write("kernel.toml", text);
    const BundleReading reading = ReadBundle(folder.path());
    damaged += !reading.problems.empty();
    for (const Problem& problem : reading.problems) EXPECT_FALSE(problem.message.empty());
  }
  EXPECT_GT(damaged, 200);
}

TEST(BundleReader, TakesABundleWithoutVariables) {
  const BundleFolder folder;
  folder.Write("kernel.toml", R"toml(
name = "scale_rows"
source = "scale_rows.cu"
summary = "out = in"
[goal]
size = "main"
[[size]]
name = "main"
N = 1024
[[tensor]]
name = "in"
type = "f32"
shape = ["N"]
fill = "normal"
[[tensor]]
name = "out"
type = "f32"
shape = ["N"]
role = "output"
[[launch]]
entry = "scale_rows"
grid = ["ceil_div(N, 256)"]
block = [256]
arguments = ["in", "out", "N"]
[reference]
source = "reference.cu"
[[reference.launch]]
entry = "scale_rows_reference"
grid = ["N"]
block = [1]
arguments = ["in", "out", "N"]
[tolerance]
absolute = 0.01
relative = 0.001
)toml");
  const BundleReading reading = ReadBundle(folder.path());
  for (const Problem& problem : reading.problems) ADD_FAILURE() << FormatProblem(problem);
  EXPECT_EQ(reading.bundle.variables_size(), 0);
  EXPECT_THAT(BundleProblems(reading.bundle), testing::IsEmpty());
  EXPECT_EQ(SpaceSize(reading.bundle), 1);
  EXPECT_EQ(CountAllowed(reading.bundle).value(), 1);
}

}  // namespace
}  // namespace pawl
