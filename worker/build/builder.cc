#include "worker/build/builder.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/names/utf8.h"
#include "base/sync/steady_time.h"
#include "worker/build/build_reply.h"
#include "worker/process/spawn.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kStartTime = absl::Seconds(60);  // loading NVRTC from a cold disk takes its time
constexpr double kDefaultDeadlineSeconds = 30;

// The toolkit's own folders. One that holds more than a toolkit (/usr, or an ancestor of the home folder) is not shown:
// of /usr the sandbox shows what is needed anyway.
std::vector<std::string> VisibleFolders(const Toolkit& toolkit) {
  std::vector<std::string> folders;
  const char* home = getenv("HOME");
  std::error_code error;
  const std::string real_home = home == nullptr ? "" : fs::weakly_canonical(home, error).string();
  for (const fs::path& folder : {fs::path(toolkit.root), fs::path(toolkit.nvrtc).parent_path(),
                                 fs::path(toolkit.nvcc).parent_path(), fs::path(toolkit.include)}) {
    const std::string text = folder.string();
    const bool deep = !folder.empty() && folder.relative_path().has_parent_path();
    if (deep && !absl::StrCat(real_home, "/").starts_with(absl::StrCat(text, "/"))) folders.push_back(text);
  }
  // What an administrator named is shown wherever it is.
  for (const auto& [name, folder] : toolkit.libraries) folders.push_back(folder);
  return folders;
}

// Nothing of the user's environment is handed on: a candidate must not find it in its build.
std::map<std::string, std::string> CleanEnvironment() {
  std::map<std::string, std::string> env = {{"PATH", "/usr/bin:/bin"}, {"LC_ALL", "C"}, {"HOME", "/tmp"}};
  for (const char* name : {"LD_LIBRARY_PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"}) {
    if (const char* value = getenv(name); value != nullptr) env[name] = value;
  }
  return env;
}

// Pawl's own source, without a variant's options. A machine that compiles it is in order.
v1::BuildRequest OwnRequest(const v1::BuildRequest& like) {
  v1::BuildRequest own;
  own.set_compiler(like.compiler());
  own.set_architecture(like.architecture());
  own.set_name("own.cu");
  own.set_source("extern \"C\" __global__ void pawl_own() {}\n");
  own.set_deadline_seconds(like.deadline_seconds());
  return own;
}

// nvcc runs what a variant's compile options tell it to (-Xcompiler=-wrapper,...). What that leaves behind could meddle
// with the builds that follow, the reference's among them: it ends with its sandbox. NVRTC and ptxas run nothing.
bool RunsPrograms(const v1::BuildRequest& request) {
  return request.compiler() == v1::COMPILER_NVCC && request.binary().empty();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Builder>> Builder::Create(int processes) {
  BuilderOptions options;
  options.processes = processes;
  return Create(std::move(options));
}

absl::StatusOr<std::unique_ptr<Builder>> Builder::Create(BuilderOptions options) {
  if (options.processes < 1) return absl::InvalidArgumentError("a builder needs at least one process");
  if (options.toolkit.nvrtc.empty() && options.toolkit.nvcc.empty()) {
    return absl::UnavailableError(absl::StrCat("NVRTC was not found (looked in ",
                                               absl::StrJoin(options.toolkit.looked_in, ", "),
                                               "): install the CUDA toolkit or set CUDA_HOME"));
  }
  if (options.program.empty()) {
    absl::StatusOr<std::string> program = FindPawlProgram("pawl-builder");
    if (!program.ok()) return program.status();
    options.program = *std::move(program);
  }

  std::unique_ptr<Builder> builder(new Builder(std::move(options)));
  std::vector<Process> started;  // all are started before the first is greeted: they load NVRTC side by side
  for (int i = 0; i < builder->options_.processes; ++i) {
    absl::StatusOr<Process> process = builder->Launch();
    if (!process.ok()) return process.status();
    started.push_back(*std::move(process));
  }
  v1::BuildReply hello;
  for (Process& process : started) {
    if (absl::Status status = builder->Greet(*process, &hello); !status.ok()) return status;
    builder->GiveBack(std::move(process));
  }
  builder->description_ = hello.log();
  builder->sandboxed_ = !absl::StrContains(hello.log(), "not sandboxed");
  return builder;
}

absl::StatusOr<Builder::Process> Builder::Launch() const {
  const Toolkit& toolkit = options_.toolkit;
  ChildOptions child;
  child.argv = {options_.program};
  child.env = CleanEnvironment();
  child.clear_env = true;
  child.env["TMPDIR"] = folder_.path().string();
  const auto add = [&child](const char* name, const std::string& value) {
    if (!value.empty()) child.argv.insert(child.argv.end(), {name, value});
  };
  add("--nvrtc", toolkit.nvrtc);
  add("--nvcc", toolkit.nvcc);
  add("--include", toolkit.include);
  for (const auto& [name, folder] : toolkit.libraries) add("--library", absl::StrCat(name, "=", folder));
  for (const std::string& folder : VisibleFolders(toolkit)) add("--show", folder);
  if (options_.allow_unsandboxed) add("--sandbox", options_.skip_sandbox ? "never" : "optional");
  return ChildProcess::Start(child);
}

absl::Status Builder::Greet(ChildProcess& process, v1::BuildReply* hello) const {
  absl::Status status = process.Receive(hello, SteadyNow() + kStartTime);
  if (!status.ok()) return absl::InternalError(absl::StrCat("pawl-builder did not start: ", status.message()));
  if (hello->host_error().empty()) return absl::OkStatus();
  // It says what it found to compile with only when it stands in its sandbox.
  return hello->log().empty() ? absl::FailedPreconditionError(hello->host_error())
                              : absl::UnavailableError(hello->host_error());
}

absl::StatusOr<Builder::Process> Builder::Take() {
  Process process;
  {
    absl::MutexLock lock(&mutex_);
    while (idle_.empty()) returned_.Wait(&mutex_);
    process = std::move(idle_.back());
    idle_.pop_back();
  }
  if (process != nullptr && process->alive()) return process;
  absl::StatusOr<Process> fresh = Launch();
  v1::BuildReply hello;
  absl::Status status = fresh.status();
  if (status.ok()) status = Greet(**fresh, &hello);
  if (status.ok()) return fresh;
  GiveBack(nullptr);
  return status;
}

void Builder::GiveBack(Process process) {
  {
    absl::MutexLock lock(&mutex_);
    // Idle ones are taken from the back: those that are still to be started come last.
    idle_.insert(process == nullptr ? idle_.begin() : idle_.end(), std::move(process));
  }
  returned_.Signal();
}

absl::StatusOr<v1::BuildReply> Builder::BuildOnce(const v1::BuildRequest& request, const Stopped& stopped,
                                                  bool* killed) {
  absl::StatusOr<Process> process = Take();
  if (!process.ok()) return process.status();
  const SteadyTime start = SteadyNow();
  const SteadyTime deadline = start + absl::Seconds(request.deadline_seconds());
  v1::BuildReply reply;
  absl::Status status = (*process)->Send(request, deadline);
  if (status.ok()) status = (*process)->Receive(&reply, deadline, stopped);
  if (status.ok()) {
    // Whatever made it fail must not make the next build fail.
    if (RunsPrograms(request) || !reply.host_error().empty()) {
      (*process)->Kill();
      process->reset();
    }
    GiveBack(*std::move(process));
    if (!reply.host_error().empty()) return absl::FailedPreconditionError(reply.host_error());
    *killed = IsOutOfMemory(reply);
    return reply;
  }
  (*process)->Kill();
  const ProcessEnd end = (*process)->end().value_or(ProcessEnd{});
  process->reset();
  GiveBack(nullptr);
  if (absl::IsCancelled(status)) return status;
  reply.Clear();
  reply.set_seconds(absl::ToDoubleSeconds(SteadyNow() - start));
  if (absl::IsDeadlineExceeded(status)) {
    *reply.mutable_failure() = BuildTimeout(request, request.deadline_seconds());
    return reply;
  }
  if (end.signal == 0) return absl::InternalError(absl::StrCat("a build was interrupted: ", status.message()));
  *killed = true;
  *reply.mutable_failure() = BuildFailure(
      v1::CHECK_COMPILE, end.signal == SIGKILL
                             ? TooLargeText(request)
                             : absl::StrCat("the compiler ", EndText(end), " on ", request.name(), ", twice"));
  return reply;
}

absl::StatusOr<v1::BuildReply> Builder::Build(const v1::BuildRequest& request, const Stopped& stopped) {
  v1::BuildRequest sent = request;
  sent.set_source(ValidUtf8(request.source()));
  if (sent.deadline_seconds() <= 0) sent.set_deadline_seconds(kDefaultDeadlineSeconds);
  bool killed = false;
  {
    absl::ReaderMutexLock beside_others(&alone_);
    absl::StatusOr<v1::BuildReply> reply = BuildOnce(sent, stopped, &killed);
    if (!killed && !absl::IsFailedPrecondition(reply.status())) return reply;
  }
  // A compiler that was killed, or for which the machine is not in order, may have been short of memory: once more,
  // with nothing beside it.
  absl::WriterMutexLock by_itself(&alone_);
  killed = false;
  absl::StatusOr<v1::BuildReply> reply = BuildOnce(sent, stopped, &killed);
  if (reply.ok() && IsOutOfMemory(*reply)) reply->mutable_failure()->set_message(TooLargeText(sent));
  if (!absl::IsFailedPrecondition(reply.status())) return reply;
  // A variant's compile options can make any machine look broken (-dlto, -ccbin=nothing).
  const absl::StatusOr<v1::BuildReply> own = BuildOnce(OwnRequest(sent), stopped, &killed);
  if (absl::IsCancelled(own.status())) return own;
  if (!own.ok() || own->has_failure()) return reply;
  v1::BuildReply blamed;
  *blamed.mutable_failure() =
      BuildFailure(v1::CHECK_COMPILE,
                   absl::StrCat(sent.name().empty() ? "kernel.cu" : sent.name(), ": ", reply.status().message(),
                                "; but another source compiles here: is one of `options` in kernel.toml to blame?"));
  return blamed;
}

Builder::~Builder() {
  std::vector<std::thread> threads;
  {
    absl::MutexLock lock(&work_mutex_);
    ending_ = true;
    threads.swap(threads_);
    work_changed_.SignalAll();
  }
  for (std::thread& thread : threads) thread.join();
}

void Builder::Work() {
  for (;;) {
    std::function<void()> task;
    {
      absl::MutexLock lock(&work_mutex_);
      while (work_.empty() && !ending_) work_changed_.Wait(&work_mutex_);
      if (work_.empty()) return;
      task = std::move(work_.front());
      work_.pop_front();
    }
    task();
  }
}

std::vector<absl::StatusOr<v1::BuildReply>> Builder::BuildBeside(const std::vector<v1::BuildRequest>& requests,
                                                                 const Stopped& stopped) {
  if (requests.size() < 2 || options_.processes < 2) return Compiler::BuildBeside(requests, stopped);
  std::vector<absl::StatusOr<v1::BuildReply>> replies(requests.size(), absl::UnknownError("not built"));
  size_t left = requests.size();  // guarded by work_mutex_
  {
    absl::MutexLock lock(&work_mutex_);
    while (threads_.size() < static_cast<size_t>(options_.processes)) threads_.emplace_back([this] { Work(); });
    for (size_t i = 0; i < requests.size(); ++i) {
      work_.push_back([&, i] {
        replies[i] = Build(requests[i], stopped);
        absl::MutexLock done(&work_mutex_);
        --left;
        work_changed_.SignalAll();
      });
    }
    work_changed_.SignalAll();
    while (left > 0) work_changed_.Wait(&work_mutex_);
  }
  return replies;
}

std::vector<pid_t> Builder::idle_processes() {
  absl::MutexLock lock(&mutex_);
  std::vector<pid_t> pids;
  for (const Process& process : idle_) {
    if (process != nullptr) pids.push_back(process->pid());
  }
  return pids;
}

}  // namespace pawl
