// pawl-builder: compiles device code to cubins for the program that started it, and never opens the GPU. Reads
// BuildRequest messages on descriptor 0 and answers each with a BuildReply on descriptor 1, until its input ends. The
// first reply comes unasked: it says that the sandbox stands and what there is to compile with, or why not.

#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/sync/steady_time.h"
#include "worker/build/build_reply.h"
#include "worker/host/header_libraries.h"
#include "worker/process/message_pipe.h"
#include "worker/sandbox/sandbox.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

// Limit of one process: a compiler, or this builder, which is restarted when it reaches the limit.
constexpr int kCpuSeconds = 3600;

struct Arguments {
  Toolkit toolkit;
  SandboxOptions sandbox;
  std::string sandboxing = "required";  // or optional, never
};

bool ReadArguments(int argc, char** argv, Arguments* arguments) {
  for (int i = 1; i < argc; i += 2) {
    const std::string_view name = argv[i];
    if (i + 1 == argc) return false;
    const std::string value = argv[i + 1];
    if (name == "--nvrtc") {
      arguments->toolkit.nvrtc = value;
    } else if (name == "--nvcc") {
      arguments->toolkit.nvcc = value;
    } else if (name == "--include") {
      arguments->toolkit.include = value;
    } else if (name == "--library") {
      if (!AddLibrary(value, &arguments->toolkit.libraries).empty()) return false;
    } else if (name == "--show") {
      arguments->sandbox.visible.push_back(value);
    } else if (name == "--sandbox") {
      arguments->sandboxing = value;
    } else {
      return false;
    }
  }
  return true;
}

// What a library prints must not land among the replies: descriptor 1 becomes standard error.
struct Pipes {
  int requests;
  int replies;
};

Pipes TakePipes() {
  const Pipes pipes = {fcntl(0, F_DUPFD_CLOEXEC, 3), fcntl(1, F_DUPFD_CLOEXEC, 3)};
  dup2(2, 1);
  close(0);
  open("/dev/null", O_RDONLY);
  return pipes;
}

// In short memory the kernel should end a compiler, not the program that waits for it.
void OfferMyself() {
  const int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  (void)!write(fd, "1000", 4);
  close(fd);
}

void LoadNvrtc(Compilers* compilers) {
  if (compilers->toolkit.nvrtc.empty()) {
    compilers->nvrtc_missing = "NVRTC was not found: install the CUDA toolkit or set CUDA_HOME";
    return;
  }
  absl::StatusOr<std::unique_ptr<Nvrtc>> nvrtc = Nvrtc::Load(compilers->toolkit.nvrtc);
  if (!nvrtc.ok()) {
    compilers->nvrtc_missing = std::string(nvrtc.status().message());
    return;
  }
  compilers->nvrtc = *std::move(nvrtc);
  // The first compilation loads NVRTC's own library and tables: not at a candidate's expense.
  compilers->nvrtc->Compile({.source = "extern \"C\" __global__ void warm(float* x) { x[threadIdx.x] = 0; }",
                             .name = "warm.cu",
                             .options = {},
                             .entries = {},
                             .headers = {}});
}

// A compile option can name a file to write (-fdevice-time-trace=FILE). The next source must not find it: the same
// source gives the same cubin, whatever was compiled before.
void EmptyTemporaryFolder() {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator("/tmp", error)) {
    std::error_code ignored;
    fs::remove_all(entry.path(), ignored);
  }
}

int Main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--version") {
    std::puts("pawl-builder " PAWL_VERSION);
    return 0;
  }
  Arguments arguments;
  if (!ReadArguments(argc, argv, &arguments)) {
    std::fprintf(stderr,
                 "usage: pawl-builder [--nvrtc FILE] [--nvcc FILE] [--include FOLDER] [--library NAME=FOLDER]... "
                 "[--show PATH]... [--sandbox required|optional|never]\n       pawl-builder --version\n"
                 "Compiles kernels for a worker, which starts it and sends requests to its standard input.\n");
    return 2;
  }
  arguments.sandbox.cpu_seconds = kCpuSeconds;
  OfferMyself();
  v1::BuildReply hello;
  absl::Status sandbox =
      arguments.sandboxing == "never" ? absl::CancelledError("it was not asked for") : EnterSandbox(arguments.sandbox);
  if (sandbox.ok()) setenv("TMPDIR", "/tmp", 1);
  const Pipes pipes = TakePipes();
  Compilers compilers = {
      .toolkit = arguments.toolkit, .nvrtc = nullptr, .nvrtc_missing = "", .sandboxed = sandbox.ok()};
  if (!sandbox.ok() && arguments.sandboxing == "required") {
    hello.set_host_error(std::string(sandbox.message()));
  } else {
    LoadNvrtc(&compilers);
    const std::string nvrtc = compilers.nvrtc ? absl::StrCat("NVRTC ", compilers.nvrtc->version()) : "no NVRTC";
    if (compilers.nvrtc == nullptr && arguments.toolkit.nvcc.empty()) hello.set_host_error(compilers.nvrtc_missing);
    hello.set_log(absl::StrCat(nvrtc, arguments.toolkit.nvcc.empty() ? "" : ", nvcc", ", ",
                               sandbox.ok() ? "sandboxed" : absl::StrCat("not sandboxed: ", sandbox.message())));
  }
  if (!WriteMessage(pipes.replies, hello, SteadyTime::InfiniteFuture()).ok()) return 1;

  v1::BuildRequest request;
  absl::Status status;
  while ((status = ReadMessage(pipes.requests, &request, SteadyTime::InfiniteFuture())).ok()) {
    status = WriteMessage(pipes.replies, MakeBuildReply(request, compilers), SteadyTime::InfiniteFuture());
    if (!status.ok()) break;
    if (sandbox.ok()) EmptyTemporaryFolder();
  }
  if (absl::IsUnavailable(status)) return 0;  // the owner is done
  std::fprintf(stderr, "pawl-builder: %s\n", status.ToString().c_str());
  return 1;
}

}  // namespace
}  // namespace pawl

// NVRTC asks this for __DATE__ and __TIME__, as the program's functions come before the C library's: the same source
// gives the same cubin whenever it is compiled.
extern "C" time_t time(time_t* seconds) noexcept {
  if (seconds != nullptr) *seconds = 0;
  return 0;
}

int main(int argc, char** argv) {
  const int code = pawl::Main(argc, argv);
  std::fflush(nullptr);
  _exit(code);  // unloading NVRTC is of no use, and there is no /proc for a leak checker
}
