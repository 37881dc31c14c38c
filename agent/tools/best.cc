// `best`: the fastest kept variant, and its device code, page by page.
#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
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

std::string PathsOf(const SourceFiles& files) {
  return absl::StrJoin(files, ", ", [](std::string* out, const auto& file) { absl::StrAppend(out, file.first); });
}

}  // namespace

absl::StatusOr<Json> BestTool(const ToolContext& context, const Json& arguments, const McpCall&) {
  absl::StatusOr<std::string> campaign = CampaignArgument(context, arguments);
  if (!campaign.ok()) return campaign.status();
  absl::StatusOr<v1::BestVariant> best = context.campaigns.GetBestVariant(*campaign);
  if (!best.ok()) return best.status();
  const v1::Iteration& iteration = best->iteration();
  absl::StatusOr<SourceFiles> files = FilesOf(context.campaigns, best->bundle(), iteration);
  if (!files.ok()) return files.status();
  const std::string wanted = arguments.contains("file") ? TextAt(arguments, "file") : best->bundle().source().path();
  const auto file = std::find_if(files->begin(), files->end(), [&](const auto& each) { return each.first == wanted; });
  if (file == files->end()) {
    return absl::NotFoundError(absl::StrCat("the implementation has no file ", wanted, "; it has ", PathsOf(*files)));
  }
  const std::string* source = &file->second;
  Json result = IterationForm(iteration);
  result["campaign"] = *campaign;
  if (!iteration.variant().empty()) result["variant"] = ValuesText(iteration);
  AddNumber("warmUs", iteration.warm_us(), &result);
  AddNumber("coldUs", iteration.cold_us(), &result);
  AddText("build", iteration.build(), &result);
  const SourcePage page = PageOf(*source, LineArgument(arguments, "fromLine", 1),
                                 LineArgument(arguments, "toLine", std::numeric_limits<int>::max()), kSourcePage);
  result["source"] = {{"path", wanted},
                      {"lines", page.lines},
                      {"fromLine", page.first},
                      {"toLine", page.last},
                      {"text", ValidUtf8(page.text)}};
  if (page.last < page.lines && page.last >= page.first) result["source"]["nextLine"] = page.last + 1;
  result["files"] = PathsOf(*files);
  result["uri"] = absl::StrCat("pawl://", *campaign, "/files/", wanted);
  if (JsonText(result).size() <= kMostResult) return result;
  // Quotes and controls take more characters than bytes.
  const SourcePage half = PageOf(*source, page.first, page.last, kSourcePage / 4);
  result["source"]["text"] = ValidUtf8(half.text);
  result["source"]["toLine"] = half.last;
  result["source"]["nextLine"] = half.last + 1;
  if (JsonText(result).size() <= kMostResult) return result;
  return absl::FailedPreconditionError(absl::StrCat("a line of the source is too long for a result: read the resource ",
                                                    result["uri"].get<std::string>()));
}

}  // namespace pawl
