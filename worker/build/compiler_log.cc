#include "worker/build/compiler_log.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "kernels/entry_name.h"
#include "kernels/source/cpp_tokens.h"
#include "kernels/variable_values.h"

namespace pawl {
namespace {

constexpr size_t kShownColumns = 200;

// Takes "name(12)" or "name:12:10" apart.
void ReadPlace(absl::string_view place, CompilerError* error) {
  if (absl::EndsWith(place, ")")) {
    const size_t open = place.rfind('(');
    int line = 0;
    if (open == place.npos || !absl::SimpleAtoi(place.substr(open + 1, place.size() - open - 2), &line)) return;
    error->file = std::string(place.substr(0, open));
    error->line = line;
    return;
  }
  std::vector<std::string> parts = absl::StrSplit(place, ':');
  int column = 0;
  if (parts.size() >= 3 && absl::SimpleAtoi(parts.back(), &column)) parts.pop_back();
  if (parts.size() >= 2 && absl::SimpleAtoi(parts.back(), &error->line)) error->file = parts[parts.size() - 2];
}

// "NAME(12): error: TEXT" (also "catastrophic error", "error #20-D") and "NAME:12:10: fatal error: TEXT".
bool ReadFrontEnd(absl::string_view line, CompilerError* error) {
  for (absl::string_view mark : {": error", ": catastrophic error", ": fatal error"}) {
    const size_t at = line.find(mark);
    if (at == line.npos) continue;
    const size_t colon = line.find(':', at + 1);
    if (colon == line.npos) continue;
    ReadPlace(line.substr(0, at), error);
    error->text = std::string(absl::StripAsciiWhitespace(line.substr(colon + 1)));
    return true;
  }
  return false;
}

// "ptxas kernel.ptx, line 21; error   : TEXT": PTX that is the source has a place, which a temporary file, named by
// its full path, has not.
void ReadAssemblersPlace(absl::string_view line, CompilerError* error) {
  const size_t comma = line.find(", line "), semicolon = line.find(';');
  if (!absl::ConsumePrefix(&line, "ptxas ") || comma == line.npos || semicolon == line.npos || semicolon < comma ||
      absl::StartsWith(line, "/")) {
    return;
  }
  const size_t taken = sizeof("ptxas ") - 1, number = comma - taken + sizeof(", line ") - 1;
  const absl::string_view file = line.substr(0, comma - taken);
  int found = 0;
  if (!absl::EndsWith(file, ".ptx") || !absl::SimpleAtoi(line.substr(number, semicolon - taken - number), &found))
    return;
  error->file = std::string(file);
  error->line = found;
}

// "ptxas FILE, line 21; fatal   : TEXT", "ptxas error   : TEXT", "nvcc fatal   : TEXT".
bool ReadTool(absl::string_view line, CompilerError* error) {
  for (absl::string_view mark : {"error   :", "fatal   :"}) {
    const size_t at = line.find(mark);
    if (at == line.npos) continue;
    const absl::string_view tool = line.substr(0, line.find_first_of(" :"));
    error->text = absl::StrCat(tool, ": ", absl::StripAsciiWhitespace(line.substr(at + mark.size())));
    ReadAssemblersPlace(line, error);
    return true;
  }
  return false;
}

// The namespaces around a __global__ function of this name, "vllm::act"; empty: it has none, or is not there.
std::string NamespacesOf(const std::string& text, const std::string& name) {
  const std::vector<CppToken> tokens = CppTokens(text);
  const std::vector<bool> in_first_branch = InFirstBranch(tokens);
  std::vector<std::string> open;  // of each { what it adds; empty: it is no namespace's
  bool kernel = false;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (!in_first_branch[i]) continue;
    if (tokens[i].Is("__global__")) kernel = true;
    if (tokens[i].Is(";")) kernel = false;
    if (tokens[i].Is("}") && !open.empty()) open.pop_back();
    if (kernel && tokens[i].Is(name) && i + 1 < tokens.size() && tokens[i + 1].Is("(")) {
      std::vector<std::string> named;
      std::copy_if(open.begin(), open.end(), std::back_inserter(named), [](const auto& one) { return !one.empty(); });
      return absl::StrJoin(named, "::");
    }
    if (!tokens[i].Is("{")) continue;
    kernel = false;
    size_t first = i;
    while (first > 0 && (tokens[first - 1].IsWord() || tokens[first - 1].Is("::"))) --first;
    std::string space;
    for (size_t k = first; k < i; ++k) {
      if (tokens[k].Is("namespace")) {
        for (++k; k < i; ++k) space += tokens[k].text;
      }
    }
    open.push_back(space);
  }
  return "";
}

// Whether the name at this token is declared there: int BLOCK = 4, but not `return BLOCK`.
bool IsDeclared(const std::vector<CppToken>& tokens, size_t at) {
  static const auto& no_types =
      *new std::set<std::string_view>{"return",    "case",     "else",     "goto",     "new", "delete", "sizeof",
                                      "co_return", "co_yield", "co_await", "typename", "do",  "throw"};
  if (at == 0 || !tokens[at - 1].IsWord() || no_types.contains(tokens[at - 1].text)) return false;
  return at + 1 == tokens.size() || std::string_view("=;,)>[{").find(tokens[at + 1].text) != std::string_view::npos;
}

// Where a template has a parameter of this name; 0: none has.
int TemplateParameterLine(const std::vector<CppToken>& tokens, const std::string& name) {
  for (size_t i = 0; i + 1 < tokens.size(); ++i) {
    if (!tokens[i].Is("template") || !tokens[i + 1].Is("<")) continue;
    int depth = 0;
    for (++i; i < tokens.size(); ++i) {
      if (tokens[i].Is("<")) ++depth;
      if (tokens[i].Is(">") && --depth == 0) break;
      if (tokens[i].Is(";") || tokens[i].Is("{")) break;
      if (tokens[i].Is(name) && (IsDeclared(tokens, i) || tokens[i - 1].Is("typename"))) return tokens[i].line;
    }
  }
  return 0;
}

}  // namespace

std::optional<CompilerError> FirstError(absl::string_view log) {
  for (absl::string_view line : absl::StrSplit(log, '\n')) {
    CompilerError error;
    if (ReadFrontEnd(line, &error) || ReadTool(line, &error)) return error;
  }
  return std::nullopt;
}

absl::string_view LineOf(absl::string_view text, int line) {
  for (int i = 1; i < line; ++i) {
    const size_t end = text.find('\n');
    if (end == text.npos) return "";
    text.remove_prefix(end + 1);
  }
  return text.substr(0, text.find('\n'));
}

std::string ErrorText(const CompilerError& error, absl::string_view name, absl::string_view source) {
  if (error.file.empty()) return error.text;
  std::string text = absl::StrCat(error.file, "(", error.line, "): error: ", error.text);
  if (error.file != name) return text;
  const absl::string_view line = absl::StripAsciiWhitespace(LineOf(source, error.line));
  if (!line.empty()) absl::StrAppend(&text, "\n  ", error.line, " | ", line.substr(0, kShownColumns));
  return text;
}

std::string UnopenedFile(const CompilerError& error) {
  const absl::string_view text = error.text;
  for (absl::string_view mark : {"open source file \"", "open file \""}) {
    const size_t at = text.find(mark);
    if (at == text.npos) continue;
    const absl::string_view rest = text.substr(at + mark.size());
    return std::string(rest.substr(0, rest.find('"')));
  }
  const size_t missing = text.find(": No such file or directory");
  return missing == text.npos ? "" : std::string(text.substr(0, missing));
}

std::string NvrtcHint(const CompilerError& error) {
  if (absl::StrContains(error.text, "JIT mode")) {
    return "; NVRTC takes no host code: `compiler = \"nvcc\"` in kernel.toml compiles headers that have some "
           "(cub/cub.cuh, cub/device, thrust), and `host_code = \"skip\"` leaves out the source's own";
  }
  if (absl::StrContains(error.text, "namespace \"std\" has no member")) {
    return "; NVRTC has a part of the standard library: `compiler = \"nvcc\"` in kernel.toml has all of it";
  }
  return "";
}

std::string NamespaceHint(const SourceTexts& texts, const std::string& entry) {
  const std::string name = FunctionName(entry);
  if (entry != name && !absl::StartsWith(entry, absl::StrCat(name, "<"))) return "";  // it says one
  for (const auto& [path, text] : texts) {
    const std::string spaces = NamespacesOf(*text, name);
    if (spaces.empty()) continue;
    return absl::StrCat("; ", path, " has it in a namespace: entry = \"", spaces, "::", entry, "\"");
  }
  return "";
}

std::string OverloadHint(const CompilerError& error, const std::string& entry) {
  const bool ambiguous = absl::StrContains(error.text, "overloaded") || absl::StrContains(error.text, "matches the");
  if (!absl::StartsWith(entry, "::") || absl::StrContains(entry, "<") || !ambiguous) return "";
  return absl::StrCat("; where CUDA has a function of this name, too, entry = \"", entry.substr(2),
                      "\" finds the kernel");
}

std::string MacroHint(const v1::Bundle& bundle, const v1::Variant& variant, const SourceTexts& texts,
                      const CompilerError& error) {
  const auto file = texts.find(NormalPath(error.file));
  if (file == texts.end()) return "";
  const std::string at(LineOf(*file->second, error.line));
  const std::vector<CppToken> words = CppTokens(at);
  for (const v1::Variable& variable : bundle.variables()) {
    if (!variable.option().empty() || !variable.replaces().empty()) continue;
    const std::string& name = variable.name();
    bool there = false, declared = false;
    for (size_t i = 0; i < words.size(); ++i) {
      there = there || words[i].Is(name);
      declared = declared || (words[i].Is(name) && IsDeclared(words, i));
    }
    const int line = declared ? error.line : there ? TemplateParameterLine(CppTokens(*file->second), name) : 0;
    if (line == 0) continue;
    const auto value = variant.values().find(name);
    return absl::StrCat("; ", name, " is a variable of kernel.toml, so the compiler reads ",
                        MacroText(variable, value == variant.values().end() ? variable.start() : value->second),
                        " for it, and line ", line, " declares another ", name,
                        ": give the variable a name of its own, and use that in the entry and the launches");
  }
  return "";
}

}  // namespace pawl
