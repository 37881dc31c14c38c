// How nvcc is made to instantiate C++ entries and to tell their names in the cubin: an empty kernel a entry is appended
// to the source, whose template argument is the entry. Its own mangled name then holds the entry's.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace pawl {

// To append to the source. Errors in it name the entry as their file.
std::string MarkersFor(const std::vector<std::string>& entries);

// Whether a kernel of a cubin is one of them: it is none of the source's.
bool IsMarker(const std::string& symbol);

// The name in the cubin of each entry, from all kernels that the cubin has; those that are not there are left out.
std::map<std::string, std::string> MarkedNames(const std::vector<std::string>& entries,
                                               const std::vector<std::string>& symbols);

// The entry that an error in the appended text is about; empty: the error is elsewhere.
std::string MarkedEntry(const std::string& file);

}  // namespace pawl
