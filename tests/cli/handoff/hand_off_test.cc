#include "cli/handoff/hand_off.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/expression/expression.h"
#include "cli/handoff/host_expression.h"
#include "cli/output/winner_folder.h"
#include "kernels/bundle_message.h"
#include "kernels/contract.h"
#include "kernels/plan.h"
#include "kernels/read/bundle_reader.h"
#include "kernels/read/implementation.h"
#include "kernels/source/source_patch.h"
#include "kernels/space.h"
#include "tests/kernels/bundle_folder.h"
#include "tests/kernels/contract_alone.h"
#include "worker/host/toolkit.h"
#include "worker/process/subprocess.h"
#include "worker/process/temporary_folder.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

fs::path Root() {
  const char* source = std::getenv("PAWL_SOURCE_DIR");
  return source == nullptr ? "." : source;
}

v1::Bundle Read(const fs::path& folder) {
  BundleReading reading = ReadBundle(Root() / folder);
  for (const Problem& problem : reading.problems) ADD_FAILURE() << FormatProblem(problem);
  return reading.bundle;
}

Winner WinnerOf(const v1::Bundle& bundle, const std::map<std::string, int32_t>& values = {}) {
  Winner winner;
  winner.bundle = bundle;
  winner.implementation = ImplementationText(bundle);
  winner.variant = StartVariant(bundle);
  for (const auto& [name, value] : values) (*winner.variant.mutable_values())[name] = value;
  winner.gpu = TypicalGpu();
  winner.gpu.set_compute_major(9);
  winner.size = bundle.goal().size().empty() ? bundle.sizes(0).name() : bundle.goal().size();
  winner.name = "campaigns/7/iterations/12";
  winner.title = absl::StrCat(bundle.name(), ": 2 us");
  return winner;
}

HandOff Made(const Winner& winner) {
  absl::StatusOr<HandOff> hand_off = MakeHandOff(winner);
  EXPECT_TRUE(hand_off.ok()) << hand_off.status();
  return hand_off.ok() ? *std::move(hand_off) : HandOff();
}

std::string TextOf(const HandOff& hand_off, const std::string& path) {
  for (const v1::SourceFile& file : hand_off.files) {
    if (file.path() == path) return file.text();
  }
  ADD_FAILURE() << "there is no " << path;
  return "";
}

bool Has(const HandOff& hand_off, const std::string& path) {
  return std::any_of(hand_off.files.begin(), hand_off.files.end(),
                     [&](const v1::SourceFile& file) { return file.path() == path; });
}

void Save(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

void Save(const HandOff& hand_off, const fs::path& folder) {
  for (const v1::SourceFile& file : hand_off.files) {
    Save(folder / file.path(), file.binary().empty() ? file.text() : file.binary());
  }
}

std::string Slurp(const fs::path& path) {
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// What a command printed; a failure where it failed.
std::string Printed(const std::vector<std::string>& argv, const fs::path& folder, const std::string& input = "") {
  ProcessOptions options;
  options.argv = argv;
  options.directory = folder.string();
  options.input = input;
  options.timeout = absl::Minutes(10);
  const std::string nvcc = FindToolkit().nvcc;
  if (!nvcc.empty())
    options.env["PATH"] = absl::StrCat(fs::path(nvcc).parent_path().string(), ":", std::getenv("PATH"));
  const absl::StatusOr<ProcessResult> result = RunProcess(options);
  if (!result.ok()) {
    ADD_FAILURE() << result.status();
    return "";
  }
  EXPECT_TRUE(result->ok()) << absl::StrJoin(argv, " ") << " " << EndText(*result) << "\n"
                            << result->out << result->err;
  return result->out;
}

// The bundle's own files with the patch applied are those that were handed over.
void ExpectPatched(const Winner& winner, const HandOff& hand_off) {
  const TemporaryFolder folder("pawl-hand-off-");
  const v1::Bundle& bundle = winner.bundle;
  Save(folder.path() / bundle.source().path(), bundle.source().text());
  for (const v1::SourceFile& file : bundle.files()) Save(folder.path() / file.path(), file.text());
  if (!hand_off.patch.empty())
    Printed({"patch", "-p1", "--no-backup-if-mismatch", "--fuzz=0"}, folder.path(), hand_off.patch);
  EXPECT_EQ(Slurp(folder.path() / bundle.source().path()),
            TextOf(hand_off, absl::StrCat("source/", bundle.source().path())));
  for (const v1::SourceFile& file : bundle.files()) {
    EXPECT_EQ(Slurp(folder.path() / file.path()), TextOf(hand_off, absl::StrCat("source/", file.path())));
  }
}

// Everything that can be built without a GPU and without PyTorch: the program, the bindings, the Python files.
void ExpectBuilds(const HandOff& hand_off) {
  const TemporaryFolder folder("pawl-hand-off-");
  Save(hand_off, folder.path());
  for (const v1::SourceFile& file : hand_off.files) {
    if (absl::EndsWith(file.path(), ".py")) Printed({"python3", "-m", "py_compile", file.path()}, folder.path());
    if (absl::EndsWith(file.path(), ".sh")) Printed({"sh", "-n", file.path()}, folder.path());
  }
  if (FindToolkit().nvcc.empty()) GTEST_SKIP() << "nvcc is not installed";
  Printed({"sh", "build.sh"}, folder.path());
  EXPECT_TRUE(fs::exists(folder.path() / hand_off.id));
  Printed({"nvcc", "-c", "-std=c++17", "-DTORCH_EXTENSION_NAME=winner", "-I" + (Root() / "tests/cli/golden").string(),
           "-o", "binding.o", hand_off.id + "_binding.cpp"},
          folder.path());
}

// A Python with NumPy and its own headers; empty: there is none.
std::string NumPyPython() {
  const char* chosen = std::getenv("PAWL_PYTHON");
  for (const std::string& python :
       {std::string(chosen == nullptr ? "" : chosen), std::string("python3"), std::string("/usr/bin/python3")}) {
    if (python.empty()) continue;
    ProcessOptions options;
    options.argv = {
        python, "-c",
        "import numpy, os, sysconfig; assert os.path.exists(sysconfig.get_paths()['include'] + '/Python.h')"};
    const absl::StatusOr<ProcessResult> result = RunProcess(options);
    if (result.ok() && result->ok()) return python;
  }
  return "";
}

// The extension's module and its test, by a stand-in for PyTorch whose kernels set outputs to 0.
TEST(HandOffTest, TestsTheExtensionAgainstTheReference) {
  const std::string python = NumPyPython();
  if (python.empty()) GTEST_SKIP() << "no Python with NumPy is installed";
  for (const char* path : {"kernels/softmax", "examples/embedding", "examples/heat", "examples/shortest_paths"}) {
    SCOPED_TRACE(path);
    const TemporaryFolder folder("pawl-hand-off-");
    Winner winner = WinnerOf(Read(path));
    winner.size = winner.bundle.sizes(0).name();
    const HandOff hand_off = Made(winner);
    Save(hand_off, folder.path());
    ProcessOptions options;
    options.argv = {python, absl::StrCat("test_", hand_off.id, ".py")};
    options.directory = folder.path().string();
    options.env["PYTHONPATH"] = (Root() / "tests/cli/golden").string();
    options.env["PYTHONDONTWRITEBYTECODE"] = "1";
    absl::StatusOr<ProcessResult> result = RunProcess(options);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->exit_code, 0) << result->out << result->err;
    EXPECT_THAT(result->out, HasSubstr(absl::StrCat(hand_off.id, " at ", winner.size, ": as the reference\n")));
    options.env["FAKE_KERNEL"] = "wrong";
    result = RunProcess(options);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->exit_code, 1) << result->out << result->err;
    EXPECT_THAT(result->out, HasSubstr("FAILED: "));
  }
}

// Of a campaign without device code the author has the contract: what is handed over makes a bundle of it.
TEST(HandOffTest, MakesABundleOfAContractAlone) {
  for (const bool patched : {true, false}) {
    SCOPED_TRACE(patched);
    const BundleFolder contract;
    contract.Write("kernel.toml", kContractToml);
    ASSERT_TRUE(IsContractAlone(ReadBundle(contract.path()).bundle));
    const std::string toml =
        "source = \"src/copy.cu\"\nfiles = [\"src/*.cuh\"]\n"
        "[[variable]]\nname = \"TILE\"\nvalues = [64, 128]\nstart = 64\n"
        "[[variable]]\nname = \"STEP\"\nvalues = [1, 2]\nstart = 1\nreplaces = \"i += {};\"\n"
        "[[launch]]\nentry = \"copy\"\ngrid = [\"ceil_div(N, TILE)\"]\nblock = [\"TILE\"]\n"
        "arguments = [\"in\", \"out\", \"N\"]\n";
    const v1::Bundle own = ReadBundle(contract.path()).bundle;
    const std::string patch = absl::StrCat(AddingFile("src/copy.cu", "int i = TILE; i += 1;\n"),
                                           AddingFile("src/tile.cuh", "#pragma once\n"), AddingToml(own, toml));
    const absl::StatusOr<ImplementationState> start = PatchImplementation(own, {}, patch);
    ASSERT_TRUE(start.ok()) << start.status();
    v1::Bundle started = own;
    ASSERT_TRUE(SetImplementation(start->text, &started).ok());
    Winner winner = WinnerOf(started, {{"TILE", 128}, {"STEP", 2}});
    winner.from_contract = true;
    winner.implementation = absl::StrReplaceAll(start->text, {{"#pragma once", "#pragma once  // edited"}});
    const HandOff hand_off = Made(winner);
    EXPECT_EQ(hand_off.toml, "");
    EXPECT_THAT(TextOf(hand_off, "source/src/copy.cu"), HasSubstr("#define TILE 128"));
    if (patched) {
      Printed({"patch", "-p1", "--no-backup-if-mismatch", "--fuzz=0"}, contract.path(), hand_off.patch);
    } else {
      for (const v1::SourceFile& file : hand_off.implementation) Save(contract.path() / file.path(), file.text());
    }
    const BundleReading reading = ReadBundle(contract.path());
    for (const Problem& problem : reading.problems) ADD_FAILURE() << FormatProblem(problem);
    EXPECT_EQ(reading.bundle.source().text(), "int i = TILE; i += 2;\n");
    EXPECT_EQ(reading.bundle.files(0).text(), "#pragma once  // edited\n");
    EXPECT_EQ(VariantText(StartVariant(reading.bundle)), VariantText(winner.variant));
    EXPECT_EQ(ContractDifference(own, reading.bundle, "own", "read"), "");
  }
}

// Where ninja is missing, nvcc alone builds the extension. Without a GPU it can tell shapes, and why it can't launch.
TEST(HandOffTest, BuildsTheExtensionWithoutNinja) {
  const std::string python = NumPyPython();
  if (python.empty() || FindToolkit().nvcc.empty()) GTEST_SKIP() << "needs nvcc, and Python with NumPy";
  const TemporaryFolder folder("pawl-hand-off-");
  Save(Made(WinnerOf(Read("examples/heat"))), folder.path());
  Save(folder.path() / "try.py",
       "import heat_winner\nmodule = heat_winner.load('kernel')\nsizes = [3, 4, 2]\n"
       "print(heat_winner.SIZES, module.shape_of(0, sizes))\n"
       "try:\n    module.shape_of(9, sizes)\nexcept RuntimeError as error:\n    print(error)\n");
  const std::string said = Printed({"/usr/bin/env", absl::StrCat("PYTHONPATH=", (Root() / "tests/cli/golden").string()),
                                    "FAKE_NINJA=missing", "PYTHONDONTWRITEBYTECODE=1", python, "try.py"},
                                   folder.path());
  EXPECT_EQ(said, "['COLUMNS', 'ROWS', 'STEPS'] [4, 3]\nthere is no such tensor\n");
}

// Attention: macros of which some have defaults, two launches, sizes that a variant fixes. With an edit.
TEST(HandOffTest, HandsOverAnEditedKernel) {
  const v1::Bundle bundle = Read("kernels/attention");
  Winner winner = WinnerOf(bundle, {{"KV_SPLITS", 4}, {"TILE_M", 16}});
  const std::string edited = absl::StrCat(bundle.source().text(), "\n// an edit\n");
  absl::StatusOr<ImplementationState> patched =
      PatchImplementation(bundle, {winner.implementation, winner.variant},
                          UnifiedDiff(bundle.source().path(), bundle.source().text(), edited));
  ASSERT_TRUE(patched.ok()) << patched.status();
  winner.implementation = patched->text;
  const HandOff hand_off = Made(winner);
  const std::string source = TextOf(hand_off, "source/attention.cu");
  EXPECT_THAT(source, HasSubstr("// Pawl: campaigns/7/iterations/12\n"));
  EXPECT_THAT(source, HasSubstr("#define KV_SPLITS 4\n"));
  EXPECT_THAT(source, HasSubstr("#define TILE_M 16\n"));
  EXPECT_THAT(source, HasSubstr("// an edit\n"));
  EXPECT_THAT(hand_off.patch, HasSubstr("+// an edit\n"));
  EXPECT_THAT(hand_off.patch, HasSubstr("+#define KV_SPLITS 4\n"));
  const std::string program = TextOf(hand_off, "attention.cu");
  EXPECT_THAT(program, HasSubstr("&::attention_combine"));
  EXPECT_THAT(program, HasSubstr("size_S"));
  EXPECT_THAT(TextOf(hand_off, "build.sh"), Not(HasSubstr("-DKV_SPLITS")));
  EXPECT_THAT(TextOf(hand_off, "attention_winner.py"), HasSubstr("def attention(q, k, v):"));
  ExpectPatched(winner, hand_off);
  ExpectBuilds(hand_off);
}

// A block of another shape and a variable that an edit added.
TEST(HandOffTest, HandsOverWhatAnEditMadeOfKernelToml) {
  const v1::Bundle bundle = Read("kernels/attention");
  Winner winner = WinnerOf(bundle);
  EXPECT_EQ(Made(winner).toml, "") << "nothing was edited";
  const absl::StatusOr<SourceFiles> files = EditableFiles(bundle, winner.implementation, winner.variant);
  ASSERT_TRUE(files.ok()) << files.status();
  const std::string toml = files->back().second;
  const std::string edited = absl::StrCat(absl::StrReplaceAll(toml, {{"\"WARPS * 32\"", "\"WARPS * LANES\""}}),
                                          "\n[[variable]]\nname = \"LANES\"\nvalues = [32, 64]\nstart = 64\n");
  const absl::StatusOr<ImplementationState> patched =
      PatchImplementation(bundle, {winner.implementation, winner.variant}, UnifiedDiff("kernel.toml", toml, edited));
  ASSERT_TRUE(patched.ok()) << patched.status();
  winner.implementation = patched->text;
  winner.variant = patched->variant;
  const HandOff hand_off = Made(winner);
  EXPECT_THAT(TextOf(hand_off, "source/attention.cu"), Not(HasSubstr("====")));
  EXPECT_NE(TextOf(hand_off, "attention.cu"), TextOf(Made(WinnerOf(bundle)), "attention.cu")) << "another block";
  EXPECT_THAT(hand_off.toml, HasSubstr("name = \"LANES\""));
  EXPECT_THAT(hand_off.toml, HasSubstr("\"WARPS * LANES\""));
  ExpectPatched(winner, hand_off);
  ExpectBuilds(hand_off);
}

// What a Python program says that calls a hand-off by a stand-in for PyTorch.
std::string SaidByPython(const std::string& python, const std::string& program, const fs::path& folder) {
  Save(folder / "try.py", program);
  return Printed({"/usr/bin/env", absl::StrCat("PYTHONPATH=", (Root() / "tests/cli/golden").string()),
                  "PYTHONDONTWRITEBYTECODE=1", python, "try.py"},
                 folder);
}

// A winner that is compiled for one value of a dimension serves others too: its extension is built for each value.
TEST(HandOffTest, BuildsTheExtensionForEachValueOfAFixedSize) {
  const std::string python = NumPyPython();
  if (python.empty()) GTEST_SKIP() << "no Python with NumPy is installed";
  const TemporaryFolder folder("pawl-hand-off-");
  Save(Made(WinnerOf(Read("kernels/attention"), {{"FIXED_SIZE", 1}})), folder.path());
  const std::string said =
      SaidByPython(python,
                   "import sys, test_attention\nassert test_attention.main() == 0\nassert test_attention.main() == 0\n"
                   "from torch.utils import cpp_extension\nprint(cpp_extension.built)\n",
                   folder.path());
  EXPECT_THAT(said, HasSubstr("attention at tiny: as the reference\n"));
  EXPECT_THAT(said, HasSubstr("attention at main: as the reference\n"));
  EXPECT_THAT(said, HasSubstr("['attention_kernel_S32', 'attention_reference', 'attention_kernel_S128']\n"));
}

// Members of a portfolio lie in one program: no name of theirs is another's.
TEST(HandOffTest, GivesEachMemberOfAPortfolioNamesOfItsOwn) {
  Winner winner = WinnerOf(Read("kernels/attention"), {{"FIXED_SIZE", 1}});
  winner.member = 41;
  const HandOff hand_off = Made(winner);
  EXPECT_EQ(hand_off.id, "attention");
  EXPECT_EQ(hand_off.name_space, "pawl_attention_41");
  EXPECT_THAT(TextOf(hand_off, "attention.h"), HasSubstr("#define ATTENTION_NAMESPACE pawl_attention_41\n"));
  EXPECT_THAT(TextOf(hand_off, "attention.h"), HasSubstr("It is compiled for S = 128"));
  EXPECT_THAT(TextOf(hand_off, "attention.h"), HasSubstr("each becomes a shared library"));
  EXPECT_THAT(TextOf(hand_off, "attention_winner.py"), HasSubstr("SPACE = \"attention_41\""));
  EXPECT_THAT(hand_off.library_build, HasSubstr("-o libattention_41.so -shared -Xlinker -Bsymbolic attention.pic.o\n"));
}

// A program that is compiled for one size is checked at that size only. Asked for another size, it says so.
TEST(HandOffTest, KeepsAFixedSize) {
  Winner winner = WinnerOf(Read("kernels/attention"), {{"FIXED_SIZE", 1}});
  const HandOff hand_off = Made(winner);
  EXPECT_THAT(TextOf(hand_off, "source/attention.cu"), HasSubstr("#ifndef SIZE_S\n#define SIZE_S 128"));
  EXPECT_THAT(TextOf(hand_off, "attention.cu"), HasSubstr("!= SIZE_S"));
  EXPECT_THAT(TextOf(hand_off, "check_program.sh"), Not(HasSubstr("./attention tiny")));
  EXPECT_THAT(TextOf(hand_off, "check_program.sh"), HasSubstr("./attention main"));
}

// Template arguments alone: the user's files stay as they are.
TEST(HandOffTest, HandsOverTemplatesInSeveralFiles) {
  const Winner winner =
      WinnerOf(Read("examples/layer_norm"), {{"THREADS", 256}, {"WIDTH", 8}, {"STAGED", 1}, {"REDUCTION", 1}});
  const HandOff hand_off = Made(winner);
  EXPECT_EQ(hand_off.patch, "");
  EXPECT_TRUE(Has(hand_off, "source/include/nn/vector.cuh"));
  EXPECT_THAT(TextOf(hand_off, "layer_norm.cu"),
              HasSubstr("&::nn::layer_norm<__half, 256, 8, true, cub::BLOCK_REDUCE_WARP_REDUCTIONS>"));
  EXPECT_THAT(TextOf(hand_off, "build.sh"), HasSubstr("-Isource/include"));
  ExpectPatched(winner, hand_off);
  ExpectBuilds(hand_off);
}

TEST(HandOffTest, HandsOverACooperativeKernel) {
  const HandOff hand_off = Made(WinnerOf(Read("examples/normalize"), {{"UNROLL", 4}}));
  EXPECT_THAT(TextOf(hand_off, "normalize.cu"), HasSubstr("geometry.cooperative = true"));
  EXPECT_THAT(TextOf(hand_off, "normalize.cu"), HasSubstr("Limit(cudaDevAttrMultiProcessorCount)"));
  ExpectBuilds(hand_off);
}

TEST(HandOffTest, HandsOverStructsAndOptions) {
  const HandOff hand_off = Made(WinnerOf(Read("examples/adamw"), {{"FAST_MATH", 1}, {"MAX_REGISTERS", 64}}));
  EXPECT_THAT(TextOf(hand_off, "adamw.cu"), HasSubstr("float field0;  // learning_rate"));
  EXPECT_THAT(TextOf(hand_off, "build.sh"), HasSubstr("--use_fast_math -maxrregcount=64"));
  EXPECT_THAT(TextOf(hand_off, "build.sh"), Not(HasSubstr("-maxrregcount=64 -o adamw_reference.o")));
  ExpectBuilds(hand_off);
}

TEST(HandOffTest, HandsOverRepeatedLaunchesThatExchangeTensors) {
  const HandOff hand_off = Made(WinnerOf(Read("examples/heat")));
  EXPECT_THAT(TextOf(hand_off, "heat.cu"), HasSubstr("std::swap(tensors[0], tensors[1]);"));
  EXPECT_THAT(TextOf(hand_off, "heat_winner.py"), HasSubstr("def heat(field, *, STEPS):"));
  ExpectBuilds(hand_off);
}

// A PyTorch extension's own file: the patch keeps its host code, the program is built without it.
TEST(HandOffTest, HandsOverASourceWithHostCode) {
  const Winner winner = WinnerOf(Read("examples/add_layer_norm"), {{"kThreads", 256}, {"UNROLL", 4}});
  const HandOff hand_off = Made(winner);
  EXPECT_THAT(hand_off.patch, HasSubstr("-constexpr int kThreads = 128;\n+constexpr int kThreads = 256;\n"));
  EXPECT_THAT(hand_off.patch, HasSubstr("+#pragma unroll 4\n"));
  EXPECT_THAT(TextOf(hand_off, "source/add_layer_norm_cuda.cu"), HasSubstr("PYBIND11_MODULE"));
  EXPECT_THAT(TextOf(hand_off, "device/add_layer_norm_cuda.cu"), Not(HasSubstr("PYBIND11_MODULE")));
  EXPECT_TRUE(Has(hand_off, "contract/problem.py"));
  EXPECT_TRUE(Has(hand_off, "support/pawl_problem.py"));
  ExpectPatched(winner, hand_off);
  ExpectBuilds(hand_off);
}

// Clusters, setup, a struct in memory, words, flags, 8 kinds of fills, data of a file, problem.py.
TEST(HandOffTest, HandsOverEverythingAtOnce) {
  const Winner winner = WinnerOf(Read("tests/kernels/golden/graph_steps"), {{"UNROLL", 2}, {"STAGED", 1}});
  const HandOff hand_off = Made(winner);
  const std::string program = TextOf(hand_off, "graph_steps.cu");
  EXPECT_THAT(program, HasSubstr("&::steps::advance<float, 2, true>"));
  EXPECT_THAT(program, HasSubstr("geometry.cluster = "));
  EXPECT_THAT(program, HasSubstr("InMemory memory"));
  EXPECT_THAT(program, HasSubstr("LaunchSetup(sizes, tensors, nullptr);"));
  EXPECT_TRUE(Has(hand_off, "data/table.bin"));
  EXPECT_TRUE(Has(hand_off, "graph_steps_setup.cu"));
  EXPECT_TRUE(Has(hand_off, "contract/graphs.py"));
  ExpectPatched(winner, hand_off);
  ExpectBuilds(hand_off);
}

// A loop of two launches, a __constant__ variable of the kernel and one of the reference, files of the reference.
TEST(HandOffTest, HandsOverLoopsAndSymbols) {
  const HandOff hand_off = Made(WinnerOf(Read("tests/kernels/golden/club_steps"), {{"BLOCK", 64}}));
  const std::string program = TextOf(hand_off, "club_steps.cu");
  EXPECT_THAT(program, HasSubstr("round < rounds; ++round) {\n"));
  EXPECT_THAT(program, HasSubstr("&round"));
  EXPECT_THAT(program, HasSubstr("  std::swap(tensors[0], tensors[1]);\n  }\n}\n")) << "once, after both launches";
  EXPECT_THAT(program, HasSubstr("cudaGetSymbolAddress(&address, ::club::weights)"));
  EXPECT_THAT(program, HasSubstr("  FillSymbols(sizes, tensors, nullptr);\n  Launch(sizes, tensors, nullptr);"));
  EXPECT_THAT(TextOf(hand_off, "club_steps_reference.cu"), HasSubstr("cudaGetSymbolAddress(&address, ::weights)"));
  EXPECT_THAT(TextOf(hand_off, "club_steps_winner.py"), HasSubstr("\"launch\": \"LaunchFilled\""));
  EXPECT_TRUE(Has(hand_off, "contract/reference/sum.cuh"));
  EXPECT_TRUE(Has(hand_off, "data/offsets.bin"));
  ExpectBuilds(hand_off);
}

TEST(HandOffTest, ExchangesNothingInALoopOfWhichNoLaunchIsLeft) {
  v1::Bundle bundle = Read("tests/kernels/golden/club_steps");
  for (v1::Launch& launch : *bundle.mutable_launches()) launch.set_when("BLOCK > 64");
  const HandOff hand_off = Made(WinnerOf(bundle, {{"BLOCK", 128}}));
  const std::string program = TextOf(hand_off, "club_steps.cu");
  const size_t exchanged = program.find("std::swap(tensors[0], tensors[1])");
  ASSERT_NE(exchanged, std::string::npos);
  const std::string before = program.substr(0, exchanged);
  EXPECT_THAT(before.substr(before.rfind('}')), HasSubstr(" != 0 || ")) << "the launches' conditions";
  ExpectBuilds(hand_off);
}

// The smallest bundle: a vector times two, of a source of this text.
v1::Bundle Scale(const std::string& path, const std::string& text) {
  v1::Bundle bundle = Read("tests/kernels/golden/scale_rows");
  bundle.mutable_source()->set_path(path);
  bundle.mutable_source()->set_text(text);
  bundle.clear_launches();
  v1::Launch& launch = *bundle.add_launches();
  launch.set_entry("scale");
  launch.add_grid("ROWS");
  launch.add_block("32");
  for (const v1::Tensor& tensor : bundle.tensors()) launch.add_arguments(tensor.name());
  return bundle;
}

TEST(HandOffTest, HandsOverPtx) {
  const std::string ptx =
      ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry scale(.param .u64 a, .param .u64 b) { ret; }\n";
  const Winner winner = WinnerOf(Scale("scale.ptx", ptx));
  const HandOff hand_off = Made(winner);
  EXPECT_EQ(hand_off.patch, "");
  EXPECT_THAT(TextOf(hand_off, absl::StrCat(hand_off.id, ".cu")), HasSubstr("Library::Get().Find(\"scale\")"));
  EXPECT_THAT(TextOf(hand_off, absl::StrCat(hand_off.id, ".cu")), HasSubstr("Open(\"source/scale.ptx\")"));
  EXPECT_THAT(TextOf(hand_off, absl::StrCat(hand_off.id, "_winner.py")), HasSubstr("LIBRARY = \"source/scale.ptx\""));
  EXPECT_THAT(hand_off.forms, Not(Contains("cubin")));
  EXPECT_EQ(hand_off.library_build, "") << "a program opens the file";
  ExpectBuilds(hand_off);
}

// nvcc expands no macros there: `#pragma unroll UNROLL` would not compile.
TEST(HandOffTest, WritesUnrollFactorsAsNumbers) {
  v1::Bundle bundle = Scale("scale.cu",
                            "#ifndef UNROLL\n#define UNROLL 1  // default\n#endif\n#define TWICE UNROLL * 2\n"
                            "extern \"C\" __global__ void scale(const float* in, float* out) {\n"
                            "#pragma unroll UNROLL\n  for (int i = 0; i < 8; ++i) out[i] = in[i];\n"
                            "#pragma unroll (TWICE)\n  for (int i = 0; i < DEPTH; ++i) out[i] = in[i];\n}\n");
  for (const auto& [name, start] : {std::pair{"UNROLL", 1}, std::pair{"DEPTH", 8}}) {
    v1::Variable& variable = *bundle.add_variables();
    variable.set_name(name);
    variable.set_start(start);
    for (const int32_t value : {1, 4, 8}) variable.add_values(value);
  }
  const Winner winner = WinnerOf(bundle, {{"UNROLL", 4}});
  const HandOff hand_off = Made(winner);
  const std::string source = TextOf(hand_off, "source/scale.cu");
  EXPECT_THAT(source, HasSubstr("#ifndef UNROLL\n#define UNROLL 4  // default\n")) << "the default that was there";
  EXPECT_THAT(source, HasSubstr("#pragma unroll 4\n"));
  EXPECT_THAT(source, HasSubstr("#pragma unroll ((4 * 2))\n"));
  EXPECT_THAT(source, HasSubstr("#define DEPTH 8\n"));
  ExpectPatched(winner, hand_off);
  ExpectBuilds(hand_off);
}

// wgmma, which plain sm_90 does not have.
TEST(HandOffTest, BuildsForTheInstructionsOfOneArchitecture) {
  const HandOff hand_off = Made(WinnerOf(Scale("scale.cu",
                                               "extern \"C\" __global__ void scale(const float* in, float* out) {\n"
                                               "  asm volatile(\"wgmma.fence.sync.aligned;\");\n"
                                               "  out[0] = in[0];\n}\n")));
  EXPECT_THAT(TextOf(hand_off, "build.sh"), HasSubstr(" -gencode=arch=compute_90a,code=sm_90a "));
  ExpectBuilds(hand_off);
}

// A reference may name its kernel as the implementation does.
TEST(HandOffTest, LinksTwoKernelsOfOneName) {
  const std::string kernel = "extern \"C\" __global__ void scale(const float* in, float* out) { out[0] = in[0]; }\n";
  v1::Bundle bundle = Scale("scale.cu", kernel);
  bundle.mutable_reference()->mutable_source()->set_text(kernel);
  *bundle.mutable_reference()->mutable_launches() = bundle.launches();
  v1::Launch& launch = *bundle.mutable_reference()->mutable_launches(0);
  launch.clear_arguments();  // a reference has no scratch
  launch.add_arguments("in");
  launch.add_arguments("out");
  ExpectBuilds(Made(WinnerOf(bundle)));
}

// Builds the library of a member, with a function Call_SPACE that prints why it can't be launched. Answers both files.
std::vector<std::string> LibraryOf(const HandOff& hand_off, const std::string& space, const std::string& options,
                                   const fs::path& folder) {
  Save(hand_off, folder);
  const std::string library = absl::StrCat("lib", space, ".so");
  Save(folder / "library.sh", absl::StrCat("set -e\nexport NVCC_APPEND_FLAGS=\"", options, "\"\n",
                                           absl::StrReplaceAll(hand_off.library_build, {{hand_off.library, library}})));
  Printed({"sh", "library.sh"}, folder);
  const fs::path call = folder / absl::StrCat(space, "_call.cc");
  const bool named = space != hand_off.name_space;
  Save(call, absl::StrCat(named ? absl::StrCat("#define ", hand_off.namespace_macro, " ", space, "\n") : "",
                          "#include \"", hand_off.id, ".h\"\nvoid Call_", space, "() {\n  ", space,
                          "::Tensors tensors(", space, "::TensorInfos().size());\n  ", space, "::Sizes sizes(", space,
                          "::SizeNames().size(), 9);\n  try {\n    ", space,
                          "::Launch(sizes, tensors, nullptr);\n  } catch (const std::exception& error) {\n",
                          "    std::printf(\"", space, ": %s\\n\", error.what());\n  }\n}\n"));
  return {(folder / library).string(), call.string()};
}

// Two members whose kernels and helpers have the same names, and one of them for two values of a dimension, in one
// program.
TEST(HandOffTest, LinksTheMembersOfAPortfolioAsLibraries) {
  if (FindToolkit().nvcc.empty()) GTEST_SKIP() << "nvcc is not installed";
  const TemporaryFolder folder("pawl-hand-off-");
  Winner winner = WinnerOf(Scale("scale.cu",
                                 "__device__ float helper(float x) { return x * SIZE_ROWS; }\n"
                                 "extern \"C\" __global__ void scale(const float* in, float* out) "
                                 "{ out[0] = helper(in[0]); }\n"));
  std::vector<std::string> link = {"nvcc", "-std=c++17", "-o", "program", "program.cc"};
  std::string declared, called;
  for (const auto& [member, space, options] :
       {std::tuple{4, "pawl_scale_rows_4", ""}, std::tuple{7, "pawl_scale_rows_7", ""},
        std::tuple{7, "nine", "-DSIZE_ROWS=9 -DSCALE_ROWS_NAMESPACE=nine"}}) {
    winner.member = member;
    for (const std::string& file : LibraryOf(Made(winner), space, options, folder.path() / space)) link.push_back(file);
    absl::StrAppend(&declared, "void Call_", space, "();\n");
    absl::StrAppend(&called, "  Call_", space, "();\n");
  }
  Save(folder.path() / "program.cc", absl::StrCat(declared, "int main() {\n", called, "}\n"));
  Printed(link, folder.path());
  const std::string said = Printed({"./program"}, folder.path());
  EXPECT_THAT(said, HasSubstr("pawl_scale_rows_4: it is compiled for ROWS = 1024; -DSIZE_ROWS=VALUE compiles it"));
  EXPECT_THAT(said, HasSubstr("pawl_scale_rows_7: it is compiled for ROWS = 1024; -DSIZE_ROWS=VALUE compiles it"));
  EXPECT_THAT(said, Not(HasSubstr("nine: it is compiled for"))) << "it is that of ROWS = 9";
}

TEST(HandOffTest, NamesThingsAsEveryLanguageAllows) {
  v1::Bundle bundle = Read("tests/kernels/golden/scale_rows");
  bundle.set_name("scale-rows");
  const HandOff hand_off = Made(WinnerOf(bundle));
  EXPECT_EQ(hand_off.id, "scale_rows");
  EXPECT_THAT(TextOf(hand_off, "scale_rows_winner.py"), HasSubstr("def scale_rows(**given):"));
  ExpectBuilds(hand_off);
}

TEST(HandOffTest, SaysWhichSizeIsMissing) {
  Winner winner = WinnerOf(Read("examples/heat"));
  winner.size = "huge";
  EXPECT_THAT(MakeHandOff(winner).status().ToString(), HasSubstr("heat has no size \"huge\""));
}

// The program's arithmetic is the bundle's: both evaluate the same texts.
TEST(HostExpressionTest, ComputesWhatTheExpressionDoes) {
  const std::map<std::string, double> values = {{"S", 100}, {"T", 7}};
  const std::vector<std::string> texts = {"ceil_div(S, 16) * T",
                                          "-2 ^ 2",
                                          "2 ^ 3 ^ 2",
                                          "S % T + 1",
                                          "1 / sqrt(S)",
                                          "1 - 0.9 ^ 100",
                                          "S > 5 == 1",
                                          "S < 5 || T==7",
                                          "!(S == 100)",
                                          "!T + 2",
                                          "S > 99 ? 3 : 4",
                                          "min(S, T, 3) + max(1, T)",
                                          "log2(S) * 2e-3",
                                          "S - T - 3",
                                          "S / T / 2 * 4",
                                          "abs(-T) + pow(2, 0.5)",
                                          "2 ^ -1",
                                          "S && 0 || T",
                                          "S == 1 ? 1 : T == 7 ? 2 : 3",
                                          "floor(S / 3) + ceil(S / 3) + round(2.5)",
                                          "+T - -S",
                                          "1 < 2 < 3",
                                          "3 - 1 < T * 2 && T != 8"};
  std::string program =
      "#include <algorithm>\n#include <cmath>\n#include <cstdio>\n#include <initializer_list>\n"
      "double CeilDiv(double a, double b) { return std::ceil(a / b); }\n"
      "double Min(std::initializer_list<double> v) { return std::min(v); }\n"
      "double Max(std::initializer_list<double> v) { return std::max(v); }\nint main() {\n  double S = 100, T = 7;\n  "
      "(void)S, (void)T;\n";
  std::vector<std::string> expected;
  for (const std::string& text : texts) {
    const absl::StatusOr<double> value = Evaluate(text, values);
    ASSERT_TRUE(value.ok()) << value.status();
    // Once with what is known computed, once with names.
    for (const bool known : {true, false}) {
      const absl::StatusOr<std::string> cpp = HostExpression(
          text, [&](const std::string& name) { return known ? absl::StrCat(values.at(name), ".0") : name; });
      ASSERT_TRUE(cpp.ok()) << cpp.status();
      absl::StrAppend(&program, "  std::printf(\"%.12g\\n\", static_cast<double>(", *cpp, "));\n");
    }
    char shown[64];
    std::snprintf(shown, sizeof(shown), "%.12g", *value);
    expected.push_back(absl::StrCat(text, " is ", shown));
  }
  const TemporaryFolder folder("pawl-expressions-");
  Save(folder.path() / "expressions.cc", program + "}\n");
  Printed({"g++", "-std=c++17", "-o", "expressions", "expressions.cc"}, folder.path());
  std::istringstream lines(Printed({"./expressions"}, folder.path()));
  for (size_t i = 0; i < 2 * texts.size(); ++i) {
    std::string line;
    std::getline(lines, line);
    EXPECT_EQ(absl::StrCat(texts[i / 2], " is ", line), expected[i / 2]);
  }
}

TEST(HostExpressionTest, RefusesWhatIsNone) {
  for (const std::string& text :
       std::vector<std::string>{"", "1 +", "(1", "frobnicate(2)", "1 2", "min(", "? 1 : 2", std::string(5000, '(')}) {
    EXPECT_FALSE(HostExpression(text, [](const std::string& name) { return name; }).ok()) << text;
  }
}

TEST(UnifiedDiffTest, AppliesToWhatItWasMadeOf) {
  std::mt19937 random(4);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::string> before;
    for (int i = static_cast<int>(random() % 40); i > 0; --i) before.push_back(absl::StrCat("line ", random() % 9));
    std::vector<std::string> after = before;
    for (int i = static_cast<int>(random() % 6); i > 0; --i) {
      const size_t at = random() % (after.size() + 1);
      if (random() % 2 == 0 || at == after.size()) {
        after.insert(after.begin() + static_cast<std::ptrdiff_t>(at), absl::StrCat("new ", random() % 9));
      } else {
        after.erase(after.begin() + static_cast<std::ptrdiff_t>(at));
      }
    }
    const std::string a = absl::StrJoin(before, "\n") + (random() % 4 == 0 || before.empty() ? "" : "\n");
    const std::string b = absl::StrJoin(after, "\n") + (random() % 4 == 0 || after.empty() ? "" : "\n");
    const std::string diff = UnifiedDiff("kernel.cu", a, b);
    EXPECT_EQ(diff.empty(), a == b);
    if (diff.empty() || a.empty() || b.empty()) continue;
    const absl::StatusOr<std::string> applied = ApplyPatch(a, diff, "kernel.cu");
    ASSERT_TRUE(applied.ok()) << applied.status() << "\n" << diff;
    EXPECT_EQ(*applied, b) << diff;
  }
}

TEST(WinnerFolderTest, SaysOfEachFormWhetherItIsVerified) {
  v1::BestVariant best;
  *best.mutable_bundle() = Read("kernels/attention");
  v1::Iteration& iteration = *best.mutable_iteration();
  iteration.set_name("campaigns/7/iterations/12");
  iteration.set_time_us(2.5);
  iteration.set_device("NVIDIA H200");
  *iteration.mutable_variant() = StartVariant(best.bundle()).values();
  iteration.mutable_gpu()->set_compute_major(9);
  v1::Campaign campaign;
  campaign.mutable_spec()->mutable_goal()->set_size("main");
  campaign.set_speedup_over_start(8);
  const absl::StatusOr<HandOff> hand_off = HandOffOf(best, campaign, {ImplementationText(best.bundle()), ""}, {});
  ASSERT_TRUE(hand_off.ok()) << hand_off.status();
  const std::vector<WinnerFile> files = WinnerFiles(
      best, campaign, *hand_off,
      {{"program", "verified on NVIDIA H200, 2026-11-16"}, {"extension", "not verified: no ninja"}}, {iteration});
  ASSERT_EQ(files[0].name, "README.md");
  EXPECT_THAT(
      files[0].text,
      HasSubstr("| program | `attention.cu`, `attention.h`, `build.sh` | verified on NVIDIA H200, 2026-11-16 |"));
  EXPECT_THAT(files[0].text, HasSubstr("| not verified: no ninja |"));
  EXPECT_THAT(files[0].text, HasSubstr("8.000x over the start variant"));
  EXPECT_THAT(files[0].text, HasSubstr("- `attention_forward`: grid `"));
}

v1::Portfolio::Pick PickOf(int iteration, const std::string& size, double start_us, double us, double baseline_us,
                           bool hidden = false) {
  v1::Portfolio::Pick pick;
  pick.set_iteration(iteration);
  pick.set_size(size);
  pick.set_start_us(start_us);
  pick.set_time_us(us);
  pick.set_baseline_us(baseline_us);
  pick.set_hidden(hidden);
  return pick;
}

// Of a portfolio's variant nothing is said but what was measured of it, where the rule picks it.
TEST(WinnerFolderTest, SaysOfAMemberHowFastItIsAtTheSizesThatItServes) {
  v1::BestVariant best;
  *best.mutable_bundle() = Read("kernels/attention");
  v1::Iteration& iteration = *best.mutable_iteration();
  iteration.set_name("campaigns/7/iterations/12");
  iteration.set_number(12);
  iteration.set_time_us(332.8);  // at the heaviest size
  iteration.set_device("NVIDIA H200");
  *iteration.mutable_variant() = StartVariant(best.bundle()).values();
  iteration.mutable_gpu()->set_compute_major(9);
  v1::Campaign campaign;
  campaign.mutable_spec()->mutable_goal()->set_size("main");
  campaign.set_best(4);
  campaign.set_baseline("torch");
  campaign.set_baseline_us(250);
  campaign.set_speedup_over_start(8);
  campaign.set_speedup_over_baseline(0.752);
  for (const v1::Portfolio::Pick& pick :
       {PickOf(12, "main with S=90", 3, 2, 0, true), PickOf(12, "tiny", 4, 2.04, 1.02), PickOf(4, "main", 9, 3, 6),
        PickOf(12, "b4", 12, 6, 0)}) {
    *campaign.mutable_portfolio()->add_picks() = pick;
  }
  const absl::StatusOr<HandOff> hand_off = HandOffOf(best, campaign, {ImplementationText(best.bundle()), ""}, {});
  ASSERT_TRUE(hand_off.ok()) << hand_off.status();
  EXPECT_EQ(hand_off->name_space, "pawl_attention_12");
  const std::string title =
      "2.040 us at size tiny: 1.961x over the start variant (4.000 us), 0.500x over torch (1.020 us)";
  EXPECT_THAT(
      TextOf(*hand_off, "attention.cu"),
      testing::StartsWith("// attention, of a portfolio, on NVIDIA H200: " + title + "; 6.000 us at size b4: "));
  EXPECT_THAT(TextOf(*hand_off, "check_program.sh"), HasSubstr("./attention tiny"));
  const std::string page = WinnerFiles(best, campaign, *hand_off, {}, {iteration})[0].text;
  EXPECT_THAT(page, HasSubstr("\n- " + title +
                              "\n- 6.000 us at size b4: 2.000x over the start variant (12.00 us)\n"
                              "- 2.000 us at size main with S=90: 1.500x over the start variant (3.000 us)\n"));
  EXPECT_THAT(page, Not(HasSubstr("332.8 us at")));
  EXPECT_THAT(page, HasSubstr("Kept changes, one at a time, each timed at the heaviest size that its leg was over:"));
  EXPECT_THAT(page, Not(HasSubstr("0.752x")));
  EXPECT_THAT(page, HasSubstr("./attention tiny\n"));
  EXPECT_THAT(page, HasSubstr("each variant becomes a shared library of its own"));
}

TEST(WinnerFolderTest, OverwritesNothing) {
  const TemporaryFolder folder("pawl-winner-");
  const std::vector<WinnerFile> files = {{"source/a.cu", "new"}, {"build.sh", "new", true}};
  Save(folder.path() / "build.sh", "mine");
  EXPECT_TRUE(absl::IsAlreadyExists(CheckEmpty(folder.path().string())));
  EXPECT_TRUE(absl::IsAlreadyExists(WriteWinner(files, folder.path().string())));
  EXPECT_FALSE(fs::exists(folder.path() / "source/a.cu"));
  const fs::path fresh = folder.path() / "deep/fresh";
  EXPECT_TRUE(CheckEmpty(fresh.string()).ok());
  EXPECT_TRUE(WriteWinner(files, fresh.string()).ok());
  EXPECT_EQ(Slurp(fresh / "source/a.cu"), "new");
  EXPECT_EQ(fs::status(fresh / "build.sh").permissions() & fs::perms::owner_exec, fs::perms::owner_exec);
  EXPECT_TRUE(absl::IsInvalidArgument(WriteWinner({{"../outside", "x"}}, fresh.string())));
}

// The dispatcher of a portfolio, with two modules in place of the variants'.
TEST(DispatcherTest, CallsTheVariantThatTheRulePicks) {
  const v1::Bundle bundle = Read("kernels/softmax");
  v1::Portfolio portfolio;
  v1::Portfolio::Member& first = *portfolio.add_members();
  first.set_iteration(14);
  v1::Portfolio::Bound& bound = *first.add_bounds();
  for (const auto& size : bundle.sizes(0).values()) bound.add_sizes(size.first);
  std::sort(bound.mutable_sizes()->begin(), bound.mutable_sizes()->end());
  bound.set_limit(100);
  portfolio.add_members()->set_iteration(3);
  const TemporaryFolder folder("pawl-hand-off-");
  for (const v1::SourceFile& file : MakeDispatcher(bundle, portfolio, "softmax: a portfolio")) {
    std::ofstream(folder.path() / file.path()) << file.text();
  }
  for (const int iteration : {14, 3}) {
    fs::create_directory(folder.path() / absl::StrCat("iteration_", iteration));
    std::ofstream(folder.path() / absl::StrCat("iteration_", iteration) / "softmax_winner.py")
        << "SIZES = []\nTENSORS = [('x', 'f32', 'input', 1)]\n"
        << "def sizes_of(tensors, sizes):\n    return list(tensors['x'])\n"
        << "def softmax(x):\n    return {'by': " << iteration << "}\n";
  }
  std::string names = "[";
  for (const std::string& size : bound.sizes()) absl::StrAppend(&names, "'", size, "', ");
  absl::StrAppend(&names, "]");
  const std::string program =
      absl::StrCat("import softmax_dispatch as d\nnames = ", names,
                   "\nfor i in (14, 3): d.variant(i).SIZES = names\n"
                   "small, large = [1] * len(names), [99] * (len(names) - 1) + [101]\n"
                   "print(d.softmax(small), d.softmax(x=large), d.pick(dict(zip(names, small))))\n");
  std::ofstream(folder.path() / "try.py") << program;
  EXPECT_EQ(Printed({"python3", "try.py"}, folder.path()), "{'by': 14} {'by': 3} 14\n");
  std::ifstream header(folder.path() / "softmax_dispatch.h");
  std::stringstream text;
  text << header.rdbuf();
  EXPECT_THAT(text.str(),
              HasSubstr(absl::StrCat("if (size_", absl::StrJoin(bound.sizes(), " * size_"), " <= 100) return 14;")));
  EXPECT_THAT(text.str(), HasSubstr("return 3;\n}"));
}

// Dimensions may be named as keywords of C are, or have a Boolean of JSON in their names.
TEST(DispatcherTest, TakesAnyNameOfADimension) {
  v1::Bundle bundle;
  bundle.set_name("any");
  v1::Portfolio portfolio;
  portfolio.add_members()->set_iteration(1);
  v1::Portfolio::Bound& bound = *portfolio.mutable_members(0)->add_bounds();
  for (const char* name : {"register", "true_x"}) {
    (*(bundle.sizes().empty() ? bundle.add_sizes() : bundle.mutable_sizes(0))->mutable_values())[name] = 2;
    bound.add_sizes(name);
  }
  bound.set_limit(4);
  bound.set_above(true);
  portfolio.add_members()->set_iteration(0);
  const TemporaryFolder folder("pawl-hand-off-");
  for (const v1::SourceFile& file : MakeDispatcher(bundle, portfolio, "any")) {
    Save(folder.path() / file.path(), file.text());
  }
  Save(folder.path() / "try.py",
       "import any_dispatch as d\nprint(*(d.pick({'register': 2, 'true_x': x}) for x in (2, 3)))\n");
  EXPECT_EQ(Printed({"python3", "try.py"}, folder.path()), "0 1\n");
  Save(folder.path() / "try.c",
       "#include \"any_dispatch.h\"\nint main(void) { return any_pick(2, 2) == 0 && any_pick(2, 3) == 1 ? 0 : 1; }\n");
  Printed({"gcc", "-Wall", "-Werror", "-o", "try", "try.c"}, folder.path());
  Printed({"./try"}, folder.path());
}

}  // namespace
}  // namespace pawl
