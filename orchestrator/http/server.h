#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "agent/mcp/features.h"
#include "grpcpp/channel.h"
#include "orchestrator/http/api.h"
#include "orchestrator/http/probes.h"
#include "orchestrator/security/listening.h"

namespace pawl {

struct HttpServerOptions {
  std::string address;       // as ParseHttpAddress reads it
  SecurityOptions security;  // as the API's: tokens, and TLS on an address that others can reach
  HttpApiOptions api;
  std::shared_ptr<const McpFeatures> mcp;  // what /mcp serves; null: there is no such path
  HttpProbes probes;
  int threads = 48;  // as many as follow campaigns, the 16 calls of /mcp at a time, and some for everybody else
  int streams = 24;  // that follow a campaign, at most
  int waiting = 64;  // connections
  size_t max_body = 4 << 20;
  double request_seconds = 10;  // for a request to arrive
};

// The dashboard: the page, the API as JSON for it, MCP, and what monitors ask for. It asks the services through
// `channel` and the probes and does nothing else, so whatever happens here, the orchestrator goes on. One request a
// connection. Ends with its destructor, which waits for nobody who is connected: replies under way have a second.
class HttpServer {
 public:
  // INVALID_ARGUMENT: an address that is none, one that others can reach without TLS and tokens, files of keys or
  // tokens that are not right. UNAVAILABLE: it can't be listened on.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const std::shared_ptr<grpc::Channel>& channel,
                                                           const HttpServerOptions& options);
  virtual ~HttpServer() = default;

  virtual std::string url() const = 0;  // with the port that was chosen
};

}  // namespace pawl
