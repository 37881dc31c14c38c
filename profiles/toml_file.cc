#include "profiles/toml_file.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace pawl {

TomlFile::TomlFile(std::string_view text, std::string file) : file_(std::move(file)) {
  toml::parse_result result = toml::parse(text, file_);
  if (result) {
    root_ = std::move(result).table();
  } else {
    Note(static_cast<int>(result.error().source().begin.line), std::string(result.error().description()));
  }
}

void TomlFile::Note(int line, const std::string& message) {
  problems_.push_back(absl::StrCat(file_, ":", line, ": ", message));
}

int TomlFile::LineOf(const toml::table& table, const std::string& key) {
  const toml::node* node = table.get(key);
  return node ? LineOf(*node) : LineOf(table);
}

void TomlFile::AllowKeys(const toml::table& table, std::initializer_list<const char*> keys) {
  for (const auto& [key, node] : table) {
    if (std::find(keys.begin(), keys.end(), key.str()) != keys.end()) continue;
    Note(LineOf(node),
         absl::StrCat("unknown key \"", std::string(key.str()), "\"; there are ", absl::StrJoin(keys, ", ")));
  }
}

std::string TomlFile::RequiredText(const toml::table& table, const std::string& key) {
  if (!table.contains(key)) Note(LineOf(table), absl::StrCat("\"", key, "\" is missing"));
  return Text(table, key);
}

std::string TomlFile::Text(const toml::table& table, const std::string& key) {
  const toml::node* node = table.get(key);
  if (!node) return "";
  if (const auto text = node->value_exact<std::string>(); text && !text->empty()) return *text;
  Note(LineOf(*node), absl::StrCat("\"", key, "\" must be a text that is not empty"));
  return "";
}

bool TomlFile::Flag(const toml::table& table, const std::string& key, bool otherwise) {
  const toml::node* node = table.get(key);
  if (!node) return otherwise;
  if (const auto flag = node->value_exact<bool>()) return *flag;
  Note(LineOf(*node), absl::StrCat("\"", key, "\" must be true or false"));
  return otherwise;
}

double TomlFile::RequiredNumber(const toml::table& table, const std::string& key) {
  if (!table.contains(key)) Note(LineOf(table), absl::StrCat("\"", key, "\" is missing"));
  return Number(table, key).value_or(0);
}

std::optional<double> TomlFile::Number(const toml::table& table, const std::string& key) {
  const toml::node* node = table.get(key);
  if (!node) return std::nullopt;
  if (node->is_number()) {
    if (const auto number = node->value<double>(); number && std::isfinite(*number)) return *number;
  }
  Note(LineOf(*node), absl::StrCat("\"", key, "\" must be a number"));
  return std::nullopt;
}

std::vector<std::string> TomlFile::Texts(const toml::table& table, const std::string& key) {
  const toml::node* node = table.get(key);
  if (!node) return {};
  const toml::array* list = node->as_array();
  if (!list) {
    std::string text = Text(table, key);
    return text.empty() ? std::vector<std::string>() : std::vector<std::string>{std::move(text)};
  }
  std::vector<std::string> texts;
  for (const toml::node& element : *list) {
    if (const auto text = element.value_exact<std::string>(); text && !text->empty()) {
      texts.push_back(*text);
    } else {
      Note(LineOf(element), absl::StrCat("\"", key, "\" must hold texts that are not empty"));
    }
  }
  return texts;
}

std::vector<const toml::table*> TomlFile::Tables(const std::string& key) {
  std::vector<const toml::table*> tables;
  const toml::node* node = root_.get(key);
  if (!node) return tables;
  if (!node->is_array_of_tables()) {
    Note(LineOf(*node), absl::StrCat("write [[", key, "]] before each ", key));
    return tables;
  }
  for (const toml::node& element : *node->as_array()) tables.push_back(element.as_table());
  return tables;
}

absl::Status TomlFile::status() const {
  if (problems_.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(problems_, "\n"));
}

}  // namespace pawl
