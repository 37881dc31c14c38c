#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

// As Debian's library was built: its structs differ otherwise.
#include <httplib.h>

namespace pawl {

struct HttpDeadlines {
  std::chrono::milliseconds request = std::chrono::seconds(10);  // to arrive, whole
  std::chrono::milliseconds write = std::chrono::seconds(10);    // for the peer to take something
  std::chrono::milliseconds reply = std::chrono::seconds(120);   // to be taken, whole; events excepted
};

// A socket as the library reads and writes it, with deadlines for the whole of a request and of a reply: one that
// trickles in a byte at a time holds no thread for longer. Where others wait for a thread, a peer that says nothing, or
// sends or takes too little a second, is not waited for. Does not own the socket. For one thread.
class HttpStream final : public httplib::Stream {
 public:
  // Encrypted with a context; null: plain.
  HttpStream(socket_t socket, SSL_CTX* context, HttpDeadlines deadlines, std::function<bool()> others_wait);

  // Before anything else. False: it is no TLS that the peer speaks, or too slow.
  bool Begin();
  // The request was read to its end: nothing more is coming.
  void Took() { took_ = true; }
  // So much came that no more is read.
  bool too_large() const;
  // After everything. What is left of a request that was refused is taken and dropped: a connection closed on it
  // would be reset, and the peer, still sending, would never read the reply.
  void End();
  // The peer has closed its end, or the server's was closed for reading.
  bool left() const;
  // A reply without an end: only each piece must be taken in time.
  void GoOn() { reply_ends_ = reply_.since = Time::max(); }

  bool is_readable() const override;
  bool is_writable() const override;
  ssize_t read(char* to, size_t size) override;
  ssize_t write(const char* bytes, size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  socket_t socket() const override { return socket_; }

 private:
  using Time = std::chrono::steady_clock::time_point;
  // What has come, or was taken, since then.
  struct Pace {
    Time since;
    size_t bytes = 0;
  };
  // Tries an operation again whenever it says that it has to wait, until this time.
  template <typename Operation>
  ssize_t Try(Operation operation, short waits_for, Time until, const Pace& pace);
  bool WaitFor(short events, Time until, const Pace& pace) const;
  Time WriteEnds() const;

  struct Freed {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };

  const socket_t socket_;
  const std::unique_ptr<SSL, Freed> ssl_;  // null: plain
  const HttpDeadlines deadlines_;
  const std::function<bool()> others_wait_;
  const Time request_ends_;
  Time reply_ends_;
  Pace request_, reply_;
  std::string buffer_;  // read and not asked for yet: the library reads headers byte by byte
  size_t taken_ = 0;
  bool took_ = false;
};

}  // namespace pawl
