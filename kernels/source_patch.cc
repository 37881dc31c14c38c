#include "kernels/source_patch.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace pawl {
namespace {

constexpr int64_t kMaxLine = 10'000'000;
constexpr size_t kMaxLines = 50'000;         // of a source
constexpr size_t kMaxMoved = 2'000;          // lines that a hunk may have moved
constexpr int64_t kMaxCompared = 1'000'000;  // lines, for all hunks together: no patch takes long

struct Hunk {
  int64_t line = 0;                    // of the old file, from 1, where it expects to be
  std::vector<std::string> old_lines;  // context and removed ones, with their line ends
  std::vector<std::string> new_lines;
  std::vector<int> old_ids;  // of old_lines
};

// Each with its "\n"; the last may lack it.
std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    lines.push_back(text.substr(begin, end == std::string::npos ? end : end - begin + 1));
    begin += lines.back().size();
  }
  return lines;
}

std::string Shown(const std::string& line) {
  std::string shown(absl::StripSuffix(absl::StripSuffix(line, "\n"), "\r"));
  if (shown.size() > 100) shown = absl::StrCat(shown.substr(0, 100), "...");
  return absl::StrCat("\"", shown, "\"");
}

// "3,7" or "3".
bool ReadRange(absl::string_view text, int64_t* line, int64_t* count) {
  const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(text, absl::MaxSplits(',', 1));
  *count = 1;
  if (!absl::SimpleAtoi(parts.first, line) || *line < 0 || *line > kMaxLine) return false;
  return parts.second.empty() || (absl::SimpleAtoi(parts.second, count) && *count >= 0 && *count <= kMaxLine);
}

// "@@ -3,7 +3,8 @@ anything".
bool ReadHunkHead(const std::string& line, Hunk* hunk, int64_t* old_count, int64_t* new_count) {
  const std::vector<absl::string_view> parts = absl::StrSplit(line, ' ');
  int64_t new_line = 0;
  if (parts.size() < 4 || parts[0] != "@@" || !absl::StartsWith(parts[3], "@@")) return false;
  if (!absl::StartsWith(parts[1], "-") || !absl::StartsWith(parts[2], "+")) return false;
  return ReadRange(parts[1].substr(1), &hunk->line, old_count) && ReadRange(parts[2].substr(1), &new_line, new_count);
}

// The file that "--- a/attention.cu\t2026-11-15" names.
std::string NamedFile(const std::string& line) {
  std::string name = line.substr(4, line.find_first_of("\t\r\n", 4) - 4);
  for (const char* prefix : {"a/", "b/"}) {
    if (absl::StartsWith(name, prefix)) name = name.substr(2);
  }
  return name;
}

bool Names(const std::string& name, const std::string& path) {
  return name == path || absl::EndsWith(name, absl::StrCat("/", path)) || absl::EndsWith(path, absl::StrCat("/", name));
}

absl::Status Wrong(size_t line, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("line ", line + 1, " of the patch: ", what));
}

void DropLineEnd(std::vector<std::string>* lines) {
  if (!lines->empty() && absl::EndsWith(lines->back(), "\n")) lines->back().pop_back();
}

absl::StatusOr<Hunk> ReadHunk(const std::vector<std::string>& lines, size_t* at) {
  Hunk hunk;
  int64_t old_left = 0, new_left = 0;
  if (!ReadHunkHead(lines[*at], &hunk, &old_left, &new_left)) {
    return Wrong(*at, absl::StrCat("expected \"@@ -line,count +line,count @@\", got ", Shown(lines[*at])));
  }
  for (++*at; old_left > 0 || new_left > 0; ++*at) {
    if (*at >= lines.size()) return Wrong(*at, "the hunk ends before its counted lines");
    const std::string& line = lines[*at];
    const std::string text = line.substr(1);
    // An empty context line may have lost its blank on the way.
    const char kind = line == "\n" || line == "\r\n" ? ' ' : line[0];
    const std::string& body = kind == ' ' && line[0] != ' ' ? line : text;
    if (kind != ' ' && kind != '-' && kind != '+') {
      return Wrong(*at, absl::StrCat("expected a line that begins with a blank, - or +, got ", Shown(line)));
    }
    if ((kind != '+' && old_left-- == 0) || (kind != '-' && new_left-- == 0)) {
      return Wrong(*at, absl::StrCat("the hunk has more lines than it counts: ", Shown(line)));
    }
    if (kind != '+') hunk.old_lines.push_back(body);
    if (kind != '-') hunk.new_lines.push_back(body);
    const bool no_end = *at + 1 < lines.size() && absl::StartsWith(lines[*at + 1], "\\");
    if (!no_end) continue;  // "\ No newline at end of file" is about the line before
    ++*at;
    if (kind != '+') DropLineEnd(&hunk.old_lines);
    if (kind != '-') DropLineEnd(&hunk.new_lines);
  }
  return hunk;
}

// The part of a patch that edits one file.
struct FilePatch {
  size_t file = 0;  // of those that may be edited
  std::vector<Hunk> hunks;
};

// The file that both lines name: "--- a/x.cu" and "+++ b/x.cu".
absl::StatusOr<size_t> EditedFile(const std::vector<std::string>& lines, size_t at, const SourceFiles& files) {
  size_t found = files.size();
  for (const std::string& name : {NamedFile(lines[at]), NamedFile(lines[at + 1])}) {
    const auto file = std::find_if(files.begin(), files.end(), [&](const auto& one) { return Names(name, one.first); });
    if (file == files.end()) {
      std::vector<std::string> paths;
      for (const auto& [path, text] : files) paths.push_back(path);
      return Wrong(at, absl::StrCat("it edits ", name, "; only ", absl::StrJoin(paths, ", "), " can be edited"));
    }
    const auto exact = std::find_if(files.begin(), files.end(), [&](const auto& one) { return one.first == name; });
    const size_t place = static_cast<size_t>((exact == files.end() ? file : exact) - files.begin());
    if (found != files.size() && found != place) return Wrong(at, "it renames a file, which no edit may");
    found = place;
  }
  return found;
}

absl::StatusOr<std::vector<FilePatch>> ReadPatch(const std::string& patch, const SourceFiles& files) {
  const std::vector<std::string> lines = Lines(patch);
  std::vector<FilePatch> parts;
  bool between = true;  // before a file's first hunk, where tools write what they like
  for (size_t at = 0; at < lines.size();) {
    if (absl::StartsWith(lines[at], "--- ") && at + 1 < lines.size() && absl::StartsWith(lines[at + 1], "+++ ")) {
      absl::StatusOr<size_t> file = EditedFile(lines, at, files);
      if (!file.ok()) return file.status();
      for (const FilePatch& part : parts) {
        if (part.file == *file) {
          return Wrong(at, files.size() == 1 ? "it edits more than one file"
                                             : absl::StrCat("it edits ", files[*file].first, " twice"));
        }
      }
      parts.push_back({*file, {}});
      between = true;
      at += 2;
    } else if (absl::StartsWith(lines[at], "@@")) {
      absl::StatusOr<Hunk> hunk = ReadHunk(lines, &at);
      if (!hunk.ok()) return hunk.status();
      if (parts.empty()) parts.emplace_back();
      parts.back().hunks.push_back(*std::move(hunk));
      between = false;
    } else if (between) {
      ++at;
    } else if (absl::StartsWith(lines[at], "diff ")) {
      if (files.size() == 1) return Wrong(at, "it edits more than one file");
      between = true;
      ++at;
    } else if (lines[at].find_first_not_of(" \r\n") == std::string::npos || absl::StartsWith(lines[at], "-- ")) {
      ++at;
    } else {
      return Wrong(at, absl::StrCat("expected the next hunk, got ", Shown(lines[at])));
    }
  }
  std::erase_if(parts, [](const FilePatch& part) { return part.hunks.empty(); });
  if (parts.empty()) return absl::InvalidArgumentError("the patch has no hunk: expected a unified diff (diff -u)");
  return parts;
}

// Lines as numbers, the same for the same text, so that comparing two takes no longer for long ones.
class LineIds {
 public:
  int Of(std::string_view line) { return ids_.try_emplace(line, static_cast<int>(ids_.size())).first->second; }

 private:
  std::unordered_map<std::string_view, int> ids_;
};

// Where hunks belong in a source. It looks at a bounded number of lines, over all hunks.
class Places {
 public:
  explicit Places(std::vector<int> lines) : lines_(std::move(lines)) {}

  // The place nearest to the expected one, at or after `from`; nothing: there is none, or `tired`.
  std::optional<size_t> Find(const std::vector<int>& wanted, size_t from, size_t expected) {
    for (size_t off = 0; off <= std::min(lines_.size(), kMaxMoved) && !tired(); ++off) {
      if (FitsAt(wanted, expected + off)) return expected + off;
      if (off > 0 && expected >= from + off && FitsAt(wanted, expected - off)) return expected - off;
    }
    return std::nullopt;
  }
  bool tired() const { return compared_ > kMaxCompared; }

 private:
  bool FitsAt(const std::vector<int>& wanted, size_t place) {
    ++compared_;
    if (place + wanted.size() > lines_.size()) return false;
    const auto differs = std::mismatch(wanted.begin(), wanted.end(), lines_.begin() + place).first;
    compared_ += differs - wanted.begin();
    return differs == wanted.end();
  }

  const std::vector<int> lines_;
  int64_t compared_ = 0;
};

absl::StatusOr<std::string> WithHunks(const std::string& source, std::vector<Hunk> hunks, const std::string& path) {
  const std::vector<std::string> lines = Lines(source);
  if (lines.size() > kMaxLines) {
    return absl::InvalidArgumentError(absl::StrCat(path, " has more than ", kMaxLines, " lines: it can't be patched"));
  }
  LineIds ids;
  std::vector<int> line_ids;
  for (const std::string& line : lines) line_ids.push_back(ids.Of(line));
  for (Hunk& hunk : hunks) {
    for (const std::string& line : hunk.old_lines) hunk.old_ids.push_back(ids.Of(line));
  }
  Places places(std::move(line_ids));
  std::string result;
  size_t done = 0;  // lines of the source
  for (size_t i = 0; i < hunks.size(); ++i) {
    const Hunk& hunk = hunks[i];
    // A hunk without old lines goes after the line that it names.
    const size_t named = static_cast<size_t>(hunk.line) - (hunk.old_lines.empty() || hunk.line == 0 ? 0 : 1);
    const std::optional<size_t> place =
        places.Find(hunk.old_ids, done, std::clamp(named, done, std::max(done, lines.size())));
    if (!place && places.tired()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the hunks of the patch are too many and too far from their lines in ", path, " (found up to hunk ", i,
          "); make the patch against the best variant's source, as pawl situation shows it"));
    }
    if (!place) {
      const std::string there = named < lines.size() ? Shown(lines[named]) : "the end";
      return absl::InvalidArgumentError(absl::StrCat(
          "hunk ", i + 1, " of the patch does not fit ", path, ": expected ",
          hunk.old_lines.empty() ? "the end" : Shown(hunk.old_lines[0]), " at line ", hunk.line, ", there is ", there,
          "; make the patch against the best variant's source, as pawl situation shows it"));
    }
    for (; done < *place; ++done) result += lines[done];
    for (const std::string& line : hunk.new_lines) result += line;
    done += hunk.old_lines.size();
  }
  for (; done < lines.size(); ++done) result += lines[done];
  return result;
}

}  // namespace

absl::StatusOr<std::string> ApplyPatch(const std::string& source, const std::string& patch, const std::string& path) {
  SourceFiles files = {{path, source}};
  if (absl::Status status = ApplyPatch(patch, &files); !status.ok()) return status;
  return std::move(files[0].second);
}

absl::Status ApplyPatch(const std::string& patch, SourceFiles* files) {
  absl::StatusOr<std::vector<FilePatch>> parts = ReadPatch(patch, *files);
  if (!parts.ok()) return parts.status();
  SourceFiles patched = *files;
  for (FilePatch& part : *parts) {
    auto& [path, text] = patched[part.file];
    absl::StatusOr<std::string> result = WithHunks(text, std::move(part.hunks), path);
    if (!result.ok()) return result.status();
    text = *std::move(result);
  }
  *files = std::move(patched);
  return absl::OkStatus();
}

}  // namespace pawl
