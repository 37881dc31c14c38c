#include "worker/process/message_pipe.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/sync/steady_time.h"
#include "worker/process/process.h"

namespace pawl {
namespace {

constexpr size_t kLengthBytes = 4;
constexpr size_t kStep = 1 << 20;  // memory is taken as bytes arrive, not as a length promises

absl::Status WaitFor(int fd, short events, SteadyTime deadline) {
  while (true) {
    pollfd entry = {fd, events, 0};
    const int ready = poll(&entry, 1, PollTimeout(deadline));
    if (ready > 0) return absl::OkStatus();
    if (ready < 0 && errno != EINTR) return absl::ErrnoToStatus(errno, "poll");
    if (SteadyNow() >= deadline) return absl::DeadlineExceededError("the peer did not answer in time");
  }
}

absl::Status WriteAll(int fd, const char* data, size_t size, SteadyTime deadline) {
  while (size > 0) {
    const ssize_t written = QuietWrite(fd, data, size);
    if (written >= 0) {
      data += written;
      size -= written;
    } else if (errno == EAGAIN) {
      if (absl::Status status = WaitFor(fd, POLLOUT, deadline); !status.ok()) return status;
    } else if (errno == EPIPE) {
      return absl::UnavailableError("the peer has closed the pipe");
    } else if (errno != EINTR) {
      return absl::ErrnoToStatus(errno, "could not write to the pipe");
    }
  }
  return absl::OkStatus();
}

absl::Status ReadSome(int fd, char* data, size_t size, SteadyTime deadline, const char* where) {
  while (size > 0) {
    if (absl::Status status = WaitFor(fd, POLLIN, deadline); !status.ok()) return status;
    const ssize_t got = read(fd, data, size);
    if (got == 0) return absl::UnavailableError(absl::StrCat("the peer has closed the pipe ", where));
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0) return absl::ErrnoToStatus(errno, "could not read from the pipe");
    data += got;
    size -= got;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteMessage(int fd, const google::protobuf::MessageLite& message, SteadyTime deadline) {
  const size_t size = message.ByteSizeLong();
  if (size > kMaxMessageBytes) {
    return absl::InvalidArgumentError(absl::StrCat("a message of ", size, " bytes: the limit is ", kMaxMessageBytes));
  }
  std::string bytes;
  for (size_t i = 0; i < kLengthBytes; ++i) bytes.push_back(static_cast<char>(size >> (8 * i)));
  if (!message.AppendToString(&bytes)) return absl::InvalidArgumentError("a message that can't be encoded");
  SetNonBlocking(fd);
  return WriteAll(fd, bytes.data(), bytes.size(), deadline);
}

absl::Status ReadMessage(int fd, google::protobuf::MessageLite* message, SteadyTime deadline) {
  unsigned char length[kLengthBytes];
  absl::Status status =
      ReadSome(fd, reinterpret_cast<char*>(length), sizeof(length), deadline, "where a message would begin");
  if (!status.ok()) return status;
  size_t size = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) size |= static_cast<size_t>(length[i]) << (8 * i);
  if (size > kMaxMessageBytes) {
    return absl::DataLossError(
        absl::StrCat("a message of ", size, " bytes is announced: something else than messages is on the pipe"));
  }
  std::string bytes;
  while (bytes.size() < size) {
    const size_t have = bytes.size();
    bytes.resize(std::min(size, std::max(2 * have, kStep)));
    status = ReadSome(fd, bytes.data() + have, bytes.size() - have, deadline, "in the middle of a message");
    if (!status.ok()) return status;
  }
  if (!message->ParseFromString(bytes)) {
    return absl::DataLossError(absl::StrCat(size, " bytes that are not a ", message->GetTypeName()));
  }
  return absl::OkStatus();
}

}  // namespace pawl
