#include "orchestrator/security/listening.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/channel/address.h"
#include "base/channel/secret_file.h"
#include "grpc/grpc_security_constants.h"
#include "orchestrator/security/call_gate.h"

namespace pawl {

absl::Status CheckListening(const std::string& address, const SecurityOptions& security) {
  if (IsUnixSocket(address)) {
    if (address.size() == 5) return absl::InvalidArgumentError("unix: needs a path after it");
    if (!security.tls.any()) return absl::OkStatus();
    return absl::InvalidArgumentError("a unix: socket does not use TLS: omit --tls-cert, --tls-key and --tls-ca");
  }
  const size_t colon = address.rfind(':');
  int port = 0;
  if (colon == std::string::npos || colon == 0 || !absl::SimpleAtoi(address.substr(colon + 1), &port) || port < 0 ||
      port > 65535 || address.find('/') != std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", address, "\" is not a valid address; expected host:port or unix:/path"));
  }
  if (!security.tls.any()) {
    if (IsLocal(address)) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", address,
        "\" is reachable from other machines, which requires TLS: set --tls-cert, --tls-key and --tls-ca "
        "(scripts/make-certificates makes test certificates), or listen on 127.0.0.1 or a unix: socket and "
        "tunnel to it (ssh -L)"));
  }
  if (security.tls.cert.empty()) return absl::InvalidArgumentError("--tls-ca needs --tls-cert");
  if (security.tls.ca.empty() && security.tokens.empty()) {
    return absl::InvalidArgumentError(
        "no client could authenticate: set --tls-ca (the authority of the clients' certificates), --tokens (a file "
        "with "
        "their tokens), or both");
  }
  return absl::OkStatus();
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
