#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/channel/tls_files.h"
#include "grpcpp/security/server_credentials.h"
#include "orchestrator/security/access.h"

namespace pawl {

// Who is let in, and how.
struct SecurityOptions {
  TlsFiles tls{};
  std::string tokens{};  // file with `ROLE TOKEN` lines; empty: none
};

// Whether it may be listened on: host:port or unix:/path, and encrypted unless only this machine can reach it.
// INVALID_ARGUMENT says what is wrong and what to do. Also for other sockets of the daemon than gRPC's.
absl::Status CheckListening(const std::string& address, const SecurityOptions& security);

// Sockets that listen on one address: several where a name has several addresses, or the address is 0.0.0.0 or [::],
// which stand for every address of this machine, of both families. Closed with the object; the file of a unix: socket
// goes with it.
class ListeningSockets {
 public:
  // An address that passed CheckListening and that `flag` names. UNAVAILABLE says why not, in one line.
  static absl::StatusOr<std::unique_ptr<ListeningSockets>> Open(const std::string& address, const std::string& flag);
  ~ListeningSockets();
  ListeningSockets(const ListeningSockets&) = delete;

  const std::vector<int>& sockets() const { return sockets_; }  // they never block
  int port() const { return port_; }                            // that was chosen; 0 of a unix: socket

 private:
  ListeningSockets() = default;
  absl::Status OpenFile(const std::string& path);
  absl::Status OpenPort(const std::string& address, const std::string& flag);

  std::vector<int> sockets_;
  int port_ = 0;
  std::string file_;
};

// Reads the tokens. Without tokens and TLS everybody who reaches the socket may do everything.
absl::StatusOr<Access> LoadAccess(const SecurityOptions& security);

// For an address that passed CheckListening.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(const std::string& address,
                                                                               const SecurityOptions& security);

}  // namespace pawl
