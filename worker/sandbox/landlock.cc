#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "worker/process/process.h"
#include "worker/sandbox/sandbox_root.h"

// Debian 12's headers are those of Linux 5.19; kernels have learnt more since.
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif
#ifndef LANDLOCK_ACCESS_FS_IOCTL_DEV
#define LANDLOCK_ACCESS_FS_IOCTL_DEV (1ULL << 15)
#endif

namespace pawl {
namespace {

struct Ruleset {
  uint64_t files;
  uint64_t network;
  uint64_t scoped;
};

constexpr uint64_t kReading = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr uint64_t kScopeAbstractSockets = 1, kScopeSignals = 2;

// What each version can control. With the first, linking and renaming between folders is always forbidden.
uint64_t FileRights(int version) {
  uint64_t rights = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;
  if (version >= 2) rights |= LANDLOCK_ACCESS_FS_REFER;
  if (version >= 3) rights |= LANDLOCK_ACCESS_FS_TRUNCATE;
  if (version >= 5) rights |= LANDLOCK_ACCESS_FS_IOCTL_DEV;
  return rights;
}

// The kernel takes a structure that ends where it knew one to end.
size_t RulesetSize(int version) {
  if (version >= 6) return sizeof(Ruleset);
  return version >= 4 ? 2 * sizeof(uint64_t) : sizeof(uint64_t);
}

bool Allow(int ruleset, const std::string& path, uint64_t rights) {
  const Fd opened(open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!opened.valid()) return false;
  landlock_path_beneath_attr rule = {.allowed_access = rights, .parent_fd = opened.get()};
  return syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0;
}

}  // namespace

int RestrictWrites(const std::vector<std::string>& writable) {
  const long version = syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (version <= 0) return 0;
  Ruleset rules = {
      .files = FileRights(version), .network = 0, .scoped = version >= 6 ? kScopeAbstractSockets | kScopeSignals : 0};
  const Fd ruleset(static_cast<int>(syscall(SYS_landlock_create_ruleset, &rules, RulesetSize(version), 0)));
  if (!ruleset.valid() || !Allow(ruleset.get(), "/", kReading)) return 0;
  for (const std::string& path : writable) {
    if (access(path.c_str(), F_OK) == 0 && !Allow(ruleset.get(), path, rules.files)) return 0;
  }
  return syscall(SYS_landlock_restrict_self, ruleset.get(), 0) == 0 ? static_cast<int>(version) : 0;
}

}  // namespace pawl
