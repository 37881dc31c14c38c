#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/mcp/server.h"
#include "agent/mcp/sessions.h"

namespace pawl {

// A request to the MCP endpoint, which the HTTP server has checked for Host, Origin and credentials.
struct McpHttpRequest {
  std::string method;
  std::function<std::string(const std::string&)> header;  // by its name in lower case; empty: none
  std::string body;
  McpCaller caller;
  std::string owner;           // stands for the caller's credentials
  std::function<bool()> left;  // whether the client has; null: not known
};

// A reply that goes on. For one thread. Ends the call with its destructor.
class McpHttpStream {
 public:
  virtual ~McpHttpStream() = default;
  // The next piece of text/event-stream; empty when none came within a moment. False: that was the last.
  virtual bool Next(std::string* piece) = 0;
};

struct McpHttpReply {
  int status = 200;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;                       // JSON; empty: none
  std::unique_ptr<McpHttpStream> stream;  // instead of a body
};

// MCP over streamable HTTP, for both eras. A POST holds one message. A call that takes long, or that wants to know
// about progress, is answered by a stream where the client takes one. A client that leaves cancels the call. There is
// no stream for GET: the server has nothing to say by itself. Thread-safe; the server must outlive it and its streams.
class McpHttp {
 public:
  explicit McpHttp(const McpServer& server) : server_(server) {}

  McpHttpReply Answer(const McpHttpRequest& request);

 private:
  McpHttpReply Post(const McpHttpRequest& request);
  McpHttpReply AnswerStateless(const McpHttpRequest& request, const RpcMessage& message);
  McpHttpReply AnswerInSession(const McpHttpRequest& request, const RpcMessage& message);
  McpHttpReply Run(const McpHttpRequest& request, const RpcMessage& message, McpEra era,
                   const std::shared_ptr<McpSession>& session);

  const McpServer& server_;
  McpSessions sessions_;
  const std::shared_ptr<std::atomic<int>> running_ = std::make_shared<std::atomic<int>>(0);
};

}  // namespace pawl
