#include "orchestrator/security/listening.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/channel/address.h"
#include "base/channel/tls_files.h"
#include "grpc/grpc_security_constants.h"
#include "orchestrator/security/call_gate.h"

namespace pawl {
namespace {

struct Socket {
  explicit Socket(int opened) : fd(opened) {}
  ~Socket() {
    if (fd >= 0) close(fd);
  }
  Socket(const Socket&) = delete;
  const int fd;
};

absl::Status CantListen(const std::string& address, const std::string& why) {
  return absl::UnavailableError(absl::StrCat("can't listen on ", address, ": ", why));
}

// gRPC would take a socket away from the process that listens on it.
absl::Status CheckFreeSocket(const std::string& path) {
  const std::string name = absl::StrCat("unix:", path);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return CantListen(name, "the path is longer than 107 characters");
  path.copy(address.sun_path, path.size());
  const Socket probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (connect(probe.fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
    return CantListen(name, "another process listens there");
  }
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) folder = ".";
  if (access(folder.c_str(), W_OK) == 0) return absl::OkStatus();
  return CantListen(name, absl::StrCat("the folder ", folder.string(), " can't be written: ", strerror(errno)));
}

absl::Status CheckFreePort(const std::string& address, const std::string& flag) {
  const size_t colon = address.rfind(':');
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int failed = getaddrinfo(host.c_str(), address.substr(colon + 1).c_str(), &hints, &found); failed != 0) {
    return CantListen(address, absl::StrCat("the host is unknown: ", gai_strerror(failed)));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found, freeaddrinfo);
  const Socket probe(socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  setsockopt(probe.fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (bind(probe.fd, found->ai_addr, found->ai_addrlen) == 0) return absl::OkStatus();
  switch (errno) {
    case EADDRINUSE:
      return CantListen(address,
                        absl::StrCat("another process uses this port; stop it, or name another port with ", flag));
    case EACCES:
      return CantListen(address, "no permission; ports below 1024 need privileges");
    case EADDRNOTAVAIL:
      return CantListen(address, "this machine has no such address");
    default:
      return CantListen(address, strerror(errno));
  }
}

}  // namespace

absl::Status CheckListening(const std::string& address, const SecurityOptions& security) {
  if (IsUnixSocket(address)) {
    if (address.size() == 5) return absl::InvalidArgumentError("unix: needs a path");
    if (!security.tls.any()) return absl::OkStatus();
    return absl::InvalidArgumentError("a unix: socket does not use TLS: omit --tls-cert, --tls-key and --tls-ca");
  }
  const size_t colon = address.rfind(':');
  int port = 0;
  if (colon == std::string::npos || colon == 0 || !absl::SimpleAtoi(address.substr(colon + 1), &port) || port < 0 ||
      port > 65535 || address.find('/') != std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", address, "\" is not an address; expected host:port or unix:/path"));
  }
  if (!security.tls.any()) {
    if (IsLocal(address)) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("\"", address,
                     "\" is reachable from other machines and needs TLS: give --tls-cert, --tls-key and --tls-ca "
                     "(scripts/make-certificates makes a set for trials), or listen on 127.0.0.1 or a unix: socket and "
                     "use a tunnel (ssh -L)"));
  }
  if (security.tls.cert.empty()) return absl::InvalidArgumentError("--tls-ca needs --tls-cert and --tls-key");
  if (security.tls.ca.empty() && security.tokens.empty()) {
    return absl::InvalidArgumentError(
        "no client could connect: name the authority of the clients' certificates (--tls-ca), a file with their "
        "tokens (--tokens), or both");
  }
  return absl::OkStatus();
}

absl::Status CheckFree(const std::string& address, const std::string& flag) {
  return IsUnixSocket(address) ? CheckFreeSocket(address.substr(5)) : CheckFreePort(address, flag);
}

absl::StatusOr<Access> LoadAccess(const SecurityOptions& security) {
  if (!security.tls.any() && security.tokens.empty()) return Access::Open();
  if (security.tokens.empty()) return Access::ByRole("", "");
  absl::StatusOr<std::string> tokens = ReadSecretFile(security.tokens, "the file of --tokens");
  if (!tokens.ok()) return tokens.status();
  return Access::ByRole(*tokens, security.tokens);
}

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(const std::string& address,
                                                                               const SecurityOptions& security) {
  absl::StatusOr<Access> access = LoadAccess(security);
  if (!access.ok()) return access.status();
  std::shared_ptr<grpc::ServerCredentials> credentials;
  if (security.tls.any()) {
    absl::StatusOr<TlsTexts> texts = ReadTlsFiles(security.tls);
    if (!texts.ok()) return texts.status();
    // Who has a token may come without a certificate; one that is shown must be right in any case.
    grpc::SslServerCredentialsOptions options(texts->ca.empty() ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                                              : security.tokens.empty()
                                                  ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                                                  : GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY);
    options.pem_root_certs = texts->ca;
    options.pem_key_cert_pairs.push_back({texts->key, texts->cert});
    credentials = grpc::SslServerCredentials(options);
  } else {
    // Plain on the wire. Unlike gRPC's insecure ones they let a gate stand before the calls, and they check once more
    // that a connection is local.
    credentials = grpc::experimental::LocalServerCredentials(IsUnixSocket(address) ? UDS : LOCAL_TCP);
  }
  credentials->SetAuthMetadataProcessor(std::make_shared<CallGate>(*std::move(access)));
  return credentials;
}

}  // namespace pawl
