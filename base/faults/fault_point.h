#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace pawl {

// Places between two durable steps, where a test lets a daemon die as by kill -9: PAWL_FAULT=POINT, or POINT:N for the
// N-th time that it gets there. They cost a look at a flag, and do nothing unless a daemon's main has armed one.
enum class FaultPoint {
  kBeforeCommit,  // before-commit: all of a transaction is written, and not committed
  kAfterCommit,   // after-commit: it is on disk, and nobody was told
  kAfterResult,   // after-result: a result was taken in, and the next decision is not made
  kAfterLease,    // after-lease: the worker has a trial, and has not begun it
  kMidUpload,     // mid-upload: a part of what belongs to a result is stored, and the result is not delivered
};

// Reads PAWL_FAULT, once, before there are threads. What was armed, for the log; empty: nothing. INVALID_ARGUMENT:
// there is no such point.
absl::StatusOr<std::string> ArmFaultPoint();

namespace internal {
extern bool fault_armed;
void DieAt(FaultPoint point);
}  // namespace internal

inline void Pass(FaultPoint point) {
  if (internal::fault_armed) internal::DieAt(point);
}

}  // namespace pawl
