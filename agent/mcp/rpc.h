// JSON-RPC 2.0 as MCP uses it: one message at a time, ids are strings or integers.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "agent/mcp/json.h"

namespace pawl {

inline constexpr int kParseError = -32700;
inline constexpr int kInvalidRequest = -32600;
inline constexpr int kMethodNotFound = -32601;
inline constexpr int kInvalidParams = -32602;
inline constexpr int kInternalError = -32603;
inline constexpr int kResourceNotFound = -32002;    // until 2025-11-25; kInvalidParams since
inline constexpr int kHeaderMismatch = -32020;      // since 2026-07-28
inline constexpr int kUnsupportedVersion = -32022;  // since 2026-07-28
inline constexpr int kTooManyRequests = 429;        // outside of what JSON-RPC and MCP reserve

struct RpcError {
  int code = kInternalError;
  std::string message = {};
  Json data = nullptr;    // null: none
  int http_status = 200;  // where it is answered over HTTP
};

struct RpcMessage {
  enum class Kind { kRequest, kNotification, kResponse };
  Kind kind = Kind::kRequest;
  Json id = nullptr;  // of a request: a string or an integer
  std::string method = {};
  Json params = Json::object();
};

// What a message was read as. Without a message, `error` says why, and `id` is the request's where it could be read.
struct RpcReading {
  std::optional<RpcMessage> message;
  RpcError error;
  Json id = nullptr;
};

inline constexpr size_t kMostMessageBytes = 4 << 20;

// Refuses what is no JSON, too long, nested too deep, a batch, or no JSON-RPC 2.0.
RpcReading ReadRpcMessage(std::string_view text);

Json RpcResult(const Json& id, Json result);
// Without an id where that is null: MCP has no null ids.
Json RpcErrorReply(const Json& id, const RpcError& error);
Json RpcNotification(const std::string& method, Json params);

}  // namespace pawl
