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

// An #include with quotes or angle brackets.
struct Include {
  int line = 0;
  std::string path;
};
std::vector<Include> QuotedIncludes(absl::string_view source);

// Whether a file may be included twice: it says #pragma once, or all of it is within #ifndef.
bool IsGuarded(absl::string_view source);

// All of them, in order. A scan of the text: good for naming what a failed build asked for, and as a guard where there
// is no sandbox, but no substitute for one.
std::vector<OutsidePath> OutsidePaths(absl::string_view source);

}  // namespace pawl
