#include "orchestrator/core/counter.h"

#include <mutex>

int Counter::Next() { return ++count_; }

namespace {
std::mutex unchecked;
}  // namespace
