#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/channel/channel.h"
#include "worker/lease/worker_client.h"

namespace pawl {

// A client over gRPC. Connects when it is first used. Addresses are host:port or unix:/path. INVALID_ARGUMENT: another
// machine's address without TLS, or credentials that can't be read.
absl::StatusOr<std::unique_ptr<WorkerClient>> ConnectToOrchestrator(const std::string& address,
                                                                    const Credentials& credentials = {});

}  // namespace pawl
