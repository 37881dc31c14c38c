#pragma once

#include <string>
#include <vector>

namespace pawl {

// Lets this process and its children read and execute whatever they see, but write, create and remove only below
// `writable`, and signal no process outside; for ever. A second line of defence behind namespaces. Needs no_new_privs.
// Answers the version of the kernel's Landlock that holds; 0: the kernel has none, and nothing has changed.
int RestrictWrites(const std::vector<std::string>& writable);

}  // namespace pawl
