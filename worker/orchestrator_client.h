#pragma once

#include <memory>
#include <string>

#include "worker/worker_client.h"

namespace pawl {

// A client over gRPC. Connects when it is first used. Addresses are host:port or unix:/path.
std::unique_ptr<WorkerClient> ConnectToOrchestrator(const std::string& address);

}  // namespace pawl
