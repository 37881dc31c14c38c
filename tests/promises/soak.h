#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace pawl {

// scripts/soak runs the same tests as CI, with the counts that docs/reliability.md promises.
inline bool FullSoak() {
  const char* soak = std::getenv("PAWL_SOAK");
  return soak != nullptr && std::string(soak) == "full";
}

inline int SoakCount(int brief, int full) { return FullSoak() ? full : brief; }

// What scripts/soak shows: the promise's number in docs/reliability.md (0: none of them) and what was done.
inline void ReportPromise(int promise, const std::string& did) {
  ::testing::Test::RecordProperty("promise", promise);
  ::testing::Test::RecordProperty("did", did);
}

}  // namespace pawl
