// docs/kernel-toml.md says what the reader of kernel.toml says: the tables of keys, functions, names and limits in it
// are made here from the reader's own vocabulary.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/expression/expression.h"
#include "base/toml/toml.h"
#include "kernels/limits.h"
#include "kernels/plan.h"
#include "kernels/read/bundle_reader.h"
#include "kernels/vocabulary.h"
#include "tests/kernels/bundle_folder.h"

namespace pawl {
namespace {

std::filesystem::path Page() {
  const char* source = std::getenv("PAWL_SOURCE_DIR");
  return std::filesystem::path(source == nullptr ? "." : source) / "docs/kernel-toml.md";
}

std::string ReadText(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

std::string Cell(const std::string& text) { return absl::StrReplaceAll(text, {{"|", "\\|"}}); }

std::string Code(const std::string& text) { return absl::StrCat("`", text, "`"); }

std::string Names(const Scope& scope) {
  return absl::StrCat("sizes",
                      scope.limits      ? ","
                      : scope.variables ? " and"
                                        : "",
                      scope.variables ? " variables" : "", scope.limits ? " and GPU limits" : "");
}

std::string TypeOf(const TomlKey& key) {
  const std::string range =
      key.low == std::numeric_limits<int32_t>::min() ? "32 bits" : absl::StrCat(key.low, " to ", key.high);
  switch (key.type) {
    case KeyType::kText:
      return "text";
    case KeyType::kTexts:
      return "list of texts";
    case KeyType::kWord:
      return absl::StrCat(
          absl::StrJoin(key.words, ", ",
                        [](std::string* out, const std::string& word) { absl::StrAppend(out, "`\"", word, "\"`"); }),
          key.table == nullptr ? "" : ", or a table");
    case KeyType::kFlag:
      return "`true` or `false`";
    case KeyType::kInteger:
      return absl::StrCat("whole number, ", range);
    case KeyType::kIntegers:
      return absl::StrCat("list of whole numbers, ", range);
    case KeyType::kNumber:
      return "number";
    case KeyType::kValue:
      return "whole number, word, or `true` or `false`";
    case KeyType::kValues:
      return "list of whole numbers, of words, or `[false, true]`";
    case KeyType::kExpression:
      return absl::StrCat("expression over ", Names(key.scope));
    case KeyType::kExpressions:
      return absl::StrCat("list of expressions over ", Names(key.scope));
    case KeyType::kTable:
      return "table";
    case KeyType::kTables:
      return "tables";
  }
  return "";
}

std::string Default(const TomlKey& key) {
  if (key.required) return "required";
  if (key.type == KeyType::kWord && key.words.front() != "+") return absl::StrCat("`\"", key.words.front(), "\"`");
  if (key.type == KeyType::kFlag || key.type == KeyType::kNumber) return Code(key.fallback);
  return key.fallback.empty() ? "not affected" : key.fallback;
}

// Written in one line as the value of a key, { ... }.
bool IsInline(const TomlKey& key) { return key.table != nullptr && !key.table->header.starts_with("["); }

std::string KeysOf(const KeyTable& table) {
  std::string text = absl::StrCat(table.meaning, "\n\n| key | type | default | meaning | example |\n",
                                  "| --- | --- | --- | --- | --- |\n");
  std::vector<TomlKey> keys = table.keys;
  if (!table.others.name.empty()) keys.push_back(table.others);
  for (const TomlKey& key : keys) {
    if (key.table != nullptr && !IsInline(key)) continue;  // has a heading of its own
    const bool own = &key == &keys.back() && !table.others.name.empty();
    absl::StrAppend(&text, "| ", own ? key.name : Code(key.name), " | ", Cell(TypeOf(key)), " | ",
                    own && key.type == KeyType::kIntegers ? "not varied" : Default(key), " | ", Cell(key.meaning),
                    " | ", Cell(key.example.empty() ? "below" : Code(key.example)), " |\n");
  }
  return text;
}

// Every table with the name of its block: its header without brackets, "top" for the top of the file.
void Collect(const KeyTable& table, std::map<std::string, std::string>* blocks) {
  const std::string name = absl::StrReplaceAll(table.header, {{"[", ""}, {"]", ""}, {"*", ""}});
  EXPECT_TRUE(blocks->emplace(absl::StrCat("keys ", name.empty() ? "top" : name), KeysOf(table)).second) << name;
  for (const TomlKey& key : table.keys) {
    if (key.table != nullptr) Collect(*key.table, blocks);
  }
  if (table.others.table != nullptr) Collect(*table.others.table, blocks);
}

std::string Tables() {
  std::string text = "| table | how many | meaning |\n| --- | --- | --- |\n";
  const std::function<void(const KeyTable&)> add = [&](const KeyTable& table) {
    for (const TomlKey& key : table.keys) {
      if (key.table == nullptr || IsInline(key)) continue;
      const bool many = key.type == KeyType::kTables;
      absl::StrAppend(&text, "| ", Code(key.table->header), " | ",
                      key.required ? (many ? "one or more" : "one")
                      : many       ? "any number"
                                   : "at most one",
                      key.required ? "" : absl::StrCat("; without it: ", key.fallback), " | ", key.meaning, " |\n");
      add(*key.table);
    }
  };
  add(KernelToml());
  return text;
}

std::string Functions() {
  std::string text = "| function | value |\n| --- | --- |\n";
  for (const ExpressionFunction& function : ExpressionFunctions()) {
    absl::StrAppend(&text, "| ", Code(function.call), " | ", function.meaning, " |\n");
  }
  return text;
}

std::string Limits() {
  const std::map<std::string, std::string> meanings = {
      {"SM_COUNT", "multiprocessors"},
      {"MAX_THREADS_PER_BLOCK", "threads of a block"},
      {"MAX_THREADS_PER_SM", "threads on a multiprocessor"},
      {"SHARED_PER_BLOCK", "shared memory of a block, bytes, opted in"},
      {"SHARED_PER_SM", "shared memory of a multiprocessor, bytes"},
      {"REGISTERS_PER_SM", "registers of a multiprocessor"},
      {"L2_BYTES", "bytes of the L2"}};
  std::string text = "| name | is | where no GPU is known |\n| --- | --- | --- |\n";
  for (const auto& [name, value] : GpuLimits(TypicalGpu())) {
    EXPECT_TRUE(meanings.contains(name)) << name;
    absl::StrAppend(&text, "| ", Code(name), " | ", meanings.at(name), " | ", static_cast<int64_t>(value), " |\n");
  }
  return text;
}

std::string Maxima() {
  std::string text = "| what | at most |\n| --- | --- |\n";
  const auto row = [&](const std::string& what, const std::string& most) {
    absl::StrAppend(&text, "| ", what, " | ", most, " |\n");
  };
  row("a file of the bundle", absl::StrCat(kMaxSourceBytes, " bytes of UTF-8"));
  row("a text in `kernel.toml`", absl::StrCat(kMaxTextBytes, " bytes on one line (`replaces`: on any number)"));
  row("an expression", absl::StrCat(kMaxExpression, " characters"));
  row("the name of a bundle", absl::StrCat(kMaxBundleName, " characters"));
  row("the name of a variable, tensor, scalar or dimension", absl::StrCat(kMaxName, " characters"));
  row("the name of a size", absl::StrCat(kMaxSizeName, " bytes"));
  row("the path of a source", absl::StrCat(kMaxPath, " bytes"));
  row("tables of one kind, but for launches", absl::StrCat(kMaxTables));
  row("launches of a call, repetitions counted", absl::StrCat(kMaxLaunches));
  row("a C++ entry, with its template arguments", absl::StrCat(kMaxEntry, " bytes"));
  row("a word among `values`", absl::StrCat(kMaxWord, " bytes"));
  row("`files`", absl::StrCat(kMaxFiles, " files, ", kMaxFilesBytes, " bytes together"));
  row("data files", absl::StrCat(kMaxDataBytes, " bytes together"));
  row("a source that is a cubin", absl::StrCat(kMaxCubinBytes, " bytes"));
  row("header libraries", absl::StrCat(kMaxIncludes));
  row("fields of a struct", absl::StrCat(kMaxFields));
  row("blocks of a cluster", absl::StrCat(kMaxCluster));
  row("entries of a list, such as `values`", absl::StrCat(kMaxListEntries));
  row("extents of a tensor", absl::StrCat(kMaxRank));
  row("`align` of a tensor", absl::StrCat(kMaxAlign, " bytes"));
  row("elements of a tensor", absl::StrCat(kMaxElements, " (2^40)"));
  row("variants, before constraints", absl::StrCat(kMaxSpace));
  row("threads of a block in x and y, in z", absl::StrCat(kMaxBlockXY, ", ", kMaxBlockZ, "; together the GPU's limit"));
  row("blocks of a grid in y and z", absl::StrCat(kMaxGridYZ));
  return text;
}

std::map<std::string, std::string> Blocks() {
  std::map<std::string, std::string> blocks = {
      {"tables", Tables()},
      {"functions", Functions()},
      {"gpu limits", Limits()},
      {"maxima", Maxima()},
      {"example", absl::StrCat("```toml\n", ReadText(BundleFolder::Golden() / "kernel.toml"), "```\n")},
      {"second example",
       absl::StrCat("```toml\n", ReadText(BundleFolder::Golden("graph_steps") / "kernel.toml"), "```\n")},
      {"third example",
       absl::StrCat("```toml\n", ReadText(BundleFolder::Golden("club_steps") / "kernel.toml"), "```\n")}};
  Collect(KernelToml(), &blocks);
  return blocks;
}

// The page with each block, from `<!-- made: NAME -->` to `<!-- end -->`, made from the vocabulary.
std::string Remade(const std::string& page, std::set<std::string>* made) {
  const std::map<std::string, std::string> blocks = Blocks();
  const std::string begin = "<!-- made: ", end = "<!-- end -->";
  std::string text;
  size_t at = 0;
  for (size_t mark; (mark = page.find(begin, at)) != std::string::npos;) {
    const size_t name = mark + begin.size(), name_end = page.find(" -->\n", name), close = page.find(end, name);
    if (name_end == std::string::npos || close == std::string::npos) break;
    const std::string block = page.substr(name, name_end - name);
    made->insert(block);
    const auto it = blocks.find(block);
    EXPECT_NE(it, blocks.end()) << "docs/kernel-toml.md has a block that is not made: " << block;
    absl::StrAppend(&text, page.substr(at, name_end + 5 - at), it == blocks.end() ? "" : it->second);
    at = close;
  }
  return text + page.substr(at);
}

TEST(KernelTomlPageTest, HasEveryKeyAsTheReaderKnowsIt) {
  const std::string page = ReadText(Page());
  std::set<std::string> made, all;
  const std::string expected = Remade(page, &made);
  for (const auto& [name, block] : Blocks()) all.insert(name);
  EXPECT_EQ(made, all) << "blocks of docs/kernel-toml.md, and those that there are";
  if (const char* write = std::getenv("PAWL_WRITE_DOCS"); write != nullptr && std::string(write) == "1") {
    std::ofstream(Page()) << expected;
    return;
  }
  EXPECT_EQ(page, expected) << "run this test with PAWL_WRITE_DOCS=1 to write " << Page();
}

// Names of keys that are in the file, as "[goal] size".
void Used(const toml::table& table, const KeyTable& keys, std::set<std::string>* used) {
  for (const auto& [key, node] : table) {
    const TomlKey* row = keys.Find(std::string(key.str()));
    if (row == nullptr) continue;
    used->insert(absl::StrCat(keys.header, " ", row->name));
    if (row->table == nullptr) continue;
    if (const toml::table* inner = node.as_table()) Used(*inner, *row->table, used);
    if (const toml::array* array = node.as_array()) {
      for (const toml::node& entry : *array) {
        if (entry.is_table()) Used(*entry.as_table(), *row->table, used);
      }
    }
  }
}

void Known(const KeyTable& keys, std::set<std::string>* known) {
  for (const TomlKey& key : keys.keys) {
    known->insert(absl::StrCat(keys.header, " ", key.name));
    if (key.table != nullptr) Known(*key.table, known);
  }
  if (!keys.others.name.empty()) known->insert(absl::StrCat(keys.header, " ", keys.others.name));
  if (keys.others.table != nullptr) Known(*keys.others.table, known);
}

// A row that the reader does not read would make its key an unknown one here.
TEST(KernelTomlPageTest, ShowsAnExampleThatHasEveryKeyAndIsRead) {
  std::set<std::string> used, known;
  for (const char* golden : {"scale_rows", "graph_steps", "club_steps"}) {
    const toml::parse_result parsed = toml::parse(ReadText(BundleFolder::Golden(golden) / "kernel.toml"));
    ASSERT_TRUE(parsed) << golden;
    Used(parsed.table(), KernelToml(), &used);
    EXPECT_TRUE(ReadBundle(BundleFolder::Golden(golden)).problems.empty()) << golden;
  }
  Known(KernelToml(), &known);
  for (const std::string& key : known) {
    // Every kind of launch has the same keys.
    const bool launch = key.starts_with("[[reference.launch]] ") || key.starts_with("[[setup.launch]] ");
    if (key.starts_with("affects ") || launch) continue;
    EXPECT_TRUE(used.contains(key)) << "the examples lack " << key;
  }
}

TEST(KernelTomlPageTest, HasAMeaningAndAnExampleForEveryKey) {
  const std::function<void(const KeyTable&)> check = [&](const KeyTable& table) {
    EXPECT_FALSE(table.meaning.empty()) << table.header;
    for (const TomlKey& key : table.keys) {
      EXPECT_FALSE(key.meaning.empty()) << table.header << " " << key.name;
      EXPECT_TRUE(key.table != nullptr || key.example.find(key.name) != std::string::npos)
          << table.header << " " << key.name;
      if (key.table != nullptr) check(*key.table);
    }
  };
  check(KernelToml());
}

TEST(KernelTomlPageTest, HasTheResourcesOfTheMessage) {
  ASSERT_EQ(Resources().size(), static_cast<size_t>(v1::Resource_ARRAYSIZE - 1));
  for (size_t i = 0; i < Resources().size(); ++i) {
    std::string name = v1::Resource_Name(static_cast<v1::Resource>(i + 1)).substr(std::string("RESOURCE_").size());
    for (char& c : name) c = static_cast<char>(std::tolower(c));
    EXPECT_EQ(Resources()[i].name, name);
  }
}

}  // namespace
}  // namespace pawl
