#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace pawl {

// What the file holds. `what` names it in errors ("the certificate of --tls-cert"). INVALID_ARGUMENT: it can't be read,
// is no regular file, or is absurdly large for what it is.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path, const std::string& what);

// The same for a key or tokens, which nobody else may read. INVALID_ARGUMENT also where others may: the file must be
// its owner's alone (chmod 600), this user's or root's; one of root's may be readable to a group (640).
absl::StatusOr<std::string> ReadSecretFile(const std::string& path, const std::string& what);

}  // namespace pawl
