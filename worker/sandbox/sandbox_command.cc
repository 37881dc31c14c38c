#include "worker/sandbox/sandbox_command.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace pawl {

std::vector<std::string> SandboxArguments(const SandboxCommand& command) {
  const SandboxOptions& options = command.options;
  std::vector<std::string> words;
  const auto add = [&words](const char* flag, const std::string& value) {
    words.push_back(flag);
    words.push_back(value);
  };
  for (const std::string& path : options.visible) add("--show", path);
  for (const std::string& path : options.writable) add("--write", path);
  for (const int fd : command.kept_fds) add("--keep-fd", absl::StrCat(fd));
  add("--directory", options.directory);
  add("--temporary-bytes", absl::StrCat(options.temporary_bytes));
  add("--file-bytes", absl::StrCat(options.file_bytes));
  add("--processes", absl::StrCat(options.processes));
  add("--cpu-seconds", absl::StrCat(options.cpu_seconds));
  if (options.gpu) words.push_back("--gpu");
  if (options.loopback) words.push_back("--loopback");
  if (options.counters) words.push_back("--counters");
  if (options.executables) words.push_back("--executables");
  words.push_back("--");
  words.insert(words.end(), command.argv.begin(), command.argv.end());
  return words;
}

std::string ReadSandboxCommand(const std::vector<std::string>& arguments, SandboxCommand* command) {
  SandboxOptions& options = command->options;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& flag = arguments[i];
    if (flag == "--") {
      command->argv.assign(arguments.begin() + i + 1, arguments.end());
      return "";
    }
    if (flag == "--gpu") {
      options.gpu = true;
    } else if (flag == "--loopback") {
      options.loopback = true;
    } else if (flag == "--counters") {
      options.counters = true;
    } else if (flag == "--executables") {
      options.executables = true;
    } else {
      if (i + 1 == arguments.size()) return absl::StrCat(flag, " needs a value");
      const std::string& value = arguments[++i];
      bool good = true;
      if (flag == "--show") {
        options.visible.push_back(value);
      } else if (flag == "--write") {
        options.writable.push_back(value);
      } else if (flag == "--directory") {
        options.directory = value;
      } else if (flag == "--keep-fd") {
        int fd = 0;
        good = absl::SimpleAtoi(value, &fd) && fd > 2;
        command->kept_fds.push_back(fd);
      } else if (flag == "--temporary-bytes") {
        good = absl::SimpleAtoi(value, &options.temporary_bytes);
      } else if (flag == "--file-bytes") {
        good = absl::SimpleAtoi(value, &options.file_bytes);
      } else if (flag == "--processes") {
        good = absl::SimpleAtoi(value, &options.processes);
      } else if (flag == "--cpu-seconds") {
        good = absl::SimpleAtoi(value, &options.cpu_seconds);
      } else {
        return absl::StrCat("unknown argument ", flag);
      }
      if (!good) return absl::StrCat(flag, ": \"", value, "\" is none");
    }
  }
  return "expected -- and a program";
}

}  // namespace pawl
