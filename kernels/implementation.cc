#include "kernels/implementation.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "kernels/source_patch.h"

namespace pawl {
namespace {

constexpr absl::string_view kOpen = "==== ", kClose = " lines ====\n", kCloseOfUnended = " lines, no line end ====\n";

void AppendFile(const std::string& path, const std::string& text, std::string* all) {
  const bool ended = text.empty() || text.back() == '\n';
  const auto lines = std::count(text.begin(), text.end(), '\n') + (ended ? 0 : 1);
  absl::StrAppend(all, kOpen, path, ", ", lines, ended ? kClose : kCloseOfUnended, text, ended ? "" : "\n");
}

// Takes the next file off the text. False: there is no such file here.
bool TakeFile(const std::string& path, absl::string_view* text, std::string* file) {
  if (!absl::ConsumePrefix(text, kOpen) || !absl::ConsumePrefix(text, path) || !absl::ConsumePrefix(text, ", ")) {
    return false;
  }
  const size_t digits = std::min(text->find(' '), text->size());
  int64_t lines = 0;
  if (!absl::SimpleAtoi(text->substr(0, digits), &lines) || lines < 0) return false;
  text->remove_prefix(digits);
  const bool ended = absl::ConsumePrefix(text, kClose);
  if (!ended && !absl::ConsumePrefix(text, kCloseOfUnended)) return false;
  size_t end = 0;
  for (int64_t i = 0; i < lines; ++i) {
    const size_t next = text->find('\n', end);
    if (next == text->npos) return false;
    end = next + 1;
  }
  *file = std::string(text->substr(0, ended ? end : end - 1));
  text->remove_prefix(end);
  return true;
}

// Every file, by its path.
absl::StatusOr<SourceFiles> FilesIn(const v1::Bundle& bundle, const std::string& text) {
  SourceFiles files;
  if (bundle.files().empty()) {
    files.emplace_back(bundle.source().path(), text);
    return files;
  }
  absl::string_view rest = text;
  const auto take = [&](const std::string& path) {
    files.emplace_back(path, "");
    return TakeFile(path, &rest, &files.back().second);
  };
  bool good = take(bundle.source().path());
  for (const v1::SourceFile& file : bundle.files()) good = good && take(file.path());
  if (!good || !rest.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("the edited source is not one of the files of ", bundle.name()));
  }
  return files;
}

}  // namespace

std::string ImplementationText(const v1::Bundle& bundle) {
  if (bundle.files().empty()) return bundle.source().text();
  std::string all;
  AppendFile(bundle.source().path(), bundle.source().text(), &all);
  for (const v1::SourceFile& file : bundle.files()) AppendFile(file.path(), file.text(), &all);
  return all;
}

absl::Status SetImplementation(const std::string& text, v1::Bundle* bundle) {
  absl::StatusOr<SourceFiles> files = FilesIn(*bundle, text);
  if (!files.ok()) return files.status();
  bundle->mutable_source()->set_text(std::move((*files)[0].second));
  for (int i = 0; i < bundle->files_size(); ++i) {
    bundle->mutable_files(i)->set_text(std::move((*files)[static_cast<size_t>(i) + 1].second));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> PatchImplementation(const v1::Bundle& bundle, const std::string& text,
                                                const std::string& patch) {
  if (!bundle.source().binary().empty()) {
    return absl::InvalidArgumentError(absl::StrCat(bundle.source().path(), " is a cubin: it can't be edited"));
  }
  absl::StatusOr<SourceFiles> files = FilesIn(bundle, text);
  if (!files.ok()) return files.status();
  if (const absl::Status status = ApplyPatch(patch, &*files); !status.ok()) return status;
  if (bundle.files().empty()) return std::move((*files)[0].second);
  std::string all;
  for (const auto& [path, file] : *files) AppendFile(path, file, &all);
  return all;
}

}  // namespace pawl
