#include "kernels/source/source_patch.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/names/utf8.h"

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
  const std::string text(absl::StripSuffix(absl::StripSuffix(line, "\n"), "\r"));
  const std::string shown = Shortened(text, 100);
  return absl::StrCat("\"", shown, shown.size() < text.size() ? "..." : "", "\"");
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

constexpr char kNothing[] = "/dev/null";

// The file that "--- attention.cu\t2026-11-15" names.
std::string NameIn(const std::string& line) { return line.substr(4, line.find_first_of("\t\r\n", 4) - 4); }

// Before and after: of the line "--- a/attention.cu" and the next one, without git's a/ and b/.
struct NamedFiles {
  std::string before, after;
};

NamedFiles NamedAt(const std::vector<std::string>& lines, size_t at) {
  NamedFiles names = {NameIn(lines[at]), NameIn(lines[at + 1])};
  const bool from_git = (names.before == kNothing || absl::StartsWith(names.before, "a/")) &&
                        (names.after == kNothing || absl::StartsWith(names.after, "b/"));
  for (std::string* name : {&names.before, &names.after}) {
    if (from_git && *name != kNothing) *name = name->substr(2);
  }
  return names;
}

// How much of a path a name says: one may lack folders that the other has. 0: it names another file.
size_t Agreement(const std::string& name, const std::string& path) {
  if (name == path) return std::string::npos;
  const bool same = absl::EndsWith(name, absl::StrCat("/", path)) || absl::EndsWith(path, absl::StrCat("/", name));
  return same ? std::min(name.size(), path.size()) : 0;
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
  size_t head = 0;  // its line in the patch
};

// What tools write beside hunks, and no edit may do. Nothing of a patch is left out without a word.
struct NoEdit {
  const char *begins, *has;  // of the line
  bool of_git;               // only in a part that git wrote: elsewhere it may be anybody's sentence
  const char* why;
};
constexpr NoEdit kNoEdits[] = {
    {"GIT binary patch", "", false, "it has a binary part: an edit is text"},
    {"Binary files ", " differ", false, "it has a binary part: an edit is text"},
    {"Only in ", ": ", false, "it lacks the text of a file: make the patch with diff -ruN"},
    {"rename from ", "", true, "it renames a file, which no edit may"},
    {"copy from ", "", true, "it copies a file, which no edit may"},
    {"deleted file mode ", "", true, "it removes a file, which no edit may"},
    {"old mode ", "", true, "it changes the mode of a file, which no edit may: leave out this line and the next"},
};

// The lines of a patch before the first hunk of a file, where tools write what they like.
class LinesBetween {
 public:
  absl::Status Take(const std::vector<std::string>& lines, size_t at) {
    const std::string& line = lines[at];
    if (absl::StartsWith(line, "diff ")) {
      if (absl::Status status = End(); !status.ok()) return status;
      git_ = absl::StartsWith(line, "diff --git ");
    }
    for (const NoEdit& no : kNoEdits) {
      const bool is = absl::StartsWith(line, no.begins) && absl::StrContains(line, no.has) && (git_ || !no.of_git);
      if (is) return Wrong(at, no.why);
    }
    if (git_ && absl::StartsWith(line, "new file mode ")) new_file_ = at;
    return absl::OkStatus();
  }
  // Also at the patch's end: git writes no hunk of an empty file.
  absl::Status End() const { return new_file_ ? Wrong(*new_file_, "it makes an empty file") : absl::OkStatus(); }
  // The two lines that name a file.
  void Head() { new_file_.reset(); }

 private:
  bool git_ = false;
  std::optional<size_t> new_file_;  // its line, until the file is named
};

constexpr char kOfContract[] = " belongs to the contract, which no edit may change";

// The file whose path agrees most with the name: v2/util.cuh rather than util.cuh with old/v2/util.cuh.
absl::StatusOr<size_t> FileNamed(const std::string& name, size_t at, const SourceFiles& files,
                                 const std::set<std::string>& taken) {
  size_t most = 1, place = 0;
  std::vector<std::string> paths, fitting;
  for (size_t i = 0; i < files.size(); ++i) {
    paths.push_back(files[i].first);
    const size_t agreement = Agreement(name, files[i].first);
    if (agreement < most) continue;
    if (agreement > most) fitting.clear();
    fitting.push_back(files[i].first);
    most = agreement;
    place = i;
  }
  if (fitting.empty()) {
    return Wrong(at, absl::StrCat("it edits ", name, "; only ", absl::StrJoin(paths, ", "), " can be edited"));
  }
  if (fitting.size() > 1) {
    return Wrong(at, absl::StrCat("it edits ", name, ", which may be ", absl::StrJoin(fitting, " or "),
                                  ": write the whole path"));
  }
  for (const std::string& path : taken) {
    if (Agreement(name, path) > most) return Wrong(at, absl::StrCat(path, kOfContract));
  }
  return place;
}

// The file that both lines name: "--- a/x.cu" and "+++ b/x.cu".
absl::StatusOr<size_t> EditedFile(const std::vector<std::string>& lines, size_t at, const SourceFiles& files,
                                  const std::set<std::string>& taken) {
  const NamedFiles names = NamedAt(lines, at);
  const absl::StatusOr<size_t> before = FileNamed(names.before, at, files, taken);
  if (!before.ok()) return before.status();
  const absl::StatusOr<size_t> after = FileNamed(names.after, at, files, taken);
  if (!after.ok()) return after.status();
  if (*before != *after) return Wrong(at, "it renames a file, which no edit may");
  return *after;
}

bool IsFileHead(const std::vector<std::string>& lines, size_t at) {
  return at + 1 < lines.size() && absl::StartsWith(lines[at], "--- ") && absl::StartsWith(lines[at + 1], "+++ ");
}

// Files that a patch makes of nothing are put behind `files`, empty, and the two lines before their hunks name them as
// `files` then does.
absl::Status AddNewFiles(const std::set<std::string>& taken, std::vector<std::string>* lines, SourceFiles* files) {
  const std::string& first = (*files)[0].first;
  std::string folder;  // in which the patch has the first file
  for (size_t at = 0; at < lines->size(); ++at) {
    const std::string name = IsFileHead(*lines, at) ? NamedAt(*lines, at).after : "";
    if (absl::EndsWith(name, absl::StrCat("/", first))) folder = name.substr(0, name.size() - first.size());
  }
  for (size_t at = 0; at < lines->size(); ++at) {
    if (!IsFileHead(*lines, at)) continue;
    const auto [before, name] = NamedAt(*lines, at);
    const std::string path(absl::StripPrefix(name == kNothing ? before : name, folder));
    if (taken.contains(path)) {
      return Wrong(at, absl::StrCat(path, kOfContract));
    }
    const bool of_nothing = at + 2 < lines->size() && absl::StartsWith((*lines)[at + 2], "@@ -0,0 ");
    if (name == kNothing || !of_nothing) continue;
    const bool known = std::any_of(files->begin(), files->end(), [&](const auto& file) { return file.first == path; });
    if (!known) files->emplace_back(path, "");
    (*lines)[at] = absl::StrCat("--- ", path, "\n");
    (*lines)[at + 1] = absl::StrCat("+++ ", path, "\n");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<FilePatch>> ReadPatch(const std::vector<std::string>& lines, const SourceFiles& files,
                                                 const std::set<std::string>& taken) {
  std::vector<FilePatch> parts;
  bool between = true;
  LinesBetween between_lines;
  for (size_t at = 0; at < lines.size();) {
    if (IsFileHead(lines, at)) {
      absl::StatusOr<size_t> file = EditedFile(lines, at, files, taken);
      if (!file.ok()) return file.status();
      for (const FilePatch& part : parts) {
        if (part.file == *file) {
          return Wrong(at, files.size() == 1 ? "it edits more than one file"
                                             : absl::StrCat("it edits ", files[*file].first, " twice"));
        }
      }
      parts.push_back({*file, {}, at});
      between_lines.Head();
      between = true;
      at += 2;
    } else if (absl::StartsWith(lines[at], "@@")) {
      absl::StatusOr<Hunk> hunk = ReadHunk(lines, &at);
      if (!hunk.ok()) return hunk.status();
      if (parts.empty()) parts.emplace_back();
      parts.back().hunks.push_back(*std::move(hunk));
      between = false;
    } else if (between || absl::StartsWith(lines[at], "diff ")) {
      if (!between && files.size() == 1) return Wrong(at, "it edits more than one file");
      if (absl::Status status = between_lines.Take(lines, at); !status.ok()) return status;
      between = true;
      ++at;
    } else if (lines[at].find_first_not_of(" \r\n") == std::string::npos || absl::StartsWith(lines[at], "-- ")) {
      ++at;
    } else {
      return Wrong(at, absl::StrCat("expected the next hunk, got ", Shown(lines[at])));
    }
  }
  if (absl::Status status = between_lines.End(); !status.ok()) return status;
  const auto is_empty = [](const FilePatch& part) { return part.hunks.empty(); };
  if (std::all_of(parts.begin(), parts.end(), is_empty)) {
    return absl::InvalidArgumentError("the patch has no hunk: expected a unified diff (diff -u)");
  }
  const auto empty = std::find_if(parts.begin(), parts.end(), is_empty);
  if (empty != parts.end()) return Wrong(empty->head, absl::StrCat("it has no hunk of ", files[empty->file].first));
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

constexpr char kAgainstBest[] = "; make the patch against the best variant's source, as pawl situation shows it";

// Both lines, so that what differs can be seen: where it is blanks or line ends, those are written as escapes.
std::string ExpectedAndFound(const std::string& expected, const std::string* found) {
  if (found == nullptr) return absl::StrCat("expected ", Shown(expected), ", found the end of the file");
  std::string one = Shown(expected), other = Shown(*found);
  const auto blanks = [](char c) { return absl::ascii_isspace(static_cast<unsigned char>(c)); };
  std::string dense = expected, other_dense = *found;
  std::erase_if(dense, blanks);
  std::erase_if(other_dense, blanks);
  if (one == other || dense == other_dense) {
    one = absl::StrCat("\"", Printable(expected), "\"");
    other = absl::StrCat("\"", Printable(*found), "\"");
  }
  return absl::StrCat("expected ", one, ", found ", other);
}

// Where most of the hunk's lines are: near the place that it names, within a bounded search.
size_t LikeliestPlace(const std::vector<int>& wanted, const std::vector<int>& lines, size_t expected) {
  constexpr int64_t kMostLooked = 200'000;
  size_t best = std::min(expected, lines.size());
  int64_t most = -1, looked = 0;
  const auto look = [&](size_t place) {
    int64_t same = 0;
    for (size_t i = 0; i < wanted.size() && place + i < lines.size(); ++i) same += wanted[i] == lines[place + i];
    looked += static_cast<int64_t>(wanted.size()) + 1;
    if (same > most) {
      most = same;
      best = place;
    }
  };
  for (size_t off = 0; off <= kMaxMoved && looked < kMostLooked; ++off) {
    if (expected + off <= lines.size()) look(expected + off);
    if (off > 0 && expected >= off && expected - off <= lines.size()) look(expected - off);
  }
  return best;
}

// A source by lines, and where the hunks of a patch stand in it.
struct PlacedHunks {
  std::vector<std::string> lines;
  std::vector<Hunk> hunks;
  std::vector<size_t> places;  // lines from 0, rising
};

absl::StatusOr<PlacedHunks> PlaceHunks(const std::string& source, std::vector<Hunk> hunks, const std::string& path) {
  PlacedHunks placed;
  placed.lines = Lines(source);
  placed.hunks = std::move(hunks);
  const std::vector<std::string>& lines = placed.lines;
  if (lines.size() > kMaxLines) {
    return absl::InvalidArgumentError(absl::StrCat(path, " has more than ", kMaxLines, " lines: it can't be patched"));
  }
  LineIds ids;
  std::vector<int> line_ids;
  for (const std::string& line : lines) line_ids.push_back(ids.Of(line));
  for (Hunk& hunk : placed.hunks) {
    for (const std::string& line : hunk.old_lines) hunk.old_ids.push_back(ids.Of(line));
  }
  Places places(line_ids);
  size_t done = 0;  // lines of the source
  for (size_t i = 0; i < placed.hunks.size(); ++i) {
    const Hunk& hunk = placed.hunks[i];
    // A hunk without old lines goes after the line that it names.
    const size_t named = static_cast<size_t>(hunk.line) - (hunk.old_lines.empty() || hunk.line == 0 ? 0 : 1);
    const std::optional<size_t> place =
        places.Find(hunk.old_ids, done, std::clamp(named, done, std::max(done, lines.size())));
    if (!place && places.tired()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the hunks of the patch are too many and too far from their lines in ", path,
                       " (found up to hunk ", i, ")", kAgainstBest));
    }
    if (!place) {
      const size_t likely = LikeliestPlace(hunk.old_ids, line_ids, named);
      size_t off = 0;
      while (off + 1 < hunk.old_ids.size() && likely + off < lines.size() &&
             hunk.old_ids[off] == line_ids[likely + off]) {
        ++off;
      }
      const std::string head = absl::StrCat("hunk ", i + 1, " of the patch does not fit ", path, ": ");
      if (hunk.old_lines.empty()) {
        return absl::InvalidArgumentError(
            absl::StrCat(head, "it adds lines after line ", hunk.line, " of ", lines.size(), kAgainstBest));
      }
      const bool there = likely + off < lines.size();
      if (there && hunk.old_ids[off] == line_ids[likely + off]) {  // it stands there, but before the hunk before it
        return absl::InvalidArgumentError(
            absl::StrCat(head, "its lines are at line ", likely + 1, ", before those of hunk ", i, kAgainstBest));
      }
      return absl::InvalidArgumentError(
          absl::StrCat(head, "at line ", likely + off + 1, " ",
                       ExpectedAndFound(hunk.old_lines[off], there ? &lines[likely + off] : nullptr), kAgainstBest));
    }
    placed.places.push_back(*place);
    done = *place + hunk.old_lines.size();
  }
  return placed;
}

std::string WithHunks(const PlacedHunks& placed) {
  std::string result;
  size_t done = 0;
  for (size_t i = 0; i < placed.hunks.size(); ++i) {
    for (; done < placed.places[i]; ++done) result += placed.lines[done];
    for (const std::string& line : placed.hunks[i].new_lines) result += line;
    done += placed.hunks[i].old_lines.size();
  }
  for (; done < placed.lines.size(); ++done) result += placed.lines[done];
  return result;
}

constexpr size_t kNowhere = static_cast<size_t>(-1);

// For each line of `from` the line of `to` that it became; kNowhere: it was changed or removed. Lines that stand once
// in each text are anchors, in their longest rising order, and what is alike around an anchor belongs to it.
std::vector<size_t> Correspondence(const std::vector<std::string>& from, const std::vector<std::string>& to) {
  struct Seen {
    int in_from = 0, in_to = 0;
    size_t place = 0;  // in `to`
  };
  std::unordered_map<std::string_view, Seen> seen;
  for (const std::string& line : from) ++seen[line].in_from;
  for (size_t i = 0; i < to.size(); ++i) {
    Seen& line = seen[to[i]];
    ++line.in_to;
    line.place = i;
  }
  std::vector<std::pair<size_t, size_t>> pairs;  // of unique lines
  for (size_t i = 0; i < from.size(); ++i) {
    const Seen& line = seen[from[i]];
    if (line.in_from == 1 && line.in_to == 1) pairs.emplace_back(i, line.place);
  }
  std::vector<size_t> ends, before(pairs.size(), kNowhere);  // the longest rising run, by patience
  for (size_t i = 0; i < pairs.size(); ++i) {
    const auto at = std::lower_bound(ends.begin(), ends.end(), i,
                                     [&](size_t a, size_t b) { return pairs[a].second < pairs[b].second; });
    if (at != ends.begin()) before[i] = *(at - 1);
    if (at == ends.end()) {
      ends.push_back(i);
    } else {
      *at = i;
    }
  }
  std::vector<size_t> map(from.size(), kNowhere);
  for (size_t i = ends.empty() ? kNowhere : ends.back(); i != kNowhere; i = before[i])
    map[pairs[i].first] = pairs[i].second;
  // Upwards and downwards from what is known, the ends of both texts included.
  size_t next = 0;  // the least line of `to` that may still be given
  for (size_t i = 0; i < from.size(); ++i) {
    if (map[i] == kNowhere && next < to.size() && from[i] == to[next] && (i == 0 || map[i - 1] != kNowhere)) {
      map[i] = next;
    }
    if (map[i] != kNowhere) next = map[i] + 1;
  }
  std::vector<size_t> least(from.size());  // of each line: the least that lines before it leave
  for (size_t i = 0, taken = 0; i < from.size(); ++i) {
    least[i] = taken;
    if (map[i] != kNowhere) taken = map[i] + 1;
  }
  size_t limit = to.size();  // one above the greatest that may still be given
  for (size_t i = from.size(); i-- > 0;) {
    const bool next_known = i + 1 == from.size() || map[i + 1] != kNowhere;
    if (map[i] == kNowhere && next_known && limit > least[i] && from[i] == to[limit - 1]) map[i] = limit - 1;
    if (map[i] != kNowhere) limit = map[i];
  }
  return map;
}

// What the hunks, placed in `base`, make of another text, where the lines that they touch are in it, too.
absl::StatusOr<std::string> Carried(const PlacedHunks& base, const std::string& text, const std::string& path) {
  const std::vector<std::string> lines = Lines(text);
  if (lines.size() > kMaxLines) {
    return absl::InvalidArgumentError(absl::StrCat(path, " has more than ", kMaxLines, " lines: it can't be patched"));
  }
  const std::vector<size_t> map = Correspondence(base.lines, lines);
  const auto place = [&](size_t line) { return line < map.size() ? map[line] : lines.size(); };
  std::vector<bool> removed(lines.size());
  std::vector<std::string> added(lines.size() + 1);  // before each line
  const auto conflict = [&](size_t hunk, size_t line) {
    const size_t near = line == 0 ? 0 : map[line - 1] == kNowhere ? kNowhere : map[line - 1] + 1;
    const std::string* found = near < lines.size() ? &lines[near] : nullptr;
    const std::string expected = line < base.lines.size() ? base.lines[line] : "";
    const std::string seen =
        near == kNowhere || (found != nullptr && *found == expected)
            ? absl::StrCat("expected ", Shown(expected), ", which was changed with the lines around it")
            : ExpectedAndFound(expected, found);
    return absl::AbortedError(absl::StrCat("hunk ", hunk + 1, " of the patch does not fit ", path, ": at line ",
                                           near == kNowhere ? line + 1 : near + 1, " ", seen));
  };
  for (size_t h = 0; h < base.hunks.size(); ++h) {
    const Hunk& hunk = base.hunks[h];
    // What is alike at both ends of a hunk is context.
    size_t head = 0, tail = 0;
    while (head < hunk.old_lines.size() && head < hunk.new_lines.size() &&
           hunk.old_lines[head] == hunk.new_lines[head]) {
      ++head;
    }
    while (tail + head < hunk.old_lines.size() && tail + head < hunk.new_lines.size() &&
           hunk.old_lines[hunk.old_lines.size() - 1 - tail] == hunk.new_lines[hunk.new_lines.size() - 1 - tail]) {
      ++tail;
    }
    const size_t first = base.places[h] + head;                        // of what it replaces, in `base`
    const size_t end = base.places[h] + hunk.old_lines.size() - tail;  // one behind
    // The line before, those that are replaced and the line after must follow each other there as here.
    const size_t before = first == 0 ? kNowhere : map[first - 1];
    if (first > 0 && before == kNowhere) return conflict(h, first - 1);
    size_t expected = first == 0 ? 0 : before + 1;
    const size_t at = expected;
    for (size_t line = first; line < end; ++line, ++expected) {
      if (place(line) != expected) return conflict(h, line);
      removed[expected] = true;
    }
    if (place(end) != expected) return conflict(h, end);
    for (size_t i = head; i + tail < hunk.new_lines.size(); ++i) added[at] += hunk.new_lines[i];
  }
  std::string result;
  for (size_t i = 0; i <= lines.size(); ++i) {
    result += added[i];
    if (i < lines.size() && !removed[i]) result += lines[i];
  }
  return result;
}

// One line of a diff, with where it stands in both texts.
struct DiffLine {
  char kind;  // ' ', '-' or '+'
  size_t from, to;
  const std::string* text;
};

std::vector<DiffLine> DiffLines(const std::vector<std::string>& from, const std::vector<std::string>& to) {
  const std::vector<size_t> map = Correspondence(from, to);
  std::vector<DiffLine> lines;
  for (size_t i = 0, j = 0; i < from.size() || j < to.size();) {
    if (i < from.size() && map[i] == j) {
      lines.push_back({' ', i, j, &from[i]});
      ++i;
      ++j;
    } else if (i < from.size() && (map[i] == kNowhere || map[i] < j)) {
      lines.push_back({'-', i, j, &from[i]});
      ++i;
    } else {
      lines.push_back({'+', i, j, &to[j]});
      ++j;
    }
  }
  return lines;
}

}  // namespace

std::string UnifiedDiff(const std::string& path, const std::string& from, const std::string& to) {
  constexpr size_t kContext = 3;
  const std::vector<std::string> old_lines = Lines(from), new_lines = Lines(to);
  const std::vector<DiffLine> lines = DiffLines(old_lines, new_lines);
  std::string diff;
  for (size_t at = 0; at < lines.size();) {
    const auto changed = [](const DiffLine& line) { return line.kind != ' '; };
    const auto next = static_cast<size_t>(std::find_if(lines.begin() + at, lines.end(), changed) - lines.begin());
    if (next == lines.size()) break;
    const size_t begin = std::max(at, next - std::min(next, kContext));
    size_t end = next;  // one behind the last changed line of the hunk
    for (size_t i = next; i < lines.size() && i < end + 2 * kContext + 1; ++i) {
      if (changed(lines[i])) end = i + 1;
    }
    end = std::min(end + kContext, lines.size());
    int64_t old_count = 0, new_count = 0;
    std::string body;
    for (size_t i = begin; i < end; ++i) {
      old_count += lines[i].kind != '+';
      new_count += lines[i].kind != '-';
      absl::StrAppend(&body, std::string(1, lines[i].kind), *lines[i].text);
      if (!absl::EndsWith(body, "\n")) absl::StrAppend(&body, "\n\\ No newline at end of file\n");
    }
    // Of no lines, the line before.
    const size_t old_first = lines[begin].from + (old_count > 0 ? 1 : 0),
                 new_first = lines[begin].to + (new_count > 0 ? 1 : 0);
    absl::StrAppend(&diff, "@@ -", old_first, ",", old_count, " +", new_first, ",", new_count, " @@\n", body);
    at = end;
  }
  return diff.empty() ? diff : absl::StrCat("--- a/", path, "\n+++ b/", path, "\n", diff);
}

std::string NewFileDiff(const std::string& path, const std::string& text) {
  const std::string diff = UnifiedDiff(path, "", text);
  if (diff.empty()) return diff;
  return absl::StrCat("diff --git a/", path, " b/", path, "\nnew file mode 100644\n--- /dev/null\n",
                      diff.substr(diff.find("+++ ")));
}

namespace {

std::string RemovedFileDiff(const std::string& path, const std::string& text) {
  const std::string diff = UnifiedDiff(path, text, "");
  if (diff.empty()) return diff;
  return absl::StrCat("diff --git a/", path, " b/", path, "\ndeleted file mode 100644\n--- a/", path,
                      "\n+++ /dev/null\n", diff.substr(diff.find("@@ ")));
}

}  // namespace

std::string DiffOfFiles(const SourceFiles& from, const SourceFiles& to) {
  const auto find = [](const SourceFiles& files, const std::string& path) {
    return std::find_if(files.begin(), files.end(), [&](const auto& file) { return file.first == path; });
  };
  std::string diff;
  for (const auto& [path, text] : from) {
    const auto after = find(to, path);
    diff += after == to.end() ? RemovedFileDiff(path, text) : UnifiedDiff(path, text, after->second);
  }
  for (const auto& [path, text] : to) {
    if (find(from, path) == from.end()) diff += NewFileDiff(path, text);
  }
  return diff;
}

absl::StatusOr<std::string> ApplyPatch(const std::string& source, const std::string& patch, const std::string& path) {
  SourceFiles files = {{path, source}};
  if (absl::Status status = ApplyPatch(patch, &files); !status.ok()) return status;
  return std::move(files[0].second);
}

namespace {

absl::Status ApplyLines(const std::vector<std::string>& lines, const std::set<std::string>& taken, SourceFiles* files) {
  absl::StatusOr<std::vector<FilePatch>> parts = ReadPatch(lines, *files, taken);
  if (!parts.ok()) return parts.status();
  SourceFiles patched = *files;
  for (FilePatch& part : *parts) {
    auto& [path, text] = patched[part.file];
    absl::StatusOr<PlacedHunks> placed = PlaceHunks(text, std::move(part.hunks), path);
    if (!placed.ok()) return placed.status();
    text = WithHunks(*placed);
  }
  *files = std::move(patched);
  return absl::OkStatus();
}

}  // namespace

absl::Status ApplyPatch(const std::string& patch, SourceFiles* files, const std::set<std::string>& taken) {
  return ApplyLines(Lines(patch), taken, files);
}

absl::Status ApplyPatchThatAdds(const std::string& patch, const std::set<std::string>& taken, SourceFiles* files) {
  std::vector<std::string> lines = Lines(patch);
  SourceFiles patched = *files;
  if (absl::Status status = AddNewFiles(taken, &lines, &patched); !status.ok()) return status;
  if (absl::Status status = ApplyLines(lines, taken, &patched); !status.ok()) return status;
  *files = std::move(patched);
  return absl::OkStatus();
}

absl::Status RebasePatch(const std::string& patch, const SourceFiles& base, SourceFiles* files,
                         const std::set<std::string>& taken) {
  absl::StatusOr<std::vector<FilePatch>> parts = ReadPatch(Lines(patch), base, taken);
  if (!parts.ok()) return parts.status();
  SourceFiles patched = *files;
  for (FilePatch& part : *parts) {
    const auto& [path, text] = base[part.file];
    const auto other =
        std::find_if(patched.begin(), patched.end(), [&](const auto& file) { return file.first == path; });
    if (other == patched.end()) return absl::AbortedError(absl::StrCat("there is no ", path, " any more"));
    absl::StatusOr<PlacedHunks> placed = PlaceHunks(text, std::move(part.hunks), path);
    if (!placed.ok()) return placed.status();
    absl::StatusOr<std::string> carried = Carried(*placed, other->second, path);
    if (!carried.ok()) return carried.status();
    other->second = *std::move(carried);
  }
  *files = std::move(patched);
  return absl::OkStatus();
}

}  // namespace pawl
