#include "worker/build/compiler_log.h"

#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

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

}  // namespace pawl
