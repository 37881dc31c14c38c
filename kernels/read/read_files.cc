// The files that kernel.toml names: source, files, problem.
#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/names/utf8.h"
#include "kernels/bundle_message.h"
#include "kernels/data_file.h"
#include "kernels/limits.h"
#include "kernels/read/implementation_toml.h"
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

// Calls `read` with each file that the patterns of a key name, but for the one that is `taken`, and the line to blame.
template <typename Read>
void VisitFiles(TomlTable& table, const std::string& key, const std::string& taken, const std::string& example,
                const Reading& reading, Read read) {
  std::set<std::string> seen = {taken};
  for (const Text& pattern : table.Texts(key)) {
    absl::StatusOr<std::vector<std::string>> paths = FilesLike(reading.folder, pattern.value);
    if (!paths.ok()) {
      table.Complain(pattern.line, absl::StrCat(key, ": ", paths.status().message()));
      continue;
    }
    if (paths->empty()) {
      table.Complain(pattern.line, absl::StrCat(key, ": no file is like ", pattern.value,
                                                "; expected a path inside the bundle's folder, such as ", example));
    }
    if (seen.size() + paths->size() > kMaxFiles + 1) {
      table.Complain(pattern.line, absl::StrCat(key, ": there are more than ", kMaxFiles, " files"));
      return;
    }
    for (const std::string& path : *paths) {
      const std::string normal = std::filesystem::path(path).lexically_normal().string();
      if (seen.insert(normal).second) read(pattern, normal);
    }
  }
}

// What problem.py finds beside it.
void ReadProblemData(TomlTable& root, Reading& reading) {
  if (!root.Has("data")) return;
  if (!root.Has("problem")) {
    root.Skip("data");
    root.Complain(root.Line("data"), "data is what problem.py reads, and there is no problem");
    return;
  }
  std::vector<std::string> paths;
  VisitFiles(root, "data", reading.bundle.problem().path(), "*.npy", reading,
             [&](const Text& pattern, const std::string& path) {
               if (path == "kernel.toml" || path == kImplementationToml) return;
               if (absl::StartsWith(BesideProblem(reading.bundle, path), "..")) {
                 root.Complain(pattern.line, absl::StrCat("data: ", path,
                                                          " does not lie beside problem.py; expected a "
                                                          "file in its folder or below"));
                 return;
               }
               if (ReadDataFile(root, "data", pattern, path, reading)) paths.push_back(path);
             });
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths) reading.bundle.add_problem_files(path);
}

}  // namespace

bool ReadDataFile(TomlTable& table, const std::string& key, const Text& at, const std::string& path, Reading& reading) {
  if (FindDataFile(reading.bundle, path) != nullptr) return true;
  const size_t left = kMaxDataBytes - std::min(kMaxDataBytes, reading.data_bytes);
  absl::StatusOr<std::string> data = ReadBinaryFile(reading.folder, path, left);
  if (!data.ok()) {
    const bool large = data.status().code() == absl::StatusCode::kOutOfRange;
    table.Complain(at.line, absl::StrCat(key, ": ", data.status().message(),
                                         large ? absl::StrCat("; all data files may have ", kMaxDataBytes,
                                                              " bytes together: problem.py can make larger ones")
                                               : ""));
    return false;
  }
  reading.data_bytes += data->size();
  v1::DataFile& file = *reading.bundle.add_data_files();
  file.set_path(path);
  file.set_data(*std::move(data));
  return true;
}

void ReadSourceFiles(TomlTable& table, const std::string& source, Reading& reading,
                     google::protobuf::RepeatedPtrField<v1::SourceFile>& files) {
  VisitFiles(table, "files", source, "include/*.cuh", reading, [&](const Text& pattern, const std::string& path) {
    absl::StatusOr<std::string> text = ReadSourceFile(reading.folder, path);
    if (!text.ok()) {
      const bool binary = absl::IsInvalidArgument(text.status()) && absl::EndsWith(text.status().message(), "text");
      table.Complain(pattern.line, absl::StrCat("files: ", text.status().message(),
                                                binary ? "; files that problem.py reads are named by data" : ""));
      return;
    }
    v1::SourceFile& file = *files.Add();
    file.set_path(path);
    file.set_text(*std::move(text));
  });
  std::sort(files.begin(), files.end(),
            [](const v1::SourceFile& a, const v1::SourceFile& b) { return a.path() < b.path(); });
  size_t bytes = 0;
  for (const v1::SourceFile& file : files) bytes += file.text().size();
  if (bytes > kMaxFilesBytes) {
    table.Complain(table.Line("files"),
                   absl::StrCat("files: they have ", bytes, " bytes together; expected at most ", kMaxFilesBytes));
  }
}

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
      root.Complain(name.line, absl::StrCat("include: \"", Printable(name.value),
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
  if (const std::optional<Text> source = reading.contract_alone ? std::nullopt : root.Text("source")) {
    bundle.mutable_source()->set_path(source->value);
    if (absl::EndsWith(source->value, ".cubin")) {
      ReadCubin(root, *source, reading);
    } else {
      ReadSource(root, "source", reading, *bundle.mutable_source());
    }
  }
  ReadSourceFiles(root, bundle.source().path(), reading, *bundle.mutable_files());
  ReadIncludes(root, reading);
  if (root.Has("problem")) ReadSource(root, "problem", reading, *bundle.mutable_problem());
  ReadProblemData(root, reading);
}

}  // namespace pawl
