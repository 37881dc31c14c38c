#include "worker/build/source_paths.h"

#include <cctype>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace pawl {
namespace {

bool IsWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

struct LogicalLine {
  int number = 0;  // of its first physical line
  std::string text;
};

// Joins continued lines and takes comments out, as the preprocessor does before it looks for directives.
std::vector<LogicalLine> LogicalLines(absl::string_view source) {
  std::vector<LogicalLine> lines(1);
  lines[0].number = 1;
  int number = 1;
  char quote = 0;
  bool block = false, rest = false;
  for (size_t i = 0; i < source.size(); ++i) {
    const char c = source[i];
    const absl::string_view here = source.substr(i);
    if (absl::StartsWith(here, "\\\n") || absl::StartsWith(here, "\\\r\n")) {
      i += c == '\\' && here[1] == '\r' ? 2 : 1;
      ++number;
    } else if (c == '\n') {
      ++number;
      rest = false;
      quote = 0;
      if (block) {
        lines.back().text += ' ';
      } else {
        lines.push_back({number, ""});
      }
    } else if (block) {
      if (!absl::StartsWith(here, "*/")) continue;
      block = false;
      ++i;
    } else if (rest) {
      continue;
    } else if (quote == 0 && absl::StartsWith(here, "/*")) {
      block = true;
      lines.back().text += ' ';
      ++i;
    } else if (quote == 0 && absl::StartsWith(here, "//")) {
      rest = true;
    } else {
      if (quote != 0 && c == '\\' && here.size() > 1 && here[1] != '\n') {
        lines.back().text += c;
        lines.back().text += source[++i];
        continue;
      }
      if (c == quote) {
        quote = 0;
      } else if (quote == 0 && (c == '"' || c == '\'')) {
        quote = c;
      }
      lines.back().text += c;
    }
  }
  return lines;
}

// The operand of an include: what stands between quotes or angle brackets. False: a macro.
bool Literal(absl::string_view operand, std::string* path) {
  operand = absl::StripLeadingAsciiWhitespace(operand);
  if (operand.empty() || (operand[0] != '"' && operand[0] != '<')) return false;
  const char close = operand[0] == '"' ? '"' : '>';
  *path = std::string(operand.substr(1, operand.find(close, 1) - 1));
  return true;
}

void AddOperand(const LogicalLine& line, absl::string_view directive, absl::string_view operand,
                std::vector<OutsidePath>* found) {
  std::string path;
  if (Literal(operand, &path) && !IsOutside(path)) return;
  found->push_back({line.number, std::string(directive), path});
}

// The word behind # and what follows it; an empty word: the line is no directive.
std::pair<absl::string_view, absl::string_view> DirectiveOf(absl::string_view line) {
  absl::string_view text = absl::StripLeadingAsciiWhitespace(line);
  if (!absl::ConsumePrefix(&text, "#") && !absl::ConsumePrefix(&text, "%:") && !absl::ConsumePrefix(&text, "?\?=")) {
    return {};
  }
  text = absl::StripLeadingAsciiWhitespace(text);
  size_t length = 0;
  while (length < text.size() && IsWord(text[length])) ++length;
  return {text.substr(0, length), text.substr(length)};
}

void ScanDirective(const LogicalLine& line, std::vector<OutsidePath>* found) {
  const auto [word, operand] = DirectiveOf(line.text);
  if (word == "include" || word == "include_next" || word == "import" || word == "embed") {
    AddOperand(line, word, operand, found);
  }
}

void ScanQuestions(const LogicalLine& line, std::vector<OutsidePath>* found) {
  for (const std::string word : {"__has_include", "__has_include_next", "__has_embed"}) {
    for (size_t at = line.text.find(word); at != std::string::npos; at = line.text.find(word, at + 1)) {
      absl::string_view rest = absl::string_view(line.text).substr(at + word.size());
      if (!rest.empty() && IsWord(rest[0])) continue;
      rest = absl::StripLeadingAsciiWhitespace(rest);
      if (!absl::StartsWith(rest, "(")) continue;
      AddOperand(line, word, rest.substr(1), found);
    }
  }
}

// An .incbin in assembly is outside whatever it names: no kernel has a use for it.
void ScanAssembly(const LogicalLine& line, std::vector<OutsidePath>* found) {
  for (size_t at = line.text.find("incbin"); at != std::string::npos; at = line.text.find("incbin", at + 1)) {
    absl::string_view rest = absl::string_view(line.text).substr(at + 6);
    const size_t begin = rest.find_first_not_of(" \t\\\"<");
    std::string path;
    if (begin != rest.npos) path = std::string(rest.substr(begin, rest.substr(begin).find_first_of(" \t\\\">;)")));
    found->push_back({line.number, ".incbin", path});
  }
}

}  // namespace

bool IsOutside(absl::string_view path) {
  if (absl::StartsWith(path, "/") || absl::StartsWith(path, "~")) return true;
  for (absl::string_view part : absl::StrSplit(path, '/')) {
    if (part == "..") return true;
  }
  return false;
}

std::vector<Include> QuotedIncludes(absl::string_view source) {
  std::vector<Include> found;
  for (const LogicalLine& line : LogicalLines(source)) {
    const auto [word, operand] = DirectiveOf(line.text);
    std::string path;
    if (word == "include" && Literal(operand, &path)) found.push_back({line.number, path});
  }
  return found;
}

bool IsGuarded(absl::string_view source) {
  for (const LogicalLine& line : LogicalLines(source)) {
    if (absl::StripAsciiWhitespace(line.text).empty()) continue;
    const auto [word, operand] = DirectiveOf(line.text);
    if (word == "pragma" && absl::StripAsciiWhitespace(operand) == "once") return true;
    // What stands before it is included again, which is the file's own business.
    if (word == "ifndef") return true;
  }
  return false;
}

std::vector<OutsidePath> OutsidePaths(absl::string_view source) {
  std::vector<OutsidePath> found;
  for (const LogicalLine& line : LogicalLines(source)) {
    ScanDirective(line, &found);
    ScanQuestions(line, &found);
    ScanAssembly(line, &found);
  }
  return found;
}

}  // namespace pawl
