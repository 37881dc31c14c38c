#include "orchestrator/core/counter.h"

#include <mutex>

int Counter::Next() { return ++count_; }

namespace {
std::mutex unchecked;
void Wait(absl::Mutex& mutex, bool& done) { mutex.AwaitWithTimeout(absl::Condition(&done), absl::Seconds(1)); }
}  // namespace
