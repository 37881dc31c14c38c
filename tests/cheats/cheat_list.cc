#include "tests/cheats/cheat_list.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/toml/toml.h"

namespace pawl {
namespace {

absl::Status Mistake(const std::string& name, const std::string& message) {
  return absl::InvalidArgumentError(absl::StrCat("cheats.toml: ", name.empty() ? "an entry" : name, ": ", message));
}

absl::Status CheckKeys(const toml::table& table, const std::set<std::string>& known) {
  for (const auto& [key, node] : table) {
    const std::string word(key.str());
    if (known.contains(word)) continue;
    return Mistake(table["name"].value_or(std::string()),
                   absl::StrCat("unknown key ", word, "; expected one of ", absl::StrJoin(known, ", ")));
  }
  return absl::OkStatus();
}

// VARIABLE=VALUE,...; nothing where the key is absent.
absl::Status ReadValues(const toml::table& table, const char* key, std::map<std::string, int32_t>* values) {
  if (!table.contains(key)) return absl::OkStatus();
  const std::string name = table["name"].value_or(std::string()), text = table[key].value_or(std::string());
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    const std::vector<std::string> sides = absl::StrSplit(part, '=');
    int32_t value = 0;
    if (sides.size() != 2 || sides[0].empty() || !absl::SimpleAtoi(sides[1], &value)) {
      return Mistake(name, absl::StrCat(key, " is \"", text, "\"; expected VARIABLE=VALUE,..."));
    }
    if (!values->emplace(sides[0], value).second) return Mistake(name, absl::StrCat(key, " has ", sides[0], " twice"));
  }
  return absl::OkStatus();
}

absl::Status ReadChanges(const toml::table& table, Cheat* cheat) {
  if (absl::Status status = ReadValues(table, "variant", &cheat->variant); !status.ok()) return status;
  if (absl::Status status = ReadValues(table, "then", &cheat->then); !status.ok()) return status;
  if (!cheat->then.empty() && cheat->variant.empty()) return Mistake(cheat->name, "then needs variant");
  std::map<std::string, int32_t> spared;
  if (absl::Status status = ReadValues(table, "spares", &spared); !status.ok()) return status;
  cheat->spares = table["spares"].value_or(std::string());
  if (!cheat->spares.empty() && cheat->variant.empty()) return Mistake(cheat->name, "spares needs variant");
  if (!table.contains("stamped")) return absl::OkStatus();
  cheat->stamped = table["stamped"].value<int>();
  if (!cheat->stamped || *cheat->stamped < 1) return Mistake(cheat->name, "stamped is no number of seconds");
  if (cheat->then.empty()) return Mistake(cheat->name, "stamped needs then");
  return absl::OkStatus();
}

absl::Status ReadCheat(const toml::table& table, Cheat* cheat) {
  static const std::map<std::string, CaughtBy> kPlaces = {{"reader", CaughtBy::kReader},
                                                          {"limits", CaughtBy::kLimits},
                                                          {"build", CaughtBy::kBuild},
                                                          {"gpu", CaughtBy::kGpu}};
  if (absl::Status status = CheckKeys(
          table, {"name", "class", "expect", "by", "variant", "then", "stamped", "spares", "harmless_as", "what"});
      !status.ok()) {
    return status;
  }
  cheat->name = table["name"].value_or(std::string());
  cheat->kind = table["class"].value_or(std::string());
  if (std::find(CheatKinds().begin(), CheatKinds().end(), cheat->kind) == CheatKinds().end()) {
    return Mistake(cheat->name,
                   absl::StrCat("class is \"", cheat->kind, "\"; expected one of ", absl::StrJoin(CheatKinds(), ", ")));
  }
  cheat->what = table["what"].value_or(std::string());
  cheat->harmless_as = table["harmless_as"].value_or(std::string());
  const auto place = kPlaces.find(table["by"].value_or(std::string()));
  if (place == kPlaces.end()) return Mistake(cheat->name, "by is none of reader, limits, build, gpu");
  cheat->by = place->second;
  const toml::array* expect = table["expect"].as_array();
  if (expect == nullptr || expect->empty()) return Mistake(cheat->name, "expect names no check");
  for (const toml::node& node : *expect) {
    const std::string word = node.value_or(std::string());
    v1::Check check;
    if (!v1::Check_Parse(absl::StrCat("CHECK_", absl::AsciiStrToUpper(word)), &check) ||
        check == v1::CHECK_UNSPECIFIED) {
      return Mistake(cheat->name, absl::StrCat("\"", word, "\" is no check"));
    }
    cheat->expect.push_back(check);
  }
  return ReadChanges(table, cheat);
}

}  // namespace

const std::vector<std::string>& CheatKinds() {
  static const auto& kinds = *new std::vector<std::string>{
      "check", "seat", "inputs", "sizes", "bounds", "tolerance", "memory", "output", "build", "bundle", "timing"};
  return kinds;
}

absl::StatusOr<CheatList> ReadCheatList(const std::filesystem::path& file) {
  const toml::parse_result parsed = toml::parse_file(file.string());
  if (!parsed)
    return absl::InvalidArgumentError(absl::StrCat("cheats.toml: ", std::string(parsed.error().description())));
  CheatList list;
  for (const auto& [key, node] : parsed.table()) {
    if (key != "cheat" && key != "control") return Mistake(std::string(key.str()), "is no [[cheat]] or [[control]]");
    const toml::array* entries = node.as_array();
    if (entries == nullptr) return Mistake(std::string(key.str()), "is no list of tables");
    for (const toml::node& entry : *entries) {
      const toml::table& table = *entry.as_table();
      std::string name, what;
      if (key == "cheat") {
        Cheat& cheat = list.cheats.emplace_back();
        if (absl::Status status = ReadCheat(table, &cheat); !status.ok()) return status;
        name = cheat.name;
        what = cheat.what;
      } else {
        if (absl::Status status = CheckKeys(table, {"name", "what"}); !status.ok()) return status;
        Control& control = list.controls.emplace_back();
        name = control.name = table["name"].value_or(std::string());
        what = control.what = table["what"].value_or(std::string());
      }
      if (name.empty() || what.empty()) return Mistake(name, "lacks a name or what it does");
    }
  }
  return list;
}

}  // namespace pawl
