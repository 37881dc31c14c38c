#include "agent/drive/driven_features.h"

#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "agent/embedded.h"

namespace pawl {
namespace {

constexpr size_t kLongestText = 16 << 10;
constexpr size_t kLongestArguments = 64 << 10;

class NoBundles final : public Bundles {
 public:
  absl::StatusOr<v1::Bundle> Read(const BundleSource&) const override { return Refusal(); }
  absl::StatusOr<v1::CheckReport> Check(const BundleSource&, const std::string&) const override { return Refusal(); }

 private:
  static absl::Status Refusal() { return absl::PermissionDeniedError("this server is for one campaign only"); }
};

Json CampaignTools(const Json& all) {
  Json tools = Json::array();
  for (const Json& tool : all) {
    if (tool["name"] != "submit" && tool["name"] != "check") tools.push_back(tool);
  }
  return tools;
}

std::string Beginning(const std::string& text) {
  return absl::StrCat(text.substr(0, kLongestText), "[cut: ", text.size(), " bytes]");
}

// A message may have 4 MiB of arguments; the transcript shows what they were like.
Json ArgumentsShown(const Json& arguments) {
  Json shortened = arguments;
  if (shortened.is_object()) {
    for (Json& value : shortened) {
      if (value.is_string() && value.get_ref<const std::string&>().size() > kLongestText) {
        value = Beginning(value.get_ref<const std::string&>());
      }
    }
  }
  const std::string text = JsonText(shortened);
  return text.size() > kLongestArguments ? Json(Beginning(text)) : shortened;
}

}  // namespace

DrivenFeatures::DrivenFeatures(std::shared_ptr<Campaigns> campaigns, const PawlFeatures::Options& options,
                               AgentLedger& ledger, const std::filesystem::path& calls)
    : pawl_(std::move(campaigns), std::make_unique<NoBundles>(), options),
      author_(options.author),
      ledger_(ledger),
      tools_(CampaignTools(pawl_.tools())),
      calls_(calls) {}

McpToolResult DrivenFeatures::CallTool(const std::string& name, const Json& arguments, const McpCall& call) const {
  ledger_.Called(author_, std::chrono::steady_clock::now());
  const McpToolResult result = name == "propose" ? Propose(arguments, call) : pawl_.CallTool(name, arguments, call);
  ledger_.Active(author_, std::chrono::steady_clock::now());  // a wait is no idleness
  Write(name, arguments, result);
  return result;
}

McpToolResult DrivenFeatures::Propose(const Json& arguments, const McpCall& call) const {
  if (!ledger_.Propose(author_)) {
    McpToolResult refused;
    refused.failed = true;
    refused.content.push_back({{"type", "text"},
                               {"text", absl::StrCat("all ", ledger_.limits().proposals,
                                                     " proposals are used up: summarise what you found, and stop")}});
    return refused;
  }
  // Also where it throws: nobody would ever judge what was not proposed.
  absl::Cleanup undo = [this] { ledger_.Unpropose(author_); };
  McpToolResult result = pawl_.CallTool("propose", arguments, call);
  if (!result.failed) std::move(undo).Cancel();
  return result;
}

void DrivenFeatures::Write(const std::string& tool, const Json& arguments, const McpToolResult& result) const {
  const Json line = {{"time", absl::FormatTime(absl::RFC3339_sec, absl::Now(), absl::UTCTimeZone())},
                     {"tool", tool},
                     {"arguments", ArgumentsShown(arguments)},
                     {"result", result.structured.is_null() ? result.content : result.structured}};
  const std::string text = JsonText(line);
  absl::MutexLock lock(&mutex_);
  calls_.AddLine(text);
}

std::string DrivenPrompt(const std::string& author, int agents) {
  return absl::StrReplaceAll(
      std::string(embedded::kPromptsDrivenMd),
      {{"{author}", author}, {"{agents}", agents == 1 ? "1 agent" : absl::StrCat(agents, " agents")}});
}

}  // namespace pawl
