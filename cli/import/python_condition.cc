#include "cli/import/python_condition.h"

#include <cctype>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace pawl {
namespace {

absl::Status Cannot(const std::string& what) { return absl::InvalidArgumentError(what); }

bool IsComparison(const std::string& token) {
  return token == "==" || token == "!=" || token == "<" || token == ">" || token == "<=" || token == ">=";
}

absl::StatusOr<std::vector<std::string>> Tokens(const std::string& python) {
  std::vector<std::string> tokens;
  for (size_t i = 0; i < python.size();) {
    const unsigned char c = static_cast<unsigned char>(python[i]);
    size_t end = i + 1;
    if (std::isspace(c)) {
      i = end;
      continue;
    }
    if (std::isalpha(c) || c == '_') {
      while (end < python.size() && (std::isalnum(static_cast<unsigned char>(python[end])) || python[end] == '_'))
        ++end;
    } else if (std::isdigit(c)) {
      while (end < python.size() && (std::isdigit(static_cast<unsigned char>(python[end])) || python[end] == '.'))
        ++end;
    } else if (end < python.size()) {
      const std::string two = python.substr(i, 2);
      if (two == "//") return Cannot("it divides whole numbers (//)");
      if (two == "**") return Cannot("it has a power (**)");
      if (IsComparison(two)) end = i + 2;
    }
    tokens.push_back(python.substr(i, end - i));
    i = end;
  }
  return tokens;
}

}  // namespace

absl::StatusOr<std::string> ConstraintOf(const std::string& python, const std::map<std::string, std::string>& names) {
  const absl::StatusOr<std::vector<std::string>> tokens = Tokens(python);
  if (!tokens.ok()) return tokens.status();
  if (tokens->empty()) return Cannot("it is empty");
  std::vector<std::string> out;
  std::vector<int> comparisons = {0};  // since the last `and` or `or`, by depth of parentheses
  for (size_t i = 0; i < tokens->size(); ++i) {
    const std::string& token = (*tokens)[i];
    const bool word = std::isalpha(static_cast<unsigned char>(token[0])) || token[0] == '_';
    const bool call = (token == "min" || token == "max") && i + 1 < tokens->size() && (*tokens)[i + 1] == "(";
    const auto name = call ? names.end() : names.find(token);
    if (token == "and" || token == "or") {
      out.push_back(token == "and" ? "&&" : "||");
      comparisons.back() = 0;
    } else if (token == "True" || token == "False") {
      out.push_back(token == "True" ? "1" : "0");
    } else if (call) {
      out.push_back(absl::StrCat(token, "("));  // expressions have no blank there
      comparisons.push_back(0);
      ++i;
    } else if (name != names.end()) {
      out.push_back(name->second);
    } else if (word) {
      return Cannot(absl::StrCat("it uses ", token));
    } else if (IsComparison(token)) {
      if (++comparisons.back() > 1) return Cannot("it chains comparisons");
      out.push_back(token);
    } else if (token == "(") {
      comparisons.push_back(0);
      out.push_back(token);
    } else if (token == ")") {
      if (comparisons.size() == 1) return Cannot("its parentheses do not match");
      comparisons.pop_back();
      out.push_back(token);
    } else if (std::isdigit(static_cast<unsigned char>(token[0])) ||
               std::string("+-*/%,").find(token) != std::string::npos) {
      out.push_back(token);
    } else {
      return Cannot(absl::StrCat("it uses ", token));
    }
  }
  if (comparisons.size() != 1) return Cannot("its parentheses do not match");
  return absl::StrJoin(out, " ");
}

}  // namespace pawl
