#pragma once

#include <memory>
#include <string>

#include "agent/tools/tool.h"

namespace pawl {

// Pawl's tools, resources and prompts.
class PawlFeatures final : public McpFeatures {
 public:
  struct Options {
    std::string version = {};
    std::string author = {};    // as in ToolContext
    std::string campaign = {};  // as in ToolContext
  };
  PawlFeatures(std::shared_ptr<Campaigns> campaigns, std::unique_ptr<Bundles> bundles, Options options);

  std::string name() const override { return "pawl"; }
  std::string version() const override { return options_.version; }
  std::string instructions() const override;

  const Json& tools() const override;
  McpToolResult CallTool(const std::string& name, const Json& arguments, const McpCall& call) const override;
  bool TakesLong(const std::string& tool) const override;

  const Json& resource_templates() const override;
  absl::StatusOr<McpCached> ListResources(const std::string& cursor) const override;
  absl::StatusOr<McpCached> ReadResource(const std::string& uri) const override;

  const Json& prompts() const override;
  absl::StatusOr<Json> GetPrompt(const std::string& name, const Json& arguments) const override;
  std::vector<std::string> Complete(const std::string& argument, const std::string& value) const override;

 private:
  ToolContext context() const { return {*campaigns_, *bundles_, options_.author, options_.campaign, lessons_.get()}; }

  const std::shared_ptr<Campaigns> campaigns_;
  const std::unique_ptr<Bundles> bundles_;
  const Options options_;
  const std::unique_ptr<LessonBook> lessons_ = std::make_unique<LessonBook>();
};

}  // namespace pawl
