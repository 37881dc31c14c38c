#include "tests/cheats/cheat_list.h"

#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/toml/toml.h"

namespace pawl {
namespace {

absl::Status Mistake(const std::string& name, const std::string& message) {
  return absl::InvalidArgumentError(absl::StrCat("cheats.toml: ", name.empty() ? "an entry" : name, ": ", message));
}

absl::Status ReadCheat(const toml::table& table, Cheat* cheat) {
  static const std::map<std::string, CaughtBy> kPlaces = {{"reader", CaughtBy::kReader},
                                                          {"limits", CaughtBy::kLimits},
                                                          {"build", CaughtBy::kBuild},
                                                          {"gpu", CaughtBy::kGpu}};
  cheat->name = table["name"].value_or(std::string());
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
  return absl::OkStatus();
}

}  // namespace

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
