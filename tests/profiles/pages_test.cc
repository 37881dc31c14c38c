// docs/rules.md and docs/gates.md say what the data files say.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "profiles/embedded.h"
#include "profiles/enum_words.h"
#include "profiles/gates.h"
#include "profiles/gpus.h"
#include "profiles/rule.h"
#include "profiles/toml_file.h"

namespace pawl {
namespace {

std::string Coded(const std::vector<std::string>& texts, const char* between) {
  return absl::StrJoin(texts, between,
                       [](std::string* out, const std::string& text) { absl::StrAppend(out, "`", text, "`"); });
}

std::string OwnThresholds(const std::string& rule) {
  std::vector<std::string> own;
  for (const GpuSpec& gpu : KnownGpus()) {
    const auto at = gpu.thresholds.find(rule);
    if (at == gpu.thresholds.end()) continue;
    for (const auto& [metric, value] : at->second) {
      own.push_back(absl::StrCat(gpu.info.name(), ": `", metric, "` ", value));
    }
  }
  return absl::StrJoin(own, "; ");
}

std::string RuleSection(const toml::table& rule, TomlFile* file) {
  const std::string name = file->Text(rule, "name");
  std::string section = absl::StrCat("### `", name, "`\n\n", file->Text(rule, "finding"), ".\n\n");
  const auto row = [&](const char* label, const std::string& text) {
    if (!text.empty()) absl::StrAppend(&section, "- ", label, ": ", text, "\n");
  };
  row("when", Coded(file->Texts(rule, "when"), " and "));
  row("unless", Coded(file->Texts(rule, "unless"), " or "));
  row("ncu's own advice has", Coded(file->Texts(rule, "ncu"), " or "));
  row("supported by ncu's", Coded(file->Texts(rule, "supported_by"), ", "));
  row("thresholds by GPU", OwnThresholds(name));
  const std::string wants = Coded(file->Texts(rule, "wants"), ", ");
  row("wants", wants.empty() ? "nothing: advice only, it leads to no change" : wants);
  row("share of what is needed", Coded(file->Texts(rule, "deficit"), ""));
  row("severity", Coded(file->Texts(rule, "severity"), ""));
  row("predicts a change of", Coded(file->Texts(rule, "predicts"), ""));
  if (file->Flag(rule, "roof", false)) row("roof", "the GPU is at a peak rate: advice to stop");
  row("advice", file->Text(rule, "advice"));
  row("source", file->Text(rule, "source"));
  return section;
}

std::string RulesPage() {
  TomlFile file(embedded::kDecisionTreeToml, "decision_tree.toml");
  std::string page =
      "# The rules of the decision tree\n\nMade from `profiles/decision_tree.toml` and `profiles/gpus/*.toml`; "
      "`profiles/README.md` says what the keys mean.\nFindings are handled phase by phase, the most severe first. "
      "`{metric}` stands for the measured value.\n";
  for (const v1::Phase phase : {v1::PHASE_PARALLELISM, v1::PHASE_MEMORY, v1::PHASE_COMPUTE, v1::PHASE_TUNING}) {
    const std::string word = WordOf("PHASE_", phase);
    absl::StrAppend(&page, "\n## Phase ", word, "\n");
    for (const toml::table* rule : file.Tables("rule")) {
      if (file.Text(*rule, "phase") == word) absl::StrAppend(&page, "\n", RuleSection(*rule, &file));
    }
  }
  EXPECT_TRUE(file.status().ok()) << file.status();
  return page;
}

std::string GatesPage() {
  const Gates& gates = Gates::Default();
  std::string page =
      "# The gates\n\nMade from `profiles/gates.toml`; `profiles/README.md` says what the keys mean and what a failed "
      "gate may do.\n\n| gate | stage | passes when | threshold | when it fails |\n| --- | --- | --- | --- | --- |\n";
  for (const Gate& gate : gates.all()) {
    absl::StrAppendFormat(&page, "| `%s` | %s | %s | %s | %s |\n", gate.name, WordOf("STAGE_", gate.stage),
                          gate.meaning, gate.threshold > 0 ? absl::StrCat(gate.threshold) : "",
                          WordOf("GATE_ACTION_", gate.action));
  }
  absl::StrAppend(&page, "\nWhich gate a candidate's failure belongs to:\n\n| gate | checks |\n| --- | --- |\n");
  for (const Gate& gate : gates.all()) {
    if (gate.checks.empty()) continue;
    const std::string checks = absl::StrJoin(gate.checks, ", ", [](std::string* out, v1::Check check) {
      absl::StrAppend(out, "`", WordOf("CHECK_", check), "`");
    });
    absl::StrAppendFormat(&page, "| `%s` | %s |\n", gate.name, checks);
  }
  absl::StrAppendFormat(&page,
                        "\nSuccess tiers, by the speedup over the baseline: minimum %gx; target: the goal of the "
                        "bundle, or %gx if it\nhas none; stretch: %g times the target.\n\nThe best variant is "
                        "measured beside the start after every %d kept iterations.\n",
                        gates.tiers().minimum, gates.tiers().target, gates.tiers().stretch, gates.total_every());
  return page;
}

void ExpectPage(const std::string& name, const std::string& expected) {
  const char* source = std::getenv("PAWL_SOURCE_DIR");
  ASSERT_NE(source, nullptr);
  const std::filesystem::path file = std::filesystem::path(source) / "docs" / name;
  if (const char* write = std::getenv("PAWL_WRITE_DOCS"); write != nullptr && std::string(write) == "1") {
    std::ofstream(file) << expected;
  }
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  EXPECT_EQ(text.str(), expected) << "run this test with PAWL_WRITE_DOCS=1 to write " << file;
}

TEST(PagesTest, HaveTheRules) { ExpectPage("rules.md", RulesPage()); }

TEST(PagesTest, HaveTheGates) { ExpectPage("gates.md", GatesPage()); }

}  // namespace
}  // namespace pawl
