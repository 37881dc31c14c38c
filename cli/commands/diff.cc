// `pawl diff`: what differs between two iterations, or between two campaigns and their best variants.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agent/tools/source_text.h"
#include "base/names/resource_name.h"
#include "cli/commands/commands.h"
#include "cli/connect/flags.h"
#include "cli/drive/connected_campaigns.h"
#include "cli/text/differences.h"
#include "cli/text/failure.h"
#include "cli/text/json_line.h"
#include "cli/text/layout.h"
#include "cli/text/sass.h"
#include "worker/host/toolkit.h"
#include "worker/process/subprocess.h"
#include "worker/process/temporary_folder.h"

namespace pawl {
namespace {

struct DiffFlags {
  ConnectionFlags connection;
  std::string campaign, a, b;
  bool source = false;
  bool json = false;
};

int Print(const Differences& differences, const std::string& first, const std::string& second) {
  if (differences.empty()) {
    std::printf("%s and %s do not differ\n", first.c_str(), second.c_str());
  } else {
    std::fputs(differences.TableText(first, second, TerminalWidth(STDOUT_FILENO), TakesColor(STDOUT_FILENO)).c_str(),
               stdout);
  }
  return kDone;
}

// cuobjdump or nvdisasm: of the toolkit, or on PATH. Empty: there is none.
std::string Disassembler() {
  std::vector<std::string> folders = {FindToolkit().root + "/bin"};
  const char* path = std::getenv("PATH");
  for (const absl::string_view folder : absl::StrSplit(path == nullptr ? "" : path, ':', absl::SkipEmpty())) {
    folders.emplace_back(folder);
  }
  for (const char* name : {"cuobjdump", "nvdisasm"}) {
    for (const std::string& folder : folders) {
      const std::string program = absl::StrCat(folder, "/", name);
      if (access(program.c_str(), X_OK) == 0) return program;
    }
  }
  return "";
}

bool HasCubin(const v1::Iteration& iteration) {
  return std::any_of(iteration.blobs().begin(), iteration.blobs().end(), [&](const v1::Blob& blob) {
    return blob.kind() == v1::Blob::CUBIN && blob.hash() == iteration.cubin_hash();
  });
}

absl::StatusOr<std::map<std::string, InstructionMix>> MixesOf(const v1::Iteration& iteration,
                                                              const std::string& program, Connection& connection) {
  absl::StatusOr<v1::GetBlobResponse> cubin =
      connection.Ask([&](CampaignClient& client) { return client.GetBlob(iteration.cubin_hash()); });
  if (!cubin.ok()) return cubin.status();
  const TemporaryFolder folder("pawl-diff-");
  const std::string file = (folder.path() / "variant.cubin").string();
  std::ofstream out(file, std::ios::binary);
  if (!out.write(cubin->content().data(), static_cast<std::streamsize>(cubin->content().size())).flush()) {
    return absl::UnavailableError(absl::StrCat("can't write ", file));
  }
  ProcessOptions options;
  options.argv = {program};
  if (absl::EndsWith(program, "cuobjdump")) options.argv.push_back("-sass");
  options.argv.push_back(file);
  options.timeout = absl::Seconds(30);
  options.output_cap = size_t{64} << 20;
  const absl::StatusOr<ProcessResult> result = RunProcess(options);
  if (!result.ok()) return result.status();
  if (!result->ok())
    return absl::UnavailableError(absl::StrCat(program, " ", EndText(*result), ": ", OneLine(result->err)));
  return InstructionMixes(result->out);
}

// Where both cubins are stored. What is in the way is said, and the rest is compared all the same.
void AddMachineCode(const v1::Iteration& a, const v1::Iteration& b, Connection& connection, Differences* differences) {
  if (a.cubin_hash() == b.cubin_hash() || !HasCubin(a) || !HasCubin(b)) return;
  const std::string program = Disassembler();
  if (program.empty()) {
    std::fprintf(stderr,
                 "Machine code is not compared: neither cuobjdump nor nvdisasm is on PATH or in CUDA_HOME/bin\n");
    return;
  }
  const absl::StatusOr<std::map<std::string, InstructionMix>> first = MixesOf(a, program, connection);
  const absl::StatusOr<std::map<std::string, InstructionMix>> second = MixesOf(b, program, connection);
  for (const absl::Status& status : {first.status(), second.status()}) {
    if (status.ok()) continue;
    std::fprintf(stderr, "Machine code is not compared: %s\n", std::string(status.message()).c_str());
    return;
  }
  differences->MachineCode(*first, *second);
}

// What differs in the files that edits change, kernel.toml among them.
absl::Status PrintSources(const DiffFlags& flags, const v1::Iteration& a, const v1::Iteration& b,
                          Connection& connection) {
  const std::shared_ptr<Campaigns> campaigns = CampaignsOf(connection);
  absl::StatusOr<v1::Campaign> campaign = campaigns->GetCampaign(flags.campaign);
  if (!campaign.ok()) return campaign.status();
  absl::StatusOr<v1::Bundle> bundle = BundleOf(*campaigns, *campaign);
  if (!bundle.ok()) return bundle.status();
  absl::StatusOr<SourceFiles> first = FilesOf(*campaigns, *bundle, a);
  if (!first.ok()) return first.status();
  absl::StatusOr<SourceFiles> second = FilesOf(*campaigns, *bundle, b);
  if (!second.ok()) return second.status();
  if (PrintText(DiffOfFiles(*first, *second))) return absl::OkStatus();
  return absl::UnavailableError("can't write to standard output: is the disk full?");
}

absl::StatusOr<int> DiffIterations(const DiffFlags& flags, const std::string& first, const std::string& second,
                                   Connection& connection) {
  absl::StatusOr<v1::Iteration> a = connection.Ask([&](CampaignClient& client) { return client.GetIteration(first); });
  if (!a.ok()) return a.status();
  absl::StatusOr<v1::Iteration> b = connection.Ask([&](CampaignClient& client) { return client.GetIteration(second); });
  if (!b.ok()) return b.status();
  if (flags.source) {
    if (absl::Status status = PrintSources(flags, *a, *b, connection); !status.ok()) return status;
    return kDone;
  }
  if (flags.json) {
    PrintJsonLine(*a);
    PrintJsonLine(*b);
    return kDone;
  }
  Differences differences;
  differences.Iterations(*a, *b);
  AddMachineCode(*a, *b, connection, &differences);
  return Print(differences, absl::StrCat("iteration ", a->number()), absl::StrCat("iteration ", b->number()));
}

absl::StatusOr<int> DiffCampaigns(const DiffFlags& flags, const std::string& first, const std::string& second,
                                  Connection& connection) {
  absl::StatusOr<v1::Campaign> a = connection.Ask([&](CampaignClient& client) { return client.GetCampaign(first); });
  if (!a.ok()) return a.status();
  absl::StatusOr<v1::Campaign> b = connection.Ask([&](CampaignClient& client) { return client.GetCampaign(second); });
  if (!b.ok()) return b.status();
  if (flags.json) {
    PrintJsonLine(*a, /*every_field=*/true);
    PrintJsonLine(*b, /*every_field=*/true);
    return kDone;
  }
  Differences differences;
  differences.Campaigns(*a, *b);
  if (a->has_best() && b->has_best()) {
    absl::StatusOr<v1::BestVariant> one =
        connection.Ask([&](CampaignClient& client) { return client.GetBestVariant(first); });
    if (!one.ok()) return one.status();
    absl::StatusOr<v1::BestVariant> other =
        connection.Ask([&](CampaignClient& client) { return client.GetBestVariant(second); });
    if (!other.ok()) return other.status();
    one->mutable_iteration()->clear_device();  // said of the campaigns
    other->mutable_iteration()->clear_device();
    differences.Iterations(one->iteration(), other->iteration());
    AddMachineCode(one->iteration(), other->iteration(), connection, &differences);
  }
  return Print(differences, first, second);
}

int Diff(const DiffFlags& flags) {
  const bool iterations = !flags.b.empty();
  if (flags.source && !iterations) {
    Fail("diff",
         absl::InvalidArgumentError("--source compares two iterations of one campaign: pawl diff 7 0 12 --source"));
    return kWrongUsage;
  }
  const absl::StatusOr<std::string> first =
      iterations ? ReadIterationName(flags.campaign, flags.a) : absl::StatusOr<std::string>(flags.campaign);
  const absl::StatusOr<std::string> second =
      iterations ? ReadIterationName(flags.campaign, flags.b) : ReadCampaignName(flags.a);
  for (const absl::StatusOr<std::string>* name : {&first, &second}) {
    if (name->ok()) continue;
    Fail("diff", name->status());
    return kWrongUsage;
  }
  return WithConnection("diff", flags.connection, Need::kCampaigns, [&](Connection& connection) {
    return iterations ? DiffIterations(flags, *first, *second, connection)
                      : DiffCampaigns(flags, *first, *second, connection);
  });
}

}  // namespace

void AddDiff(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<DiffFlags>();
  CLI::App* command = app.add_subcommand("diff", "Compare two iterations, or two campaigns: only what differs");
  command->group(kLooking)->footer(
      "Examples: pawl diff 7 0 12     iterations 0 and 12 of campaign 7\n"
      "          pawl diff 7 8        campaigns 7 and 8, and their best variants\n"
      "          pawl diff 7 0 12 --source     their source, as a unified diff\n"
      "If cuobjdump or nvdisasm is available, the instructions of both are counted by opcode, from the stored "
      "cubins.\n"
      "The ratio is the second value over the first. With --json: both objects, one per line.");
  AddCampaign(*command, &flags->campaign);
  command->add_option("A", flags->a, "An iteration of CAMPAIGN; without B, another campaign")->required();
  command->add_option("B", flags->b, "Another iteration of CAMPAIGN");
  command->add_flag("--source", flags->source,
                    "Only the files of two iterations, kernel.toml among them, as a unified diff");
  AddJsonFlag(*command, &flags->json);
  AddConnectionFlags(*command, &flags->connection);
  command->callback([flags, exit_code] { *exit_code = Diff(*flags); });
}

}  // namespace pawl
