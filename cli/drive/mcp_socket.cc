#include "cli/drive/mcp_socket.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/mcp/stdio.h"

namespace pawl {
namespace {

constexpr size_t kMostConnections = 16;  // of one agent: it may start others
constexpr int kAcceptLookMs = 200;
constexpr int kNoDescriptorUs = 20'000;

// What is there now. False: it has ended, or nobody takes it.
bool Copy(int from, int to) {
  char block[1 << 16];
  const ssize_t count = read(from, block, sizeof block);
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return true;
  for (ssize_t at = 0; at < count;) {
    const ssize_t written = write(to, block + at, static_cast<size_t>(count - at));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    at += written;
  }
  return count > 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<McpSocket>> McpSocket::Open(const std::filesystem::path& path, const McpServer& server) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const std::string text = path.string();
  if (text.size() >= sizeof address.sun_path) {
    return absl::InvalidArgumentError(absl::StrCat(text, " is too long for a socket: set TMPDIR to a shorter path"));
  }
  text.copy(address.sun_path, text.size());
  Fd listening(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listening.valid() || bind(listening.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      chmod(text.c_str(), 0600) != 0 || listen(listening.get(), static_cast<int>(kMostConnections)) != 0) {
    return absl::UnavailableError(absl::StrCat("can't listen on ", text, ": ", strerror(errno)));
  }
  return std::unique_ptr<McpSocket>(new McpSocket(std::move(listening), server));
}

McpSocket::McpSocket(Fd listening, const McpServer& server)
    : listening_(std::move(listening)), server_(server), acceptor_([this] { Accept(); }) {}

McpSocket::~McpSocket() {
  stopping_ = true;
  acceptor_.join();
}

void McpSocket::Accept() {
  std::list<Serving> serving;
  while (!stopping_) {
    pollfd ready = {listening_.get(), POLLIN, 0};
    const bool asked = poll(&ready, 1, kAcceptLookMs) > 0;
    // A thread that has ended keeps its stack until it is joined.
    serving.remove_if([](const Serving& each) { return each.ended.load(); });
    if (!asked) continue;
    Fd connection(accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!connection.valid()) {
      usleep(kNoDescriptorUs);  // it stays ready while there is none
    } else if (serving.size() < kMostConnections) {
      Begin(std::move(connection), &serving);
    }  // otherwise closed at once
  }
}

void McpSocket::Begin(Fd connection, std::list<Serving>* serving) {
  Serving& begun = serving->emplace_back();
  begun.connection = std::move(connection);
  try {
    begun.thread = std::thread([this, &begun] { Serve(&begun); });
  } catch (const std::exception&) {
    serving->pop_back();  // closed; the client may try again
  }
}

void McpSocket::Serve(Serving* serving) {
  McpStdioOptions options;
  options.in = options.out = serving->connection.get();
  options.threads = 4;
  options.stopped = [this] { return stopping_.load(); };
  (void)ServeMcpStdio(server_, options);
  serving->connection.Reset();  // its client sees the end now, not when the thread is joined
  serving->ended = true;
}

absl::Status BridgeToSocket(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return absl::InvalidArgumentError(absl::StrCat(path, " is too long"));
  path.copy(address.sun_path, path.size());
  const Fd server(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!server.valid() || connect(server.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    return absl::UnavailableError(
        absl::StrCat("no server listens on ", path, ": ", strerror(errno), "; `pawl agent` does while its agents run"));
  }
  bool asking = true;
  while (true) {
    pollfd ready[] = {{server.get(), POLLIN, 0}, {asking ? STDIN_FILENO : -1, POLLIN, 0}};
    if (poll(ready, 2, -1) < 0) continue;  // a signal
    if (ready[0].revents != 0 && !Copy(server.get(), STDOUT_FILENO)) return absl::OkStatus();
    if (ready[1].revents != 0 && !Copy(STDIN_FILENO, server.get())) {
      asking = false;
      shutdown(server.get(), SHUT_WR);  // what was asked before is still answered
    }
  }
}

}  // namespace pawl
