#include "orchestrator/security/access.h"

#include <algorithm>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/hash/hash.h"

namespace pawl {
namespace {

constexpr Role kRoles[] = {Role::kRead, Role::kSubmit, Role::kWork, Role::kAdmin};
constexpr char kUriPrefix[] = "pawl:role/";
constexpr size_t kShortestToken = 16;

std::optional<Role> ParseRole(absl::string_view text) {
  for (const Role role : kRoles) {
    if (text == RoleName(role)) return role;
  }
  return std::nullopt;
}

void Grant(Role role, std::array<bool, kRoleCount>* roles) {
  (*roles)[static_cast<size_t>(role)] = true;
  if (role == Role::kAdmin) Grant(Role::kSubmit, roles);
  if (role == Role::kSubmit) (*roles)[static_cast<size_t>(Role::kRead)] = true;
}

bool IsDigest(absl::string_view text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), absl::ascii_isxdigit);
}

}  // namespace

const char* RoleName(Role role) {
  switch (role) {
    case Role::kRead:
      return "read";
    case Role::kSubmit:
      return "submit";
    case Role::kWork:
      return "work";
    case Role::kAdmin:
      return "admin";
  }
  return "";
}

absl::StatusOr<Access> Access::ByRole(std::string_view tokens, const std::string& file) {
  Access access;
  access.open_ = false;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(absl::string_view(tokens.data(), tokens.size()), '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const auto refuse = [&](const std::string& why) {
      return absl::InvalidArgumentError(absl::StrCat(file, ":", number, ": ", why));
    };
    const std::vector<absl::string_view> words = absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    if (words.size() != 2) return refuse("expected a role and a token, like `read 3f6c…`");
    Token token = {.digest = "", .roles = {}};
    for (const absl::string_view word : absl::StrSplit(words[0], ',')) {
      const std::optional<Role> role = ParseRole(word);
      if (!role) return refuse(absl::StrCat("\"", word, "\" is not a role; expected read, submit, work or admin"));
      Grant(*role, &token.roles);
    }
    absl::string_view text = words[1];
    if (absl::ConsumePrefix(&text, "sha256:")) {
      if (!IsDigest(text)) return refuse("expected 64 hex digits after sha256:");
      token.digest = absl::AsciiStrToLower(text);
    } else if (text.size() < kShortestToken) {
      return refuse("the token is too short to be secure: `openssl rand -hex 32` makes a good one");
    } else {
      token.digest = Sha256(std::string_view(text.data(), text.size()));
    }
    access.tokens_.push_back(std::move(token));
  }
  return access;
}

absl::Status Access::Check(const Caller& caller, Role role) const {
  if (open_) return absl::OkStatus();
  bool known = false;
  std::array<bool, kRoleCount> roles = {};
  for (const std::string& uri : caller.certificate_uris) {
    absl::string_view text = uri;
    if (!absl::ConsumePrefix(&text, kUriPrefix)) continue;
    if (const std::optional<Role> granted = ParseRole(text)) {
      known = true;
      Grant(*granted, &roles);
    }
  }
  if (!caller.token.empty()) {
    // All of them, each in full: how long it takes tells nothing about how much of a guess was right.
    const std::string digest = Sha256(caller.token);
    for (const Token& token : tokens_) {
      const bool same = SameBytes(token.digest, digest);
      known |= same;
      for (size_t i = 0; i < roles.size(); ++i) roles[i] |= same & token.roles[i];
    }
  }
  if (roles[static_cast<size_t>(role)]) return absl::OkStatus();
  if (!known) {
    return absl::UnauthenticatedError(
        absl::StrCat(caller.token.empty() ? "no credentials: " : "unknown token: ", "this call needs the role ",
                     RoleName(role), "; use a certificate with the URI pawl:role/", RoleName(role),
                     " (--tls-cert, --tls-key) or a token of that role (--token-file)"));
  }
  return absl::PermissionDeniedError(absl::StrCat("this call needs the role ", RoleName(role),
                                                  ", which neither your certificate nor your token has: ask the "
                                                  "orchestrator's administrator for one"));
}

}  // namespace pawl
