#pragma once

#include <unistd.h>

#include <string>

namespace pawl {

// The prefix of a TemporaryFolder that lies in memory where the machine has a place for that: tests that commit
// thousands of times and look at no disk need not wait for one.
inline std::string InMemory(const std::string& prefix) {
  return access("/dev/shm", R_OK | W_OK | X_OK) == 0 ? "/dev/shm/" + prefix : prefix;
}

}  // namespace pawl
