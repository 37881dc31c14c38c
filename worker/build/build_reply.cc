#include "worker/build/build_reply.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/names/utf8.h"
#include "kernels/active_source.h"
#include "worker/build/compilation.h"
#include "worker/build/compiler_log.h"
#include "worker/build/cubin.h"
#include "worker/build/source_paths.h"

namespace pawl {
namespace {

constexpr size_t kLogCap = 1 << 20;
constexpr char kOutOfMemory[] = "out of memory: ";  // begins the message of a failure that deserves another try

std::string Name(const v1::BuildRequest& request) { return request.name().empty() ? "kernel.cu" : request.name(); }

bool IsArchitecture(const std::string& text) {
  return text.starts_with("sm_") && text.size() > 3 &&
         std::all_of(text.begin() + 3, text.end(), [](char c) { return absl::ascii_isalnum(c); });
}

std::vector<std::string> Options(const v1::BuildRequest& request, const Toolkit& toolkit) {
  std::vector<std::string> options = {absl::StrCat("-arch=", request.architecture())};
  const bool has_standard = std::any_of(request.options().begin(), request.options().end(), [](const std::string& o) {
    return o.starts_with("-std") || o.starts_with("--std");
  });
  if (!has_standard) options.push_back("--std=c++17");
  if (!toolkit.include.empty()) {
    options.push_back(absl::StrCat("-I", toolkit.include));
    std::error_code error;
    const std::string cccl = toolkit.include + "/cccl";  // libcu++ since CUDA 13
    if (std::filesystem::is_directory(cccl, error)) options.push_back(absl::StrCat("-I", cccl));
  }
  options.insert(options.end(), request.options().begin(), request.options().end());
  return options;
}

v1::Failure Refused(const v1::BuildRequest& request, int line, const std::string& path) {
  const std::string what = path.empty() ? "the source asks for a file by way of a macro"
                                        : absl::StrCat("the source asks for \"", path, "\"");
  return BuildFailure(
      v1::CHECK_BUILD_SANDBOX,
      ErrorText({Name(request), line, absl::StrCat(what, ": a build sees only the toolkit and the system's headers")},
                Name(request), request.source()));
}

// A place where the source asks for a file that is not to be seen from here. Files that are (a toolkit header by its
// full path) are no offence.
std::optional<v1::Failure> AskedForOutside(const v1::BuildRequest& request, bool compiled) {
  for (const OutsidePath& asked : OutsidePaths(request.source())) {
    const bool assembly = asked.directive == ".incbin";
    if (compiled && !assembly) continue;  // the compiler saw nothing there, and that was all right
    if (!assembly && (asked.path.empty() || access(asked.path.c_str(), R_OK) == 0)) continue;
    return Refused(request, asked.line, asked.path);
  }
  return std::nullopt;
}

// The weaker guard, before compiling, where there is no sandbox.
std::optional<v1::Failure> RefuseUnread(const v1::BuildRequest& request) {
  const std::vector<OutsidePath> asked = OutsidePaths(request.source());
  if (!asked.empty()) return Refused(request, asked[0].line, asked[0].path);
  for (const std::string& option : request.options()) {
    if (!absl::StrContains(option, "..") && !absl::StrContains(option, "/") && !absl::StrContains(option, "@") &&
        !absl::StrContains(option, "~")) {
      continue;
    }
    return BuildFailure(v1::CHECK_BUILD_SANDBOX, absl::StrCat("the compile option \"", option,
                                                              "\" names a path, which only a build sandbox allows"));
  }
  return std::nullopt;
}

// A source that knows when it was compiled. The builder's clock stands still (builder_main.cc), so that it would learn
// nothing; but whoever asks should hear so.
std::optional<v1::Failure> AskedForTime(const v1::BuildRequest& request) {
  const std::string active = ActiveSource(request.source(), {});
  for (const char* macro : {"__TIME__", "__DATE__", "__TIMESTAMP__"}) {
    if (!absl::StrContains(active, macro)) continue;
    const std::string before = request.source().substr(0, request.source().find(macro));
    const int line = 1 + static_cast<int>(std::count(before.begin(), before.end(), '\n'));
    const std::string what =
        absl::StrCat("the source uses ", macro, ": the same variant must give the same code whenever it is compiled");
    return BuildFailure(v1::CHECK_COMPILE, ErrorText({Name(request), line, what}, Name(request), request.source()));
  }
  return std::nullopt;
}

v1::Failure CompileFailure(const v1::BuildRequest& request, const Compilation& compilation) {
  const std::optional<CompilerError> error = FirstError(compilation.log);
  if (error.has_value()) {
    if (const std::string file = UnopenedFile(*error); IsOutside(file)) return Refused(request, error->line, file);
  }
  if (std::optional<v1::Failure> asked = AskedForOutside(request, false)) return *asked;
  if (error.has_value()) return BuildFailure(v1::CHECK_COMPILE, ErrorText(*error, Name(request), request.source()));
  const absl::string_view log = absl::StripAsciiWhitespace(compilation.log);
  return BuildFailure(v1::CHECK_COMPILE, absl::StrCat(Name(request), ": ", compilation.error, log.empty() ? "" : ": ",
                                                      log.substr(0, log.find('\n'))));
}

std::optional<v1::Failure> CheckEntries(const v1::BuildRequest& request, const std::vector<std::string>& entries) {
  for (const std::string& wanted : request.entries()) {
    if (std::find(entries.begin(), entries.end(), wanted) != entries.end()) continue;
    return BuildFailure(
        v1::CHECK_ENTRY,
        absl::StrCat("the cubin of ", Name(request), " has no entry \"", wanted, "\"; it has ",
                     entries.empty() ? "none" : absl::StrJoin(entries, ", "), ". Entries are extern \"C\" __global__"));
  }
  return std::nullopt;
}

Compilation Compile(const v1::BuildRequest& request, const Compilers& compilers) {
  const std::vector<std::string> options = Options(request, compilers.toolkit);
  const bool with_nvcc = request.compiler() == v1::COMPILER_NVCC;
  if (with_nvcc && compilers.toolkit.nvcc.empty()) {
    return Broken("nvcc was not found: install the CUDA toolkit or set CUDA_HOME");
  }
  if (with_nvcc) {
    // The owner kills at the deadline; this one is for a builder whose owner does not.
    return CompileWithNvcc(compilers.toolkit.nvcc, request.source(), Name(request), options,
                           absl::Seconds(request.deadline_seconds()) + absl::Seconds(5));
  }
  if (compilers.nvrtc == nullptr) return Broken(compilers.nvrtc_missing);
  return compilers.nvrtc->Compile(request.source(), Name(request), options);
}

// The architecture is the GPU's, not the candidate's choice.
bool BlamesArchitecture(const Compilation& compilation) {
  return compilation.result == Compilation::Result::kOptionRefused &&
         absl::StrContains(compilation.log, "gpu-architecture");
}

void Judge(const v1::BuildRequest& request, const Compilation& compilation, v1::BuildReply* reply) {
  using Result = Compilation::Result;
  if (compilation.result == Result::kBroken || BlamesArchitecture(compilation)) {
    reply->set_host_error(BlamesArchitecture(compilation)
                              ? absl::StrCat("this CUDA toolkit can't compile for ", request.architecture(),
                                             ": install one that knows this GPU")
                              : compilation.error);
  } else if (compilation.result == Result::kOutOfMemory) {
    *reply->mutable_failure() = BuildFailure(v1::CHECK_COMPILE, absl::StrCat(kOutOfMemory, compilation.error));
  } else if (compilation.result == Result::kTimedOut) {
    *reply->mutable_failure() = BuildTimeout(request, request.deadline_seconds());
  } else if (compilation.result != Result::kOk) {
    *reply->mutable_failure() = CompileFailure(request, compilation);
  } else if (std::optional<v1::Failure> asked = AskedForOutside(request, true)) {
    *reply->mutable_failure() = *std::move(asked);
  } else if (absl::StatusOr<std::vector<std::string>> entries = EntryNames(compilation.cubin); !entries.ok()) {
    reply->set_host_error(absl::StrCat("the compiler's output can't be read: ", entries.status().message()));
  } else if (std::optional<v1::Failure> missing = CheckEntries(request, *entries)) {
    *reply->mutable_failure() = *std::move(missing);
  } else {
    reply->set_cubin(compilation.cubin);
  }
}

}  // namespace

v1::BuildReply MakeBuildReply(const v1::BuildRequest& request, const Compilers& compilers) {
  const absl::Time start = absl::Now();
  v1::BuildReply reply;
  if (!IsArchitecture(request.architecture())) {
    reply.set_host_error(absl::StrCat("\"", request.architecture(), "\" is not an architecture such as sm_90"));
    return reply;
  }
  if (!compilers.sandboxed) {
    if (std::optional<v1::Failure> refused = RefuseUnread(request)) {
      *reply.mutable_failure() = *std::move(refused);
      return reply;
    }
  }
  if (std::optional<v1::Failure> asked = AskedForTime(request)) {
    *reply.mutable_failure() = *std::move(asked);
    return reply;
  }
  const Compilation compilation = Compile(request, compilers);
  reply.set_log(ValidUtf8(std::string_view(compilation.log).substr(0, kLogCap)));
  Judge(request, compilation, &reply);
  reply.set_seconds(absl::ToDoubleSeconds(absl::Now() - start));
  return reply;
}

v1::Failure BuildFailure(v1::Check check, const std::string& message) {
  v1::Failure failure;
  failure.set_stage(v1::STAGE_BUILD);
  failure.set_check(check);
  failure.set_message(ValidUtf8(message));
  return failure;
}

v1::Failure BuildTimeout(const v1::BuildRequest& request, double seconds) {
  return BuildFailure(v1::CHECK_TIMEOUT,
                      absl::StrFormat("compiling %s did not end within %g s and was killed", Name(request), seconds));
}

bool IsOutOfMemory(const v1::BuildReply& reply) {
  return reply.failure().check() == v1::CHECK_COMPILE && reply.failure().message().starts_with(kOutOfMemory);
}

std::string TooLargeText(const v1::BuildRequest& request) {
  const double gigabytes = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE) / (1 << 30);
  return absl::StrFormat(
      "the compiler was killed twice, the second time with nothing beside it: %s is too large to compile in this "
      "machine's memory (%.0f GiB)",
      Name(request), gigabytes);
}

}  // namespace pawl
