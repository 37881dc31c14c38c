#pragma once

#include <memory>
#include <string>

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

// Whether the address, which `flag` names, can be bound now. UNAVAILABLE says why not, in one line: gRPC and the
// library for HTTP say only that they could not.
absl::Status CheckFree(const std::string& address, const std::string& flag);

// Reads the tokens. Without tokens and TLS everybody who reaches the socket may do everything.
absl::StatusOr<Access> LoadAccess(const SecurityOptions& security);

// For an address that passed CheckListening.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(const std::string& address,
                                                                               const SecurityOptions& security);

}  // namespace pawl
