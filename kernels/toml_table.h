#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/toml/toml.h"
#include "kernels/problem.h"

namespace pawl {

struct Text {
  std::string value;
  int line = 0;
};

// Reads one table of a TOML file key by key and notes every mistake. The keys that were asked for are the keys there
// are: Finish() complains about the others. Every getter answers nullopt (or an empty list) after a complaint.
class TomlTable {
 public:
  // `where` begins every message: "[[variable]] TILE_M". Both pointers must outlive the reader.
  TomlTable(const toml::table* table, std::string where, Problems* problems);

  // Whether the key is there; asking makes it a known one.
  bool Has(const std::string& key);
  // The line of the key's value, or of the table.
  int Line(const std::string& key) const;
  int line() const;
  const std::string& where() const { return where_; }
  void set_where(std::string where) { where_ = std::move(where); }

  // One line of text, not empty, without control characters.
  std::optional<Text> RequiredText(const std::string& key);
  std::optional<Text> OptionalText(const std::string& key);
  // One of `words`; answers its index.
  std::optional<int> Word(const std::string& key, const std::vector<std::string>& words, bool required);
  std::optional<bool> Bool(const std::string& key);
  std::optional<int64_t> Integer(const std::string& key, int64_t low, int64_t high, bool required);
  std::optional<double> Number(const std::string& key, bool required);
  std::vector<int64_t> Integers(const std::string& key, int64_t low, int64_t high);
  std::vector<Text> Texts(const std::string& key, bool required);
  // An expression: a text, or a number written as such.
  std::optional<Text> Expression(const std::string& key, bool required);
  std::vector<Text> Expressions(const std::string& key);

  std::optional<TomlTable> Table(const std::string& key, bool required);
  // [[key]] tables.
  std::vector<TomlTable> Tables(const std::string& key, bool required);
  // Keys that nobody asked for yet; asks for them.
  std::vector<std::string> OtherKeys();

  void Complain(int line, const std::string& message);
  void Finish();

 private:
  const toml::node* Find(const std::string& key, bool required);
  std::optional<Text> AsText(const toml::node& node, const std::string& key);
  std::optional<Text> AsExpression(const toml::node& node, const std::string& key);
  std::optional<int64_t> AsInteger(const toml::node& node, const std::string& key, int64_t low, int64_t high);
  const toml::array* AsArray(const toml::node* node, const std::string& key, const std::string& of);
  void WrongType(const toml::node& node, const std::string& key, const std::string& expected);

  const toml::table* table_;
  std::string where_;
  Problems* problems_;
  std::vector<std::string> asked_;
};

}  // namespace pawl
