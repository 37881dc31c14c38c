#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "worker/build/compiler.h"

namespace pawl {

struct BuildCacheOptions {
  std::filesystem::path folder;  // empty: nothing is cached
  int64_t max_bytes = int64_t{2} << 30;
  // All that decides about a cubin beside the request: versions of the compilers and of the toolkit's headers.
  std::string toolchain;
  // Header libraries that are not the toolkit's. Their files may change at any time, so that a build that includes one
  // is never taken from the cache.
  std::set<std::string> uncached = {};
};

// PAWL_BUILD_CACHE, or pawl/builds in the user's folder for caches; empty where there is neither, and where
// PAWL_BUILD_CACHE is set and empty.
std::filesystem::path DefaultBuildCache();

// Builds that were made before are read from a folder, which outlives this process and may be shared with others.
// What can't be read or written there is built as if there were no cache. Failures are not kept. Thread-safe.
class CachedCompiler : public Compiler {
 public:
  // The compiler must outlive it.
  CachedCompiler(Compiler& compiler, BuildCacheOptions options);

  absl::StatusOr<v1::BuildReply> Build(const v1::BuildRequest& request, const Stopped& stopped = nullptr) override;
  std::vector<absl::StatusOr<v1::BuildReply>> BuildBeside(const std::vector<v1::BuildRequest>& requests,
                                                          const Stopped& stopped) override;

  BuildCounts TakeCounts() override;
  // Why nothing is kept; empty: it is.
  std::string fault() const;

 private:
  // Empty: the build is not cached.
  std::filesystem::path FileOf(const v1::BuildRequest& request) const;
  // False: not there, or damaged.
  bool Read(const std::filesystem::path& file, v1::BuildReply* reply);
  void Write(const std::filesystem::path& file, const v1::BuildReply& reply);
  // Removes what was used least recently until nine tenths of the limit are left.
  void MakeRoom() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Compiler& compiler_;
  const BuildCacheOptions options_;

  mutable absl::Mutex mutex_;
  BuildCounts counts_ ABSL_GUARDED_BY(mutex_);
  std::string fault_ ABSL_GUARDED_BY(mutex_);
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = -1;  // in the folder, about; -1: not counted yet
};

}  // namespace pawl
