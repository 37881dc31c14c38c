// `pawl report`: a campaign as a page to keep.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/names/resource_name.h"
#include "cli/commands/commands.h"
#include "cli/connect/flags.h"
#include "cli/output/files.h"
#include "cli/text/json_line.h"
#include "cli/text/layout.h"

namespace pawl {
namespace {

constexpr char kStandardOutput[] = "-";

struct ReportFlags {
  ConnectionFlags connection;
  std::string campaign;
  std::string format = "html";
  std::string output;
};

v1::ReportFormat FormatOf(const std::string& format) {
  if (format == "html") return v1::REPORT_FORMAT_HTML;
  return format == "md" ? v1::REPORT_FORMAT_MARKDOWN : v1::REPORT_FORMAT_UNSPECIFIED;
}

// A page is for a browser, the rest for the terminal or a pipe.
std::string OutputOf(const ReportFlags& flags) {
  if (!flags.output.empty()) return flags.output;
  if (flags.format != "html") return kStandardOutput;
  return absl::StrCat("campaign-", ShortName(flags.campaign), ".html");
}

absl::StatusOr<int> Report(const ReportFlags& flags, Connection& connection) {
  v1::GetReportRequest request;
  request.set_campaign(flags.campaign);
  request.set_format(FormatOf(flags.format));
  absl::StatusOr<v1::GetReportResponse> response =
      connection.Ask([&](CampaignClient& client) { return client.GetReport(request); });
  if (!response.ok()) return response.status();
  const std::string text = flags.format == "json" ? JsonLine(response->report()) + "\n" : response->page();
  const std::string output = OutputOf(flags);
  if (output == kStandardOutput) {
    if (!PrintText(text)) return absl::UnavailableError("can't write to standard output: is the disk full?");
    return kDone;
  }
  if (absl::Status status = WriteTextFile(output, text); !status.ok()) return status;
  std::printf("%s\n", output.c_str());
  return kDone;
}

}  // namespace

void AddReport(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<ReportFlags>();
  CLI::App* command = app.add_subcommand("report", "Write a campaign's report: one page with all results");
  command->group(kLooking)->footer(
      "Examples: pawl report 7               writes campaign-7.html and prints its name\n"
      "          pawl report 7 --format md | less\n"
      "          pawl report 7 --format json | jq .campaign.speedupOverBaseline\n"
      "An orchestrator also writes the page when a campaign ends: pawl-orchestrator --reports.");
  AddCampaign(*command, &flags->campaign);
  command->add_option("--format", flags->format, "Format: a page with charts, Markdown or JSON")
      ->check(CLI::IsMember({"html", "md", "json"}))
      ->capture_default_str();
  command
      ->add_option("--output", flags->output,
                   "File to write; - is standard output (default: campaign-7.html for html, otherwise -)")
      ->type_name("FILE");
  AddConnectionFlags(*command, &flags->connection);
  command->callback([flags, exit_code] {
    *exit_code = WithConnection("report", flags->connection, Need::kCampaigns,
                                [&](Connection& connection) { return Report(*flags, connection); });
  });
}

}  // namespace pawl
