#include "agent/tools/resources.h"

#include <google/protobuf/util/json_util.h>

#include <limits>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "agent/embedded.h"
#include "agent/tools/forms.h"
#include "agent/tools/source_text.h"
#include "base/names/resource_name.h"
#include "base/names/utf8.h"
#include "kernels/read/implementation.h"

namespace pawl {
namespace {

constexpr absl::string_view kScheme = "pawl://";
constexpr char kGuide[] = "pawl://guide";
constexpr char kLessons[] = "pawl://lessons";
constexpr int kListedCampaigns = 20;
constexpr size_t kMostResourceBytes = 4 << 20;
constexpr int64_t kGuideTtlMs = 3'600'000;
constexpr char kCuda[] = "text/x-cuda";
constexpr char kToml[] = "application/toml";
constexpr char kMarkdown[] = "text/markdown";
constexpr char kJsonType[] = "application/json";

struct ResourceText {
  std::string type;
  std::string text;
};

// Which lines of a text were asked for.
struct LineRange {
  int first = 1;
  int last = std::numeric_limits<int>::max();
};

absl::Status NoSuchResource(const std::string& uri) {
  return absl::NotFoundError(
      absl::StrCat("there is no resource ", uri.substr(0, 200), "; resources/templates/list says what there is"));
}

std::string PrettyJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  std::string text;
  // Fails only for messages with an Any, of which there are none.
  return google::protobuf::util::MessageToJsonString(message, &text, options).ok() ? text : "{}";
}

absl::StatusOr<LineRange> ReadLines(absl::string_view query) {
  LineRange range;
  if (query.empty()) return range;
  const std::vector<absl::string_view> ends = absl::StrSplit(absl::StripPrefix(query, "lines="), '-');
  if (!absl::StartsWith(query, "lines=") || ends.size() != 2 || !absl::SimpleAtoi(ends[0], &range.first) ||
      !absl::SimpleAtoi(ends[1], &range.last) || range.first < 1 || range.last < range.first) {
    return absl::InvalidArgumentError("expected ?lines=FIRST-LAST, such as ?lines=201-400");
  }
  return range;
}

absl::StatusOr<ResourceText> IterationResource(const ToolContext& context, const v1::Campaign& campaign,
                                               const std::string& number, bool source) {
  const absl::StatusOr<std::string> name = ReadIterationName(campaign.name(), number);
  if (!name.ok()) return absl::NotFoundError(name.status().message());
  absl::StatusOr<v1::Iteration> iteration = context.campaigns.GetIteration(*name);
  if (!iteration.ok()) return iteration.status();
  if (!source) return ResourceText{kJsonType, PrettyJson(*iteration)};
  absl::StatusOr<v1::Bundle> bundle = BundleOf(context.campaigns, campaign);
  if (!bundle.ok()) return bundle.status();
  absl::StatusOr<std::string> text = SourceOf(context.campaigns, *bundle, *iteration);
  if (!text.ok()) return text.status();
  return ResourceText{kCuda, *std::move(text)};
}

// "query=bank%20conflicts&gpu=H200&edits=true": a value by its name, decoded; nothing where it is not there.
std::string QueryValue(absl::string_view query, absl::string_view name) {
  for (absl::string_view part : absl::StrSplit(query, '&')) {
    if (!absl::ConsumePrefix(&part, name) || !absl::ConsumePrefix(&part, "=")) continue;
    std::string value;
    for (size_t i = 0; i < part.size(); ++i) {
      const bool coded = part[i] == '%' && i + 2 < part.size() &&
                         absl::ascii_isxdigit(static_cast<unsigned char>(part[i + 1])) &&
                         absl::ascii_isxdigit(static_cast<unsigned char>(part[i + 2]));
      value += coded ? absl::HexStringToBytes(part.substr(i + 1, 2)) : part[i] == '+' ? " " : std::string(1, part[i]);
      if (coded) i += 2;
    }
    return value;
  }
  return "";
}

absl::StatusOr<ResourceText> LessonsResource(const ToolContext& context, absl::string_view query) {
  LessonQuery asked;
  if (std::string words = QueryValue(query, "query"); !words.empty()) asked.any_of = {std::move(words)};
  asked.gpu = QueryValue(query, "gpu");
  asked.edits_only = QueryValue(query, "edits") == "true";
  absl::StatusOr<LessonAnswer> answer = context.lessons->Find(context.campaigns, asked);
  if (!answer.ok()) return answer.status();
  Json result = {{"found", answer->found}, {"lessons", Json::array()}};
  for (const Lesson& lesson : answer->lessons) result["lessons"].push_back(LessonForm(lesson));
  FitResult({"lessons"}, kMostResult, &result);
  return ResourceText{kJsonType, JsonText(result, 2)};
}

absl::StatusOr<ResourceText> CampaignResource(const ToolContext& context, const std::string& uri,
                                              const std::vector<std::string>& path) {
  absl::StatusOr<std::string> name = CampaignArgument(context, {{"campaign", absl::StrCat("campaigns/", path[1])}});
  if (absl::IsInvalidArgument(name.status())) return NoSuchResource(uri);
  if (!name.ok()) return name.status();
  absl::StatusOr<v1::Campaign> campaign = context.campaigns.GetCampaign(*name);
  if (!campaign.ok()) return campaign.status();
  const std::string what = path.size() > 2 ? path[2] : "";
  if (path.size() == 2) return ResourceText{kJsonType, PrettyJson(*campaign)};
  if (path.size() == 3 && what == "source") {
    absl::StatusOr<v1::BestVariant> best = context.campaigns.GetBestVariant(*name);
    if (!best.ok()) return best.status();
    absl::StatusOr<std::string> text = SourceOf(context.campaigns, best->bundle(), best->iteration());
    if (!text.ok()) return text.status();
    return ResourceText{kCuda, *std::move(text)};
  }
  if (path.size() > 3 && what == "files") {
    absl::StatusOr<SourceFiles> files = FilesToEdit(context.campaigns, *campaign);
    if (!files.ok()) return files.status();
    const std::string wanted = absl::StrJoin(path.begin() + 3, path.end(), "/");
    for (auto& [file, text] : *files) {
      if (file == wanted) return ResourceText{file == kKernelToml ? kToml : kCuda, std::move(text)};
    }
    return NoSuchResource(uri);
  }
  if (path.size() == 3 && what == "bundle") {
    absl::StatusOr<v1::Bundle> bundle = BundleOf(context.campaigns, *campaign);
    if (!bundle.ok()) return bundle.status();
    return ResourceText{kJsonType, PrettyJson(*bundle)};
  }
  if (path.size() == 3 && what == "report") {
    v1::GetReportRequest request;
    request.set_campaign(*name);
    request.set_format(v1::REPORT_FORMAT_MARKDOWN);
    absl::StatusOr<v1::GetReportResponse> report = context.campaigns.GetReport(request);
    if (!report.ok()) return report.status();
    return ResourceText{kMarkdown, std::move(*report->mutable_page())};
  }
  const bool iteration = what == "iterations" && (path.size() == 4 || (path.size() == 5 && path[4] == "source"));
  if (iteration) return IterationResource(context, *campaign, path[3], path.size() == 5);
  return NoSuchResource(uri);
}

Json ListedResource(const std::string& uri, const std::string& name, const std::string& description,
                    const std::string& type) {
  return {{"uri", uri}, {"name", name}, {"description", description}, {"mimeType", type}};
}

void ListCampaign(const v1::Campaign& campaign, Json* list) {
  const std::string uri = absl::StrCat(kScheme, campaign.name());
  const std::string short_name = absl::StrCat(campaign.bundle(), " ", ShortName(campaign.name()));
  if (campaign.has_best()) {
    list->push_back(ListedResource(absl::StrCat(uri, "/source"), absl::StrCat(short_name, " source"),
                                   absl::StrCat("Device code of the best variant of ", campaign.name()), kCuda));
    list->push_back(ListedResource(
        absl::StrCat(uri, "/files/", kKernelToml), absl::StrCat(short_name, " kernel.toml"),
        absl::StrCat("Variables, constraints, scratch, launches and options of the best variant of ", campaign.name()),
        kToml));
  }
  list->push_back(ListedResource(absl::StrCat(uri, "/bundle"), absl::StrCat(short_name, " bundle"),
                                 absl::StrCat("Contract and implementation that ", campaign.name(), " began with"),
                                 kJsonType));
  list->push_back(ListedResource(absl::StrCat(uri, "/report"), absl::StrCat(short_name, " report"),
                                 absl::StrCat("Report of ", campaign.name(), " as it stands"), kMarkdown));
}

}  // namespace

const Json& PawlResourceTemplates() {
  static const auto* templates = [] {
    const auto one = [](const char* uri, const char* name, const char* description, const char* type) {
      return Json{{"uriTemplate", uri}, {"name", name}, {"description", description}, {"mimeType", type}};
    };
    return new Json(Json::array({
        one("pawl://campaigns/{campaign}/source", "source", "Device code of the best variant; ?lines=1-400 for a part",
            kCuda),
        one("pawl://campaigns/{campaign}/files/{+path}", "file",
            "A file of the best variant that an edit may change, kernel.toml among them; ?lines=1-400 for a part",
            kCuda),
        one("pawl://campaigns/{campaign}/bundle", "bundle", "Contract and implementation that the campaign began with",
            kJsonType),
        one("pawl://campaigns/{campaign}/report", "report", "Report of the campaign as it stands", kMarkdown),
        one("pawl://lessons{?query,gpu,edits}", "lessons",
            "Changes that stored campaigns tried and their outcomes, by words (a finding, a technique), GPU, edits "
            "only",
            kJsonType),
        one("pawl://campaigns/{campaign}/iterations/{iteration}", "evidence",
            "Everything that is stored of an iteration: samples, counters, findings, build", kJsonType),
        one("pawl://campaigns/{campaign}/iterations/{iteration}/source", "iteration source",
            "Device code of an iteration", kCuda),
    }));
  }();
  return *templates;
}

absl::StatusOr<McpCached> ListPawlResources(const ToolContext& context, const std::string& cursor) {
  Json list = Json::array();
  if (cursor.empty()) {
    list.push_back(
        ListedResource(kGuide, "guide", "How to bring a kernel in, read a situation and propose changes", kMarkdown));
    list.push_back(ListedResource(kLessons, "lessons",
                                  "Changes that stored campaigns tried and their outcomes; ?query=WORDS", kJsonType));
  }
  McpCached cached;
  if (!context.campaign.empty()) {
    absl::StatusOr<v1::Campaign> campaign = context.campaigns.GetCampaign(context.campaign);
    if (!campaign.ok()) return campaign.status();
    ListCampaign(*campaign, &list);
    cached.result["resources"] = std::move(list);
    return cached;
  }
  v1::ListCampaignsRequest request;
  request.set_page_size(kListedCampaigns);
  request.set_page_token(cursor);
  absl::StatusOr<v1::ListCampaignsResponse> campaigns = context.campaigns.ListCampaigns(request);
  if (!campaigns.ok()) return campaigns.status();
  for (const v1::Campaign& campaign : campaigns->campaigns()) ListCampaign(campaign, &list);
  cached.result["resources"] = std::move(list);
  if (!campaigns->next_page_token().empty()) cached.result["nextCursor"] = campaigns->next_page_token();
  return cached;
}

absl::StatusOr<McpCached> ReadPawlResource(const ToolContext& context, const std::string& uri) {
  const std::vector<std::string> halves = absl::StrSplit(uri, absl::MaxSplits('?', 1));
  const bool lessons = halves[0] == kLessons && context.lessons != nullptr;
  const absl::StatusOr<LineRange> lines = ReadLines(halves.size() == 2 && !lessons ? halves[1] : "");
  if (!lines.ok()) return lines.status();
  McpCached cached;
  absl::StatusOr<ResourceText> read = NoSuchResource(uri);
  if (halves[0] == kGuide) {
    read = ResourceText{kMarkdown, std::string(embedded::kSkillsPawlSKILLMd)};
    cached.ttl_ms = kGuideTtlMs;
    cached.for_everyone = true;
  } else if (lessons) {
    read = LessonsResource(context, halves.size() == 2 ? halves[1] : "");
  } else if (absl::string_view rest = halves[0]; absl::ConsumePrefix(&rest, kScheme)) {
    const std::vector<std::string> path = absl::StrSplit(rest, '/');
    if (path[0] == "campaigns" && path.size() >= 2) read = CampaignResource(context, uri, path);
  }
  if (!read.ok()) return read.status();
  std::string text = ValidUtf8(read->text);
  if (halves.size() == 2 && !lessons) {
    text = PageOf(text, lines->first, lines->last, kMostResourceBytes).text;
    if (text.empty()) return absl::NotFoundError(absl::StrCat("there are no such lines in ", halves[0]));
  }
  if (text.size() > kMostResourceBytes) {
    return absl::FailedPreconditionError(
        absl::StrCat("the resource has ", text.size(), " bytes: read it in parts, with ?lines=1-10000"));
  }
  cached.result["contents"] = Json::array({{{"uri", uri}, {"mimeType", read->type}, {"text", std::move(text)}}});
  return cached;
}

}  // namespace pawl
