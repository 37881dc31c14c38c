#include "kernels/toml_table.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/names/spelling.h"

namespace pawl {
namespace {

constexpr size_t kMaxEntries = 1000;
constexpr size_t kMaxText = 4000;

int LineOf(const toml::node& node) { return static_cast<int>(node.source().begin.line); }

std::string TypeName(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "a list";
    case toml::node_type::string:
      return "a text";
    case toml::node_type::integer:
      return "a whole number";
    case toml::node_type::floating_point:
      return "a number with a fraction";
    case toml::node_type::boolean:
      return "true or false";
    default:
      return "a date or time";
  }
}

}  // namespace

TomlTable::TomlTable(const toml::table* table, std::string where, Problems* problems)
    : table_(table), where_(std::move(where)), problems_(problems) {}

void TomlTable::Complain(int line, const std::string& message) {
  problems_->Add(line, where_.empty() ? message : absl::StrCat(where_, ": ", message));
}

int TomlTable::line() const { return std::max(1, LineOf(*table_)); }

int TomlTable::Line(const std::string& key) const {
  const toml::node* node = table_->get(key);
  return node == nullptr ? line() : LineOf(*node);
}

const toml::node* TomlTable::Find(const std::string& key, bool required) {
  asked_.emplace_back(key);
  const toml::node* node = table_->get(key);
  if (node == nullptr && required) Complain(line(), absl::StrCat("the key ", key, " is missing"));
  return node;
}

bool TomlTable::Has(const std::string& key) { return Find(key, false) != nullptr; }

void TomlTable::WrongType(const toml::node& node, const std::string& key, const std::string& expected) {
  Complain(LineOf(node), absl::StrCat(key, " is ", TypeName(node), "; expected ", expected));
}

std::optional<Text> TomlTable::AsText(const toml::node& node, const std::string& key) {
  const auto* text = node.as_string();
  if (text == nullptr) {
    WrongType(node, key, "a text in quotes");
    return std::nullopt;
  }
  const std::string& value = text->get();
  if (value.find_first_not_of(" \t") == std::string::npos) {
    Complain(LineOf(node), absl::StrCat(key, " is empty"));
    return std::nullopt;
  }
  if (std::any_of(value.begin(), value.end(), [](unsigned char c) { return c < ' ' || c == 127; })) {
    Complain(LineOf(node), absl::StrCat(key, " has a control character or a line break; expected one line of text"));
    return std::nullopt;
  }
  if (value.size() > kMaxText) {
    Complain(LineOf(node), absl::StrCat(key, " has ", value.size(), " bytes; expected at most ", kMaxText));
    return std::nullopt;
  }
  return Text{value, LineOf(node)};
}

std::optional<Text> TomlTable::AsExpression(const toml::node& node, const std::string& key) {
  if (const auto* integer = node.as_integer()) return Text{absl::StrCat(integer->get()), LineOf(node)};
  if (const auto* number = node.as_floating_point(); number != nullptr && std::isfinite(number->get())) {
    return Text{absl::StrFormat("%.17g", number->get()), LineOf(node)};
  }
  if (node.is_string()) return AsText(node, key);
  WrongType(node, key, "an expression in quotes or a number");
  return std::nullopt;
}

std::optional<int64_t> TomlTable::AsInteger(const toml::node& node, const std::string& key, int64_t low, int64_t high) {
  const auto* integer = node.as_integer();
  if (integer == nullptr) {
    WrongType(node, key, "a whole number");
    return std::nullopt;
  }
  if (integer->get() < low || integer->get() > high) {
    Complain(LineOf(node),
             absl::StrCat(key, " is ", integer->get(), "; expected a whole number from ", low, " to ", high));
    return std::nullopt;
  }
  return integer->get();
}

const toml::array* TomlTable::AsArray(const toml::node* node, const std::string& key, const std::string& of) {
  if (node == nullptr) return nullptr;
  const toml::array* array = node->as_array();
  if (array == nullptr) {
    WrongType(*node, key, absl::StrCat("a list of ", of));
    return nullptr;
  }
  if (array->empty()) {
    Complain(LineOf(*node), absl::StrCat(key, " is an empty list; expected ", of));
    return nullptr;
  }
  if (array->size() > kMaxEntries) {
    Complain(LineOf(*node), absl::StrCat(key, " has ", array->size(), " entries; expected at most ", kMaxEntries));
    return nullptr;
  }
  return array;
}

std::optional<Text> TomlTable::RequiredText(const std::string& key) {
  const toml::node* node = Find(key, true);
  return node == nullptr ? std::nullopt : AsText(*node, key);
}

std::optional<Text> TomlTable::OptionalText(const std::string& key) {
  const toml::node* node = Find(key, false);
  return node == nullptr ? std::nullopt : AsText(*node, key);
}

std::optional<int> TomlTable::Word(const std::string& key, const std::vector<std::string>& words, bool required) {
  const std::optional<Text> text = required ? RequiredText(key) : OptionalText(key);
  if (!text) return std::nullopt;
  const auto it = std::find(words.begin(), words.end(), text->value);
  if (it != words.end()) return static_cast<int>(it - words.begin());
  Complain(text->line, absl::StrCat(key, " is \"", text->value, "\"", Expected(text->value, words)));
  return std::nullopt;
}

std::optional<bool> TomlTable::Bool(const std::string& key) {
  const toml::node* node = Find(key, false);
  if (node == nullptr) return std::nullopt;
  if (const auto* value = node->as_boolean()) return value->get();
  WrongType(*node, key, "true or false, without quotes");
  return std::nullopt;
}

std::optional<int64_t> TomlTable::Integer(const std::string& key, int64_t low, int64_t high, bool required) {
  const toml::node* node = Find(key, required);
  return node == nullptr ? std::nullopt : AsInteger(*node, key, low, high);
}

std::optional<double> TomlTable::Number(const std::string& key, bool required) {
  const toml::node* node = Find(key, required);
  if (node == nullptr) return std::nullopt;
  const std::optional<double> number = node->value<double>();
  if (!node->is_number() || !number) {
    WrongType(*node, key, "a number, without quotes");
    return std::nullopt;
  }
  if (!std::isfinite(*number)) {
    Complain(LineOf(*node), absl::StrCat(key, " is not finite; expected a number"));
    return std::nullopt;
  }
  return number;
}

std::vector<int64_t> TomlTable::Integers(const std::string& key, int64_t low, int64_t high) {
  const toml::array* array = AsArray(Find(key, true), key, "whole numbers");
  if (array == nullptr) return {};
  std::vector<int64_t> integers;
  for (const toml::node& node : *array) {
    if (std::optional<int64_t> integer = AsInteger(node, absl::StrCat("an entry of ", key), low, high)) {
      integers.push_back(*integer);
    }
  }
  return integers.size() == array->size() ? integers : std::vector<int64_t>{};
}

std::vector<Text> TomlTable::Texts(const std::string& key, bool required) {
  const toml::array* array = AsArray(Find(key, required), key, "texts");
  if (array == nullptr) return {};
  std::vector<Text> texts;
  for (const toml::node& node : *array) {
    if (std::optional<Text> text = AsText(node, absl::StrCat("an entry of ", key))) texts.push_back(*text);
  }
  return texts;
}

std::optional<Text> TomlTable::Expression(const std::string& key, bool required) {
  const toml::node* node = Find(key, required);
  return node == nullptr ? std::nullopt : AsExpression(*node, key);
}

std::vector<Text> TomlTable::Expressions(const std::string& key) {
  const toml::array* array = AsArray(Find(key, true), key, "expressions");
  if (array == nullptr) return {};
  std::vector<Text> texts;
  for (const toml::node& node : *array) {
    if (std::optional<Text> text = AsExpression(node, absl::StrCat("an entry of ", key))) texts.push_back(*text);
  }
  return texts;
}

std::optional<TomlTable> TomlTable::Table(const std::string& key, bool required) {
  asked_.emplace_back(key);
  const toml::node* node = table_->get(key);
  if (node == nullptr) {
    if (required) problems_->Add(line(), absl::StrCat("the table [", key, "] is missing"));
    return std::nullopt;
  }
  if (!node->is_table()) {
    WrongType(*node, key, absl::StrCat("a table: [", key, "]"));
    return std::nullopt;
  }
  return TomlTable(node->as_table(), absl::StrCat("[", key, "]"), problems_);
}

std::vector<TomlTable> TomlTable::Tables(const std::string& key, bool required) {
  asked_.emplace_back(key);
  const std::string header = where_.empty() ? absl::StrCat("[[", key, "]]")
                                            : absl::StrCat("[[", where_.substr(1, where_.size() - 2), ".", key, "]]");
  const toml::node* node = table_->get(key);
  if (node == nullptr) {
    if (required) problems_->Add(line(), absl::StrCat("there is no ", header, "; expected at least one"));
    return {};
  }
  const toml::array* array = node->as_array();
  if (array == nullptr || !array->is_homogeneous(toml::node_type::table)) {
    WrongType(*node, key, absl::StrCat("tables, each under ", header));
    return {};
  }
  if (array->size() > kMaxEntries) {
    Complain(LineOf(*node), absl::StrCat("there are ", array->size(), " ", header, "; expected at most ", kMaxEntries));
    return {};
  }
  std::vector<TomlTable> tables;
  for (const toml::node& entry : *array) tables.emplace_back(entry.as_table(), header, problems_);
  return tables;
}

std::vector<std::string> TomlTable::OtherKeys() {
  std::vector<std::string> others;
  for (const auto& [key, node] : *table_) {
    if (std::find(asked_.begin(), asked_.end(), key.str()) == asked_.end()) others.emplace_back(key.str());
  }
  asked_.insert(asked_.end(), others.begin(), others.end());
  return others;
}

void TomlTable::Finish() {
  for (const auto& [key, node] : *table_) {
    const std::string name(key.str());
    if (std::find(asked_.begin(), asked_.end(), name) != asked_.end()) continue;
    std::vector<std::string> known = asked_;
    std::sort(known.begin(), known.end());
    known.erase(std::unique(known.begin(), known.end()), known.end());
    const int line = static_cast<int>(key.source().begin.line);
    Complain(line > 0 ? line : LineOf(node),
             absl::StrCat("unknown key ", absl::Utf8SafeCHexEscape(name.substr(0, 80)), Expected(name, known)));
  }
}

}  // namespace pawl
