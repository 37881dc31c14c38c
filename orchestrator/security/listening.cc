#include "orchestrator/security/listening.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/channel/address.h"
#include "base/channel/tls_files.h"
#include "grpc/grpc_security_constants.h"
#include "orchestrator/security/call_gate.h"

namespace pawl {
namespace {

absl::Status CantListen(const std::string& address, const std::string& why) {
  return absl::UnavailableError(absl::StrCat("can't listen on ", address, ": ", why));
}

absl::Status CantListen(const std::string& address, const std::string& flag, int error) {
  switch (error) {
    case EADDRINUSE:
      return CantListen(address,
                        absl::StrCat("another process uses this port; stop it, or name another port with ", flag));
    case EACCES:
      return CantListen(address, "no permission; ports below 1024 need privileges");
    case EADDRNOTAVAIL:
      return CantListen(address, "this machine has no such address");
    default:
      return CantListen(address, strerror(error));
  }
}

constexpr int kSocketFlags = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;

bool BindAndListen(int socket, const sockaddr* address, socklen_t length) {
  return bind(socket, address, length) == 0 && listen(socket, SOMAXCONN) == 0;
}

// A socket that listens on a port of this address only, not of the other family's as well; -1: errno says why not.
int OpenOne(const sockaddr* address, socklen_t length) {
  const int opened = socket(address->sa_family, kSocketFlags, 0);
  if (opened < 0) return -1;
  const int yes = 1;
  setsockopt(opened, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (address->sa_family == AF_INET6) setsockopt(opened, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes);
  if (BindAndListen(opened, address, length)) return opened;
  const int failed = errno;
  close(opened);
  errno = failed;
  return -1;
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

absl::StatusOr<std::unique_ptr<ListeningSockets>> ListeningSockets::Open(const std::string& address,
                                                                         const std::string& flag) {
  std::unique_ptr<ListeningSockets> opened(new ListeningSockets);
  const absl::Status status =
      IsUnixSocket(address) ? opened->OpenFile(address.substr(5)) : opened->OpenPort(address, flag);
  if (!status.ok()) return status;
  return opened;
}

ListeningSockets::~ListeningSockets() {
  if (!file_.empty()) unlink(file_.c_str());
  for (const int socket : sockets_) close(socket);
}

absl::Status ListeningSockets::OpenFile(const std::string& path) {
  const std::string name = absl::StrCat("unix:", path);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return CantListen(name, "the path is longer than 107 characters");
  path.copy(address.sun_path, path.size());
  const auto* bound = reinterpret_cast<const sockaddr*>(&address);
  sockets_.push_back(socket(AF_UNIX, kSocketFlags, 0));
  if (connect(sockets_[0], bound, sizeof address) == 0 || errno == EAGAIN) {  // EAGAIN: many wait for it already
    return CantListen(name, "another process listens there");
  }
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) folder = ".";
  if (access(folder.c_str(), W_OK) != 0) {
    return CantListen(name, absl::StrCat("the folder ", folder.string(), " can't be written: ", strerror(errno)));
  }
  // A process that was killed leaves its socket behind.
  struct stat left;
  if (lstat(path.c_str(), &left) == 0 && S_ISSOCK(left.st_mode)) unlink(path.c_str());
  if (!BindAndListen(sockets_[0], bound, sizeof address)) return CantListen(name, strerror(errno));
  file_ = path;
  return absl::OkStatus();
}

absl::Status ListeningSockets::OpenPort(const std::string& address, const std::string& flag) {
  const size_t colon = address.rfind(':');
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const bool every = host == "0.0.0.0" || host == "::";
  if (const int failed = getaddrinfo(every ? nullptr : host.c_str(), address.substr(colon + 1).c_str(), &hints, &found);
      failed != 0) {
    return CantListen(address, absl::StrCat("the host is unknown: ", gai_strerror(failed)));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found, freeaddrinfo);
  std::set<std::string> seen;  // a name may be listed twice with the same address
  int failed = EADDRNOTAVAIL;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    sockaddr_storage bound = {};
    memcpy(&bound, each->ai_addr, each->ai_addrlen);
    if (!seen.emplace(reinterpret_cast<const char*>(&bound), each->ai_addrlen).second) continue;
    // The port is at the same place in both families. A free one that was chosen holds for all addresses.
    auto* port = &reinterpret_cast<sockaddr_in*>(&bound)->sin_port;
    static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
    if (port_ != 0) *port = htons(port_);
    auto* name = reinterpret_cast<sockaddr*>(&bound);
    const int opened = OpenOne(name, each->ai_addrlen);
    if (opened < 0) {
      failed = errno;
      // A machine may lack a family. A port that is taken at one address would give each daemon half of the clients.
      if (failed == EADDRINUSE || failed == EACCES) return CantListen(address, flag, failed);
      continue;
    }
    sockets_.push_back(opened);
    socklen_t length = sizeof bound;
    getsockname(opened, name, &length);
    port_ = ntohs(*port);
  }
  return sockets_.empty() ? CantListen(address, flag, failed) : absl::OkStatus();
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
