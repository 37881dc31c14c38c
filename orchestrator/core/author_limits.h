#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "db/store.h"
#include "orchestrator/core/options.h"

namespace pawl {

// Whose trials may be leased: what the trials of each author took within the window of the limits
// (OrchestratorOptions), by the hour. Not thread-safe: the orchestrator's lock guards it.
class AuthorLimits {
 public:
  explicit AuthorLimits(const OrchestratorOptions& options) : options_(options) {}

  // The first hour that counts.
  int64_t FirstHour(absl::Time now) const;
  // In place of what it had.
  void Load(const std::vector<SpentHour>& hours);
  void Add(const SpentHour& spent);

  struct Reached {
    std::string text;  // "ann has used 3610 of 3600 GPU seconds within 30 days"
    absl::Time until;  // enough of it is outside of the window then
    std::string flag;  // that sets the limit
  };
  // Nothing: trials of the author may be leased.
  std::optional<Reached> Find(const std::string& author, absl::Time now) const;

 private:
  struct Spent {
    double gpu_seconds = 0, dollars = 0;
  };
  const SpendingLimit* LimitOf(const std::string& author) const;

  const OrchestratorOptions& options_;
  std::map<std::string, std::map<int64_t, Spent>> spent_;  // by author and hour; of authors who have a limit
};

int64_t HourOf(absl::Time time);

}  // namespace pawl
