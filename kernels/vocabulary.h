// Every key of kernel.toml as data. The reader takes from a key's row what the key's value may be, whether it is
// required and what its default is; docs/kernel-toml.md is made from the same rows.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace pawl {

enum class KeyType {
  kText,
  kTexts,
  kWord,  // one of TomlKey::words
  kFlag,
  kInteger,
  kIntegers,
  kNumber,
  kExpression,
  kExpressions,
  kValue,   // of a variable: a whole number, a word, or true or false
  kValues,  // all of one kind
  kTable,   // [key]
  kTables,  // [[key]]
};

// The names that an expression may use: sizes, and these.
struct Scope {
  bool variables = false;
  bool limits = false;  // of the GPU
};
inline constexpr Scope kSizesOnly{};
inline constexpr Scope kSizesAndVariables{.variables = true};
inline constexpr Scope kEverything{.variables = true, .limits = true};

struct KeyTable;

struct TomlKey {
  std::string name;
  KeyType type = KeyType::kText;
  bool required = false;
  std::string fallback;  // the value without the key; of a word the first one is, and this stays empty
  std::string meaning;
  std::string example;
  std::vector<std::string> words = {};  // of kWord
  int64_t low = std::numeric_limits<int32_t>::min();
  int64_t high = std::numeric_limits<int32_t>::max();  // of kInteger and kIntegers
  Scope scope = {};                                    // of expressions
  std::shared_ptr<const KeyTable> table = {};  // of kTable and kTables; of others what may stand in place of the value
  size_t most = 0;                             // of kTables: so many; 0: kMaxTables
  bool lines = false;                          // of kText: it may have line breaks and tabs
};

struct KeyTable {
  std::string header;  // "[goal]", "[[size]]"; empty: the top of the file
  std::string meaning;
  std::vector<TomlKey> keys;
  // Keys whose names are the user's own, such as the dimensions of a size; without a name: there are none.
  TomlKey others = {};

  // The key's row: the one of its name, or `others`. Null: this table has no such key.
  const TomlKey* Find(const std::string& name) const;
};

// The top of the file, and through it every table.
const KeyTable& KernelToml();

// What a variable may affect, in the order of v1::Resource.
struct NamedResource {
  std::string name;
  std::string meaning;
};
const std::vector<NamedResource>& Resources();

}  // namespace pawl
