#pragma once

#include "agent/mcp/features.h"

namespace pawl {

// What the official conformance suite wants a server to have: tools, resources and prompts whose names and answers it
// knows. Also for tests of the protocol that need no Pawl. `test_slow_tool` goes on until it is cancelled, 20 s at
// most.
class SuiteFeatures : public McpFeatures {
 public:
  SuiteFeatures();

  std::string name() const override { return "suite"; }
  std::string version() const override { return "1.0.0"; }
  std::string instructions() const override { return "for tests"; }

  const Json& tools() const override { return tools_; }
  McpToolResult CallTool(const std::string& name, const Json& arguments, const McpCall& call) const override;
  bool TakesLong(const std::string& tool) const override { return tool == "test_slow_tool"; }

  const Json& resource_templates() const override { return templates_; }
  absl::StatusOr<McpCached> ListResources(const std::string& cursor) const override;
  absl::StatusOr<McpCached> ReadResource(const std::string& uri) const override;

  const Json& prompts() const override { return prompts_; }
  absl::StatusOr<Json> GetPrompt(const std::string& name, const Json& arguments) const override;
  std::vector<std::string> Complete(const std::string& argument, const std::string& value) const override;

 private:
  const Json tools_, templates_, prompts_;
};

}  // namespace pawl
