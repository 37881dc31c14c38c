#include "kernels/read/toml_table.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/names/spelling.h"
#include "base/names/utf8.h"
#include "kernels/limits.h"
#include "kernels/substitution.h"

namespace pawl {
namespace {

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

TomlTable::TomlTable(const toml::table* table, const KeyTable* keys, std::string where, Problems* problems)
    : table_(table), keys_(keys), where_(std::move(where)), problems_(problems) {}

void TomlTable::Complain(int line, const std::string& message) {
  problems_->Add(line, where_.empty() ? message : absl::StrCat(where_, ": ", message));
}

int TomlTable::line() const { return std::max(1, LineOf(*table_)); }

int TomlTable::Line(const std::string& key) const {
  const toml::node* node = table_->get(key);
  return node == nullptr ? line() : LineOf(*node);
}

TomlTable::Found TomlTable::Find(const std::string& key, KeyType type) {
  asked_.push_back(key);
  const TomlKey* row = keys_->Find(key);
  if (row == nullptr || row->type != type) {
    Complain(line(), absl::StrCat("internal error: kernels/vocabulary.cc has no row of this type for ", key));
    return {row, nullptr};
  }
  const toml::node* node = table_->get(key);
  if (node == nullptr && row->required) {
    if (type == KeyType::kTable) {
      problems_->Add(line(), absl::StrCat("the table ", row->table->header, " is missing"));
    } else if (type == KeyType::kTables) {
      problems_->Add(line(), absl::StrCat("there is no ", row->table->header, "; expected at least one"));
    } else {
      Complain(line(), absl::StrCat("the key ", key, " is missing"));
    }
  }
  return {row, node};
}

bool TomlTable::Has(const std::string& key) const { return table_->contains(key); }

const std::vector<std::string>& TomlTable::words(const std::string& key) const {
  static const auto& none = *new std::vector<std::string>;
  const TomlKey* row = keys_->Find(key);
  return row == nullptr ? none : row->words;
}

Scope TomlTable::scope(const std::string& key) const {
  const TomlKey* row = keys_->Find(key);
  return row == nullptr ? kSizesOnly : row->scope;
}

void TomlTable::WrongType(const toml::node& node, const std::string& key, const std::string& expected) {
  Complain(LineOf(node), absl::StrCat(key, " is ", TypeName(node), "; expected ", expected));
}

std::optional<pawl::Text> TomlTable::AsText(const toml::node& node, const std::string& key, bool lines) {
  const auto* text = node.as_string();
  if (text == nullptr) {
    WrongType(node, key, "a text in quotes");
    return std::nullopt;
  }
  const std::string& value = text->get();
  if (value.find_first_not_of(" \t\r\n") == std::string::npos) {
    Complain(LineOf(node), absl::StrCat(key, " is empty"));
    return std::nullopt;
  }
  if (lines && !IsReplacedText(value)) {
    Complain(LineOf(node), absl::StrCat(key, " has a control character; expected lines of text"));
    return std::nullopt;
  }
  if (!lines && std::any_of(value.begin(), value.end(), [](unsigned char c) { return c < ' ' || c == 127; })) {
    Complain(LineOf(node), absl::StrCat(key, " has a control character or a line break; expected one line of text"));
    return std::nullopt;
  }
  if (value.size() > kMaxTextBytes) {
    Complain(LineOf(node), absl::StrCat(key, " has ", value.size(), " bytes; expected at most ", kMaxTextBytes));
    return std::nullopt;
  }
  return pawl::Text{value, LineOf(node)};
}

std::optional<pawl::Text> TomlTable::AsExpression(const toml::node& node, const std::string& key) {
  if (const auto* integer = node.as_integer()) return pawl::Text{absl::StrCat(integer->get()), LineOf(node)};
  if (const auto* number = node.as_floating_point(); number != nullptr && std::isfinite(number->get())) {
    return pawl::Text{absl::StrFormat("%.17g", number->get()), LineOf(node)};
  }
  if (node.is_string()) return AsText(node, key);
  WrongType(node, key, "an expression in quotes or a number");
  return std::nullopt;
}

std::optional<int64_t> TomlTable::AsInteger(const toml::node& node, const std::string& key, const TomlKey& row) {
  const auto* integer = node.as_integer();
  if (integer == nullptr) {
    WrongType(node, key, "a whole number");
    return std::nullopt;
  }
  if (integer->get() < row.low || integer->get() > row.high) {
    Complain(LineOf(node),
             absl::StrCat(key, " is ", integer->get(), "; expected a whole number from ", row.low, " to ", row.high));
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
  if (array->size() > kMaxListEntries) {
    Complain(LineOf(*node), absl::StrCat(key, " has ", array->size(), " entries; expected at most ", kMaxListEntries));
    return nullptr;
  }
  return array;
}

std::optional<pawl::Text> TomlTable::Text(const std::string& key) {
  const auto [row, node] = Find(key, KeyType::kText);
  return node == nullptr ? std::nullopt : AsText(*node, key, row->lines);
}

std::optional<int> TomlTable::Word(const std::string& key) {
  const auto [row, node] = Find(key, KeyType::kWord);
  if (node == nullptr) return std::nullopt;
  const std::optional<pawl::Text> text = AsText(*node, key);
  if (!text) return std::nullopt;
  const auto it = std::find(row->words.begin(), row->words.end(), text->value);
  if (it != row->words.end()) return static_cast<int>(it - row->words.begin());
  Complain(text->line, absl::StrCat(key, " is \"", text->value, "\"", Expected(text->value, row->words)));
  return std::nullopt;
}

std::optional<bool> TomlTable::Flag(const std::string& key) {
  const auto [row, node] = Find(key, KeyType::kFlag);
  if (node == nullptr) {
    bool value = false;
    return row != nullptr && absl::SimpleAtob(row->fallback, &value) ? std::optional(value) : std::nullopt;
  }
  if (const auto* value = node->as_boolean()) return value->get();
  WrongType(*node, key, "true or false, without quotes");
  return std::nullopt;
}

std::optional<int64_t> TomlTable::Integer(const std::string& key) {
  const auto [row, node] = Find(key, KeyType::kInteger);
  return node == nullptr ? std::nullopt : AsInteger(*node, key, *row);
}

std::optional<double> TomlTable::Number(const std::string& key) {
  const auto [row, node] = Find(key, KeyType::kNumber);
  if (node == nullptr) {
    double value = 0;
    return row != nullptr && absl::SimpleAtod(row->fallback, &value) ? std::optional(value) : std::nullopt;
  }
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

std::vector<int64_t> TomlTable::Integers(const std::string& key) {
  const auto [row, node] = Find(key, KeyType::kIntegers);
  const toml::array* array = AsArray(node, key, "whole numbers");
  if (array == nullptr) return {};
  std::vector<int64_t> integers;
  for (const toml::node& entry : *array) {
    if (std::optional<int64_t> integer = AsInteger(entry, absl::StrCat("an entry of ", key), *row)) {
      integers.push_back(*integer);
    }
  }
  return integers.size() == array->size() ? integers : std::vector<int64_t>{};
}

std::string WrittenValue::Shown() const {
  switch (kind) {
    case Kind::kWord:
      return absl::StrCat("\"", word, "\"");
    case Kind::kFlag:
      return number != 0 ? "true" : "false";
    case Kind::kNumber:
      break;
  }
  return absl::StrCat(number);
}

std::optional<WrittenValue> TomlTable::AsValue(const toml::node& node, const std::string& key, const TomlKey& row) {
  if (const auto* flag = node.as_boolean()) {
    return WrittenValue{WrittenValue::Kind::kFlag, flag->get() ? 1 : 0, "", LineOf(node)};
  }
  if (node.is_string()) {
    std::optional<pawl::Text> text = AsText(node, key);
    if (!text) return std::nullopt;
    return WrittenValue{WrittenValue::Kind::kWord, 0, text->value, text->line};
  }
  const std::optional<int64_t> number = AsInteger(node, key, row);
  if (!number) return std::nullopt;
  return WrittenValue{WrittenValue::Kind::kNumber, *number, "", LineOf(node)};
}

std::optional<WrittenValue> TomlTable::Value(const std::string& key) {
  const auto [row, node] = Find(key, KeyType::kValue);
  return node == nullptr ? std::nullopt : AsValue(*node, key, *row);
}

std::vector<WrittenValue> TomlTable::Values(const std::string& key) {
  const auto [row, node] = Find(key, KeyType::kValues);
  const toml::array* array = AsArray(node, key, "whole numbers, words, or false and true");
  if (array == nullptr) return {};
  std::vector<WrittenValue> values;
  for (const toml::node& entry : *array) {
    const std::optional<WrittenValue> value = AsValue(entry, absl::StrCat("an entry of ", key), *row);
    if (!value) continue;
    if (!values.empty() && value->kind != values[0].kind) {
      Complain(value->line, absl::StrCat(key, " has ", values[0].Shown(), " and ", value->Shown(),
                                         "; expected whole numbers only, words only, or false and true"));
      return {};
    }
    values.push_back(*value);
  }
  return values.size() == array->size() ? values : std::vector<WrittenValue>{};
}

std::vector<pawl::Text> TomlTable::Texts(const std::string& key) {
  const toml::array* array = AsArray(Find(key, KeyType::kTexts).node, key, "texts");
  if (array == nullptr) return {};
  std::vector<pawl::Text> texts;
  for (const toml::node& entry : *array) {
    if (std::optional<pawl::Text> text = AsText(entry, absl::StrCat("an entry of ", key))) texts.push_back(*text);
  }
  return texts;
}

std::optional<pawl::Text> TomlTable::Expression(const std::string& key) {
  const toml::node* node = Find(key, KeyType::kExpression).node;
  return node == nullptr ? std::nullopt : AsExpression(*node, key);
}

std::vector<pawl::Text> TomlTable::Expressions(const std::string& key) {
  const toml::array* array = AsArray(Find(key, KeyType::kExpressions).node, key, "expressions");
  if (array == nullptr) return {};
  std::vector<pawl::Text> texts;
  for (const toml::node& entry : *array) {
    if (std::optional<pawl::Text> text = AsExpression(entry, absl::StrCat("an entry of ", key))) texts.push_back(*text);
  }
  return texts;
}

std::optional<TomlTable> TomlTable::Table(const std::string& key) {
  const auto [row, node] = Find(key, KeyType::kTable);
  if (node == nullptr) return std::nullopt;
  if (!node->is_table()) {
    WrongType(*node, key, absl::StrCat("a table: [", key, "]"));
    return std::nullopt;
  }
  return TomlTable(node->as_table(), row->table.get(), row->table->header, problems_);
}

std::optional<TomlTable> TomlTable::TableInstead(const std::string& key) {
  const TomlKey* row = keys_->Find(key);
  const toml::node* node = table_->get(key);
  if (row == nullptr || row->table == nullptr || node == nullptr || !node->is_table()) return std::nullopt;
  asked_.push_back(key);
  return TomlTable(node->as_table(), row->table.get(), absl::StrCat(where_, ": ", key), problems_);
}

std::vector<TomlTable> TomlTable::Tables(const std::string& key) {
  const auto [row, node] = Find(key, KeyType::kTables);
  if (node == nullptr) return {};
  const std::string& header = row->table->header;
  const toml::array* array = node->as_array();
  if (array == nullptr || !array->is_homogeneous(toml::node_type::table)) {
    WrongType(*node, key, absl::StrCat("tables, each under ", header));
    return {};
  }
  const size_t most = row->most == 0 ? kMaxTables : row->most;
  if (array->size() > most) {
    Complain(LineOf(*node), absl::StrCat("there are ", array->size(), " ", header, "; expected at most ", most));
    return {};
  }
  std::vector<TomlTable> tables;
  for (const toml::node& entry : *array) tables.emplace_back(entry.as_table(), row->table.get(), header, problems_);
  return tables;
}

std::vector<std::string> TomlTable::Names() const {
  std::vector<std::string> names;
  for (const auto& [key, node] : *table_) names.emplace_back(key.str());
  return names;
}

void TomlTable::Finish() {
  for (const auto& [key, node] : *table_) {
    const std::string name(key.str());
    if (std::find(asked_.begin(), asked_.end(), name) != asked_.end()) continue;
    if (keys_->Find(name) == &keys_->others) continue;  // the reader went through all of these
    std::vector<std::string> known;
    for (const TomlKey& row : keys_->keys) known.push_back(row.name);
    std::sort(known.begin(), known.end());
    const int line = static_cast<int>(key.source().begin.line);
    Complain(line > 0 ? line : LineOf(node),
             absl::StrCat("unknown key ", Printable(name.substr(0, 80)), Expected(name, known)));
  }
}

}  // namespace pawl
