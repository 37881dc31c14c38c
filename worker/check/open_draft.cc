#include "worker/check/open_draft.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace pawl {
namespace {

constexpr size_t kShown = 3;

bool IsTodo(absl::string_view line) {
  for (size_t at = line.find('#'); at != line.npos; at = line.find('#', at + 1)) {
    if (absl::StartsWith(absl::StripLeadingAsciiWhitespace(line.substr(at + 1)), "TODO")) return true;
  }
  return false;
}

size_t Indentation(absl::string_view line) { return line.size() - absl::StripLeadingAsciiWhitespace(line).size(); }

}  // namespace

std::string OpenTodos(const std::vector<OpenFile>& files) {
  std::vector<std::string> places;
  for (const OpenFile& file : files) {
    int number = 0;
    for (const absl::string_view line : absl::StrSplit(file.text, '\n')) {
      ++number;
      if (IsTodo(line)) places.push_back(absl::StrCat(file.path, ":", number));
    }
  }
  if (places.empty()) return "";
  const size_t all = places.size();
  if (all > kShown) places.resize(kShown);
  return absl::StrCat(all, all == 1 ? " TODO is left: " : " TODOs are left: ", absl::StrJoin(places, ", "),
                      all > kShown ? absl::StrCat(" and ", all - kShown, " more") : "",
                      ". Check what each of them says, then delete the comment");
}

std::optional<Problem> OpenReference(const OpenFile& problem) {
  int number = 0;
  bool inside = false;
  size_t body = 0;  // the indentation of its statements; 0: none was seen yet
  for (const absl::string_view line : absl::StrSplit(problem.text, '\n')) {
    ++number;
    const absl::string_view code = absl::StripAsciiWhitespace(line);
    if (absl::StartsWith(line, "def ")) {
      inside = absl::StartsWith(line, "def reference(");
      body = 0;
      continue;
    }
    if (!inside || code.empty() || absl::StartsWith(code, "#")) continue;
    const size_t indentation = Indentation(line);
    if (body == 0) body = indentation;
    // Whether the rest is reached may depend.
    if (absl::StrContains(code, "return") || absl::StrContains(code, "yield")) inside = false;
    if (indentation != body || !absl::StartsWith(code, "raise NotImplementedError")) continue;
    return Problem{
        problem.path, number,
        "reference() raises NotImplementedError, as pawl init drafted it; write what the kernel computes, or "
        "give a Python file that does with pawl init --reference"};
  }
  return std::nullopt;
}

}  // namespace pawl
