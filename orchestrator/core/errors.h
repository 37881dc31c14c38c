#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "google/protobuf/message.h"
#include "pawl/v1/error.pb.h"

namespace pawl {

// An error for a caller: a code, what happened, and details that a program can read. The details travel as a payload of
// the status. What is too long for a status is cut.
absl::Status Error(absl::StatusCode code, const std::string& message, const v1::ErrorDetail& detail);

absl::Status BadField(const std::string& field, const std::string& message);
// INVALID_ARGUMENT for a number that is infinite or NaN, wherever in the request it is.
absl::Status CheckFinite(const google::protobuf::Message& request);
absl::Status NoSuch(const std::string& resource, const std::string& fix);
// INVALID_ARGUMENT where a reason or an author is longer than it may be.
constexpr size_t kMaxText = 1000;
absl::Status CheckText(const std::string& field, const std::string& text);
// The caller may try again.
absl::Status TryLater(const std::string& message, double seconds);

// Serialized ErrorDetail; empty: none.
std::string DetailsOf(const absl::Status& status);

}  // namespace pawl
