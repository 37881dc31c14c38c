#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace pawl {

// Paths of PEM files, as flags name them; empty: none.
struct TlsFiles {
  std::string cert{};  // --tls-cert: this program's certificate, with those that link it to the authority
  std::string key{};   // --tls-key: its key
  std::string ca{};    // --tls-ca: the authority that vouches for the other side

  bool any() const { return !cert.empty() || !key.empty() || !ca.empty(); }
};

// What stands in them.
struct TlsTexts {
  std::string cert, key, ca;
};

// INVALID_ARGUMENT: a certificate without its key or the other way round, a file that can't be read or is not a PEM
// file, a key that others can read or that belongs to another certificate.
absl::StatusOr<TlsTexts> ReadTlsFiles(const TlsFiles& files);

// What the file holds. `what` names it in errors ("the certificate of --tls-cert"). INVALID_ARGUMENT: it can't be read,
// is no regular file, or is absurdly large for what it is.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path, const std::string& what);

// The same for a key or tokens, which nobody else may read. INVALID_ARGUMENT also where others may: the file must be
// its owner's alone (chmod 600), this user's or root's; one of root's may be readable to a group (640).
absl::StatusOr<std::string> ReadSecretFile(const std::string& path, const std::string& what);

}  // namespace pawl
