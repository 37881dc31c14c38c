#include <google/protobuf/util/json_util.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "cli/commands/commands.h"
#include "cli/connect/bundle_path.h"
#include "cli/connect/connection.h"
#include "cli/connect/flags.h"
#include "cli/connect/requests.h"
#include "cli/text/failure.h"
#include "kernels/bundle_message.h"
#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/campaign.pb.h"
#include "profiles/goal_sizes.h"
#include "worker/device/cuda_device.h"
#include "worker/record/campaign_recording.h"
#include "worker/record/recorder.h"

namespace pawl {
namespace {

constexpr absl::Duration kTotalsWait = absl::Seconds(1), kTotalsDeadline = absl::Seconds(30);

// "NVIDIA H200" is h200.
std::string Slug(std::string name) {
  if (const size_t space = name.find(' '); name.rfind("NVIDIA ", 0) == 0) name = name.substr(space + 1);
  std::string slug;
  for (unsigned char c : name) slug += isalnum(c) ? static_cast<char>(tolower(c)) : '-';
  return slug;
}

std::filesystem::path RecordingPath(const std::string& bundle, const std::string& gpu) {
  const std::filesystem::path shipped = "profiles/recordings", name = bundle + "." + Slug(gpu) + ".jsonl.gz";
  std::error_code error;
  return std::filesystem::is_directory(shipped, error) ? shipped / name : name;
}

// The campaign's comparisons with the start up to now, of its events.
absl::StatusOr<std::vector<v1::TotalGain>> FetchTotals(Connection& connection, const v1::Campaign& campaign) {
  std::vector<v1::TotalGain> totals;
  const std::unique_ptr<CampaignWatch> watch = connection.client().Watch(campaign.name(), 0);
  const absl::Time deadline = absl::Now() + kTotalsDeadline;
  int64_t seen = 0;
  while (seen < campaign.last_sequence()) {
    v1::WatchCampaignResponse message;
    const CampaignWatch::Got got = watch->Next(kTotalsWait, &message);
    if (got == CampaignWatch::Got::kEnd && watch->status().ok()) break;
    if (got == CampaignWatch::Got::kEnd) return watch->status();
    if (got == CampaignWatch::Got::kNothingYet && absl::Now() > deadline) {
      return absl::DeadlineExceededError(absl::StrCat("the events of ", campaign.name(), " did not come; try again"));
    }
    if (!message.has_event()) continue;
    seen = message.event().sequence();
    if (message.event().finished().has_total_gain()) totals.push_back(message.event().finished().total_gain());
  }
  return totals;
}

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
    return absl::DataLossError(
        absl::StrCat("the stored bundle of ", name, " can't be read: the database may be damaged"));
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
  absl::StatusOr<std::vector<v1::TotalGain>> totals = FetchTotals(connection, measured.campaign);
  if (!totals.ok()) return totals.status();
  measured.totals = *std::move(totals);
  v1::GetReportRequest report;
  report.set_campaign(name);
  // A campaign that has measured nothing yet has none, which is said of the campaign itself.
  absl::StatusOr<v1::GetReportResponse> reported =
      connection.Ask([&](CampaignClient& client) { return client.GetReport(report); });
  if (reported.ok()) measured.copy_gb_s = reported->report().roofline().bandwidth_gb_s();
  return measured;
}

// Adds what the campaign measured at one size to the recording of that size.
absl::Status RecordCampaignAt(const MeasuredCampaign& measured, const v1::Bundle& bundle, const std::string& size,
                              const std::filesystem::path& output) {
  LeftOut left_out;
  absl::StatusOr<Recording> recording = RecordingOf(measured, bundle, &left_out, size);
  if (!recording.ok()) return recording.status();
  const size_t measured_variants = recording->variants.size();
  size_t added = measured_variants;
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
    std::fprintf(stderr, "left out (%s): %s\n", why.c_str(), absl::StrJoin(names, ", ").c_str());
  }
  if (added > 0) {
    if (absl::Status status = WriteRecording(output, *recording); !status.ok()) return status;
  }
  std::fprintf(stderr, "variants that %s measured: %zu; new in the recording: %zu; now in it: %zu\n",
               measured.campaign.name().c_str(), measured_variants, added, recording->variants.size());
  return absl::OkStatus();
}

absl::StatusOr<int> RecordCampaign(Connection& connection, const std::string& campaign, const v1::Bundle& bundle,
                                   std::filesystem::path output) {
  absl::StatusOr<MeasuredCampaign> measured = Fetch(connection, campaign);
  if (!measured.ok()) return measured.status();
  const v1::Goal& goal = measured->campaign.spec().goal();
  if (output.empty() && !measured->iterations.empty()) {
    output = RecordingPath(bundle.name(), measured->iterations[0].gpu().name());
  }
  const std::vector<SizeWeight> sizes = GoalSizes(measured->bundle, goal);
  std::vector<std::string> weights, files;
  for (const SizeWeight& size : sizes) {
    const std::filesystem::path file = size.size == goal.size() ? output : RecordingFileAt(output, size.size);
    if (absl::Status status = RecordCampaignAt(*measured, bundle, size.size, file); !status.ok()) return status;
    weights.push_back(absl::StrCat(size.size, "=", size.weight));
    files.push_back(file.string());
  }
  const std::string over =
      sizes.size() > 1 ? absl::StrCat("--sizes ", absl::StrJoin(weights, ",")) : absl::StrCat("--size ", goal.size());
  std::fprintf(stderr, "replay it: pawl run %s %s --goal %g --device replay --recordings %s\n", bundle.name().c_str(),
               over.c_str(), goal.speedup(),
               sizes.size() > 1 ? output.parent_path().empty() ? "." : output.parent_path().c_str() : output.c_str());
  for (const std::string& file : files) std::printf("%s\n", file.c_str());
  return kDone;
}

struct RecordFlags {
  ConnectionFlags connection;
  std::string bundle;
  std::string campaign;  // empty: measure
  std::string size, sizes;
  int sample = 0;
  std::string add;
  bool no_profile = false;
  bool allow_unsandboxed = false;
  int device = 0;
  std::string output;
};

std::string LeftText(double seconds) {
  const int whole = static_cast<int>(seconds + 0.5);
  return whole < 60 ? absl::StrFormat("%d s", whole) : absl::StrFormat("%d min %02d s", whole / 60, whole % 60);
}

// One line that is rewritten on a terminal; in a log, one every ten seconds.
class RecordingProgress {
 public:
  void Show(const RecordProgress& progress) {
    const bool measured = progress.done == progress.planned;
    const bool last = measured && progress.profiled == progress.to_profile;
    const double now = progress.seconds + progress.profile_seconds;
    if (!terminal_ && !last && now < next_) return;
    next_ = now + 10;
    const double rate = progress.seconds > 0 ? progress.fresh / progress.seconds : 0;
    const double left = rate > 0 ? (progress.planned - progress.done) / rate : 0;
    const std::string failed = progress.failed > 0 ? absl::StrFormat(", %d failed", progress.failed) : "";
    std::string line = absl::StrFormat("%d/%d measured%s, %.2f/s, best %.3fx (%s)", progress.done, progress.planned,
                                       failed, rate, progress.best_speedup, progress.best);
    if (progress.to_profile > 0) {
      const double each = progress.profile_seconds / std::max(1, progress.profiled);
      line = absl::StrFormat("%d/%d profiled, %s left; %s", progress.profiled, progress.to_profile,
                             LeftText(each * (progress.to_profile - progress.profiled)), line);
    } else {
      line += ", " + LeftText(left) + " left";
    }
    fprintf(stderr, "%s%s%s", terminal_ ? "\r\033[K" : "", line.c_str(), terminal_ && !last ? "" : "\n");
    fflush(stderr);
    open_ = terminal_ && !last;
  }
  void Say(const std::string& line) {
    fprintf(stderr, "%s%s\n", open_ ? "\n" : "", line.c_str());
    open_ = false;
  }

 private:
  const bool terminal_ = isatty(STDERR_FILENO);
  bool open_ = false;
  double next_ = 0;
};

// Of a history, one JSON object a line.
absl::StatusOr<std::vector<v1::Variant>> VariantsOf(const std::string& file) {
  std::vector<v1::Variant> variants;
  std::ifstream in(file);
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    v1::Iteration iteration;
    google::protobuf::util::JsonParseOptions options;
    options.ignore_unknown_fields = true;
    if (!google::protobuf::util::JsonStringToMessage(line, &iteration, options).ok() || iteration.variant().empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(file, ":", number, ": not an iteration; `pawl history CAMPAIGN --json` writes such a file"));
    }
    *variants.emplace_back().mutable_values() = iteration.variant();
  }
  if (variants.empty()) return absl::InvalidArgumentError(absl::StrCat(file, " is empty"));
  return variants;
}

int RecordMeasured(const RecordFlags& flags) {
  absl::StatusOr<v1::Bundle> bundle = LoadBundle(flags.bundle);
  if (!bundle.ok()) return Fail("record", bundle.status());
  return WithConnection("record", flags.connection, Need::kCampaigns, [&](Connection& connection) {
    return RecordCampaign(connection, flags.campaign, *bundle, flags.output);
  });
}

int Record(const RecordFlags& flags) {
  const std::filesystem::path folder = BundlePath(flags.bundle);
  BundleReading reading = ReadBundle(folder);
  for (const Problem& problem : reading.problems) fprintf(stderr, "%s\n", FormatProblem(problem).c_str());
  if (!reading.problems.empty()) return 1;
  v1::Bundle& bundle = reading.bundle;
  if (IsContractAlone(bundle)) {
    fprintf(stderr, "pawl record: %s is a contract alone: it has no device code to measure\n", bundle.name().c_str());
    return 1;
  }
  if (!flags.size.empty()) {
    const bool known = std::any_of(bundle.sizes().begin(), bundle.sizes().end(),
                                   [&](const v1::Size& size) { return size.name() == flags.size; });
    if (!known) {
      fprintf(stderr, "pawl record: %s has no size %s\n", bundle.name().c_str(), flags.size.c_str());
      return 2;
    }
    bundle.mutable_goal()->set_size(flags.size);
    bundle.mutable_goal()->clear_sizes();
    bundle.mutable_goal()->clear_worst();
    bundle.mutable_goal()->clear_portfolio();
  }
  if (!flags.sizes.empty()) {
    if (absl::Status status = SetGoalSizes(flags.sizes, bundle, bundle.mutable_goal()); !status.ok()) {
      Fail("record", status);
      return kWrongUsage;
    }
  }
  if (!flags.add.empty() && HasSeveralSizes(bundle.goal())) {
    fprintf(stderr, "pawl record: --add is for one recording, and the goal has several sizes: name one with --size\n");
    return 2;
  }
  auto failed = [](const absl::Status& status) {
    fprintf(stderr, "pawl record: %s\n", std::string(status.message()).c_str());
    return 1;
  };
  CudaDevice::Options options;
  options.device = flags.device;
  options.builders = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  options.allow_unsandboxed = flags.allow_unsandboxed;
  absl::StatusOr<std::unique_ptr<CudaDevice>> device = CudaDevice::Open(options);
  if (!device.ok()) return failed(device.status());

  RecordOptions record;
  record.sample = flags.sample;
  record.profile = !flags.no_profile;
  if (!flags.add.empty()) {
    absl::StatusOr<std::vector<v1::Variant>> add = VariantsOf(flags.add);
    if (!add.ok()) return failed(add.status());
    record.add = *std::move(add);
  }
  record.folder = folder;
  record.output = flags.output;
  if (flags.output.empty()) record.output = RecordingPath(bundle.name(), (*device)->gpu().name());
  RecordingProgress line;
  Recorder recorder(**device, bundle, record);
  absl::StatusOr<Recording> recording = recorder.Run([&](const RecordProgress& progress) { line.Show(progress); },
                                                     [&](const std::string& text) { line.Say(text); });
  if (!recording.ok()) return failed(recording.status());
  const std::vector<std::string> idle = VariablesWithoutEffect(*recording);
  if (!idle.empty()) line.Say("variables without effect on code or geometry: " + absl::StrJoin(idle, ", "));
  printf("%s\n", record.output.c_str());
  for (const SizeWeight& size : GoalSizes(bundle, bundle.goal())) {
    if (size.size != bundle.goal().size()) printf("%s\n", RecordingFileAt(record.output, size.size).c_str());
  }
  return 0;
}

}  // namespace

void AddRecord(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<RecordFlags>();
  CLI::App* command = app.add_subcommand("record", "Record a bundle's variants on a GPU, or a campaign's measurements");
  command->group(kPreparing)
      ->footer(
          "Examples: pawl record kernels/transpose --sample 50\n"
          "          pawl record kernels/transpose --campaign 7    needs no GPU");
  command
      ->add_option("BUNDLE", flags->bundle, "Folder of the kernel bundle, or the name of a bundle that ships with Pawl")
      ->required();
  CLI::Option* sample =
      command
          ->add_option("--sample", flags->sample,
                       "Measure N variants instead of all: neighbours of the start and of fast variants, random walks")
          ->check(AboveZero());
  CLI::Option* add =
      command
          ->add_option("--add", flags->add,
                       "Add the variants in FILE (written by `pawl history CAMPAIGN --json`) to an existing recording")
          ->type_name("FILE")
          ->check(CLI::ExistingFile);
  CLI::Option* size = command->add_option(
      "--size", flags->size, "Measure at this size of the bundle (default: the goal's size, or each of its sizes)");
  CLI::Option* sizes =
      command
          ->add_option("--sizes", flags->sizes,
                       "Measure at each of these sizes: main=0.6,large=0.4, or main,large; the weights "
                       "lead a sample (default: the goal's)")
          ->type_name("SIZE=WEIGHT,...")
          ->excludes(size);
  CLI::Option* device = command->add_option("--device", flags->device, "Number of the GPU")->check(CLI::Range(0, 1023));
  command
      ->add_option("--output", flags->output,
                   "Recording to write (default: profiles/recordings/BUNDLE.GPU.jsonl.gz); those of a goal's "
                   "other sizes lie beside it, as BUNDLE.GPU.SIZE.jsonl.gz")
      ->type_name("FILE");
  CLI::Option* no_profile =
      command->add_flag("--no-profile", flags->no_profile, "Record times only, without ncu's counters");
  CLI::Option* unsandboxed = command->add_flag("--allow-unsandboxed", flags->allow_unsandboxed,
                                               "Build and run even if no sandbox is available");
  CLI::Option* campaign =
      AddCampaignOption(*command, &flags->campaign,
                        "Record what this campaign (7 or campaigns/7) measured, without measuring; adds to an existing "
                        "recording");
  for (CLI::Option* measuring : {sample, add, size, sizes, device, no_profile, unsandboxed})
    campaign->excludes(measuring);
  AddConnectionFlags(*command, &flags->connection);
  for (const char* name : {"--orchestrator", "--database"}) command->get_option(name)->needs(campaign);
  command->callback(
      [flags, exit_code] { *exit_code = flags->campaign.empty() ? Record(*flags) : RecordMeasured(*flags); });
}

}  // namespace pawl
