// Errors as people read them.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "pawl/v1/error.pb.h"

namespace pawl {

// The status with the detail in its payload.
absl::Status WithDetail(absl::Status status, const v1::ErrorDetail& detail);

// Empty where the status carries none.
v1::ErrorDetail DetailOf(const absl::Status& status);

// What happened, every mistake, and what to do, a line each. Never a bare code.
std::string FailureText(const absl::Status& status);

// Prints "pawl COMMAND: " and the text to standard error; answers the exit code.
int Fail(const std::string& command, const absl::Status& status);

}  // namespace pawl
