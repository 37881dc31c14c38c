#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"

typedef struct ssl_ctx_st SSL_CTX;

namespace pawl {

struct TlsContextDeleter {
  void operator()(SSL_CTX* context) const;
};
using TlsContext = std::unique_ptr<SSL_CTX, TlsContextDeleter>;

// For the server's side of TLS 1.2 or newer, with a certificate and its key from PEM files. INVALID_ARGUMENT: they
// can't be read, or do not belong together.
absl::StatusOr<TlsContext> MakeTlsContext(const std::string& certificate, const std::string& key);

}  // namespace pawl
