// `best`: the fastest kept variant, and its device code, page by page.
#include <limits>

#include "absl/strings/str_cat.h"
#include "agent/tools/forms.h"
#include "agent/tools/source_text.h"
#include "agent/tools/tool.h"
#include "base/names/utf8.h"
#include "report/words.h"

namespace pawl {
namespace {

constexpr size_t kSourcePage = 24'000;  // bytes; escapes make it longer

int LineArgument(const Json& arguments, const char* key, int otherwise) {
  const Json* given = JsonAt(arguments, key);
  return given == nullptr ? otherwise : given->get<int>();
}

}  // namespace

absl::StatusOr<Json> BestTool(const ToolContext& context, const Json& arguments, const McpCall&) {
  absl::StatusOr<std::string> campaign = CampaignArgument(context, arguments);
  if (!campaign.ok()) return campaign.status();
  absl::StatusOr<v1::BestVariant> best = context.campaigns.GetBestVariant(*campaign);
  if (!best.ok()) return best.status();
  const v1::Iteration& iteration = best->iteration();
  absl::StatusOr<std::string> source = SourceOf(context.campaigns, best->bundle(), iteration);
  if (!source.ok()) return source.status();
  Json result = IterationForm(iteration);
  result["campaign"] = *campaign;
  if (!iteration.variant().empty()) result["variant"] = ValuesText(iteration);
  AddNumber("warmUs", iteration.warm_us(), &result);
  AddNumber("coldUs", iteration.cold_us(), &result);
  AddText("build", iteration.build(), &result);
  const SourcePage page = PageOf(*source, LineArgument(arguments, "fromLine", 1),
                                 LineArgument(arguments, "toLine", std::numeric_limits<int>::max()), kSourcePage);
  result["source"] = {{"path", best->bundle().source().path()},
                      {"lines", page.lines},
                      {"fromLine", page.first},
                      {"toLine", page.last},
                      {"text", ValidUtf8(page.text)}};
  if (page.last < page.lines && page.last >= page.first) result["source"]["nextLine"] = page.last + 1;
  result["uri"] = absl::StrCat("pawl://", *campaign, "/source");
  if (JsonText(result).size() <= kMostResult) return result;
  // Quotes and controls take more characters than bytes.
  const SourcePage half = PageOf(*source, page.first, page.last, kSourcePage / 4);
  result["source"]["text"] = ValidUtf8(half.text);
  result["source"]["toLine"] = half.last;
  result["source"]["nextLine"] = half.last + 1;
  if (JsonText(result).size() <= kMostResult) return result;
  return absl::FailedPreconditionError(
      absl::StrCat("a line of the source is too long for a result: read the resource pawl://", *campaign, "/source"));
}

}  // namespace pawl
