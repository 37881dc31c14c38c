// The files that kernel.toml names: source, files, problem.
#include <algorithm>
#include <set>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/bundle_message.h"
#include "kernels/limits.h"
#include "kernels/read/reading.h"

namespace pawl {
namespace {

// Code that another compiler made.
void ReadCubin(TomlTable& root, const Text& source, Reading& reading) {
  absl::StatusOr<std::string> bytes = ReadBinaryFile(reading.folder, source.value, kMaxCubinBytes);
  if (!bytes.ok()) {
    root.Complain(source.line, absl::StrCat("source: ", bytes.status().message()));
    return;
  }
  if (!absl::StartsWith(*bytes,
                        "\x7f"
                        "ELF")) {
    root.Complain(source.line, absl::StrCat("source: ", source.value, " is not a cubin; expected an ELF file"));
  }
  reading.bundle.mutable_source()->set_binary(*std::move(bytes));
  if (root.Has("options")) root.Complain(root.Line("options"), "options: a cubin is not compiled; remove this key");
  if (root.Has("files")) root.Complain(root.Line("files"), "files: a cubin is not compiled; remove this key");
}

void ReadFile(const Text& pattern, const std::string& path, TomlTable& root, Reading& reading) {
  absl::StatusOr<std::string> text = ReadSourceFile(reading.folder, path);
  if (!text.ok()) {
    root.Complain(pattern.line, absl::StrCat("files: ", text.status().message()));
    return;
  }
  v1::SourceFile& file = *reading.bundle.add_files();
  file.set_path(path);
  file.set_text(*std::move(text));
}

void ReadImplementationFiles(TomlTable& root, Reading& reading) {
  std::set<std::string> taken = {reading.bundle.source().path()};
  for (const Text& pattern : root.Texts("files")) {
    absl::StatusOr<std::vector<std::string>> paths = FilesLike(reading.folder, pattern.value);
    if (!paths.ok()) {
      root.Complain(pattern.line, absl::StrCat("files: ", paths.status().message()));
      continue;
    }
    if (paths->empty()) {
      root.Complain(pattern.line, absl::StrCat("files: no file is like ", pattern.value,
                                               "; expected a path inside the bundle's folder, such as include/*.cuh"));
    }
    if (taken.size() + paths->size() > kMaxFiles + 1) {
      root.Complain(pattern.line, absl::StrCat("files: there are more than ", kMaxFiles, " files"));
      return;
    }
    for (const std::string& path : *paths) {
      const std::string normal = std::filesystem::path(path).lexically_normal().string();
      if (taken.insert(normal).second) ReadFile(pattern, normal, root, reading);
    }
  }
  auto& files = *reading.bundle.mutable_files();
  std::sort(files.begin(), files.end(),
            [](const v1::SourceFile& a, const v1::SourceFile& b) { return a.path() < b.path(); });
  size_t bytes = 0;
  for (const v1::SourceFile& file : files) bytes += file.text().size();
  if (bytes > kMaxFilesBytes) {
    root.Complain(root.Line("files"),
                  absl::StrCat("files: they have ", bytes, " bytes together; expected at most ", kMaxFilesBytes));
  }
}

}  // namespace

void ReadSource(TomlTable& table, const std::string& key, Reading& reading, v1::SourceFile& file) {
  const std::optional<Text> path = table.Text(key);
  if (!path) return;
  absl::StatusOr<std::string> text = ReadSourceFile(reading.folder, path->value);
  if (!text.ok()) table.Complain(path->line, absl::StrCat(key, ": ", text.status().message()));
  file.set_path(path->value);
  file.set_text(text.value_or(""));
}

void ReadIncludes(TomlTable& root, Reading& reading) {
  std::set<std::string> seen;
  for (const Text& name : root.Texts("include")) {
    if (!IsHeaderLibrary(name.value)) {
      root.Complain(name.line, absl::StrCat("include: \"", absl::Utf8SafeCHexEscape(name.value),
                                            "\" can't name a header library; expected letters, digits, _ and -, such "
                                            "as cub; folders of your own belong to files"));
    } else if (seen.insert(name.value).second) {
      reading.bundle.add_include(name.value);
    }
  }
  if (seen.size() > kMaxIncludes) {
    root.Complain(root.Line("include"),
                  absl::StrCat("include has ", seen.size(), " names; expected at most ", kMaxIncludes));
  }
}

void ReadFiles(TomlTable& root, Reading& reading) {
  v1::Bundle& bundle = reading.bundle;
  if (std::optional<Text> source = root.Text("source")) {
    bundle.mutable_source()->set_path(source->value);
    if (absl::EndsWith(source->value, ".cubin")) {
      ReadCubin(root, *source, reading);
    } else {
      ReadSource(root, "source", reading, *bundle.mutable_source());
    }
  }
  ReadImplementationFiles(root, reading);
  ReadIncludes(root, reading);
  if (root.Has("problem")) ReadSource(root, "problem", reading, *bundle.mutable_problem());
}

}  // namespace pawl
