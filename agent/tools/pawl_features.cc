#include "agent/tools/pawl_features.h"

#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "agent/embedded.h"
#include "agent/tools/forms.h"
#include "agent/tools/resources.h"
#include "base/names/resource_name.h"

namespace pawl {
namespace {

struct ToolEntry {
  Tool tool;
  bool submits = false;     // needs the role submit
  bool takes_long = false;  // a moment is not enough
};

const std::map<std::string, ToolEntry>& ToolTable() {
  static const auto* table = new std::map<std::string, ToolEntry>{
      {"submit", {SubmitTool, true}},
      {"campaigns", {CampaignsTool}},
      {"situation", {SituationTool}},
      {"propose", {ProposeTool, true}},
      {"wait", {WaitTool, false, true}},
      {"explain", {ExplainTool}},
      {"history", {HistoryTool}},
      {"diff", {DiffTool}},
      {"best", {BestTool}},
      {"check", {CheckTool, true, true}},
  };
  return *table;
}

// tools.json names parts that several tools have; what clients see holds them in full.
Json Inlined(const Json& value, const Json& definitions) {
  if (value.is_array()) {
    Json list = Json::array();
    for (const Json& each : value) list.push_back(Inlined(each, definitions));
    return list;
  }
  if (!value.is_object()) return value;
  if (const std::string reference = TextAt(value, "$ref"); !reference.empty()) {
    return Inlined(definitions.at(reference.substr(reference.rfind('/') + 1)), definitions);
  }
  Json object = Json::object();
  for (const auto& [key, each] : value.items()) object[key] = Inlined(each, definitions);
  return object;
}

McpToolResult FailedTool(const std::string& text) {
  McpToolResult result;
  result.failed = true;
  result.content.push_back({{"type", "text"}, {"text", text}});
  return result;
}

// A prompt's text is a file of agent/prompts; {campaign} in it is the argument.
struct PromptEntry {
  const char* name;
  const char* title;
  const char* description;
  const char* argument;
  const char* argument_description;
  std::string_view text;
};

const std::vector<PromptEntry>& PromptTable() {
  static const auto* table = new std::vector<PromptEntry>{
      {"bring_kernel_in", "Bring a kernel in", "Make a kernel bundle from a CUDA kernel, and start a campaign",
       "kernel", "Path or description of the kernel", embedded::kPromptsBringKernelInMd},
      {"optimise", "Optimise a kernel", "Propose changes to a campaign until its goal or its limits are reached",
       "campaign", "Campaign: 7 or campaigns/7", embedded::kPromptsOptimiseMd},
  };
  return *table;
}

}  // namespace

PawlFeatures::PawlFeatures(std::shared_ptr<Campaigns> campaigns, std::unique_ptr<Bundles> bundles, Options options)
    : campaigns_(std::move(campaigns)), bundles_(std::move(bundles)), options_(std::move(options)) {}

std::string PawlFeatures::instructions() const {
  return absl::StrCat(std::string(embedded::kPromptsInstructionsMd),
                      options_.campaign.empty() ? ""
                                                : absl::StrCat("This server is for ", options_.campaign,
                                                               ": the argument campaign may be omitted.\n"));
}

const Json& PawlFeatures::tools() const {
  static const auto* tools = [] {
    const Json file = Json::parse(embedded::kToolsJson);
    return new Json(Inlined(file.at("tools"), file.at("definitions")));
  }();
  return *tools;
}

bool PawlFeatures::TakesLong(const std::string& tool) const {
  const auto found = ToolTable().find(tool);
  return found != ToolTable().end() && found->second.takes_long;
}

McpToolResult PawlFeatures::CallTool(const std::string& name, const Json& arguments, const McpCall& call) const {
  const ToolEntry& entry = ToolTable().at(name);
  if (entry.submits && !call.caller.may_submit) {
    return FailedTool(absl::StrCat("the tool ", name, " needs the role submit, which your token does not have"));
  }
  absl::StatusOr<Json> result = entry.tool(context(), arguments, call);
  if (!result.ok()) return FailedTool(ErrorText(result.status()));
  McpToolResult made;
  made.structured = *std::move(result);
  return made;
}

const Json& PawlFeatures::resource_templates() const { return PawlResourceTemplates(); }

absl::StatusOr<McpCached> PawlFeatures::ListResources(const std::string& cursor) const {
  return ListPawlResources(context(), cursor);
}

absl::StatusOr<McpCached> PawlFeatures::ReadResource(const std::string& uri) const {
  return ReadPawlResource(context(), uri);
}

const Json& PawlFeatures::prompts() const {
  static const auto* prompts = [] {
    auto* list = new Json(Json::array());
    for (const PromptEntry& each : PromptTable()) {
      list->push_back(
          {{"name", each.name},
           {"title", each.title},
           {"description", each.description},
           {"arguments",
            Json::array({{{"name", each.argument}, {"description", each.argument_description}, {"required", true}}})}});
    }
    return list;
  }();
  return *prompts;
}

absl::StatusOr<Json> PawlFeatures::GetPrompt(const std::string& name, const Json& arguments) const {
  for (const PromptEntry& each : PromptTable()) {
    if (each.name != name) continue;
    std::string value = TextAt(arguments, each.argument);
    if (std::string_view(each.argument) == "campaign") {
      absl::StatusOr<std::string> campaign = CampaignArgument(context(), arguments);
      if (!campaign.ok()) return campaign.status();
      value = *std::move(campaign);
    }
    if (value.empty()) return absl::InvalidArgumentError(absl::StrCat("missing: ", each.argument));
    const std::string text =
        absl::StrReplaceAll(std::string(each.text), {{absl::StrCat("{", each.argument, "}"), value}});
    return Json{{"description", each.description},
                {"messages", Json::array({{{"role", "user"}, {"content", {{"type", "text"}, {"text", text}}}}})}};
  }
  return absl::NotFoundError(absl::StrCat("there is no prompt ", name));
}

std::vector<std::string> PawlFeatures::Complete(const std::string& argument, const std::string& value) const {
  std::vector<std::string> values;
  if (argument != "campaign") return values;
  v1::ListCampaignsRequest request;
  request.set_page_size(200);
  const absl::StatusOr<v1::ListCampaignsResponse> list = campaigns_->ListCampaigns(request);
  if (!list.ok()) return values;
  for (const v1::Campaign& campaign : list->campaigns()) {
    const bool seen = options_.campaign.empty() || options_.campaign == campaign.name();
    const std::string number = ShortName(campaign.name());
    if (seen && absl::StartsWith(number, value)) values.push_back(number);
  }
  return values;
}

}  // namespace pawl
