#include "agent/mcp/stdio.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <exception>
#include <map>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"

namespace pawl {
namespace {

constexpr size_t kPipeBytes = 4096;  // a pipe that is writable takes as many without blocking
constexpr int kWriteMs = 10'000;     // for the client to take something
constexpr int kStopLookMs = 500;

// Lines to one descriptor, from several threads. Thread-safe.
class LineWriter {
 public:
  explicit LineWriter(int fd) : fd_(fd) {}

  void Write(const Json& message) {
    const std::string line = JsonText(message) + "\n";
    absl::MutexLock lock(&mutex_);
    for (size_t at = 0; at < line.size() && !broken_;) {
      pollfd ready = {fd_, POLLOUT, 0};
      const int polled = poll(&ready, 1, kWriteMs);
      if (polled < 0 && errno == EINTR) continue;
      const ssize_t count =
          polled > 0 ? write(fd_, line.data() + at, std::min(line.size() - at, kPipeBytes)) : ssize_t{-1};
      if (count < 0 && polled > 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (count <= 0) broken_ = true;
      at += count > 0 ? static_cast<size_t>(count) : 0;
    }
  }
  bool broken() const { return broken_; }

 private:
  const int fd_;
  absl::Mutex mutex_;
  std::atomic<bool> broken_ = false;
};

// The requests of one client.
class StdioCalls {
 public:
  StdioCalls(const McpServer& server, const McpStdioOptions& options)
      : server_(server), options_(options), writer_(options.out) {}

  // An error: no thread could be started, and there is nothing to end. With fewer than asked for it goes on.
  absl::Status Start() {
    try {
      for (int i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { Work(); });
    } catch (const std::exception& error) {
      if (threads_.empty()) return absl::ResourceExhaustedError(absl::StrCat("can't start a thread: ", error.what()));
    }
    return absl::OkStatus();
  }

  // With `all`, nothing is answered any more; otherwise only calls that take long are not.
  void End(bool all) {
    {
      absl::MutexLock lock(&mutex_);
      ending_ = true;
      for (const Call& call : queue_) CancelIf(all, call);
    }
    changed_.SignalAll();
    {
      absl::MutexLock lock(&mutex_);
      for (const auto& [id, call] : running_) CancelIf(all, call);
    }
    for (std::thread& thread : threads_) thread.join();
  }

  void Take(std::string_view line) {
    RpcReading reading = ReadRpcMessage(line);
    if (!reading.message) return writer_.Write(RpcErrorReply(reading.id, reading.error));
    RpcMessage& message = *reading.message;
    if (message.method == "notifications/cancelled") {
      if (const Json* id = JsonAt(message.params, "requestId")) session_.Cancel(*id);
    }
    if (message.kind != RpcMessage::Kind::kRequest) return;
    const bool slow = message.method == "tools/call" || message.method == "resources/read" ||
                      message.method == "resources/list" || message.method == "completion/complete";
    if (!slow) {
      McpServer::Surroundings around;
      around.caller = options_.caller;
      around.session = &session_;
      return writer_.Write(server_.Answer(message, EraOf(message), around).message);
    }
    Queue(std::move(message));
  }

  void Refuse(const RpcError& error) { writer_.Write(RpcErrorReply(nullptr, error)); }
  bool broken() const { return writer_.broken(); }

 private:
  void Queue(RpcMessage message) {
    std::shared_ptr<Cancellation> cancellation = session_.Begin(message.id);
    if (cancellation == nullptr) {
      return writer_.Write(
          RpcErrorReply(message.id, {.code = kInvalidRequest, .message = "another request with this id is under way"}));
    }
    bool full = false;
    {
      absl::MutexLock lock(&mutex_);
      full = queue_.size() >= static_cast<size_t>(options_.waiting);
      if (!full) queue_.push_back({message, std::move(cancellation)});
    }
    changed_.Signal();
    if (!full) return;
    session_.End(message.id);
    writer_.Write(RpcErrorReply(message.id, {.code = kTooManyRequests,
                                             .message = absl::StrCat("more than ", options_.threads, " calls run and ",
                                                                     options_.waiting, " wait: try again later")}));
  }

  struct Call {
    RpcMessage request;
    std::shared_ptr<Cancellation> cancellation;
  };

  void CancelIf(bool all, const Call& call) const {
    if (all || server_.features().TakesLong(TextAt(call.request.params, "name"))) call.cancellation->Cancel();
  }

  void Work() {
    while (true) {
      Call call;
      {
        absl::MutexLock lock(&mutex_);
        while (!ending_ && queue_.empty()) changed_.Wait(&mutex_);
        if (queue_.empty()) return;
        call = std::move(queue_.front());
        queue_.pop_front();
        running_[std::this_thread::get_id()] = call;
      }
      McpServer::Surroundings around;
      around.caller = options_.caller;
      around.session = &session_;
      around.cancellation = call.cancellation.get();
      around.notify = [this, &call](const Json& notification) {
        if (!call.cancellation->cancelled()) writer_.Write(notification);
      };
      const McpAnswer answer =
          call.cancellation->cancelled() ? McpAnswer() : server_.Answer(call.request, EraOf(call.request), around);
      session_.End(call.request.id);
      if (!call.cancellation->cancelled()) writer_.Write(answer.message);
      absl::MutexLock lock(&mutex_);
      running_.erase(std::this_thread::get_id());
    }
  }

  const McpServer& server_;
  const McpStdioOptions options_;
  McpSession session_;
  LineWriter writer_;
  absl::Mutex mutex_;
  absl::CondVar changed_;
  std::deque<Call> queue_ ABSL_GUARDED_BY(mutex_);
  std::map<std::thread::id, Call> running_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

bool IsBlank(std::string_view line) { return line.find_first_not_of(" \t\r") == std::string_view::npos; }

}  // namespace

absl::Status ServeMcpStdio(const McpServer& server, const McpStdioOptions& options) {
  StdioCalls calls(server, options);
  if (absl::Status started = calls.Start(); !started.ok()) return started;
  std::string pending;
  bool skipping = false;  // the rest of a line that was too long
  std::vector<char> block(1 << 16);
  absl::Status status;
  const auto stopped = [&] { return calls.broken() || (options.stopped != nullptr && options.stopped()); };
  while (!stopped()) {
    pollfd ready = {options.in, POLLIN, 0};
    if (poll(&ready, 1, kStopLookMs) <= 0) continue;
    const ssize_t count = read(options.in, block.data(), block.size());
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count < 0) status = absl::ErrnoToStatus(errno, "standard input can't be read");
    if (count <= 0) break;
    std::string_view rest(block.data(), static_cast<size_t>(count));
    while (!rest.empty()) {
      const size_t end = rest.find('\n');
      const std::string_view part = rest.substr(0, end);
      rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
      if (!skipping) pending += part;
      if (pending.size() > kMostMessageBytes) {
        calls.Refuse({.code = kInvalidRequest,
                      .message = absl::StrCat("the message has more than ", kMostMessageBytes, " bytes")});
        skipping = true;
        pending = std::string();
      }
      if (end == std::string_view::npos) break;
      if (!skipping && !IsBlank(pending)) calls.Take(pending);
      skipping = false;
      pending.clear();
    }
  }
  // The client closed its end behind the last message instead of ending its line.
  if (!stopped() && !skipping && !IsBlank(pending)) calls.Take(pending);
  calls.End(/*all=*/stopped());
  return status;
}

}  // namespace pawl
