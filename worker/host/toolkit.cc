#include "worker/host/toolkit.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "worker/host/header_libraries.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNvrtcNames[] = {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"};

constexpr const char* kCuptiNames[] = {"libcupti.so", "libcupti.so.13", "libcupti.so.12"};

std::string RealPath(const fs::path& path) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  return error ? "" : real.string();
}

bool IsFile(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

bool IsProgram(const fs::path& path) { return IsFile(path) && access(path.c_str(), X_OK) == 0; }

// Folders in `parent` whose name begins with `prefix`, the last in alphabetical order first: newer versions come first.
std::vector<fs::path> Newest(const fs::path& parent, const std::string& prefix) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(parent, error)) {
    if (entry.path().filename().string().starts_with(prefix) && entry.is_directory(error)) found.push_back(entry);
  }
  std::sort(found.rbegin(), found.rend());
  return found;
}

class Search {
 public:
  explicit Search(const std::map<std::string, std::string>& environment) : environment_(environment) {}

  Toolkit Run() {
    FindRoots();
    toolkit_.nvcc = RealPath(Program("PAWL_NVCC", "nvcc", {"bin"}));
    FindNvrtc();
    FindInclude();
    toolkit_.ncu = Program("PAWL_NCU", "ncu", {"bin", "nsight-compute"});
    for (const fs::path& folder : Newest("/opt/nvidia/nsight-compute", "")) {
      if (toolkit_.ncu.empty() && IsProgram(folder / "ncu")) toolkit_.ncu = folder / "ncu";
    }
    toolkit_.compute_sanitizer = Program("PAWL_COMPUTE_SANITIZER", "compute-sanitizer",
                                         {"bin", "compute-sanitizer", "extras/compute-sanitizer"});
    FindCupti();
    if (!toolkit_.nvcc.empty()) {
      toolkit_.root = fs::path(toolkit_.nvcc).parent_path().parent_path();
    } else if (!roots_.empty()) {
      toolkit_.root = RealPath(roots_[0]);
    }
    for (const absl::string_view library : absl::StrSplit(Value("PAWL_INCLUDE"), ',', absl::SkipEmpty())) {
      (void)AddLibrary(std::string(library), &toolkit_.libraries);
    }
    return std::move(toolkit_);
  }

 private:
  std::string Value(const std::string& name) const {
    const auto found = environment_.find(name);
    return found == environment_.end() ? "" : found->second;
  }

  void AddRoot(const fs::path& root) {
    if (std::find(roots_.begin(), roots_.end(), root) != roots_.end()) return;
    toolkit_.looked_in.push_back(root);
    std::error_code error;
    if (fs::is_directory(root, error)) roots_.push_back(root);
  }

  void FindRoots() {
    for (const char* name : {"CUDA_HOME", "CUDA_PATH"}) {
      if (const std::string value = Value(name); !value.empty()) AddRoot(value);
    }
    for (const std::string& folder : Path()) {
      if (!IsProgram(fs::path(folder) / "nvcc")) continue;
      AddRoot(fs::path(RealPath(fs::path(folder) / "nvcc")).parent_path().parent_path());
    }
    AddRoot("/usr/local/cuda");
    for (const fs::path& folder : Newest("/usr/local", "cuda-")) AddRoot(folder);
    AddRoot("/opt/cuda");
  }

  std::vector<std::string> Path() const { return absl::StrSplit(Value("PATH"), ':', absl::SkipEmpty()); }

  std::string Program(const char* variable, const std::string& name, const std::vector<std::string>& folders) const {
    if (const std::string value = Value(variable); !value.empty()) return value;
    // A CUDA_HOME that is set goes before PATH; the guesses come after it.
    const size_t set = !Value("CUDA_HOME").empty() || !Value("CUDA_PATH").empty() ? 1 : 0;
    const size_t first = std::min(set, roots_.size());
    for (size_t i = 0; i <= roots_.size(); ++i) {
      if (i == first) {
        for (const std::string& folder : Path()) {
          if (IsProgram(fs::path(folder) / name)) return fs::path(folder) / name;
        }
      }
      if (i == roots_.size()) break;
      for (const std::string& folder : folders) {
        if (IsProgram(roots_[i] / folder / name)) return roots_[i] / folder / name;
      }
      for (const fs::path& folder : Newest(roots_[i], "nsight-compute-")) {
        if (IsProgram(folder / name)) return folder / name;
      }
    }
    return "";
  }

  void FindNvrtc() {
    if (const std::string value = Value("PAWL_NVRTC"); !value.empty()) {
      toolkit_.nvrtc = RealPath(value);
      toolkit_.looked_in.push_back(value);
      return;
    }
    for (const fs::path& root : roots_) {
      std::vector<fs::path> folders = {root / "lib64", root / "lib"};
      for (const fs::path& target : Newest(root / "targets", "")) folders.push_back(target / "lib");
      for (const fs::path& folder : folders) {
        for (const char* name : kNvrtcNames) {
          if (!IsFile(folder / name)) continue;
          toolkit_.nvrtc = RealPath(folder / name);
          return;
        }
      }
    }
    // The dynamic linker's own search path: let it find the library, and ask where it did.
    toolkit_.looked_in.push_back("the dynamic linker's search path");
    for (const char* name : kNvrtcNames) {
      void* const library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
      if (library == nullptr) continue;
      link_map* map = nullptr;
      if (dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr) toolkit_.nvrtc = RealPath(map->l_name);
      dlclose(library);
      if (!toolkit_.nvrtc.empty()) return;
    }
  }

  void FindCupti() {
    if (const std::string value = Value("PAWL_CUPTI"); !value.empty()) {
      toolkit_.cupti = RealPath(value);
      return;
    }
    for (const fs::path& root : roots_) {
      std::vector<fs::path> folders = {root / "lib64", root / "lib", root / "extras/CUPTI/lib64"};
      for (const fs::path& target : Newest(root / "targets", "")) folders.push_back(target / "lib");
      for (const fs::path& folder : folders) {
        for (const char* name : kCuptiNames) {
          if (toolkit_.cupti.empty() && IsFile(folder / name)) toolkit_.cupti = RealPath(folder / name);
        }
      }
    }
  }

  void FindInclude() {
    std::vector<fs::path> folders;
    if (const std::string value = Value("PAWL_CUDA_INCLUDE"); !value.empty()) folders.push_back(value);
    if (!toolkit_.nvrtc.empty() && !Value("PAWL_NVRTC").empty()) {
      const fs::path package = fs::path(toolkit_.nvrtc).parent_path().parent_path();
      folders.push_back(package / "include");
      folders.push_back(package.parent_path() / "cuda_runtime" / "include");
    }
    for (const fs::path& root : roots_) {
      folders.push_back(root / "include");
      for (const fs::path& target : Newest(root / "targets", "")) folders.push_back(target / "include");
    }
    folders.push_back("/usr/include");
    for (const fs::path& folder : folders) {
      if (toolkit_.include.empty() && IsFile(folder / "cuda_fp16.h")) toolkit_.include = RealPath(folder);
    }
  }

  const std::map<std::string, std::string>& environment_;
  std::vector<fs::path> roots_;
  Toolkit toolkit_;
};

}  // namespace

Toolkit FindToolkit(const std::map<std::string, std::string>& environment) { return Search(environment).Run(); }

Toolkit FindToolkit() {
  std::map<std::string, std::string> environment;
  for (const char* name : {"PATH", "CUDA_HOME", "CUDA_PATH", "PAWL_NVCC", "PAWL_NVRTC", "PAWL_CUDA_INCLUDE",
                           "PAWL_INCLUDE", "PAWL_NCU", "PAWL_COMPUTE_SANITIZER", "PAWL_CUPTI"}) {
    if (const char* value = getenv(name); value != nullptr) environment[name] = value;
  }
  return FindToolkit(environment);
}

}  // namespace pawl
