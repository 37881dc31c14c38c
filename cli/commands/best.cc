// `pawl best`: the fastest variant that was kept, and how to build it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/revision/revision.h"
#include "cli/commands/commands.h"
#include "cli/connect/flags.h"
#include "cli/connect/interrupt.h"
#include "cli/connect/requests.h"
#include "cli/follow/verification.h"
#include "cli/output/winner_folder.h"
#include "cli/text/campaign_text.h"
#include "cli/text/json_line.h"
#include "cli/text/layout.h"
#include "cli/text/words.h"
#include "kernels/hand_off_limits.h"
#include "kernels/plan.h"
#include "kernels/read/implementation.h"
#include "report/sentences.h"

namespace pawl {
namespace {

struct BestFlags {
  ConnectionFlags connection;
  std::string campaign;
  std::string output;
  WorkerFlags worker;
  bool no_verify = false;
  bool json = false;
};

void Print(const v1::BestVariant& best, const v1::Campaign& campaign, const std::vector<v1::Iteration>& path) {
  const v1::Iteration& iteration = best.iteration();
  std::printf("%s of %s on %s\n", iteration.name().c_str(), best.bundle().name().c_str(), iteration.device().c_str());
  std::printf("variant  %s\n", ValuesText(iteration).c_str());
  std::printf("time     %s", TimeText(iteration.time_us()).c_str());
  if (iteration.warm_us() > 0) std::printf("; warm %s", TimeText(iteration.warm_us()).c_str());
  if (iteration.cold_us() > 0) std::printf(", cold %s", TimeText(iteration.cold_us()).c_str());
  std::printf("\nspeedup  %s over the start, %s over the baseline\n",
              SpeedupText(iteration.speedup_over_start()).c_str(), OverBaselineText(campaign).c_str());
  std::fputs(SizesText(campaign).c_str(), stdout);
  std::fputs(PortfolioText(campaign).c_str(), stdout);
  if (const std::string notes = NotesOf(iteration); !notes.empty()) std::printf("notes    %s\n", notes.c_str());
  if (!iteration.build().empty()) std::printf("build    %s\n", iteration.build().c_str());
  if (!iteration.patched_source_hash().empty()) {
    std::printf("source   edited: blob %s\n", iteration.patched_source_hash().c_str());
  }
  std::printf("kept changes:\n%s", PathText(path).c_str());
}

// The texts and the code that the messages name by their hashes.
absl::StatusOr<WinnerBlobs> BlobsOf(const v1::BestVariant& best, Connection& connection) {
  WinnerBlobs blobs;
  blobs.implementation = ImplementationText(best.bundle());
  if (const std::string& hash = best.iteration().patched_source_hash(); !hash.empty()) {
    absl::StatusOr<v1::GetBlobResponse> blob =
        connection.Ask([&](CampaignClient& client) { return client.GetBlob(hash); });
    if (!blob.ok()) return blob.status();
    blobs.implementation = blob->content();
  }
  for (const v1::Blob& each : best.iteration().blobs()) {
    if (each.kind() != v1::Blob::CUBIN) continue;
    absl::StatusOr<v1::GetBlobResponse> blob =
        connection.Ask([&](CampaignClient& client) { return client.GetBlob(each.hash()); });
    if (blob.ok()) blobs.cubin = blob->content();  // an old one may have been removed
  }
  return blobs;
}

std::vector<FormState> NotVerified(const HandOff& hand_off, const std::string& why) {
  std::vector<FormState> forms;
  for (const std::string& form : hand_off.forms) forms.push_back({form, absl::StrCat("not verified: ", OneLine(why))});
  return forms;
}

// Has a worker build and run each form on a GPU, where one can.
absl::StatusOr<std::vector<FormState>> Verified(const BestFlags& flags, const HandOff& hand_off,
                                                const v1::BestVariant& best, const v1::Campaign& campaign,
                                                Connection& connection) {
  if (flags.no_verify) return NotVerified(hand_off, "--no-verify");
  if (campaign.replay()) return NotVerified(hand_off, "the campaign ran on a recording, which builds nothing");
  v1::VerifyIterationRequest request;
  request.set_name(best.iteration().name());
  size_t bytes = 0;
  for (const v1::SourceFile& file : hand_off.files) {
    *request.add_hand_off() = file;
    bytes += file.ByteSizeLong();
  }
  if (bytes > kMaxHandOffBytes) {
    return NotVerified(hand_off, absl::StrFormat("the files have %.1f MB; at most %d MB are sent to a worker",
                                                 static_cast<double>(bytes) / (1 << 20), kMaxHandOffBytes >> 20));
  }
  VerificationRun run(connection, flags.worker, EventPrinter::For(stderr));
  const absl::StatusOr<v1::Verification> verification = run.Run(campaign, request);
  if (Interrupted()) return absl::CancelledError("interrupted");
  if (!verification.ok()) return NotVerified(hand_off, std::string(verification.status().message()));
  const std::string date = absl::FormatTime("%Y-%m-%d", absl::Now(), absl::UTCTimeZone());
  const std::string why = verification->text().empty() ? "the worker ran no form" : verification->text();
  std::vector<FormState> forms = NotVerified(hand_off, why);
  for (FormState& form : forms) {
    for (const v1::HandOffCheck& check : verification->hand_off()) {
      if (check.form() != form.form) continue;
      form.text = check.passed() ? absl::StrCat("verified on ", campaign.device(), ", ", date)
                                 : absl::StrCat("not verified: ", OneLine(check.text()));
    }
  }
  return forms;
}

absl::Status TakeAway(const BestFlags& flags, const std::string& folder, const v1::BestVariant& best,
                      const v1::Campaign& campaign, const std::vector<v1::Iteration>& path, Connection& connection) {
  const absl::StatusOr<WinnerBlobs> blobs = BlobsOf(best, connection);
  if (!blobs.ok()) return blobs.status();
  const absl::StatusOr<HandOff> hand_off = HandOffOf(best, campaign, *blobs, path);
  if (!hand_off.ok()) return hand_off.status();
  absl::StatusOr<std::vector<FormState>> forms = Verified(flags, *hand_off, best, campaign, connection);
  if (!forms.ok()) return forms.status();
  if (std::find(hand_off->forms.begin(), hand_off->forms.end(), "cubin") == hand_off->forms.end()) {
    const bool compiled = IsCudaSource(best.bundle().source().path());
    forms->push_back({"cubin", !compiled ? "the source is what another compiler made"
                               : !blobs->cubin.empty()
                                   ? "not verified: its names of the kernels are ambiguous"
                                   : "not available: no worker has stored it; build.sh compiles the source"});
  }
  v1::BestVariant edited = best;  // with what edits made of its bundle
  if (best.bundle().source().binary().empty()) {
    absl::Status status = SetImplementation(blobs->implementation, edited.mutable_bundle());
    if (!status.ok()) return status;
  }
  const std::vector<WinnerFile> files = WinnerFiles(edited, campaign, *hand_off, *forms, path);
  if (absl::Status status = WriteWinner(files, folder); !status.ok()) return status;
  std::printf("written  %s: %s\n", folder.c_str(),
              hand_off->patch.empty() ? "no patch (your files stay as they are), source, program, PyTorch extension"
                                      : "winner.patch, source, program, PyTorch extension");
  for (const FormState& form : *forms) std::printf("%-9s %s\n", form.form.c_str(), form.text.c_str());
  return absl::OkStatus();
}

// Every variant of a portfolio in a folder of its own, and what picks one of them.
absl::Status TakePortfolio(const BestFlags& flags, const v1::BestVariant& best, const v1::Campaign& campaign,
                           Connection& connection) {
  std::set<int> taken;
  for (const v1::Portfolio::Member& member : campaign.portfolio().members()) {
    if (!taken.insert(member.iteration()).second) continue;
    v1::BestVariant variant;
    *variant.mutable_bundle() = best.bundle();
    absl::StatusOr<v1::Iteration> iteration = connection.Ask([&](CampaignClient& client) {
      return client.GetIteration(absl::StrCat(campaign.name(), "/iterations/", member.iteration()));
    });
    if (!iteration.ok()) return iteration.status();
    absl::StatusOr<std::vector<v1::Iteration>> path = KeptPath(connection, flags.campaign, member.iteration());
    if (!path.ok()) return path.status();
    *variant.mutable_iteration() = *std::move(iteration);
    const std::string folder = absl::StrCat(flags.output, "/iteration_", member.iteration());
    if (absl::Status status = TakeAway(flags, folder, variant, campaign, *path, connection); !status.ok())
      return status;
  }
  const std::vector<WinnerFile> files = PortfolioFiles(best.bundle(), campaign);
  if (absl::Status status = WriteWinner(files, flags.output); !status.ok()) return status;
  std::printf("written  %s: %s and %s, which pick a variant by size\n", flags.output.c_str(), files[0].name.c_str(),
              files[1].name.c_str());
  return absl::OkStatus();
}

absl::StatusOr<int> Best(const BestFlags& flags, Connection& connection) {
  absl::StatusOr<v1::BestVariant> best =
      connection.Ask([&](CampaignClient& client) { return client.GetBestVariant(flags.campaign); });
  if (!best.ok()) return best.status();
  if (flags.json) {
    PrintJsonLine(*best);
    return kDone;
  }
  absl::StatusOr<std::vector<v1::Iteration>> path = KeptPath(connection, flags.campaign, best->iteration().number());
  if (!path.ok()) return path.status();
  absl::StatusOr<v1::Campaign> campaign =
      connection.Ask([&](CampaignClient& client) { return client.GetCampaign(flags.campaign); });
  if (!campaign.ok()) return campaign.status();
  Print(*best, *campaign, *path);
  if (flags.output.empty()) return kDone;
  if (absl::Status status = CheckEmpty(flags.output); !status.ok()) return status;
  const absl::Status written = campaign->has_portfolio()
                                   ? TakePortfolio(flags, *best, *campaign, connection)
                                   : TakeAway(flags, flags.output, *best, *campaign, *path, connection);
  if (!written.ok()) return written;
  return kDone;
}

}  // namespace

void AddBest(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<BestFlags>();
  CLI::App* command = app.add_subcommand("best", "Show the fastest kept variant: values, times, build command");
  command->group(kLooking)->footer("Example: pawl best 7 --output winner");
  AddCampaign(*command, &flags->campaign);
  command
      ->add_option("--output", flags->output,
                   "Also write what to merge to this folder: a patch of your source, a CUDA program, a PyTorch "
                   "extension, the cubin")
      ->type_name("FOLDER");
  command->add_flag("--no-verify", flags->no_verify,
                    "With --output: do not have a worker build and run what is written on a GPU");
  AddWorkerFlags(*command, &flags->worker);
  AddJsonFlag(*command, &flags->json);
  AddConnectionFlags(*command, &flags->connection);
  command->callback([flags, exit_code] {
    NoteInterrupts();
    *exit_code = WithConnection("best", flags->connection, Need::kCampaigns,
                                [&](Connection& connection) { return Best(*flags, connection); });
  });
}

}  // namespace pawl
