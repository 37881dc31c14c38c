#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace pawl {

// The source without what `#if` leaves out for these macros, and without comments: whatever the result does not mention
// can't change what is compiled. It is a part of a preprocessor, on the safe side: a condition that it does not
// understand (functions, `defined`, a macro that the source itself defines) leaves all branches in, and so does a
// source with raw strings or digraphs.
std::string ActiveSource(const std::string& source, const std::map<std::string, int64_t>& macros);

}  // namespace pawl
