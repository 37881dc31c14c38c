#include "worker/build/nvrtc.h"

#include <dlfcn.h>

#include <filesystem>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace pawl {

// The few declarations of nvrtc.h that are used here, so that nothing needs the toolkit to build.
struct Nvrtc::Functions {
  using Program = struct NvrtcProgram*;
  int (*version)(int* major, int* minor);
  const char* (*error_string)(int result);
  int (*create)(Program*, const char* source, const char* name, int headers, const char* const* header_texts,
                const char* const* header_names);
  int (*destroy)(Program*);
  int (*compile)(Program, int option_count, const char* const* options);
  int (*cubin_size)(Program, size_t*);
  int (*cubin)(Program, char*);
  int (*log_size)(Program, size_t*);
  int (*log)(Program, char*);
  int (*add_name)(Program, const char* expression);
  int (*lowered_name)(Program, const char* expression, const char** name);
};

namespace {

constexpr int kSuccess = 0, kNvrtcOutOfMemory = 1, kProgramCreationFailure = 2, kInvalidOption = 5, kCompilation = 6,
              kInternalError = 11;

template <typename F>
absl::Status Find(void* library, const char* name, F* function) {
  *function = reinterpret_cast<F>(dlsym(library, name));
  if (*function != nullptr) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("this NVRTC is too old: it has no ", name, " (CUDA 11.2 or later is needed)"));
}

Compilation::Result Meaning(int code) {
  switch (code) {
    case kSuccess:
      return Compilation::Result::kOk;
    case kNvrtcOutOfMemory:
      return Compilation::Result::kOutOfMemory;
    case kInvalidOption:
      return Compilation::Result::kOptionRefused;
    case kCompilation:
    case kProgramCreationFailure:
    case kInternalError:  // ptxas gave up on what the source became
      return Compilation::Result::kSourceRefused;
    default:
      return Compilation::Result::kBroken;
  }
}

// NVRTC opens libnvrtc-builtins by its bare name when it first compiles; by then the sandbox may have hidden the path
// that the loader's cache knows it by. One that is loaded already is found.
void LoadBuiltins(const std::string& library) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(library).parent_path(), error)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind("libnvrtc-builtins.so", 0) == 0) dlopen(entry.path().c_str(), RTLD_NOW | RTLD_GLOBAL);
  }
}

}  // namespace

Nvrtc::Nvrtc() : functions_(std::make_unique<Functions>()) {}

// The library stays loaded: unloading it leaks what it allocated when it was loaded.
Nvrtc::~Nvrtc() = default;

absl::StatusOr<std::unique_ptr<Nvrtc>> Nvrtc::Load(const std::string& library) {
  std::unique_ptr<Nvrtc> nvrtc(new Nvrtc);
  nvrtc->library_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (nvrtc->library_ == nullptr) return absl::UnavailableError(absl::StrCat("NVRTC can't be loaded: ", dlerror()));
  LoadBuiltins(library);
  Functions& f = *nvrtc->functions_;
  void* const from = nvrtc->library_;
  absl::Status status = Find(from, "nvrtcVersion", &f.version);
  status.Update(Find(from, "nvrtcGetErrorString", &f.error_string));
  status.Update(Find(from, "nvrtcCreateProgram", &f.create));
  status.Update(Find(from, "nvrtcDestroyProgram", &f.destroy));
  status.Update(Find(from, "nvrtcCompileProgram", &f.compile));
  status.Update(Find(from, "nvrtcGetCUBINSize", &f.cubin_size));
  status.Update(Find(from, "nvrtcGetCUBIN", &f.cubin));
  status.Update(Find(from, "nvrtcGetProgramLogSize", &f.log_size));
  status.Update(Find(from, "nvrtcGetProgramLog", &f.log));
  status.Update(Find(from, "nvrtcAddNameExpression", &f.add_name));
  status.Update(Find(from, "nvrtcGetLoweredName", &f.lowered_name));
  if (!status.ok()) return status;
  return nvrtc;
}

std::string Nvrtc::version() const {
  int major = 0, minor = 0;
  functions_->version(&major, &minor);
  return absl::StrCat(major, ".", minor);
}

Compilation Nvrtc::Compile(const CompileJob& job) const {
  const Functions& f = *functions_;
  Compilation compilation;
  const auto failed = [&](int code) {
    compilation.result = Meaning(code);
    if (code != kSuccess) compilation.error = f.error_string(code);
    return code != kSuccess;
  };
  Functions::Program program = nullptr;
  std::vector<const char*> header_texts, header_names;
  for (const StandardHeader& header : job.headers) {
    header_texts.push_back(header.text.c_str());
    header_names.push_back(header.name.c_str());
  }
  if (failed(f.create(&program, job.source.c_str(), job.name.c_str(), static_cast<int>(header_names.size()),
                      header_texts.data(), header_names.data()))) {
    return compilation;
  }
  for (const std::string& entry : job.entries) f.add_name(program, entry.c_str());
  std::vector<const char*> arguments;
  for (const std::string& option : job.options) arguments.push_back(option.c_str());
  const int compiled = f.compile(program, static_cast<int>(arguments.size()), arguments.data());

  size_t size = 0;
  if (f.log_size(program, &size) == kSuccess && size > 1) {
    compilation.log.resize(size);  // the size counts the final zero
    f.log(program, compilation.log.data());
    compilation.log.pop_back();
  }
  if (!failed(compiled) && !failed(f.cubin_size(program, &size))) {
    compilation.cubin.resize(size);
    failed(f.cubin(program, compilation.cubin.data()));
    for (const std::string& entry : job.entries) {
      const char* name = nullptr;
      if (f.lowered_name(program, entry.c_str(), &name) == kSuccess) compilation.lowered[entry] = name;
    }
  }
  f.destroy(&program);
  return compilation;
}

}  // namespace pawl
