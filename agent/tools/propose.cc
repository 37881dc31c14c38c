// `propose`: the next change to try. Answers at once; `wait` has the verdict.
#include "absl/strings/str_cat.h"
#include "agent/tools/forms.h"
#include "agent/tools/proposal_name.h"
#include "agent/tools/tool.h"
#include "base/names/spelling.h"
#include "kernels/variable_values.h"
#include "report/words.h"

namespace pawl {
namespace {

// The number that stands for a word or a flag in messages.
absl::StatusOr<int> ValueOfWord(const ToolContext& context, const std::string& campaign, const std::string& name,
                                const std::string& word) {
  const absl::StatusOr<v1::Situation> situation = context.campaigns.GetSituation(campaign);
  if (!situation.ok()) return situation.status();
  std::vector<std::string> known;
  for (const v1::Variable& variable : situation->variables()) {
    if (variable.name() != name) continue;
    for (const int value : variable.values()) {
      known.push_back(ValueText(variable, value));
      if (known.back() == word) return value;
    }
  }
  return absl::InvalidArgumentError(absl::StrCat("\"", word, "\" is not a value of ", name, Expected(word, known)));
}

absl::StatusOr<v1::Change> ReadProposedChange(const ToolContext& context, const std::string& campaign,
                                              const Json& arguments) {
  const bool variable = arguments.contains("variable") || arguments.contains("value");
  const bool edit = arguments.contains("name") || arguments.contains("patch");
  if (variable == edit) {
    return absl::InvalidArgumentError(variable ? "a variable and an edit are two changes: propose one at a time"
                                               : "expected variable and value, or name and patch");
  }
  v1::Change change;
  if (variable) {
    if (!arguments.contains("variable") || !arguments.contains("value")) {
      return absl::InvalidArgumentError("expected both variable and value");
    }
    change.set_variable(TextAt(arguments, "variable"));
    const Json& value = arguments["value"];
    if (value.is_number_integer()) {
      change.set_to(value.get<int>());
    } else {
      const std::string word = value.is_string() ? value.get<std::string>() : JsonText(value);
      absl::StatusOr<int> number = ValueOfWord(context, campaign, change.variable(), word);
      if (!number.ok()) return number.status();
      change.set_to(*number);
    }
  } else {
    if (TextAt(arguments, "name").empty() || TextAt(arguments, "patch").empty()) {
      return absl::InvalidArgumentError("an edit has a name and a patch (a unified diff), neither of them empty");
    }
    change.mutable_source()->set_name(TextAt(arguments, "name"));
    change.mutable_source()->set_patch(TextAt(arguments, "patch"));
  }
  return change;
}

}  // namespace

absl::StatusOr<Json> ProposeTool(const ToolContext& context, const Json& arguments, const McpCall& call) {
  absl::StatusOr<std::string> campaign = CampaignArgument(context, arguments);
  if (!campaign.ok()) return campaign.status();
  absl::StatusOr<v1::Change> change = ReadProposedChange(context, *campaign, arguments);
  if (!change.ok()) return change.status();
  v1::ProposeChangeRequest request;
  request.set_campaign(*campaign);
  *request.mutable_change() = *change;
  request.set_author(AuthorOf(context, call));
  request.set_why(TextAt(arguments, "why"));
  // The proposal's event comes after this one.
  absl::StatusOr<v1::Campaign> before = context.campaigns.GetCampaign(*campaign);
  if (!before.ok()) return before.status();
  absl::StatusOr<v1::ProposeChangeResponse> reply = context.campaigns.Propose(request);
  if (!reply.ok()) return reply.status();
  Json result = {{"proposal", WriteProposalName(*campaign, before->last_sequence(),
                                                ProposalDigest(request.author(), request.change()))},
                 {"change", ChangeText(request.change())},
                 {"proposalsBefore", reply->waiting()}};
  result["next"] = before->state() == v1::PAUSED
                       ? absl::StrCat(*campaign, " is paused: somebody must resume it (pawl resume)")
                       : "call wait with this proposal";
  return result;
}

}  // namespace pawl
