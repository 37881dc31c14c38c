#include "orchestrator/security/tokens.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/hash/hash.h"

namespace pawl {

std::string LeaseToken(const std::string& secret, const LeaseName& lease, const std::string& worker) {
  const std::string name =
      absl::StrCat(lease.campaign, ".", lease.trial, ".", lease.attempt, ".", absl::BytesToHexString(lease.nonce));
  return absl::StrCat(name, ".", KeyedHash(secret, absl::StrCat("lease ", name, " ", worker)));
}

std::optional<LeaseName> ReadLeaseToken(const std::string& secret, const std::string& token,
                                        const std::string& worker) {
  const std::vector<std::string> parts = absl::StrSplit(token, '.');
  LeaseName lease;
  if (parts.size() != 5 || !absl::SimpleAtoi(parts[0], &lease.campaign) || !absl::SimpleAtoi(parts[1], &lease.trial) ||
      !absl::SimpleAtoi(parts[2], &lease.attempt) || parts[3].size() != 2 * kLeaseNonce ||
      !std::all_of(parts[3].begin(), parts[3].end(), absl::ascii_isxdigit)) {
    return std::nullopt;
  }
  lease.nonce = absl::HexStringToBytes(parts[3]);
  if (!SameBytes(token, LeaseToken(secret, lease, worker))) return std::nullopt;
  return lease;
}

namespace {

constexpr size_t kMark = 16;  // hexadecimal digits of the hash that bind it

std::string Mark(const std::string& secret, const std::string& query, const std::string& place) {
  return KeyedHash(secret, absl::StrCat("page ", query, "\n", place)).substr(0, kMark);
}

}  // namespace

std::string PageToken(const std::string& secret, const std::string& query, const std::string& place) {
  return absl::WebSafeBase64Escape(absl::StrCat(Mark(secret, query, place), place));
}

std::optional<std::string> ReadPageToken(const std::string& secret, const std::string& query,
                                         const std::string& token) {
  std::string text;
  if (!absl::WebSafeBase64Unescape(token, &text) || text.size() < kMark) return std::nullopt;
  const std::string place = text.substr(kMark);
  if (!SameBytes(text.substr(0, kMark), Mark(secret, query, place))) return std::nullopt;
  return place;
}

}  // namespace pawl
