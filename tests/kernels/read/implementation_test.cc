#include "kernels/read/implementation.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "kernels/bundle_message.h"
#include "kernels/read/bundle_reader.h"
#include "kernels/read/implementation_toml.h"
#include "kernels/space.h"
#include "kernels/variable_values.h"
#include "tests/kernels/bundle_folder.h"
#include "tests/kernels/contract_alone.h"

namespace pawl {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

v1::Bundle Graph() { return ReadBundle(BundleFolder::Golden("graph_steps")).bundle; }

TEST(ImplementationTest, IsTheSourceItselfWithoutFiles) {
  v1::Bundle bundle = ReadBundle(BundleFolder::Golden()).bundle;
  EXPECT_EQ(ImplementationText(bundle), bundle.source().text());
  ASSERT_TRUE(SetImplementation("other\n", &bundle).ok());
  EXPECT_EQ(bundle.source().text(), "other\n");
}

TEST(ImplementationTest, HoldsEveryFileWhateverIsInIt) {
  v1::Bundle bundle = Graph();
  bundle.mutable_files(0)->set_text("==== steps.cu, 1 lines ====\nno line end");
  bundle.mutable_files(1)->set_text("");
  const std::string text = ImplementationText(bundle);
  EXPECT_THAT(text, HasSubstr("==== include/detail/load.cuh, 2 lines, no line end ====\n"));
  v1::Bundle other = Graph();
  ASSERT_TRUE(SetImplementation(text, &other).ok());
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(other, bundle));
  for (const std::string& bad : {std::string(), std::string("x"), text + "x", text.substr(0, text.size() - 1)}) {
    EXPECT_FALSE(SetImplementation(bad, &other).ok());
  }
}

// The bundle as it was submitted, at its start variant.
ImplementationState Start(const v1::Bundle& bundle) { return {ImplementationText(bundle), StartVariant(bundle)}; }

std::string TextOfFile(const SourceFiles& files, const std::string& path) {
  for (const auto& [name, text] : files) {
    if (name == path) return text;
  }
  return "";
}

std::string TomlOf(const v1::Bundle& bundle, const ImplementationState& state) {
  const absl::StatusOr<SourceFiles> files = EditableFiles(bundle, state.text, state.variant);
  EXPECT_TRUE(files.ok()) << files.status();
  return files.ok() ? TextOfFile(*files, "kernel.toml") : "";
}

// A unified diff that replaces `from`, whole lines that stand once in the text, without context.
std::string Replacing(const std::string& path, const std::string& text, const std::string& from,
                      const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from << " is not in\n" << text;
  if (at == std::string::npos) return "";
  const auto lines = [](const std::string& part) { return std::count(part.begin(), part.end(), '\n'); };
  std::string patch = absl::StrCat("--- a/", path, "\n+++ b/", path, "\n@@ -", 1 + lines(text.substr(0, at)), ",",
                                   lines(from), " +1,", lines(to), " @@\n");
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(absl::StripSuffix(from, "\n"), '\n'))) {
    absl::StrAppend(&patch, "-", line, "\n");
  }
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(absl::StripSuffix(to, "\n"), '\n'))) {
    if (!to.empty()) absl::StrAppend(&patch, "+", line, "\n");
  }
  return patch;
}

std::string TomlPatch(const v1::Bundle& bundle, const ImplementationState& state, const std::string& from,
                      const std::string& to) {
  return Replacing("kernel.toml", TomlOf(bundle, state), from, to);
}

std::string Refused(const v1::Bundle& bundle, const std::string& patch) {
  return std::string(PatchImplementation(bundle, Start(bundle), patch).status().message());
}

TEST(ImplementationTest, WritesAndReadsItsPartOfKernelToml) {
  for (const char* name : {"scale_rows", "graph_steps", "club_steps"}) {
    const v1::Bundle bundle = ReadBundle(BundleFolder::Golden(name)).bundle;
    v1::Bundle read = bundle;
    read.clear_variables();
    read.clear_launches();
    read.clear_symbols();
    read.clear_options();
    const absl::Status status = ReadStoredToml(ImplementationToml(bundle), &read);
    ASSERT_TRUE(status.ok()) << status << "\n" << ImplementationToml(bundle);
    EXPECT_EQ(ImplementationToml(read), ImplementationToml(bundle));
    google::protobuf::util::MessageDifferencer differencer;
    differencer.TreatAsSet(v1::Bundle::descriptor()->FindFieldByName("tensors"));
    EXPECT_TRUE(differencer.Compare(read, bundle)) << ImplementationToml(bundle);
  }
}

TEST(ImplementationTest, OfEveryShippedBundleCanBeEdited) {
  const char* source = std::getenv("PAWL_SOURCE_DIR");
  int bundles = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(source ? source : ".") / "kernels")) {
    if (!std::filesystem::exists(entry.path() / "kernel.toml")) continue;
    const v1::Bundle bundle = ReadBundle(entry.path()).bundle;
    const ImplementationState start = Start(bundle);
    const std::string toml = TomlOf(bundle, start);
    const absl::StatusOr<ImplementationState> patched = PatchImplementation(
        bundle, start,
        UnifiedDiff("kernel.toml", toml, toml + "\n[[variable]]\nname = \"MORE\"\nvalues = [1, 2]\nstart = 2\n"));
    ASSERT_TRUE(patched.ok()) << entry.path() << ": " << patched.status();
    EXPECT_EQ(patched->variant.values_size(), bundle.variables_size() + 1) << entry.path();
    v1::Bundle read = bundle;
    ASSERT_TRUE(SetImplementation(patched->text, &read).ok()) << entry.path();
    EXPECT_EQ(read.launches_size(), bundle.launches_size()) << entry.path();
    ++bundles;
  }
  EXPECT_GT(bundles, 4);
}

TEST(ImplementationTest, IsPatchedInSeveralFilesAtOnce) {
  v1::Bundle bundle = Graph();
  const absl::StatusOr<ImplementationState> patched = PatchImplementation(
      bundle, Start(bundle),
      "diff --git a/steps.cu b/steps.cu\n--- a/steps.cu\n+++ b/steps.cu\n@@ -1,1 +1,2 @@\n+// first\n"
      " #include <cooperative_groups.h>\n"
      "diff --git a/include/detail/load.cuh b/include/detail/load.cuh\n--- a/include/detail/load.cuh\n"
      "+++ b/include/detail/load.cuh\n@@ -1,1 +1,2 @@\n #pragma once\n+// second\n");
  ASSERT_TRUE(patched.ok()) << patched.status();
  EXPECT_EQ(VariantText(patched->variant), VariantText(StartVariant(bundle)));
  EXPECT_FALSE(ChangesToml(bundle, patched->text));
  ASSERT_TRUE(SetImplementation(patched->text, &bundle).ok());
  EXPECT_TRUE(bundle.source().text().starts_with("// first\n"));
  EXPECT_TRUE(bundle.files(0).text().starts_with("#pragma once\n// second\n"));
  EXPECT_EQ(bundle.files(1).text(), Graph().files(1).text());
}

TEST(ImplementationTest, MayChangeVariablesScratchLaunchesAndOptions) {
  const v1::Bundle bundle = ReadBundle(BundleFolder::Golden()).bundle;
  ImplementationState parent = Start(bundle);
  (*parent.variant.mutable_values())["TILE"] = 32;
  std::string toml = TomlOf(bundle, parent);
  EXPECT_THAT(toml, HasSubstr("name = \"TILE\"\nvalues = [64, 32, 128]\nstart = 32\n")) << "of the parent's variant";
  EXPECT_THAT(toml, Not(HasSubstr("tolerance")));
  // A new variable, other scratch, another block: one edit, with the source.
  std::string edited = absl::StrReplaceAll(
      toml, {{"shape = [\"SPLITS\", \"ROWS\", \"2\"]\n", "shape = [\"SPLITS\", \"ROWS\", \"WAYS\"]\n"},
             {"block = [\"min(TILE, MAX_THREADS_PER_BLOCK)\"]\n", "block = [\"TILE\", \"WAYS\"]\n"},
             {"options = [\"--use_fast_math\"]\n", "options = [\"--use_fast_math\", \"-lineinfo\"]\n"}});
  edited +=
      "\n[[variable]]\nname = \"WAYS\" # by hand\nvalues = [1, 2]\nstart = 2\naffects = { parallelism = \"+\" }\n"
      "\n[[tensor]]\nname = \"counts\"\ntype = \"u32\"\nshape = [\"ROWS\"]\nrole = \"scratch\"\n";
  const absl::StatusOr<ImplementationState> patched = PatchImplementation(
      bundle, parent,
      Replacing("kernel.toml", toml, toml, edited) +
          Replacing("scale_rows.cu", bundle.source().text(),
                    bundle.source().text().substr(0, bundle.source().text().find('\n') + 1), "// new\n"));
  ASSERT_TRUE(patched.ok()) << patched.status();
  EXPECT_EQ(patched->variant.values().at("WAYS"), 2);
  EXPECT_EQ(patched->variant.values().at("TILE"), 32);
  EXPECT_TRUE(ChangesToml(bundle, patched->text));
  v1::Bundle result = bundle;
  ASSERT_TRUE(SetImplementation(patched->text, &result).ok());
  EXPECT_TRUE(result.source().text().starts_with("// new\n"));
  EXPECT_EQ(result.variables_size(), 4);
  EXPECT_EQ(FindVariable(result, "TILE")->start(), 64) << "the same implementation, whatever variant was edited";
  EXPECT_EQ(result.tensors_size(), bundle.tensors_size() + 1);
  EXPECT_EQ(result.launches(0).block(1), "WAYS");
  EXPECT_EQ(result.options(1), "-lineinfo");
  EXPECT_EQ(result.tolerance().absolute(), bundle.tolerance().absolute());
  EXPECT_THAT(TomlOf(bundle, *patched), Not(HasSubstr("by hand"))) << "always written alike";
  // An edit of the source alone keeps all that.
  const absl::StatusOr<ImplementationState> again = PatchImplementation(
      bundle, *patched, "--- a/scale_rows.cu\n+++ b/scale_rows.cu\n@@ -1 +1 @@\n-// new\n+// newer\n");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(TomlOf(bundle, *again), TomlOf(bundle, *patched));
  // Taking it all back gives the text without kernel.toml.
  const absl::StatusOr<ImplementationState> back = PatchImplementation(
      bundle, *patched, Replacing("kernel.toml", TomlOf(bundle, *patched), TomlOf(bundle, *patched), toml));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_FALSE(ChangesToml(bundle, back->text));
  EXPECT_EQ(VariantText(back->variant), VariantText(parent.variant));
}

TEST(ImplementationTest, KeepsTheValuesOfVariablesThatTheSourceHolds) {
  const v1::Bundle bundle = Graph();
  const ImplementationState start = Start(bundle);
  const absl::StatusOr<ImplementationState> patched =
      PatchImplementation(bundle, start,
                          TomlPatch(bundle, start, "values = [\"float\", \"double\"]\nstart = \"float\"\n",
                                    "values = [\"half\", \"float\"]\nstart = \"float\"\n"));
  ASSERT_TRUE(patched.ok()) << patched.status();
  EXPECT_EQ(patched->variant.values().at("ACC"), 1) << "words are places in their list";
  EXPECT_EQ(patched->variant.values().at("TABLE_ROWS"), 4);
}

TEST(ImplementationTest, RefusesWhatTouchesTheContractWithTheLine) {
  const v1::Bundle bundle = ReadBundle(BundleFolder::Golden()).bundle;
  const ImplementationState start = Start(bundle);
  const std::string head = "--- a/kernel.toml\n+++ b/kernel.toml\n";
  EXPECT_THAT(
      Refused(bundle, head + "@@ -90,3 +90,3 @@\n [tolerance]\n-absolute = 0.01\n+absolute = 1\n relative = 0.001\n"),
      HasSubstr("line 5 of the patch: \"absolute = 0.01\" in [tolerance] belongs to the contract"));
  EXPECT_THAT(Refused(bundle, head + "@@ -1 +1,3 @@\n+[goal]\n+speedup = 1.1\n x\n"),
              HasSubstr("line 4 of the patch: \"[goal]\" belongs to the contract"));
  EXPECT_THAT(Refused(bundle, head + "@@ -6 +6 @@\n-timing   = \"cold\"\n+timing = \"warm\"\n"),
              HasSubstr("line 4 of the patch: \"timing   = \"cold\"\" belongs to the contract"));
  const auto add = [&](const std::string& text) {
    const std::string entry = "entry = \"combine\"\n";
    return Refused(bundle, TomlPatch(bundle, start, "[[launch]]\n" + entry, text + "\n[[launch]]\n" + entry));
  };
  EXPECT_THAT(add("[[tensor]]\nname = \"out\"\ntype = \"f32\"\nshape = [\"ROWS\"]\nrole = \"output\"\n"),
              HasSubstr("[[tensor]] out, which is no scratch, belongs to the contract, which no edit may change"));
  EXPECT_THAT(add("[[tensor]]\nname = \"in\"\ntype = \"f32\"\nshape = [\"ROWS\"]\nrole = \"scratch\"\n"),
              HasSubstr("the name in is taken by the tensor of the contract"));
  EXPECT_THAT(
      add("[[tensor]]\nname = \"more\"\ntype = \"f32\"\nshape = [\"ROWS\"]\nrole = \"scratch\"\nstatic = true\n"),
      HasSubstr("[[tensor]] more, which is static, belongs to the contract"));
  EXPECT_THAT(Refused(bundle, head + "@@ -1 +1,2 @@\n+compiler = \"nvcc\"\n x\n"),
              HasSubstr("line 4 of the patch: \"compiler = \"nvcc\"\" belongs to the contract"));
  EXPECT_THAT(Refused(bundle, "--- a/reference.cu\n+++ b/reference.cu\n@@ -1 +1 @@\n-a\n+b\n"),
              HasSubstr("it edits reference.cu; only scale_rows.cu, kernel.toml can be edited"));
}

// The source would be read as several files, one of them a kernel.toml that nobody checked.
TEST(ImplementationTest, RefusesASourceThatBeginsLikeSeveralFiles) {
  const v1::Bundle bundle = ReadBundle(BundleFolder::Golden()).bundle;
  const std::string first = bundle.source().text().substr(0, bundle.source().text().find('\n'));
  EXPECT_THAT(
      Refused(bundle,
              absl::StrCat("--- a/scale_rows.cu\n+++ b/scale_rows.cu\n@@ -1 +1,2 @@\n+==== scale_rows.cu, 1 lines "
                           "====\n ",
                           first, "\n")),
      HasSubstr("begin it otherwise"));
}

// A compiler would read the text up to the NUL, and what is stored is more. Bundles are refused for the same.
TEST(ImplementationTest, RefusesTextsThatNoBundleMayHave) {
  const v1::Bundle bundle = ReadBundle(BundleFolder::Golden()).bundle;
  const std::string first = bundle.source().text().substr(0, bundle.source().text().find('\n'));
  EXPECT_THAT(Refused(bundle, absl::StrCat("--- a/scale_rows.cu\n+++ b/scale_rows.cu\n@@ -1 +1,2 @@\n+int x;",
                                           absl::string_view("\0", 1), "hidden\n ", first, "\n")),
              HasSubstr("scale_rows.cu: its text has a NUL character"));
  v1::Bundle own = bundle;
  own.mutable_source()->mutable_text()->push_back('\0');
  EXPECT_THAT(BundleProblems(own), Contains("source: its text has a NUL character"));
}

TEST(ImplementationTest, RefusesAKernelTomlWithMistakes) {
  const v1::Bundle bundle = ReadBundle(BundleFolder::Golden()).bundle;
  const ImplementationState start = Start(bundle);
  const auto change = [&](const std::string& from, const std::string& to) {
    return Refused(bundle, TomlPatch(bundle, start, from, to));
  };
  EXPECT_THAT(change("that = \"SPLITS == 1 || TILE <= 64\"\n", "that = \"SPLIT == 1\"\n"),
              HasSubstr("unknown name SPLIT; expected"));
  EXPECT_THAT(change("that = \"SPLITS == 1 || TILE <= 64\"\n", "that = \"SPLITS > 1\"\n"), HasSubstr("start variant"));
  EXPECT_THAT(change("shape = [\"SPLITS\", \"ROWS\", \"2\"]\n", "shape = [\"SPLITS\"\n"), HasSubstr("not TOML"));
  EXPECT_THAT(change("name = \"TILE\"\n", "name = \"WIDTH\"\n"), HasSubstr("TILE")) << "a scalar needs it";
  EXPECT_THAT(
      change("values = [1, 2, 4]\nstart = 1\n", "values = [1, 2, 4]\nstart = 2\n"),
      HasSubstr("the patch changes nothing but values of variables (SPLITS 1 to 2): propose one of them instead"));
}

TEST(ImplementationTest, IsRebasedOntoALaterState) {
  const v1::Bundle bundle = ReadBundle(BundleFolder::Golden()).bundle;
  const ImplementationState start = Start(bundle);
  const absl::StatusOr<ImplementationState> best = PatchImplementation(
      bundle, start, TomlPatch(bundle, start, "options = [\"--use_fast_math\"]\n", "options = [\"-lineinfo\"]\n"));
  ASSERT_TRUE(best.ok()) << best.status();
  const std::string late = TomlPatch(bundle, start, "block = [\"32\", \"1\"]\n", "block = [\"64\"]\n");
  const absl::StatusOr<ImplementationState> rebased = RebaseImplementation(bundle, start, *best, late);
  ASSERT_TRUE(rebased.ok()) << rebased.status();
  EXPECT_THAT(TomlOf(bundle, *rebased), AllOf(HasSubstr("-lineinfo"), HasSubstr("block = [\"64\"]")));
  const absl::Status conflict =
      RebaseImplementation(bundle, start, *best,
                           TomlPatch(bundle, start, "options = [\"--use_fast_math\"]\n", "options = [\"-G\"]\n"))
          .status();
  EXPECT_EQ(conflict.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(conflict.message()),
              HasSubstr("hunk 1 of the patch does not fit kernel.toml: at line 2 expected \"options = "
                        "[\"--use_fast_math\"]\", found \"options = [\"-lineinfo\"]\""));
}

TEST(ImplementationTest, ToleratesCommentsAndBlanksInItsHash) {
  const v1::Bundle bundle = ReadBundle(BundleFolder::Golden()).bundle;
  const std::string code = "#define F(x) x\nint a = 1;  // one\n", hash = NormalizedHash(bundle, code);
  EXPECT_EQ(NormalizedHash(bundle, "#define F(x) x\n\n/* two */ int a=1 ;\n"), hash);
  EXPECT_NE(NormalizedHash(bundle, "#define F (x) x\nint a = 1;\n"), hash);
  EXPECT_NE(NormalizedHash(bundle, "#define F(x) x\nint a = 2;\n"), hash);
  EXPECT_NE(NormalizedHash(bundle, "#define F(x) x\ninta = 1;\n"), hash);
}

constexpr char kStartToml[] =
    "source = \"main.cu\"\nfiles = [\"include/**/*.cuh\"]\noptions = [\"-O3\"]\n"
    "[[variable]]\nname = \"BLOCK\"\nvalues = [64, 128]\nstart = 128\n"
    "[[tensor]]\nname = \"sums\"\ntype = \"f32\"\nshape = [\"ROWS\"]\nrole = \"scratch\"\n"
    "[[launch]]\nentry = \"scale_rows\"\ngrid = [\"ROWS\"]\nblock = [\"BLOCK\"]\n"
    "arguments = [\"in\", \"out\", \"sums\", \"first\", \"copied\", \"ROWS\"]\n";

// The golden bundle without its implementation, and without the scalar that needs a variable.
v1::Bundle Contract() {
  v1::Bundle contract = WithoutImplementation(ReadBundle(BundleFolder::Golden()).bundle);
  contract.mutable_scalars()->RemoveLast();
  return contract;
}

TEST(ImplementationTest, OfAContractAloneIsWhatThePatchAdds) {
  const v1::Bundle contract = Contract();
  ASSERT_TRUE(IsContractAlone(contract));
  EXPECT_EQ(ImplementationText(contract), "");
  const absl::StatusOr<SourceFiles> files = EditableFiles(contract, "", {});
  ASSERT_TRUE(files.ok()) << files.status();
  ASSERT_EQ(files->size(), 1u);
  EXPECT_EQ((*files)[0].first, "kernel.toml");

  const std::string parts[] = {AddingFile("main.cu", "#include \"include/a/tile.cuh\"\nint main_cu;\n"),
                               AddingFile("include/a/tile.cuh", "int tile;\n"), AddingToml(contract, kStartToml)};
  const auto in_folders = [](std::string patch) {  // as diff -ruN old new writes it
    return absl::StrReplaceAll(patch,
                               {{"--- /dev/null\n+++ b/main.cu", "--- old/main.cu\t1970\n+++ new/main.cu\t2026"},
                                {"--- /dev/null\n+++ b/include", "--- old/include\n+++ new/include"},
                                {"--- a/kernel.toml\n+++ b/", "diff -ruN old/k new/k\n--- old/kernel.toml\n+++ new/"}});
  };
  for (const std::string& patch :
       {absl::StrCat(parts[0], parts[1], parts[2]), absl::StrCat(parts[2], parts[1], parts[0]),
        absl::StrCat(parts[0], parts[1], AddingFile("kernel.toml", kStartToml)),
        in_folders(absl::StrCat(parts[1], parts[2], parts[0]))}) {
    SCOPED_TRACE(patch);
    const absl::StatusOr<ImplementationState> state = PatchImplementation(contract, {}, patch);
    ASSERT_TRUE(state.ok()) << state.status();
    EXPECT_EQ(state->variant.values().at("BLOCK"), 128);
    v1::Bundle started = contract;
    ASSERT_TRUE(SetImplementation(state->text, &started).ok());
    EXPECT_THAT(BundleProblems(started), testing::IsEmpty());
    EXPECT_EQ(started.source().path(), "main.cu");
    EXPECT_THAT(started.source().text(), HasSubstr("int main_cu;"));
    ASSERT_EQ(started.files_size(), 1);
    EXPECT_EQ(started.files(0).path(), "include/a/tile.cuh");
    EXPECT_EQ(started.files(0).text(), "int tile;\n");
    EXPECT_EQ(started.launches_size(), 1);
    EXPECT_EQ(VariantText(StartVariant(started)), VariantText(state->variant));
    EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(WithoutImplementation(started), contract))
        << "the contract is as it was";
    // An edit of it is one of a bundle like any other.
    const absl::StatusOr<ImplementationState> edited =
        PatchImplementation(started, Start(started),
                            "--- a/include/a/tile.cuh\n+++ b/include/a/tile.cuh\n@@ -1 +1 @@\n-int tile;\n+int t;\n");
    ASSERT_TRUE(edited.ok()) << edited.status();
    EXPECT_THAT(edited->text, HasSubstr("int t;\n"));
  }
}

TEST(ImplementationTest, OfAContractAloneNamesEveryFileOnce) {
  const v1::Bundle contract = Contract();
  const std::string source = AddingFile("main.cu", "int a;\n"), header = AddingFile("include/b.cuh", "int b;\n");
  EXPECT_THAT(Refused(contract, source + AddingToml(contract, kStartToml)),
              HasSubstr("files: the edit adds no include/**/*.cuh; it adds main.cu"));
  EXPECT_THAT(Refused(contract, header + AddingToml(contract, kStartToml)),
              HasSubstr("source: the edit adds no main.cu; it adds include/b.cuh"));
  EXPECT_THAT(Refused(contract, source + header + AddingFile("c.h", "int c;\n") + AddingToml(contract, kStartToml)),
              HasSubstr("the edit adds c.h, which neither source nor files names"));
  EXPECT_THAT(Refused(contract, source + header + AddingFile("reference.cu", "x\n") + AddingToml(contract, kStartToml)),
              HasSubstr("reference.cu belongs to the contract, which no edit may change"));
  EXPECT_THAT(Refused(contract, source + AddingToml(contract, "source = \"main.cubin\"\n")),
              HasSubstr("source: the edit adds no main.cubin"));
  EXPECT_THAT(Refused(contract, "--- a/main.cu\n+++ b/main.cu\n@@ -1 +1 @@\n-int a;\n+int b;\n"),
              HasSubstr("it edits main.cu; only kernel.toml can be edited"));
  EXPECT_THAT(
      Refused(Graph(), TomlPatch(Graph(), Start(Graph()), "[[variable]]\n", "source = \"x.cu\"\n[[variable]]\n")),
      HasSubstr("source can't be changed"));
}

TEST(ImplementationTest, SaysWhatCanNotBeEdited) {
  const v1::Bundle bundle = Graph();
  EXPECT_THAT(
      Refused(bundle, "--- a/problem.py\n+++ b/problem.py\n@@ -1 +1 @@\n-a\n+b\n"),
      HasSubstr("it edits problem.py; only steps.cu, include/detail/load.cuh, include/graph.cuh, kernel.toml can "
                "be edited"));
  EXPECT_THAT(Refused(bundle, "--- a/steps.cu\n+++ b/include/graph.cuh\n@@ -1 +1 @@\n-a\n+b\n"), HasSubstr("renames"));
  EXPECT_THAT(Refused(bundle, "--- a/include/graph.cuh\n+++ b/include/graph.cuh\n@@ -1 +1 @@\n-nothing\n+b\n"),
              HasSubstr("hunk 1 of the patch does not fit include/graph.cuh"));
  v1::Bundle cubin = bundle;
  cubin.mutable_source()->set_binary("x");
  EXPECT_THAT(std::string(PatchImplementation(cubin, {}, "x").status().message()), HasSubstr("it can't be edited"));
}

}  // namespace
}  // namespace pawl
