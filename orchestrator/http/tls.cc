#include "orchestrator/http/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "absl/strings/str_cat.h"

namespace pawl {

void TlsContextDeleter::operator()(SSL_CTX* context) const { SSL_CTX_free(context); }

absl::StatusOr<TlsContext> MakeTlsContext(const std::string& certificate, const std::string& key) {
  TlsContext context(SSL_CTX_new(TLS_server_method()));
  if (context == nullptr) return absl::InternalError("OpenSSL could not create a TLS context");
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  if (SSL_CTX_use_certificate_chain_file(context.get(), certificate.c_str()) != 1 ||
      SSL_CTX_use_PrivateKey_file(context.get(), key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context.get()) != 1) {
    char reason[200];
    ERR_error_string_n(ERR_get_error(), reason, sizeof reason);
    ERR_clear_error();
    return absl::InvalidArgumentError(
        absl::StrCat("the dashboard can't use ", certificate, " with ", key, ": ", reason));
  }
  return context;
}

}  // namespace pawl
