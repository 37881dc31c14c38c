#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/mcp/cancellation.h"
#include "agent/mcp/json.h"

namespace pawl {

// Who asks, as far as the transport knows.
struct McpCaller {
  bool may_submit = true;   // its role; otherwise it may only read
  std::string client = {};  // the name that the client gives itself; empty: none
};

// What a tool sees of the call beside its arguments.
struct McpCall {
  const McpCaller& caller;
  const Cancellation& cancellation;
  // Tells the client how far it is; `done` rises from call to call. Costs nothing where nobody asked for it.
  std::function<void(double done, double total, const std::string& message)> progress;
};

struct McpToolResult {
  Json structured = nullptr;     // null: none
  Json content = Json::array();  // further blocks; the structured result as text is added
  bool failed = false;           // the text says what to do instead
};

// A list or a resource, and for how long a client may keep it.
struct McpCached {
  Json result;
  int64_t ttl_ms = 0;
  bool for_everyone = false;  // the same for all callers
};

// What a server has to offer. Thread-safe.
class McpFeatures {
 public:
  virtual ~McpFeatures() = default;

  virtual std::string name() const = 0;
  virtual std::string version() const = 0;
  virtual std::string instructions() const = 0;  // for models

  virtual const Json& tools() const = 0;  // an array of definitions
  // The tool is among them, and the arguments fit its inputSchema.
  virtual McpToolResult CallTool(const std::string& name, const Json& arguments, const McpCall& call) const = 0;
  // Whether a call may take longer than a moment: over HTTP its reply is a stream then, so that a client that leaves is
  // noticed.
  virtual bool TakesLong(const std::string& tool) const = 0;

  virtual const Json& resource_templates() const = 0;
  // {"resources": [...], "nextCursor": ...}. INVALID_ARGUMENT: the cursor is not from this list.
  virtual absl::StatusOr<McpCached> ListResources(const std::string& cursor) const = 0;
  // {"contents": [...]}. NOT_FOUND: there is no such resource.
  virtual absl::StatusOr<McpCached> ReadResource(const std::string& uri) const = 0;

  virtual const Json& prompts() const = 0;  // an array of definitions
  // {"description": ..., "messages": [...]}. The prompt is among them, and every argument is a text. INVALID_ARGUMENT:
  // an argument is missing or wrong.
  virtual absl::StatusOr<Json> GetPrompt(const std::string& name, const Json& arguments) const = 0;
  // Values of an argument of a prompt or a template that begin so, the most useful first.
  virtual std::vector<std::string> Complete(const std::string& argument, const std::string& value) const = 0;
};

}  // namespace pawl
