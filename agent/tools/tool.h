// The tools, one a file. Each takes arguments that fit its inputSchema of tools.json and answers what fits its
// outputSchema; an error says what the model can do instead.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "agent/campaigns/campaigns.h"
#include "agent/mcp/features.h"
#include "agent/tools/bundles.h"
#include "agent/tools/lessons.h"

namespace pawl {

// What tools stand on.
struct ToolContext {
  Campaigns& campaigns;
  const Bundles& bundles;
  std::string author = {};        // of submissions and proposals; empty: the client's name
  std::string campaign = {};      // the only one that may be looked at and changed; empty: all
  LessonBook* lessons = nullptr;  // of all campaigns, also where there is one only to look at; null: none
};

using Tool = absl::StatusOr<Json> (*)(const ToolContext& context, const Json& arguments, const McpCall& call);

absl::StatusOr<Json> SubmitTool(const ToolContext& context, const Json& arguments, const McpCall& call);
absl::StatusOr<Json> CampaignsTool(const ToolContext& context, const Json& arguments, const McpCall& call);
absl::StatusOr<Json> SituationTool(const ToolContext& context, const Json& arguments, const McpCall& call);
absl::StatusOr<Json> ProposeTool(const ToolContext& context, const Json& arguments, const McpCall& call);
absl::StatusOr<Json> WaitTool(const ToolContext& context, const Json& arguments, const McpCall& call);
absl::StatusOr<Json> ExplainTool(const ToolContext& context, const Json& arguments, const McpCall& call);
absl::StatusOr<Json> HistoryTool(const ToolContext& context, const Json& arguments, const McpCall& call);
absl::StatusOr<Json> DiffTool(const ToolContext& context, const Json& arguments, const McpCall& call);
absl::StatusOr<Json> BestTool(const ToolContext& context, const Json& arguments, const McpCall& call);
absl::StatusOr<Json> CheckTool(const ToolContext& context, const Json& arguments, const McpCall& call);

// campaigns/7 of the argument `campaign` ("7" or "campaigns/7"). INVALID_ARGUMENT: it is no name. PERMISSION_DENIED: it
// is not the campaign that the context is bound to.
absl::StatusOr<std::string> CampaignArgument(const ToolContext& context, const Json& arguments,
                                             const char* key = "campaign");
// campaigns/7/iterations/12 of a number.
absl::StatusOr<std::string> IterationArgument(const std::string& campaign, const Json& arguments, const char* key);
// The name that a change or a campaign is recorded under.
std::string AuthorOf(const ToolContext& context, const McpCall& call);
// Of the arguments `bundle` and `files`.
absl::StatusOr<BundleSource> BundleArgument(const Json& arguments);

}  // namespace pawl
