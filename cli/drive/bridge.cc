#include "cli/drive/bridge.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "worker/process/process.h"

namespace pawl {
namespace {

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
