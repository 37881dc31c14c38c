#include "cli/drive/mcp_socket.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/mcp/stdio.h"

namespace pawl {
namespace {

constexpr int kMostConnections = 16;  // of one agent: it may start others
constexpr int kAcceptLookMs = 200;

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
      chmod(text.c_str(), 0600) != 0 || listen(listening.get(), kMostConnections) != 0) {
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
  std::vector<std::thread> serving;
  while (!stopping_) {
    pollfd ready = {listening_.get(), POLLIN, 0};
    if (poll(&ready, 1, kAcceptLookMs) <= 0) continue;
    Fd connection(accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!connection.valid() || connections_ >= kMostConnections) continue;  // closed at once
    ++connections_;
    serving.emplace_back([this, fd = std::make_shared<Fd>(std::move(connection))] { Serve(std::move(*fd)); });
  }
  for (std::thread& thread : serving) thread.join();
}

void McpSocket::Serve(Fd connection) {
  McpStdioOptions options;
  options.in = options.out = connection.get();
  options.threads = 4;
  options.stopped = [this] { return stopping_.load(); };
  (void)ServeMcpStdio(server_, options);
  --connections_;
}

}  // namespace pawl
