#include "worker/device/hand_off_check.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/names/utf8.h"
#include "worker/host/header_libraries.h"
#include "worker/problem/problem_process.h"
#include "worker/process/temporary_folder.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

constexpr size_t kShownBytes = 1500;         // of what a form printed
constexpr size_t kPrintedBytes = 256 << 10;  // that is read of it

// "program" of check_program.sh; empty: another file.
std::string FormOf(const std::string& path) {
  absl::string_view form = path;
  if (!absl::ConsumePrefix(&form, "check_") || !absl::ConsumeSuffix(&form, ".sh") || absl::StrContains(form, "/"))
    return "";
  return std::string(form);
}

// The files come from elsewhere: none may land outside of the folder.
absl::Status WriteHandOff(const HandOffFiles& files, const fs::path& folder) {
  for (const v1::SourceFile& file : files) {
    const fs::path path = fs::path(file.path()).lexically_normal();
    if (path.empty() || path.is_absolute() || *path.begin() == "..") {
      return absl::InvalidArgumentError(absl::StrCat("the file ", file.path(), " lies outside of the folder"));
    }
    std::error_code error;
    fs::create_directories((folder / path).parent_path(), error);
    std::ofstream out(folder / path, std::ios::binary);
    out << (file.binary().empty() ? file.text() : file.binary());
    if (!out.flush()) {
      return absl::ResourceExhaustedError(absl::StrCat("can't write ", path.string(), ": is the disk full?"));
    }
  }
  return absl::OkStatus();
}

std::string LastPart(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  return std::string(text.size() > kShownBytes ? text.substr(text.size() - kShownBytes) : text);
}

v1::HandOffCheck Unchecked(const std::string& form, absl::string_view why) {
  v1::HandOffCheck check;
  check.set_form(form);
  check.set_text(ValidUtf8(std::string(why)));
  return check;
}

v1::HandOffCheck CheckOf(const std::string& form, const ProcessResult& result) {
  const std::string printed = LastPart(absl::StrCat(result.out, result.out.empty() ? "" : "\n", result.err));
  v1::HandOffCheck check = Unchecked(form, result.ok() ? printed : absl::StrCat("it ", EndText(result), ": ", printed));
  check.set_passed(result.ok());
  return check;
}

// Nothing of the worker's environment but where programs and libraries are.
std::vector<std::string> EnvironmentFor(const HandOffHost& host, const fs::path& folder, const std::string& python,
                                        const std::vector<std::string>& include_folders) {
  std::map<std::string, std::string> values = {{"CUDA_VISIBLE_DEVICES", host.gpu.uuid()},
                                               {"CUDA_HOME", host.toolkit.root},
                                               {"HOME", folder.string()},
                                               {"LANG", "C.UTF-8"},
                                               {"PYTHON", python},
                                               {"PYTHONDONTWRITEBYTECODE", "1"},
                                               {"PATH", "/usr/local/bin:/usr/bin:/bin"}};
  for (const char* name : {"PATH", "LD_LIBRARY_PATH", "PYTHONPATH"}) {
    if (const char* value = getenv(name); value != nullptr) values[name] = value;
  }
  if (!host.toolkit.nvcc.empty()) {
    values["PATH"] = absl::StrCat(fs::path(host.toolkit.nvcc).parent_path().string(), ":", values["PATH"]);
  }
  if (!include_folders.empty()) {
    values["NVCC_APPEND_FLAGS"] =
        absl::StrJoin(include_folders, " ",
                      [](std::string* out, const std::string& folder_of) { absl::StrAppend(out, "-I", folder_of); });
  }
  std::vector<std::string> words = {"/usr/bin/env", "-i"};
  for (const auto& [name, value] : values) {
    if (!value.empty()) words.push_back(absl::StrCat(name, "=", value));
  }
  return words;
}

}  // namespace

absl::StatusOr<std::vector<v1::HandOffCheck>> CheckHandOff(const v1::Bundle& bundle, const HandOffFiles& files,
                                                           const HandOffHost& host) {
  std::vector<std::string> forms;
  for (const v1::SourceFile& file : files) {
    if (const std::string form = FormOf(file.path()); !form.empty()) forms.push_back(form);
  }
  std::vector<v1::HandOffCheck> checks;
  const auto all_fail = [&](const absl::Status& status) {
    for (const std::string& form : forms) checks.push_back(Unchecked(form, status.message()));
    return checks;
  };
  const TemporaryFolder made("pawl-hand-off-");
  std::error_code error;
  const fs::path folder = fs::canonical(made.path(), error);
  if (made.path().empty() || error) {
    return all_fail(absl::ResourceExhaustedError("can't make a temporary folder: set TMPDIR to one with room"));
  }
  if (absl::Status status = WriteHandOff(files, folder); !status.ok()) return all_fail(status);
  const absl::StatusOr<std::vector<std::string>> include_folders =
      IncludeFolders({bundle.include().begin(), bundle.include().end()}, host.toolkit.include, host.toolkit.libraries);
  if (!include_folders.ok()) return all_fail(include_folders.status());
  for (const std::string& form : forms) {
    if (host.stopped && host.stopped()) return absl::CancelledError("stopped");
    const std::vector<std::string> script = {"/bin/sh", absl::StrCat("check_", form, ".sh")};
    ProcessOptions options;
    options.argv = host.sandboxing.HandOff(
        folder.string(), ProblemProcess::DefaultPython(), *include_folders, [&](const std::string& python) {
          std::vector<std::string> words = EnvironmentFor(host, folder, python, *include_folders);
          words.insert(words.end(), script.begin(), script.end());
          return words;
        });
    options.directory = folder.string();
    options.timeout = host.deadline;
    options.output_cap = kPrintedBytes;
    options.stopped = host.stopped;
    const absl::StatusOr<ProcessResult> result = host.run(options);
    if (absl::IsCancelled(result.status())) return result.status();
    checks.push_back(result.ok() ? CheckOf(form, *result) : Unchecked(form, result.status().message()));
  }
  return checks;
}

}  // namespace pawl
