// Tokens that only this database can make: of leases, and of pages of a listing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace pawl {

constexpr size_t kLeaseNonce = 16;  // bytes

// A lease as its token names it.
struct LeaseName {
  int64_t campaign = 0;
  int32_t trial = 0;
  int attempt = 0;
  std::string nonce = {};  // of the event that leased it
};

// What a worker must show to renew or complete a lease. It is derived from the database's secret, the lease and the
// worker, so it survives a restart, and no other worker can make or use it. The nonce tells the lease from one of the
// same name that another copy of the database gave.
std::string LeaseToken(const std::string& secret, const LeaseName& lease, const std::string& worker);

// Nothing when the token is malformed, forged or another worker's.
std::optional<LeaseName> ReadLeaseToken(const std::string& secret, const std::string& token, const std::string& worker);

// Where a listing goes on. It is bound to the call it came from (`query`: everything that must be the same) and to the
// database, so that a token from elsewhere is refused, not misread.
std::string PageToken(const std::string& secret, const std::string& query, const std::string& place);

// The place; nothing when the token was not made for this query by this database.
std::optional<std::string> ReadPageToken(const std::string& secret, const std::string& query, const std::string& token);

}  // namespace pawl
