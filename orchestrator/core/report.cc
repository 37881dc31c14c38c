#include "orchestrator/core/report.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "base/finite/finite.h"
#include "base/names/resource_name.h"
#include "orchestrator/core/errors.h"
#include "orchestrator/core/stored_campaign.h"
#include "orchestrator/engine/report/report.h"
#include "report/html.h"
#include "report/markdown.h"

namespace pawl {
namespace {

constexpr int kAtOnce = 1000;  // iterations: others read in between

absl::Status AddIterations(Store& store, int64_t number, const CampaignState& campaign, v1::Report* report) {
  IterationQuery query;
  query.campaign = number;
  query.limit = kAtOnce;
  while (true) {
    absl::StatusOr<std::vector<v1::Iteration>> page = store.ListIterations(query);
    if (!page.ok()) return page.status();
    if (page->empty()) return absl::OkStatus();
    query.after = IterationQuery::Place{page->back().number(), 0};
    for (v1::Iteration& iteration : *page) {
      // One that was judged since the events were read is not in the rest of the report.
      if (campaign.Find(iteration.number()) != nullptr) *report->add_iterations() = std::move(iteration);
    }
  }
}

// Where the iteration was measured, as its worker says; empty: the worker is not known any more.
absl::StatusOr<std::string> HostOf(Store& store, const v1::Iteration& iteration) {
  absl::StatusOr<std::vector<StoredWorker>> workers = store.Workers();
  if (!workers.ok()) return workers.status();
  for (const StoredWorker& worker : *workers) {
    const bool same =
        worker.worker.name() == iteration.worker() && worker.worker.device().label() == iteration.device();
    if (same) return worker.worker.device().host();
  }
  return "";
}

}  // namespace

absl::StatusOr<v1::Report> Reports::Make(int64_t number) const {
  absl::StatusOr<StoredCampaign> campaign = ReadCampaign(store_, number);
  if (!campaign.ok()) return campaign.status();
  v1::Report report = ReportOf(*campaign->state, chooser_, profiles_, clock_());
  report.mutable_campaign()->set_last_sequence(campaign->last_sequence);
  report.set_version(PAWL_VERSION);
  if (absl::Status status = AddIterations(store_, number, *campaign->state, &report); !status.ok()) return status;
  absl::StatusOr<std::optional<v1::Iteration>> winner = store_.GetIteration(number, report.campaign().best());
  if (!winner.ok()) return winner.status();
  if (*winner) {  // else nothing was judged yet; without a best it is the start
    *report.mutable_toolchain() = std::move(*(*winner)->mutable_toolchain());
    if (report.campaign().has_best()) report.set_build((*winner)->build());
    absl::StatusOr<std::string> host = HostOf(store_, **winner);
    if (!host.ok()) return host.status();
    report.set_host(*std::move(host));
  }
  if (FirstNonFinite(report)) ClearNonFinite(&report);  // that an earlier version stored
  return report;
}

absl::StatusOr<v1::GetReportResponse> Reports::Get(const v1::GetReportRequest& request) const {
  const std::optional<int64_t> number = ParseCampaignName(request.campaign());
  if (!number) return BadField("campaign", "expected a campaign's name, like campaigns/7");
  if (!v1::ReportFormat_IsValid(request.format())) return BadField("format", "expected one of ReportFormat");
  absl::StatusOr<v1::Report> report = Make(*number);
  if (!report.ok()) return report.status();
  v1::GetReportResponse response;
  if (request.format() == v1::REPORT_FORMAT_HTML) response.set_page(HtmlPage(*report));
  if (request.format() == v1::REPORT_FORMAT_MARKDOWN) response.set_page(MarkdownPage(*report));
  *response.mutable_report() = *std::move(report);
  return response;
}

}  // namespace pawl
