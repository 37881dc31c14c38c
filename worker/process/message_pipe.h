#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/sync/steady_time.h"
#include "google/protobuf/message_lite.h"

namespace pawl {

// Protobuf messages on a pipe, each behind its length as four little-endian bytes. Every error but an unencodable
// message leaves the pipe out of step: its owner ends the peer and starts another.

inline constexpr size_t kMaxMessageBytes = size_t{1} << 30;

// Makes the descriptor non-blocking, so that the deadline (by SteadyNow()) holds when the peer does not read.
// DeadlineExceeded; Unavailable: the reader is gone; InvalidArgument: larger than kMaxMessageBytes.
absl::Status WriteMessage(int fd, const google::protobuf::MessageLite& message, SteadyTime deadline);

// DeadlineExceeded; Unavailable: the writer is gone; DataLoss: what came is no such message.
absl::Status ReadMessage(int fd, google::protobuf::MessageLite* message, SteadyTime deadline);

}  // namespace pawl
