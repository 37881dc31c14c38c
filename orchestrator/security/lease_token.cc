#include "orchestrator/security/lease_token.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "orchestrator/security/keyed_hash.h"

namespace pawl {

std::string LeaseToken(const std::string& secret, const LeaseName& lease, const std::string& worker) {
  const std::string name = absl::StrCat(lease.campaign, ".", lease.trial, ".", lease.attempt);
  return absl::StrCat(name, ".", KeyedHash(secret, absl::StrCat("lease ", name, " ", worker)));
}

std::optional<LeaseName> ReadLeaseToken(const std::string& secret, const std::string& token,
                                        const std::string& worker) {
  const std::vector<std::string> parts = absl::StrSplit(token, '.');
  LeaseName lease;
  if (parts.size() != 4 || !absl::SimpleAtoi(parts[0], &lease.campaign) || !absl::SimpleAtoi(parts[1], &lease.trial) ||
      !absl::SimpleAtoi(parts[2], &lease.attempt)) {
    return std::nullopt;
  }
  if (!SameBytes(token, LeaseToken(secret, lease, worker))) return std::nullopt;
  return lease;
}

}  // namespace pawl
