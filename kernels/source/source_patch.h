#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace pawl {

// The source with a unified diff applied, as `diff -u` and `git diff` write it. Context and removed lines must be there
// exactly; a hunk may have moved by some lines. An error says which hunk does not fit and what was expected there: the
// patch edits another file than `path`, more than one file, makes or removes a file, or is no unified diff.
absl::StatusOr<std::string> ApplyPatch(const std::string& source, const std::string& patch, const std::string& path);

// Paths and texts of the files that a patch may edit. The same for each of them that the patch names; a patch that
// names none edits the first. Nothing is changed where a part of it does not fit, or names a file that is `taken`.
using SourceFiles = std::vector<std::pair<std::string, std::string>>;
absl::Status ApplyPatch(const std::string& patch, SourceFiles* files, const std::set<std::string>& taken = {});

// The same of a patch that may also add files, made of nothing: "--- /dev/null", or a hunk "@@ -0,0". They are appended
// with their paths relative to the folder in which the patch has the first of `files`; none of these may be `taken`.
absl::Status ApplyPatchThatAdds(const std::string& patch, const std::set<std::string>& taken, SourceFiles* files);

// Applies a patch that fits earlier texts of the files to their present ones: three-way, hunk by hunk. The lines that a
// hunk touches, and their neighbours, must be in both. Aborted: they are not, and the message has the hunk, the
// expected and the found text; other errors say why it does not fit `base`.
absl::Status RebasePatch(const std::string& patch, const SourceFiles& base, SourceFiles* files,
                         const std::set<std::string>& taken = {});

// The unified diff that makes one text of another, with three lines of context; empty where they are the same.
std::string UnifiedDiff(const std::string& path, const std::string& from, const std::string& to);
// The one that makes the file where there is none, as `git diff` writes it; not of an empty text.
std::string NewFileDiff(const std::string& path, const std::string& text);
// Of all files, by their paths; what only one side has is made or removed.
std::string DiffOfFiles(const SourceFiles& from, const SourceFiles& to);

}  // namespace pawl
