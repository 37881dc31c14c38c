// What several tools read from their arguments.
#include "absl/strings/str_cat.h"
#include "agent/tools/tool.h"
#include "base/names/resource_name.h"

namespace pawl {

absl::StatusOr<std::string> CampaignArgument(const ToolContext& context, const Json& arguments, const char* key) {
  const Json* given = JsonAt(arguments, key);
  if (given == nullptr && !context.campaign.empty()) return context.campaign;
  if (given == nullptr) return absl::InvalidArgumentError(absl::StrCat("missing: ", key));
  absl::StatusOr<std::string> name = ReadCampaignName(given->get<std::string>());
  if (!name.ok()) return name.status();
  if (!context.campaign.empty() && *name != context.campaign) {
    return absl::PermissionDeniedError(absl::StrCat("this server is for ", context.campaign, " only"));
  }
  return name;
}

absl::StatusOr<std::string> IterationArgument(const std::string& campaign, const Json& arguments, const char* key) {
  const Json* given = JsonAt(arguments, key);
  if (given == nullptr) return absl::InvalidArgumentError(absl::StrCat("missing: ", key));
  return ReadIterationName(campaign, absl::StrCat(given->get<int>()));
}

std::string AuthorOf(const ToolContext& context, const McpCall& call) {
  if (!context.author.empty()) return context.author;
  return call.caller.client.empty() ? "mcp" : call.caller.client;
}

absl::StatusOr<BundleSource> BundleArgument(const Json& arguments) {
  BundleSource source;
  source.folder = TextAt(arguments, "bundle");
  if (const Json* files = JsonAt(arguments, "files")) source.files = files->get<std::map<std::string, std::string>>();
  if (source.folder.empty() == source.files.empty()) {
    return absl::InvalidArgumentError(
        "expected either bundle (a folder with kernel.toml) or files (paths and texts, kernel.toml among them)");
  }
  return source;
}

}  // namespace pawl
