#include "worker/replay/replay_device.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/hash/hash.h"
#include "kernels/space.h"
#include "worker/build/built_variant.h"
#include "worker/trial/timed_comparison.h"
#include "worker/trial/trial_build.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxBlobs = 1000, kMaxBuilds = 10000;
constexpr absl::Duration kNap = absl::Milliseconds(20);  // between looks at whether to stop

// The stages of a recording, by its names.
constexpr std::pair<v1::Stage, const char*> kStages[] = {{v1::STAGE_BUILD, "build"},
                                                         {v1::STAGE_VALIDATE, "validate"},
                                                         {v1::STAGE_MEASURE, "measure"},
                                                         {v1::STAGE_PROFILE, "profile"}};

absl::StatusOr<std::vector<fs::path>> Files(const std::vector<fs::path>& given) {
  std::vector<fs::path> files;
  for (const fs::path& path : given) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      files.push_back(path);
      continue;
    }
    for (const fs::directory_entry& entry : fs::directory_iterator(path, error)) {
      if (absl::EndsWith(entry.path().string(), ".jsonl.gz")) files.push_back(entry.path());
    }
    if (error) return absl::NotFoundError(absl::StrCat(path.string(), ": ", error.message()));
  }
  if (files.empty()) {
    return absl::NotFoundError(
        "there are no recordings to replay: name a folder with *.jsonl.gz with --recordings, or make one on a GPU "
        "with `pawl record`");
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string Day(const v1::RecordingHeader& header) { return header.date().substr(0, header.date().find('T')); }

double RecordedSeconds(const v1::RecordedVariant& record, const char* stage) {
  const auto found = record.stage_seconds().find(stage);
  return found == record.stage_seconds().end() ? 0 : found->second;
}

uint64_t SeedOf(const v1::Trial& trial) {
  // FNV-1a over the variants, so that trials that share a seed do not share their noise.
  uint64_t hash = 0xcbf29ce484222325 ^ trial.seed();
  for (const v1::Variant* variant : {&trial.variant(), &trial.parent()}) {
    for (const char c : VariantText(*variant)) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return hash;
}

}  // namespace

struct ReplayDevice::Prepared : PreparedTrial {
  // The trial at one of the goal's sizes.
  struct At {
    SizeWeight size;
    const Served* served = nullptr;
    const ReplayedVariant* candidate = nullptr;
    const ReplayedVariant* parent = nullptr;  // the candidate itself where the trial has none
  };
  v1::Trial trial;
  std::shared_ptr<const v1::Bundle> bundle;
  std::string passed_over;
  std::vector<At> sizes;     // in the order of the ladder
  const At* main = nullptr;  // the trial's size: profiles and stages are those recorded there; null: not recorded
  const At& Of(const std::string& size) const {
    return *std::find_if(sizes.begin(), sizes.end(), [&](const At& at) { return at.size.size == size; });
  }
};

absl::StatusOr<std::unique_ptr<ReplayDevice>> ReplayDevice::Open(const ReplayOptions& options) {
  absl::StatusOr<std::vector<fs::path>> files = Files(options.recordings);
  if (!files.ok()) return files.status();
  std::vector<Served> found;
  for (const fs::path& file : *files) {
    absl::StatusOr<v1::RecordingHeader> header = ReadRecordingHeader(file);
    if (!header.ok()) return header.status();
    const std::string label = ReplayLabel(*header);
    found.push_back({file, *std::move(header), label, nullptr});
  }
  auto device = std::unique_ptr<ReplayDevice>(new ReplayDevice(options.speed));
  device->Choose(std::move(found));
  device->Describe();
  return device;
}

void ReplayDevice::Choose(std::vector<Served> found) {
  absl::MutexLock lock(&mutex_);
  std::map<std::string, int> of_gpu;
  for (const Served& one : found) ++of_gpu[one.header.gpu().name()];
  const std::string gpu = std::max_element(of_gpu.begin(), of_gpu.end(), [](const auto& a, const auto& b) {
                            return a.second < b.second;
                          })->first;
  std::stable_sort(found.begin(), found.end(),
                   [](const Served& a, const Served& b) { return a.header.date() > b.header.date(); });
  for (Served& one : found) {
    const bool older = std::any_of(served_.begin(), served_.end(), [&](const Served& other) {
      return other.header.bundle_hash() == one.header.bundle_hash() && other.header.size() == one.header.size();
    });
    if (one.header.gpu().name() != gpu) {
      left_out_.push_back(absl::StrCat(one.file.string(), ": it is of ", WithArticle(one.header.gpu().name()),
                                       ", most are of ", WithArticle(gpu), "; name it with --recordings"));
    } else if (older) {
      left_out_.push_back(absl::StrCat(one.file.string(), ": there is a newer one of the same bundle"));
    } else {
      served_.push_back(std::move(one));
    }
  }
}

void ReplayDevice::Describe() {
  absl::MutexLock lock(&mutex_);
  const v1::RecordingHeader& newest = served_.front().header;
  const std::string first = Day(served_.back().header), last = Day(newest);
  device_.set_kind(v1::DEVICE_KIND_REPLAY);
  device_.set_label(first == last ? served_.front().label
                                  : absl::StrCat("replay of ", WithArticle(newest.gpu().name()), ", recorded on ",
                                                 first, " to ", last));
  *device_.mutable_gpu() = newest.gpu();
  *device_.mutable_toolchain() = newest.toolchain();
  device_.set_host(newest.host());
  for (const Served& one : served_) {
    device_.add_bundle_hashes(absl::StrCat(one.header.bundle_hash(), "@", one.header.size()));
    device_.set_counters(device_.counters() || !one.header.toolchain().ncu().empty());
  }
}

absl::StatusOr<const ReplayDevice::Served*> ReplayDevice::FindRecording(const v1::Trial& trial,
                                                                        const v1::Bundle& bundle,
                                                                        const std::string& size) {
  absl::MutexLock lock(&mutex_);
  std::string hash;
  if (const auto known = of_blobs_.find(trial.bundle_hash()); known != of_blobs_.end()) {
    hash = known->second;
  } else {
    hash = BundleHash(bundle);
    if (of_blobs_.size() >= kMaxBlobs) of_blobs_.clear();
    if (!trial.bundle_hash().empty()) of_blobs_[trial.bundle_hash()] = hash;
  }
  const auto found = std::find_if(served_.begin(), served_.end(), [&](const Served& one) {
    return one.header.bundle_hash() == hash && one.header.size() == size;
  });
  if (found == served_.end()) return nullptr;
  if (found->recording == nullptr) {
    absl::StatusOr<Recording> recording = ReadRecording(found->file);
    if (!recording.ok()) return recording.status();
    found->recording = std::make_unique<const ReplayRecording>(*std::move(recording));
  }
  return &*found;
}

absl::StatusOr<std::unique_ptr<PreparedTrial>> ReplayDevice::Prepare(const v1::Trial& trial,
                                                                     std::shared_ptr<const v1::Bundle> bundle,
                                                                     TrialObserver& observer) {
  auto prepared = std::make_unique<Prepared>();
  prepared->trial = trial;
  prepared->bundle = std::move(bundle);
  if (trial.size().empty()) prepared->trial.set_size(GoalOf(trial, *prepared->bundle).size());
  std::vector<std::string> missing;
  for (const SizeWeight& size : TimedSizes(trial, *prepared->bundle)) {
    absl::StatusOr<const Served*> served = FindRecording(trial, *prepared->bundle, size.size);
    if (!served.ok()) return served.status();
    if (*served == nullptr) missing.push_back(size.size);
    prepared->sizes.push_back({size, *served});
  }
  if (!missing.empty()) {
    prepared->passed_over =
        absl::StrCat("not recorded: there is no recording of this version of ", prepared->bundle->name(), " at size ",
                     absl::StrJoin(missing, ", "), "; record it on a GPU with `pawl record`");
    return prepared;
  }
  prepared->main = &prepared->Of(prepared->trial.size());
  const bool total = trial.purpose() == v1::TRIAL_PURPOSE_TOTAL;
  for (Prepared::At& at : prepared->sizes) {
    const ReplayRecording& recording = *at.served->recording;
    const std::string of = absl::StrCat("not in the recording of ", prepared->bundle->name(),
                                        prepared->sizes.size() > 1 ? absl::StrCat(" at ", at.size.size) : "", " (",
                                        at.served->label, "): ");
    at.candidate = total ? recording.FindBesideStart(trial.variant()) : recording.Find(trial.variant());
    at.parent = trial.has_parent() ? recording.Find(trial.parent()) : at.candidate;
    if (!trial.patched_source().empty() || !trial.parent_patched_source().empty()) {
      prepared->passed_over = absl::StrCat(of, "a source edit");
    } else if (at.candidate == nullptr) {
      prepared->passed_over = absl::StrCat(of, VariantText(trial.variant()));
    } else if (at.parent == nullptr || (trial.has_parent() && at.parent->record.has_failure())) {
      prepared->passed_over = absl::StrCat(of, "times of the parent ", VariantText(trial.parent()));
    }
    if (!prepared->passed_over.empty()) break;
  }
  if (!prepared->passed_over.empty()) return prepared;
  if (absl::Status slept = Sleep(*prepared, v1::STAGE_BUILD, observer); !slept.ok()) return slept;
  return prepared;
}

absl::Status ReplayDevice::Sleep(const Prepared& prepared, v1::Stage stage, TrialObserver& observer) const {
  if (observer.stopped()) return absl::CancelledError("stopped");
  if (speed_ <= 0) return absl::OkStatus();
  const auto* at =
      std::find_if(std::begin(kStages), std::end(kStages), [&](const auto& s) { return s.first == stage; });
  const int step = static_cast<int>(at - kStages) + 1, steps = static_cast<int>(std::size(kStages));
  observer.Report(stage, step, steps, absl::StrCat(at->second, " as recorded (", step, " of ", steps, ")"));
  const auto begin = std::chrono::steady_clock::now();
  const absl::Duration whole = absl::Seconds(RecordedSeconds(prepared.main->candidate->record, at->second) / speed_);
  const auto left = [&] { return whole - absl::FromChrono(std::chrono::steady_clock::now() - begin); };
  for (absl::Duration rest = left(); rest > absl::ZeroDuration(); rest = left()) {
    if (observer.stopped()) return absl::CancelledError("stopped");
    absl::SleepFor(std::min(kNap, rest));
  }
  return absl::OkStatus();
}

std::string ReplayDevice::BuildOf(const Prepared& prepared, const v1::Size& size) {
  const v1::RecordedVariant& record = prepared.main->candidate->record;
  const std::string& architecture = prepared.main->served->header.architecture();
  const std::string& hash = prepared.trial.bundle_hash();
  const std::pair<std::string, const v1::RecordedVariant*> key(hash, &record);
  {
    absl::MutexLock lock(&mutex_);
    if (const auto known = builds_.find(key); !hash.empty() && known != builds_.end()) return known->second;
  }
  std::string build = BuildCommand(*prepared.bundle, record.variant(), size, architecture);
  absl::MutexLock lock(&mutex_);
  if (builds_.size() >= kMaxBuilds) builds_.clear();
  if (!hash.empty()) builds_[key] = build;
  return build;
}

void ReplayDevice::Measure(const Prepared& prepared, TrialOutcome* outcome) const {
  v1::TrialResult* result = &outcome->result;
  const v1::TimingMode deciding = prepared.bundle->timing();
  const v1::Trial& trial = prepared.trial;
  std::map<std::string, ReplayedProcess> processes;  // of one process, as it goes on at each size
  std::map<std::string, double> seconds;
  PairTimer timer;
  timer.protocol.sizes.clear();
  for (const Prepared::At& at : prepared.sizes) {
    timer.protocol.sizes.push_back(at.size);
    seconds[at.size.size] = RecordedSeconds(at.candidate->record, "measure");
    // Sizes do not share their noise.
    const uint64_t shift = &at == prepared.main ? 0 : std::stoull(Sha256(at.size.size).substr(0, 15), nullptr, 16);
    processes[at.size.size] = {SeedOf(trial) ^ shift};
  }
  const bool several = prepared.sizes.size() > 1;
  timer.protocol.sizes = InformativeFirst(std::move(timer.protocol.sizes), seconds);
  timer.protocol.worst = several ? GoalOf(prepared.trial, *prepared.bundle).worst() : 0;
  timer.protocol.stop_early =
      trial.has_parent() && trial.purpose() != v1::TRIAL_PURPOSE_TOTAL && trial.purpose() != v1::TRIAL_PURPOSE_VERIFY;
  if (several && timer.protocol.stop_early) timer.protocol.whole = prepared.main->size.size;
  timer.time = [&](const std::string& size, int pairs, int) -> absl::StatusOr<Timing> {
    const Prepared::At& at = prepared.Of(size);
    ReplayedProcess& process = processes[size];
    Timing timing = at.served->recording->Pairs(*at.candidate, *at.parent, deciding, pairs, process);
    process.pairs_before += pairs;
    return timing;
  };
  timer.start_fresh_process = [&] {
    for (auto& [size, process] : processes) process = {process.seed + 0x5bd1e995};
  };
  const absl::StatusOr<TimedComparison> timed = CompareTimed(timer, deciding, trial.noise(), RuleOf(trial));
  SetTimes(*timed, trial.size(), result);
  const bool profiled = !trial.has_parent() || timed->comparison.result() == v1::FASTER;
  const ReplayedVariant& candidate = *prepared.main->candidate;
  const v1::RecordedVariant& record = candidate.record;
  *result->mutable_evidence() = profiled ? record.evidence() : candidate.uncounted;
  if (!record.has_evidence()) {
    result->mutable_evidence()->set_partial(true);
    result->mutable_evidence()->set_partial_reason("the recording has times only");
  }
  result->set_profiled(profiled && record.has_evidence() && !record.evidence().partial());
  if (profiled) result->set_notes("a recording has no runs of compute-sanitizer");
  result->set_checked_to_keep(trial.has_parent() && profiled);  // when it was recorded
  if (trial.has_parent()) outcome->comparison = timed->comparison;
}

// Start and best at every size of the ladder that has a recording with both.
absl::Status ReplayDevice::AddSizeTimes(const Prepared& prepared, v1::TrialResult* result) {
  const v1::TimingMode deciding = prepared.bundle->timing();
  for (const v1::Size& size : prepared.bundle->sizes()) {
    const absl::StatusOr<const Served*> served = FindRecording(prepared.trial, *prepared.bundle, size.name());
    if (!served.ok()) return served.status();
    if (*served == nullptr) continue;
    const ReplayRecording& recording = *(*served)->recording;
    const ReplayedVariant* best = recording.FindBesideStart(prepared.trial.variant());
    const ReplayedVariant* start = recording.Find(prepared.trial.parent());
    if (best == nullptr || start == nullptr || best->record.has_failure() || start->record.has_failure()) continue;
    const bool cold = deciding == v1::TIMING_MODE_COLD;
    v1::SizeTime& time = *result->add_sizes();
    time.set_size(size.name());
    time.set_start_us(cold ? recording.ColdUs(*start, deciding) : recording.WarmUs(*start, deciding));
    time.set_best_us(cold ? recording.ColdUs(*best, deciding) : recording.WarmUs(*best, deciding));
  }
  return absl::OkStatus();
}

absl::StatusOr<TrialOutcome> ReplayDevice::Run(PreparedTrial& given, TrialObserver& observer) {
  const Prepared& prepared = static_cast<const Prepared&>(given);
  TrialOutcome outcome;
  v1::TrialResult& result = outcome.result;
  result.set_device(prepared.main != nullptr ? prepared.main->served->label : device_.label());
  result.set_passed_over(prepared.passed_over);
  if (!prepared.passed_over.empty()) return outcome;

  const v1::RecordingHeader& header = prepared.main->served->header;
  const v1::RecordedVariant& record = prepared.main->candidate->record;
  *result.mutable_gpu() = header.gpu();
  *result.mutable_toolchain() = header.toolchain();
  *result.mutable_errors() = record.errors();
  result.set_cubin_hash(record.cubin_hash());
  // An imported recording does not know what its times were built for.
  if (const v1::Size* size = FindSize(*prepared.bundle, header.size());
      size != nullptr && !header.architecture().empty()) {
    result.set_build(BuildOf(prepared, *size));
  }
  if (!prepared.trial.has_parent()) {
    *result.mutable_baselines() = header.baseline();
    result.set_copy_gb_s(header.copy_gb_s());
  }
  const auto failed = std::find_if(prepared.sizes.begin(), prepared.sizes.end(),
                                   [](const Prepared::At& at) { return at.candidate->record.has_failure(); });
  if (failed != prepared.sizes.end()) {
    *result.mutable_failure() = failed->candidate->record.failure();
  } else {
    Measure(prepared, &outcome);
    if (prepared.trial.purpose() == v1::TRIAL_PURPOSE_TOTAL) {
      if (absl::Status status = AddSizeTimes(prepared, &result); !status.ok()) return status;
      // What was measured beside the baseline is of one size.
      if (record.has_beside_baseline() && prepared.sizes.size() == 1) {
        *result.mutable_beside_baseline() = record.beside_baseline();
      }
    }
  }
  for (const auto& [stage, name] : kStages) {
    const double seconds = RecordedSeconds(record, name);
    if (seconds <= 0 || (stage == v1::STAGE_PROFILE && !result.profiled())) continue;
    v1::StageTime* time = result.add_stages();
    time->set_stage(stage);
    time->set_seconds(seconds);
    if (stage == v1::STAGE_BUILD) continue;  // was slept through when it was prepared
    if (absl::Status slept = Sleep(prepared, stage, observer); !slept.ok()) return slept;
  }
  return outcome;
}

}  // namespace pawl
