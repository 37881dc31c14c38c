#include "cli/text/sass.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace pawl {
namespace {

// The opcode of "/*0010*/  @!P0 LDG.E.128 R4, [R2] ;"; nothing where the line has no instruction.
absl::string_view OpcodeOf(absl::string_view line) {
  line = absl::StripLeadingAsciiWhitespace(line);
  if (!absl::ConsumePrefix(&line, "/*")) return "";
  const size_t end = line.find("*/");
  if (end == line.npos || end == 0) return "";
  for (const char c : line.substr(0, end)) {
    if (!absl::ascii_isxdigit(static_cast<unsigned char>(c))) return "";  // "/* 0x000fe2... */" encodes the line above
  }
  line = absl::StripLeadingAsciiWhitespace(line.substr(end + 2));
  absl::ConsumePrefix(&line, "{");  // two at once, on old GPUs
  line = absl::StripLeadingAsciiWhitespace(line);
  if (absl::StartsWith(line, "@")) {
    line.remove_prefix(std::min(line.find(' '), line.size()));
    line = absl::StripLeadingAsciiWhitespace(line);
  }
  size_t length = 0;
  while (length < line.size() &&
         (absl::ascii_isalnum(static_cast<unsigned char>(line[length])) || line[length] == '_')) {
    ++length;
  }
  return line.substr(0, length);
}

}  // namespace

std::map<std::string, InstructionMix> InstructionMixes(const std::string& sass) {
  std::map<std::string, InstructionMix> mixes;
  std::string function;
  for (const absl::string_view whole : absl::StrSplit(sass, '\n')) {
    absl::string_view line = absl::StripAsciiWhitespace(whole);
    if (absl::ConsumePrefix(&line, "Function : ")) {
      function = std::string(line);
    } else if (absl::StartsWith(line, ".text.") && absl::EndsWith(line, ":")) {  // nvdisasm
      function = std::string(line.substr(6, line.size() - 7));
    } else if (const absl::string_view opcode = OpcodeOf(line); !opcode.empty() && opcode != "NOP") {
      ++mixes[function][std::string(opcode)];
    }
  }
  return mixes;
}

}  // namespace pawl
