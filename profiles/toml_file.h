// A TOML text read strictly: every mistake is noted with file and line, and all of them are reported together.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "base/toml/toml.h"

namespace pawl {

class TomlFile {
 public:
  TomlFile(std::string_view text, std::string file);

  // Empty when the text is no TOML.
  const toml::table& root() const { return root_; }

  void Note(int line, const std::string& message);
  void AllowKeys(const toml::table& table, std::initializer_list<const char*> keys);

  // Absent or of another type is a mistake; the value is then empty.
  std::string RequiredText(const toml::table& table, const std::string& key);
  double RequiredNumber(const toml::table& table, const std::string& key);
  // Absent is empty, another type is a mistake.
  std::string Text(const toml::table& table, const std::string& key);
  bool Flag(const toml::table& table, const std::string& key, bool otherwise);
  std::optional<double> Number(const toml::table& table, const std::string& key);
  // One string or a list of them.
  std::vector<std::string> Texts(const toml::table& table, const std::string& key);
  // The tables of `[[key]]`.
  std::vector<const toml::table*> Tables(const std::string& key);

  static int LineOf(const toml::node& node) { return static_cast<int>(node.source().begin.line); }
  // Of the key's value, or of the table when it lacks the key.
  static int LineOf(const toml::table& table, const std::string& key);

  // "file:line: message", one a line.
  absl::Status status() const;

 private:
  std::string file_;
  toml::table root_;
  std::vector<std::string> problems_;
};

}  // namespace pawl
