#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace pawl {

// What a caller may do. Who may submit may read too, and an administrator may do both; working is apart: a worker can't
// look into campaigns.
enum class Role { kRead, kSubmit, kWork, kAdmin };
inline constexpr size_t kRoleCount = 4;

const char* RoleName(Role role);

// Who calls, as its connection and its call show it.
struct Caller {
  // URIs of a certificate that the authority of --tls-ca vouches for; pawl:role/submit and the like are roles.
  std::vector<std::string> certificate_uris{};
  std::string token{};  // what stands behind "Bearer"; empty: none
};

// Decides who may do what. Immutable, so thread-safe.
class Access {
 public:
  // Everybody may do everything: for an address that only this machine can reach.
  static Access Open() { return Access(); }
  // Callers need a role, by certificate or by a token of the text. Its lines are `ROLE TOKEN`, where ROLE is read,
  // submit, work, admin or several of them (submit,work), and TOKEN the token itself, 16 characters at least, or
  // `sha256:` and its digest in hex; # begins a comment. INVALID_ARGUMENT names the line.
  static absl::StatusOr<Access> ByRole(std::string_view tokens, const std::string& file);

  // UNAUTHENTICATED: neither a certificate with a role nor a known token. PERMISSION_DENIED: for another role.
  absl::Status Check(const Caller& caller, Role role) const;

 private:
  struct Token {
    std::string digest;  // SHA-256 in hex
    std::array<bool, kRoleCount> roles;
  };

  bool open_ = true;
  std::vector<Token> tokens_;
};

}  // namespace pawl
