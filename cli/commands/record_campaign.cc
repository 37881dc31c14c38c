#include "cli/commands/record_campaign.h"

#include <cstdio>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/connect/all_iterations.h"
#include "cli/text/exit_code.h"
#include "worker/record/campaign_recording.h"
#include "worker/record/recording_path.h"

namespace pawl {
namespace {

absl::StatusOr<MeasuredCampaign> Fetch(Connection& connection, const std::string& name) {
  MeasuredCampaign measured;
  absl::StatusOr<v1::Campaign> campaign =
      connection.Ask([&](CampaignClient& client) { return client.GetCampaign(name); });
  if (!campaign.ok()) return campaign.status();
  measured.campaign = *std::move(campaign);
  absl::StatusOr<v1::GetBlobResponse> blob =
      connection.Ask([&](CampaignClient& client) { return client.GetBlob(measured.campaign.bundle_hash()); });
  if (!blob.ok()) return blob.status();
  if (!measured.bundle.ParseFromString(blob->content())) {
    return absl::DataLossError(absl::StrCat("the stored bundle of ", name, " can't be read: is the database damaged?"));
  }
  v1::ListIterationsRequest request;
  request.set_campaign(name);
  absl::StatusOr<std::vector<v1::Iteration>> iterations = AllIterations(connection, request);
  if (!iterations.ok()) return iterations.status();
  for (const v1::Iteration& listed : *iterations) {
    absl::StatusOr<v1::Iteration> whole =
        connection.Ask([&](CampaignClient& client) { return client.GetIteration(listed.name()); });
    if (!whole.ok()) return whole.status();
    measured.iterations.push_back(*std::move(whole));
  }
  v1::GetReportRequest report;
  report.set_campaign(name);
  // A campaign that has measured nothing yet has none, which is said of the campaign itself.
  absl::StatusOr<v1::GetReportResponse> reported =
      connection.Ask([&](CampaignClient& client) { return client.GetReport(report); });
  if (reported.ok()) measured.copy_gb_s = reported->report().roofline().bandwidth_gb_s();
  return measured;
}

}  // namespace

absl::StatusOr<int> RecordCampaign(Connection& connection, const std::string& campaign, const v1::Bundle& bundle,
                                   std::filesystem::path output) {
  absl::StatusOr<MeasuredCampaign> measured = Fetch(connection, campaign);
  if (!measured.ok()) return measured.status();
  LeftOut left_out;
  absl::StatusOr<Recording> recording = RecordingOf(*measured, bundle, &left_out);
  if (!recording.ok()) return recording.status();
  const size_t measured_variants = recording->variants.size();
  size_t added = measured_variants;
  if (output.empty()) output = RecordingPath(bundle.name(), recording->header.gpu().name());
  std::error_code error;
  if (std::filesystem::exists(output, error)) {
    absl::StatusOr<Recording> there = ReadRecording(output);
    if (!there.ok()) return there.status();
    absl::StatusOr<int> of_it = AddVariants(*recording, output.string(), &*there, &left_out);
    if (!of_it.ok()) return of_it.status();
    added = static_cast<size_t>(*of_it);
    recording = std::move(there);
  }
  for (const auto& [why, names] : left_out) {
    std::fprintf(stderr, "left out, %s: %s\n", why.c_str(), absl::StrJoin(names, ", ").c_str());
  }
  if (added > 0) {
    if (absl::Status status = WriteRecording(output, *recording); !status.ok()) return status;
  }
  std::fprintf(stderr, "variants that %s measured: %zu; new in the recording: %zu; now in it: %zu\n", campaign.c_str(),
               measured_variants, added, recording->variants.size());
  const v1::Goal& goal = measured->campaign.spec().goal();
  std::fprintf(stderr, "replay it: pawl run %s --size %s --goal %g --device replay --recordings %s\n",
               bundle.name().c_str(), goal.size().c_str(), goal.speedup(), output.c_str());
  std::printf("%s\n", output.c_str());
  return kDone;
}

}  // namespace pawl
