#include "orchestrator/security/page_token.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "orchestrator/security/keyed_hash.h"

namespace pawl {
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
