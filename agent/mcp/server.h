#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <variant>

#include "agent/mcp/features.h"
#include "agent/mcp/rate_limit.h"
#include "agent/mcp/rpc.h"
#include "agent/mcp/session.h"

namespace pawl {

// The two ways in which the protocol was specified.
enum class McpEra {
  kSession,    // until 2025-11-25: `initialize` first, then requests that rely on it
  kStateless,  // since 2026-07-28: every request says in its _meta what it relies on
};

inline constexpr char kStatelessVersion[] = "2026-07-28";
inline constexpr char kNewestSessionVersion[] = "2025-11-25";

bool IsSessionVersion(const std::string& version);

// The protocol version in a request's _meta; nothing: it has none.
std::optional<std::string> MetaVersion(const RpcMessage& message);

// Which era a message is of, by itself: one with a version in its _meta, or `server/discover`, is stateless.
McpEra EraOf(const RpcMessage& message);

// Why a stateless request can't be served: -32602 where _meta lacks what is required, -32022 for another version.
std::optional<RpcError> CheckMeta(const RpcMessage& message);

struct McpAnswer {
  Json message;  // a result or an error
  int http_status = 200;
};

struct McpServerOptions {
  double calls_per_second = 100;
  double burst = 200;
  RateLimit::Clock clock = [] { return std::chrono::steady_clock::now(); };
};

// Answers the requests of MCP clients of both eras. It does not read or write anything itself: the transports (stdio.h,
// http.h) do. Thread-safe; the features must outlive it.
class McpServer {
 public:
  explicit McpServer(const McpFeatures& features, const McpServerOptions& options = {});

  // What surrounds a request.
  struct Surroundings {
    McpCaller caller;
    McpSession* session = nullptr;  // that `initialize` opens, and that requests of its era need
    const Cancellation* cancellation = nullptr;
    std::function<void(const Json&)> notify = nullptr;  // takes notifications of its progress; null: nobody would
  };
  McpAnswer Answer(const RpcMessage& request, McpEra era, const Surroundings& around) const;

  const McpFeatures& features() const { return features_; }

 private:
  using Handled = std::variant<Json, RpcError>;

  Handled Handle(const RpcMessage& request, McpEra era, const Surroundings& around) const;
  Handled Initialize(const Json& params, const Surroundings& around) const;
  Handled Discover() const;
  Handled ListTools(const Json& params) const;
  Handled CallTool(const Json& params, const Surroundings& around) const;
  Handled ListResources(const Json& params) const;
  Handled ReadResource(const Json& params, McpEra era) const;
  Handled GetPrompt(const Json& params) const;
  Handled Complete(const Json& params) const;
  Json Capabilities() const;
  Json Identity() const;

  const McpFeatures& features_;
  mutable RateLimit limit_;
};

}  // namespace pawl
