#include "base/faults/fault_point.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <iterator>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace pawl {
namespace {

constexpr const char* kNames[] = {"before-commit", "after-commit", "after-result", "after-lease", "mid-upload"};

FaultPoint armed_point;
std::atomic<int> left;  // times to get there, the last of which is deadly

}  // namespace

namespace internal {

bool fault_armed = false;

void DieAt(FaultPoint point) {
  if (point == armed_point && --left == 0) kill(getpid(), SIGKILL);
}

}  // namespace internal

absl::StatusOr<std::string> ArmFaultPoint() {
  const char* given = std::getenv("PAWL_FAULT");
  if (given == nullptr || *given == '\0') return "";
  const std::pair<std::string, std::string> parts = absl::StrSplit(given, absl::MaxSplits(':', 1));
  int times = 1;
  const bool counted = parts.second.empty() || (absl::SimpleAtoi(parts.second, &times) && times > 0);
  for (size_t i = 0; counted && i < std::size(kNames); ++i) {
    if (parts.first != kNames[i]) continue;
    armed_point = static_cast<FaultPoint>(i);
    left = times;
    internal::fault_armed = true;
    return std::string(given);
  }
  return absl::InvalidArgumentError(absl::StrCat("PAWL_FAULT: \"", given, "\" is not a fault point; expected one of ",
                                                 absl::StrJoin(kNames, ", "), ", or one with :N behind it"));
}

}  // namespace pawl
