#include "orchestrator/http/stream.h"

#include <fcntl.h>
#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace pawl {
namespace {

// The largest body, and room for the head of the request.
constexpr size_t kMostReceived = (4 << 20) + (64 << 10);
// Of a refused request: for the next of what is left to arrive.
constexpr std::chrono::seconds kNextOfTheRest(3);
// What a peer has to send, or take, while others wait for its thread, from so long after it began.
constexpr double kLeastBytesPerSecond = 16 << 10;
constexpr std::chrono::milliseconds kSlowAfter(500), kSlowLook(100);

using Clock = std::chrono::steady_clock;

bool Wait(int socket, short events, Clock::time_point until) {
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
    if (left.count() <= 0) return false;
    pollfd one = {socket, events, 0};
    const int ready = poll(&one, 1, static_cast<int>(std::min<int64_t>(left.count(), 60'000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

SSL* NewSsl(SSL_CTX* context, socket_t socket) {
  if (context == nullptr) return nullptr;
  SSL* ssl = SSL_new(context);
  if (ssl != nullptr) SSL_set_fd(ssl, socket);
  return ssl;
}

}  // namespace

HttpStream::HttpStream(socket_t socket, SSL_CTX* context, HttpDeadlines deadlines, std::function<bool()> others_wait)
    : socket_(socket),
      ssl_(NewSsl(context, socket)),
      deadlines_(deadlines),
      others_wait_(std::move(others_wait)),
      request_ends_(Clock::now() + deadlines.request),
      reply_ends_(Clock::now() + deadlines.reply),
      request_{Clock::now()} {
  fcntl(socket_, F_SETFL, fcntl(socket_, F_GETFL) | O_NONBLOCK);
}

template <typename Operation>
ssize_t HttpStream::Try(Operation operation, short waits_for, Time until, const Pace& pace) {
  while (true) {
    const ssize_t count = operation();
    if (count > 0) return count;
    if (ssl_ == nullptr) {
      if (count == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) return count;
    } else {
      const int why = SSL_get_error(ssl_.get(), static_cast<int>(count));
      ERR_clear_error();
      if (why == SSL_ERROR_ZERO_RETURN) return 0;
      if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE) return -1;
      waits_for = why == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
    }
    if (!WaitFor(waits_for, until, pace)) return -1;
  }
}

bool HttpStream::WaitFor(short events, Time until, const Pace& pace) const {
  while (true) {
    const Time now = Clock::now();
    const double seconds = std::chrono::duration<double>(now - pace.since).count();
    const bool slow = now - pace.since > kSlowAfter && static_cast<double>(pace.bytes) < kLeastBytesPerSecond * seconds;
    if (now >= until || (slow && others_wait_())) return false;
    if (Wait(socket_, events, std::min(now + kSlowLook, until))) return true;
  }
}

bool HttpStream::Begin() {
  if (!WaitFor(POLLIN, request_ends_, request_)) return false;
  return ssl_ == nullptr || Try([this] { return SSL_accept(ssl_.get()); }, POLLIN, request_ends_, request_) > 0;
}

void HttpStream::End() {
  if (ssl_ != nullptr && SSL_is_init_finished(ssl_.get())) SSL_shutdown(ssl_.get());
  ERR_clear_error();
  if (took_) return;
  shutdown(socket_, SHUT_WR);
  buffer_.resize(1 << 16);
  while (WaitFor(POLLIN, std::min(Clock::now() + kNextOfTheRest, request_ends_), request_)) {
    const ssize_t got = recv(socket_, buffer_.data(), buffer_.size(), 0);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return;
    request_.bytes += static_cast<size_t>(std::max<ssize_t>(got, 0));
  }
}

HttpStream::Time HttpStream::WriteEnds() const { return std::min(Clock::now() + deadlines_.write, reply_ends_); }

bool HttpStream::is_readable() const {
  return taken_ < buffer_.size() || Wait(socket_, POLLIN, Clock::now() + std::chrono::milliseconds(1));
}

bool HttpStream::is_writable() const {
  if (!Wait(socket_, POLLOUT, WriteEnds())) return false;
  // A peer that has gone is writable as well; one that closed has something to read, which is nothing.
  char byte;
  const ssize_t left = recv(socket_, &byte, 1, MSG_PEEK);
  return left > 0 || (left < 0 && (errno == EAGAIN || errno == EWOULDBLOCK));
}

bool HttpStream::left() const {
  pollfd one = {socket_, POLLRDHUP, 0};
  return poll(&one, 1, 0) > 0;
}

bool HttpStream::too_large() const { return request_.bytes > kMostReceived; }

ssize_t HttpStream::read(char* to, size_t size) {
  if (taken_ == buffer_.size()) {
    // One request a connection: the library has no limit on its head, nor on a body in chunks.
    if (too_large()) return -1;
    buffer_.resize(4096);
    const ssize_t got = Try(
        [this] {
          return ssl_ != nullptr ? SSL_read(ssl_.get(), buffer_.data(), static_cast<int>(buffer_.size()))
                                 : recv(socket_, buffer_.data(), buffer_.size(), 0);
        },
        POLLIN, request_ends_, request_);
    buffer_.resize(std::max<ssize_t>(got, 0));
    taken_ = 0;
    if (got <= 0) return got;
    request_.bytes += static_cast<size_t>(got);
  }
  const size_t count = std::min(size, buffer_.size() - taken_);
  buffer_.copy(to, count, taken_);
  taken_ += count;
  return static_cast<ssize_t>(count);
}

ssize_t HttpStream::write(const char* bytes, size_t size) {
  if (reply_.bytes == 0) reply_.since = std::max(reply_.since, Clock::now());
  const ssize_t taken = Try(
      [&] {
        return ssl_ != nullptr ? SSL_write(ssl_.get(), bytes, static_cast<int>(std::min<size_t>(size, 1 << 20)))
                               : send(socket_, bytes, size, MSG_NOSIGNAL);
      },
      POLLOUT, WriteEnds(), reply_);
  if (taken > 0) reply_.bytes += static_cast<size_t>(taken);
  return taken;
}

// Nobody asks who it is.
void HttpStream::get_remote_ip_and_port(std::string&, int&) const {}
void HttpStream::get_local_ip_and_port(std::string&, int&) const {}

}  // namespace pawl
