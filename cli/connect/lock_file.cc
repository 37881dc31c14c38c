#include "cli/connect/lock_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <string_view>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "worker/process/process.h"

namespace pawl {

// Beside the real file, as the orchestrator has it: a link to a database is the same database.
std::filesystem::path LockFilePath(const std::filesystem::path& database) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::weakly_canonical(database, error);
  return (error ? database : real).string() + ".lock";
}

std::optional<LockHolder> FindLockHolder(const std::filesystem::path& database) {
  const Fd file(open(LockFilePath(database).c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return std::nullopt;
  // Shared, so that two commands that look at the same time do not take each other for the orchestrator.
  if (flock(file.get(), LOCK_SH | LOCK_NB) == 0) return std::nullopt;  // closing gives it back
  if (errno != EWOULDBLOCK) return std::nullopt;
  char text[1024];
  const ssize_t size = pread(file.get(), text, sizeof(text), 0);
  const std::vector<std::string> lines =
      absl::StrSplit(absl::string_view(text, size > 0 ? static_cast<size_t>(size) : 0), '\n');
  LockHolder holder;
  if (lines.size() < 3) return holder;  // the second line is not whole yet
  if (!absl::SimpleAtoi(lines[0], &holder.pid)) return LockHolder();
  holder.address = std::string(absl::StripAsciiWhitespace(lines[1]));
  return holder;
}

}  // namespace pawl
