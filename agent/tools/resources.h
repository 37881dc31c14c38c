// pawl://guide, pawl://campaigns/7/source and the like: what is too large for a tool's result, or is read as a file.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "agent/tools/tool.h"

namespace pawl {

const Json& PawlResourceTemplates();
absl::StatusOr<McpCached> ListPawlResources(const ToolContext& context, const std::string& cursor);
// A text may be read in parts: ?lines=201-400. NOT_FOUND: nothing has this URI.
absl::StatusOr<McpCached> ReadPawlResource(const ToolContext& context, const std::string& uri);

}  // namespace pawl
