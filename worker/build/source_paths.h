#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace pawl {

// A place where a source makes the compiler read a file that is not named relative to an include folder.
struct OutsidePath {
  int line = 0;
  std::string directive;  // include, include_next, import, embed, __has_include, __has_embed, .incbin
  std::string path;       // empty: a macro makes it up
};

// True for an absolute path and for one that goes up.
bool IsOutside(absl::string_view path);

// All of them, in order. A scan of the text: good for naming what a failed build asked for, and as a guard where there
// is no sandbox, but no substitute for one.
std::vector<OutsidePath> OutsidePaths(absl::string_view source);

}  // namespace pawl
