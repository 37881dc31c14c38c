#pragma once

#include <memory>

#include "agent/mcp/http.h"
#include "agent/mcp/server.h"
#include "orchestrator/http/exchange.h"
#include "orchestrator/http/guard.h"

namespace pawl {

// `/mcp`: the tools of `pawl mcp`, with the roles of the API. Thread-safe; the guard must outlive it.
class HttpMcp {
 public:
  HttpMcp(std::shared_ptr<const McpFeatures> features, const HttpGuard& guard)
      : features_(std::move(features)), guard_(guard), server_(*features_), mcp_(server_) {}

  // To a request for /mcp, which the guard let pass.
  HttpReply Answer(const HttpRequest& request);

 private:
  const std::shared_ptr<const McpFeatures> features_;
  const HttpGuard& guard_;
  const McpServer server_;
  McpHttp mcp_;
};

}  // namespace pawl
