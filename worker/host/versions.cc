#include <sys/utsname.h>

#include <future>
#include <regex>
#include <thread>

#include "absl/strings/str_cat.h"
#include "worker/host/toolkit.h"
#include "worker/process/subprocess.h"

namespace pawl {

namespace {

std::string FirstMatch(const std::string& text, const char* pattern) {
  std::smatch match;
  return std::regex_search(text, match, std::regex(pattern)) ? match[1].str() : "";
}

// The version that `argv` prints, by a pattern with one group.
std::future<std::string> Ask(std::vector<std::string> argv, const char* pattern) {
  return std::async(std::launch::async, [argv = std::move(argv), pattern]() -> std::string {
    if (argv[0].empty()) return "";
    ProcessOptions options;
    options.argv = argv;
    options.timeout = absl::Seconds(60);
    absl::StatusOr<ProcessResult> result = RunProcess(options);
    return result.ok() && result->ok() ? FirstMatch(result->out + result->err, pattern) : "";
  });
}

// PyTorch's file says its version at once; importing it takes seconds.
constexpr char kPytorchVersion[] =
    "import importlib.util, os, runpy\n"
    "folder = importlib.util.find_spec('torch').submodule_search_locations[0]\n"
    "print('torch', runpy.run_path(os.path.join(folder, 'version.py'))['__version__'])\n";

}  // namespace

v1::Toolchain ToolVersions(const Toolkit& toolkit) {
  auto nvcc = Ask({toolkit.nvcc, "--version"}, R"(release [0-9.]+, V([0-9.]+))");
  auto ncu = Ask({toolkit.ncu, "--version"}, R"(Version ([0-9.]+))");
  auto sanitizer = Ask({toolkit.compute_sanitizer, "--version"}, R"(Version ([0-9.]+))");
  auto pytorch = Ask({"python3", "-c", kPytorchVersion}, R"(torch ([^\s]+))");
  v1::Toolchain versions;
  // The library's file says its version: libnvrtc.so.13.0.88, or no more than the name that was found.
  versions.set_nvrtc(toolkit.nvrtc.substr(toolkit.nvrtc.rfind('/') + 1));
  versions.set_nvcc(nvcc.get());
  versions.set_ncu(ncu.get());
  versions.set_compute_sanitizer(sanitizer.get());
  versions.set_pytorch(pytorch.get());
  return versions;
}

std::string HostText() {
  struct utsname host;
  if (uname(&host) != 0) return "";
  return absl::StrCat(host.sysname, " ", host.machine, ", ", std::thread::hardware_concurrency(), " CPUs");
}

}  // namespace pawl
