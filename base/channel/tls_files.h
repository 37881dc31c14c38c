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

}  // namespace pawl
