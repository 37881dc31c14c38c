#include "cli/connect/author.h"

#include <pwd.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "cli/connect/settings.h"

namespace pawl {

std::string Author() {
  if (const std::optional<std::string> user = FromEnvironment("USER")) return *user;
  const passwd* entry = getpwuid(getuid());
  return entry != nullptr ? entry->pw_name : absl::StrCat("user ", getuid());
}

}  // namespace pawl
