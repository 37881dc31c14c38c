#include "base/channel/channel.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>
#include <grpcpp/support/client_interceptor.h>

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/channel/address.h"
#include "base/channel/tls_files.h"

namespace pawl {
namespace {

namespace experimental = grpc::experimental;

// Shows the token with every call. gRPC's own call credentials refuse channels without TLS, loopback ones too.
class TokenBearer final : public experimental::Interceptor {
 public:
  explicit TokenBearer(const std::string& header) : header_(header) {}

  void Intercept(experimental::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(experimental::InterceptionHookPoints::PRE_SEND_INITIAL_METADATA)) {
      methods->GetSendInitialMetadata()->insert({"authorization", header_});
    }
    methods->Proceed();
  }

 private:
  const std::string header_;
};

class TokenBearerFactory final : public experimental::ClientInterceptorFactoryInterface {
 public:
  explicit TokenBearerFactory(const std::string& token) : header_(absl::StrCat("Bearer ", token)) {}
  experimental::Interceptor* CreateClientInterceptor(experimental::ClientRpcInfo*) override {
    return new TokenBearer(header_);
  }

 private:
  const std::string header_;
};

absl::StatusOr<std::string> ReadToken(const std::string& path) {
  absl::StatusOr<std::string> text = ReadSecretFile(path, "the file of --token-file");
  if (!text.ok()) return text.status();
  const std::string token(absl::StripAsciiWhitespace(*text));
  for (const unsigned char c : token) {
    if (!absl::ascii_isgraph(c)) {
      return absl::InvalidArgumentError(absl::StrCat(path, " of --token-file: expected one token, without spaces"));
    }
  }
  if (token.empty()) return absl::InvalidArgumentError(absl::StrCat(path, " of --token-file is empty"));
  return token;
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenChannel(const std::string& address, const Credentials& credentials,
                                                           const grpc::ChannelArguments& arguments) {
  std::shared_ptr<grpc::ChannelCredentials> security = grpc::InsecureChannelCredentials();
  if (credentials.tls.any() && !IsUnixSocket(address)) {
    absl::StatusOr<TlsTexts> texts = ReadTlsFiles(credentials.tls);
    if (!texts.ok()) return texts.status();
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = texts->ca;
    options.pem_cert_chain = texts->cert;
    options.pem_private_key = texts->key;
    security = grpc::SslCredentials(options);
  } else if (IsEveryAddress(address)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the orchestrator listens on every address (", address,
                     ") and needs TLS: name it by one that its certificate has (--orchestrator HOST:PORT), and the "
                     "authority of the certificate with --tls-ca"));
  } else if (!IsLocal(address)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the orchestrator at ", address,
                     " may be on another machine and needs TLS: name the authority of its certificate with --tls-ca "
                     "(and your own with --tls-cert and --tls-key), or use a tunnel (ssh -L)"));
  }
  std::vector<std::unique_ptr<experimental::ClientInterceptorFactoryInterface>> interceptors;
  if (!credentials.token_file.empty()) {
    absl::StatusOr<std::string> token = ReadToken(credentials.token_file);
    if (!token.ok()) return token.status();
    interceptors.push_back(std::make_unique<TokenBearerFactory>(*token));
  }
  return experimental::CreateCustomChannelWithInterceptors(address, security, arguments, std::move(interceptors));
}

}  // namespace pawl
