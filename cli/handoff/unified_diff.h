#pragma once

#include <string>

namespace pawl {

// What `diff -u a/path b/path` would print, with three lines of context: `patch -p1` applies it. Empty: they are equal.
std::string UnifiedDiff(const std::string& path, const std::string& before, const std::string& after);

}  // namespace pawl
