#pragma once

#include <optional>
#include <string>

namespace pawl {

// Where a listing goes on. It is bound to the call it came from (`query`: everything that must be the same) and to the
// database, so that a token from elsewhere is refused, not misread.
std::string PageToken(const std::string& secret, const std::string& query, const std::string& place);

// The place; nothing when the token was not made for this query by this database.
std::optional<std::string> ReadPageToken(const std::string& secret, const std::string& query, const std::string& token);

}  // namespace pawl
