#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/toml/toml.h"
#include "kernels/problem.h"
#include "kernels/vocabulary.h"

namespace pawl {

struct Text {
  std::string value;
  int line = 0;
};

// A value of a variable as the file has it.
struct WrittenValue {
  enum class Kind { kNumber, kWord, kFlag };
  Kind kind = Kind::kNumber;
  int64_t number = 0;  // a flag is 0 or 1
  std::string word;
  int line = 0;

  std::string Shown() const;  // 64, "half", true
  bool operator==(const WrittenValue& other) const {
    return kind == other.kind && number == other.number && word == other.word;
  }
};

// Reads one table of kernel.toml key by key and notes every mistake. What a key may be, whether it is required and its
// default come from the key's row in the vocabulary; a key without a row can't be read. Every getter answers nullopt
// (or an empty list) after a complaint.
class TomlTable {
 public:
  // `where` begins every message: "[[variable]] TILE_M". All pointers must outlive the reader.
  TomlTable(const toml::table* table, const KeyTable* keys, std::string where, Problems* problems);

  bool Has(const std::string& key) const;
  // The line of the key's value, or of the table.
  int Line(const std::string& key) const;
  int line() const;
  const std::string& where() const { return where_; }
  void set_where(std::string where) { where_ = std::move(where); }
  // The words of the key's row.
  const std::vector<std::string>& words(const std::string& key) const;
  // The names that an expression under this key may use.
  Scope scope(const std::string& key) const;

  // One line of text, not empty, without control characters; several where the key's row says so.
  std::optional<pawl::Text> Text(const std::string& key);
  std::vector<pawl::Text> Texts(const std::string& key);
  // The index of the word in the row; of a word that is not there nullopt: the first is the default.
  std::optional<int> Word(const std::string& key);
  // Without the key, the default of the row; a row may have none.
  std::optional<bool> Flag(const std::string& key);
  std::optional<double> Number(const std::string& key);
  std::optional<int64_t> Integer(const std::string& key);
  std::vector<int64_t> Integers(const std::string& key);
  std::optional<WrittenValue> Value(const std::string& key);
  // Empty after a complaint; otherwise all are of one kind.
  std::vector<WrittenValue> Values(const std::string& key);
  // An expression: a text, or a number written as such.
  std::optional<pawl::Text> Expression(const std::string& key);
  std::vector<pawl::Text> Expressions(const std::string& key);

  std::optional<TomlTable> Table(const std::string& key);
  // Of a row that allows a table in place of its type: the table, where the file has one. No complaint where not.
  std::optional<TomlTable> TableInstead(const std::string& key);
  // [[key]] tables.
  std::vector<TomlTable> Tables(const std::string& key);
  // The keys that are there, known or not, sorted.
  std::vector<std::string> Names() const;

  void Complain(int line, const std::string& message);
  // The key was complained about: what it holds does not matter.
  void Skip(const std::string& key) { asked_.push_back(key); }
  void Finish();

 private:
  // The key's row, and its value in the file, which may be missing. Complains about a required one that is, and about a
  // key that has no row of this type.
  struct Found {
    const TomlKey* row;
    const toml::node* node;
  };
  Found Find(const std::string& key, KeyType type);
  std::optional<pawl::Text> AsText(const toml::node& node, const std::string& key, bool lines = false);
  std::optional<pawl::Text> AsExpression(const toml::node& node, const std::string& key);
  std::optional<int64_t> AsInteger(const toml::node& node, const std::string& key, const TomlKey& row);
  std::optional<WrittenValue> AsValue(const toml::node& node, const std::string& key, const TomlKey& row);
  const toml::array* AsArray(const toml::node* node, const std::string& key, const std::string& of);
  void WrongType(const toml::node& node, const std::string& key, const std::string& expected);

  const toml::table* table_;
  const KeyTable* keys_;
  std::string where_;
  Problems* problems_;
  std::vector<std::string> asked_;
};

}  // namespace pawl
