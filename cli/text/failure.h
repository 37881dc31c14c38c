// Errors and exit codes.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "pawl/v1/error.pb.h"

namespace pawl {

inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;
inline constexpr int kWrongUsage = 2;
inline constexpr int kNoImprovement = 3;  // finished without one
inline constexpr int kNoWorker = 4;       // none can take it
inline constexpr int kPaused = 5;         // the campaign paused itself: somebody has to look
inline constexpr int kInterrupted = 130;

// The status with the detail in its payload.
absl::Status WithDetail(absl::Status status, const v1::ErrorDetail& detail);

// Empty where the status carries none.
v1::ErrorDetail DetailOf(const absl::Status& status);

// What happened, every mistake, and what to do, a line each. Never a bare code.
std::string FailureText(const absl::Status& status);

// Prints "pawl COMMAND: " and the text to standard error; answers the exit code.
int Fail(const std::string& command, const absl::Status& status);

}  // namespace pawl
