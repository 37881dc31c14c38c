#include "worker/build/source_tree.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "worker/build/compiler_log.h"
#include "worker/build/source_paths.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

bool StaysInside(const std::string& path) {
  return !path.empty() && !IsOutside(path) && path.find('\0') == std::string::npos && fs::path(path).has_filename();
}

}  // namespace

SourceTexts TextsOf(const v1::BuildRequest& request) {
  SourceTexts texts;
  for (const v1::SourceFile& file : request.files()) texts[file.path()] = &file.text();
  texts[request.name().empty() ? "kernel.cu" : request.name()] = &request.source();
  return texts;
}

SourceTree::SourceTree(bool sandboxed) {
  std::error_code error;
  folder_ = fs::temp_directory_path(error) / (sandboxed ? "bundle" : absl::StrCat("bundle-", getpid()));
  fs::remove_all(folder_, error);
  fs::create_directory(folder_, error);
}

SourceTree::~SourceTree() {
  std::error_code error;
  fs::remove_all(folder_, error);
}

absl::Status SourceTree::Write(const v1::BuildRequest& request) {
  for (const auto& [path, text] : TextsOf(request)) {
    if (!StaysInside(path)) return absl::InvalidArgumentError(absl::StrCat(path, " leads out of the bundle's folder"));
    std::error_code error;
    fs::create_directories((folder_ / path).parent_path(), error);
    if (!(std::ofstream(folder_ / path, std::ios::binary) << *text).flush()) {
      return absl::ResourceExhaustedError("could not write to the temporary folder: is the disk full?");
    }
  }
  return absl::OkStatus();
}

std::vector<std::string> SourceTree::IncludeFolders(const std::string& source) const {
  std::vector<std::string> folders;
  const fs::path beside = fs::path(source).parent_path();
  if (!beside.empty()) folders.push_back((folder_ / beside).string());
  folders.push_back(folder_.string());
  return folders;
}

std::string SourceTree::WithoutFolder(const std::string& log) const {
  return absl::StrReplaceAll(log, {{absl::StrCat(folder_.string(), "/"), ""}});
}

std::string NormalPath(const std::string& path) { return fs::path(path).lexically_normal().string(); }

std::string IncludedFile(const SourceTexts& texts, const std::string& from, const std::string& included) {
  const fs::path source_folder = fs::path(from).parent_path();
  for (const fs::path& folder : {source_folder, fs::path()}) {
    const std::string path = NormalPath((folder / included).string());
    if (texts.contains(path)) return path;
  }
  return "";
}

std::string CyclicInclude(const v1::BuildRequest& request) {
  const SourceTexts texts = TextsOf(request);
  std::vector<std::string> open;  // from the source to the file that is looked at
  std::set<std::string> done;
  std::string found;
  const std::function<void(const std::string&)> visit = [&](const std::string& path) {
    if (!done.insert(path).second) return;
    open.push_back(path);
    for (const Include& include : QuotedIncludes(*texts.at(path))) {
      if (!found.empty()) break;
      const std::string next = IncludedFile(texts, path, include.path);
      if (next.empty() || IsGuarded(*texts.at(next))) continue;
      const auto again = std::find(open.begin(), open.end(), next);
      if (again == open.end()) {
        visit(next);
        continue;
      }
      std::vector<std::string> ring(again, open.end());
      ring.push_back(next);
      found = absl::StrCat(path, "(", include.line,
                           "): error: the files include each other without end: ", absl::StrJoin(ring, " -> "),
                           "; #pragma once in one of them ends it");
    }
    open.pop_back();
  };
  visit(request.name().empty() ? "kernel.cu" : request.name());
  return found;
}

}  // namespace pawl
