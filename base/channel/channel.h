#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/channel/tls_files.h"

namespace grpc {
class Channel;
class ChannelArguments;
}  // namespace grpc

namespace pawl {

// The largest message that an orchestrator and its clients take: a bundle with all its files and data
// (kernels/limits.h) and room for what comes with it.
inline constexpr int kMaxRpcBytes = 32 << 20;

// What a client shows of itself.
struct Credentials {
  TlsFiles tls{};
  std::string token_file{};  // holds one token; empty: none
};

// A channel to an orchestrator; connects with the first call. With --tls-ca or --tls-cert it is encrypted (the
// machine's own authorities vouch for the orchestrator where --tls-ca names none); to a unix socket it never is.
// INVALID_ARGUMENT: the files are not right, or the address is another machine's and there is no encryption.
absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenChannel(const std::string& address, const Credentials& credentials,
                                                           const grpc::ChannelArguments& arguments);

}  // namespace pawl
