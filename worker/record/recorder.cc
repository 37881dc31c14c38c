#include "worker/record/recorder.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "kernels/plan.h"
#include "kernels/space.h"
#include "profiles/comparison.h"
#include "profiles/gpus.h"
#include "worker/host/versions.h"
#include "worker/record/build_ahead.h"
#include "worker/replay/recorded_speedups.h"
#include "worker/trial/baseline.h"
#include "worker/trial/profiler.h"
#include "worker/trial/roofline_check.h"
#include "worker/trial/start_variant.h"
#include "worker/trial/timer.h"
#include "worker/trial/validator.h"

namespace pawl {
namespace {

constexpr size_t kProfiledTogether = 32;  // about four seconds of each run are ncu's own
constexpr double kSurprise = 10;          // a larger speedup is not believed before it was validated again
constexpr int64_t kCopyBytes = int64_t{1} << 30;

// Of one that was measured beside the start; nothing for one that failed.
std::optional<double> LogSpeedup(const v1::RecordedVariant& record) {
  if (record.has_failure() || record.pairs().empty()) return std::nullopt;
  double sum = 0;
  for (const v1::PairSample& pair : record.pairs()) sum += pair.log_ratio();
  return sum / record.pairs_size();
}

}  // namespace

// A variant that went through the GPU and may still lack its profile.
struct Recorder::Measured {
  BuiltVariant built;
  std::vector<v1::ResourceUse> resources;
  v1::RecordedVariant record;
};

Recorder::Recorder(CudaDevice& device, const v1::Bundle& bundle, RecordOptions options)
    : device_(device), bundle_(bundle), options_(std::move(options)) {}

// Hidden sizes, then the whole ladder, smallest first.
std::vector<v1::Size> Recorder::Sizes() const {
  std::vector<v1::Size> sizes = HiddenSizes(bundle_, SecretSeed());
  sizes.insert(sizes.end(), bundle_.sizes().begin(), bundle_.sizes().end());
  return sizes;
}

absl::StatusOr<v1::RecordingHeader> Recorder::MakeHeader(bool goes_on, const Say& say) {
  v1::RecordingHeader header;
  header.set_bundle(bundle_.name());
  header.set_bundle_hash(BundleHash(bundle_));
  header.set_size(bundle_.goal().size());
  *header.mutable_gpu() = device_.gpu();
  header.set_planned(selection_.size());
  if (goes_on) return header;  // the journal has the rest
  header.set_date(absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::Now(), absl::UTCTimeZone()));
  *header.mutable_toolchain() = ToolVersions(device_.toolkit());
  header.set_architecture(ArchitectureOf(device_.gpu()));
  header.set_space(SpaceSize(bundle_));
  absl::StatusOr<int64_t> allowed = CountAllowed(bundle_);
  if (!allowed.ok()) return allowed.status();
  header.set_allowed(*allowed);
  *header.mutable_start() = StartVariant(bundle_);
  *header.mutable_variables() = bundle_.variables();
  header.set_host(HostText());

  v1::RunnerRequest copy;
  copy.mutable_copy()->set_bytes(kCopyBytes);
  absl::StatusOr<v1::RunnerReply> copied = device_.runner().Ask(copy, absl::Seconds(30));
  if (copied.ok() && copied->has_copy()) header.set_copy_gb_s(copied->copy().gb_s());

  if (bundle_.baseline_command().empty()) return header;
  say("timing the baseline");
  const std::vector<v1::Size> sizes(bundle_.sizes().begin(), bundle_.sizes().end());
  absl::StatusOr<std::vector<v1::BaselineTime>> times =
      RunBaseline(bundle_, options_.folder, sizes, device_.gpu().uuid(), device_.sandboxing());
  if (!times.ok()) {
    say(absl::StrCat("no baseline: ", times.status().message()));
    return header;
  }
  for (const v1::BaselineTime& time : *times) {
    *header.add_baseline() = time;
    say(absl::StrFormat("baseline %s: %.2f us by graph, %.2f us by event loop (%s)", time.size(), time.graph_us(),
                        time.event_us(), time.what()));
  }
  return header;
}

// Nothing is measured against a start variant that is wrong, nor under a tolerance that accepts anything.
absl::Status Recorder::PrepareStart(const Say& say) {
  absl::StatusOr<StartVariantRun> run = RunStartVariant(device_, bundle_, Sizes());
  if (!run.ok()) return run.status();
  if (run->failure) {
    return absl::FailedPreconditionError(absl::StrCat("the start variant of ", bundle_.name(), " fails (",
                                                      v1::Check_Name(run->failure->check()), " at size ",
                                                      run->failure->size(), "): ", run->failure->message()));
  }
  for (const std::string& warning : run->warnings) say(warning);
  start_ = std::move(run->built);
  return absl::OkStatus();
}

absl::StatusOr<Recorder::Measured> Recorder::Measure(BuiltVariant built) {
  Measured measured;
  v1::RecordedVariant& record = measured.record;
  *record.mutable_variant() = built.variant;
  (*record.mutable_stage_seconds())["build"] = built.seconds;
  measured.built = std::move(built);
  const BuiltVariant& variant = measured.built;
  if (variant.failure) {
    *record.mutable_failure() = *variant.failure;
    return measured;
  }
  const BuiltSize& candidate = AtGoal(variant);
  record.set_cubin_hash(candidate.module.substr(0, 16));
  absl::StatusOr<Validation> validation = Validate(device_, bundle_, variant, {.repeats = 2});
  if (!validation.ok()) return validation.status();
  (*record.mutable_stage_seconds())["validate"] = validation->seconds;
  measured.resources = validation->resources[candidate.plan.size()];
  for (const v1::OutputError& error : validation->errors[candidate.plan.size()]) *record.add_errors() = error;
  if (validation->failure) {
    *record.mutable_failure() = *validation->failure;
    return measured;
  }

  const TimingOptions options;
  absl::StatusOr<Timing> timing = TimeAgainst(device_, bundle_, candidate, AtGoal(start_), options);
  if (!timing.ok()) return timing.status();
  auto start_time = [&] { return DecidingUs(timing->times.parent_warm_us(), timing->times.parent_cold_us()); };
  auto unsteady = [&] { return timing->times.pairs_size() < options.pairs; };
  const bool drifted = start_us_ > 0 && ParentDrift(start_us_, start_time(), KeepRule()).has_value();
  if (!timing->failure && (unsteady() || drifted)) {
    device_.runner().Restart();  // the candidate may have slowed the start variant: a fresh process decides
    timing = TimeAgainst(device_, bundle_, candidate, AtGoal(start_), options);
    if (!timing.ok()) return timing.status();
  }
  (*record.mutable_stage_seconds())["measure"] = timing->seconds;
  record.set_discarded(timing->times.discarded());
  if (!timing->failure && unsteady()) {
    timing->failure.emplace();
    timing->failure->set_stage(v1::STAGE_MEASURE);
    timing->failure->set_check(v1::CHECK_UNSTEADY);
    timing->failure->set_size(candidate.plan.size());
    timing->failure->set_message(absl::StrCat("clocks or throttle reasons changed in ", timing->times.discarded(),
                                              " pairs: is something else running on the GPU, or is it too hot?"));
  }
  if (timing->failure) {
    *record.mutable_failure() = *timing->failure;
    return measured;
  }
  const v1::CompareReply& times = timing->times;
  if (start_us_ == 0) start_us_ = start_time();
  *record.mutable_pairs() = times.pairs();
  record.set_warm_us(times.candidate_warm_us());
  record.set_cold_us(times.candidate_cold_us());
  record.set_start_cold_us(times.parent_cold_us());
  if (std::optional<v1::Failure> failure = BelowRoofline(device_.gpu().name(), bundle_, candidate.plan,
                                                         times.candidate_warm_us(), times.candidate_cold_us()))
    *record.mutable_failure() = *failure;
  const double candidate_time = DecidingUs(times.candidate_warm_us(), times.candidate_cold_us());
  if (!record.has_failure() && start_time() > kSurprise * candidate_time) {
    absl::StatusOr<Validation> again = Validate(device_, bundle_, variant, {.repeats = 20});
    if (!again.ok()) return again.status();
    if (again->failure) *record.mutable_failure() = *again->failure;
  }
  return measured;
}

// A variant that an earlier run measured and did not get to profile.
absl::StatusOr<Recorder::Measured> Recorder::LoadAgain(BuiltVariant built, const v1::RecordedVariant& before) {
  Measured measured;
  measured.record = before;
  measured.built = std::move(built);
  if (measured.built.failure) return absl::InternalError("a variant that was measured before does not build any more");
  const BuiltSize& at = AtGoal(measured.built);
  absl::StatusOr<v1::RunnerReply> loaded = device_.runner().Load(at.module, *at.cubin, at.plan.launches());
  if (!loaded.ok()) return loaded.status();
  measured.resources.assign(loaded->load().resources().begin(), loaded->load().resources().end());
  return measured;
}

absl::Status Recorder::ProfileAll(std::vector<Measured>* measured, RecordingJournal* journal, const Report& report,
                                  const Say& say, RecordProgress* progress) {
  const absl::Time start = absl::Now();
  progress->to_profile = measured->size();
  NcuProfiler profiler(device_);
  for (size_t first = 0; first < measured->size(); first += kProfiledTogether) {
    const size_t last = std::min(measured->size(), first + kProfiledTogether);
    std::vector<ProfileItem> items;
    for (size_t i = first; i < last; ++i) {
      items.push_back({&AtGoal((*measured)[i].built), (*measured)[i].resources, bundle_.work_on_tensor_cores()});
    }
    absl::StatusOr<Profiling> profiling = profiler.Profile(items);
    if (!profiling.ok()) return profiling.status();
    if (first == 0 && !profiler.missing().empty()) {
      say(absl::StrCat("this ncu lacks ", absl::StrJoin(profiler.missing(), ", "), ": the evidence goes without"));
    }
    if (first == 0 && profiling->evidence[0].partial()) {
      say(absl::StrCat("no counters, times only: ", profiling->evidence[0].partial_reason()));
    }
    for (size_t i = first; i < last; ++i) {
      v1::RecordedVariant& record = (*measured)[i].record;
      *record.mutable_evidence() = std::move(profiling->evidence[i - first]);
      (*record.mutable_stage_seconds())["profile"] = profiling->seconds / items.size();
      if (absl::Status status = journal->Append(record); !status.ok()) return status;
    }
    progress->profiled = last;
    progress->profile_seconds = absl::ToDoubleSeconds(absl::Now() - start);
    report(*progress);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<v1::Variant>> Recorder::NextRound() {
  if (walk_) return walk_->NextRound();
  std::vector<v1::Variant> all;
  all.swap(selection_);
  return all;
}

absl::Status Recorder::Select() {
  if (options_.add.empty()) {
    absl::StatusOr<std::vector<v1::Variant>> selection = ConnectedSample(bundle_, options_.sample);
    if (!selection.ok()) return selection.status();
    selection_ = *std::move(selection);
    if (options_.sample > 0) walk_.emplace(bundle_, options_.sample);
    return absl::OkStatus();
  }
  absl::StatusOr<Recording> there = ReadRecording(options_.output);
  if (!there.ok()) return there.status();
  if (there->header.bundle_hash() != BundleHash(bundle_)) {
    return absl::FailedPreconditionError(absl::StrCat(options_.output.string(), " is of another state of ",
                                                      bundle_.name(), ": record it anew instead of adding to it"));
  }
  if (there->header.size() != bundle_.goal().size() || there->header.gpu().name() != device_.gpu().name() ||
      there->header.gpu().driver_version() != device_.gpu().driver_version()) {
    return absl::FailedPreconditionError(absl::StrCat(
        options_.output.string(), " was measured at size ", there->header.size(), " on ", there->header.gpu().name(),
        " with driver ", there->header.gpu().driver_version(), ", this would be ", bundle_.goal().size(), " on ",
        device_.gpu().name(), " with ", device_.gpu().driver_version(), ": add nothing else to it"));
  }
  std::set<std::string> seen;
  auto select = [&](const v1::Variant& variant) {
    if (seen.insert(VariantText(variant)).second) selection_.push_back(variant);
  };
  for (const v1::RecordedVariant& record : there->variants) select(record.variant());
  for (const v1::Variant& variant : options_.add) {
    absl::StatusOr<bool> allowed = IsAllowed(bundle_, variant);
    if (!allowed.ok()) return allowed.status();
    if (*allowed) select(variant);
  }
  return absl::OkStatus();
}

absl::StatusOr<RecordingJournal> Recorder::OpenJournal(const std::filesystem::path& part, const Say& say) {
  if (options_.add.empty() || RecordingJournal::Begun(part)) {
    absl::StatusOr<v1::RecordingHeader> header = MakeHeader(RecordingJournal::Begun(part), say);
    if (!header.ok()) return header.status();
    return RecordingJournal::Open(part, *header);
  }
  absl::StatusOr<Recording> there = ReadRecording(options_.output);
  if (!there.ok()) return there.status();
  there->header.set_planned(selection_.size());
  absl::StatusOr<RecordingJournal> journal = RecordingJournal::Open(part, there->header);
  for (const v1::RecordedVariant& record : there->variants) {
    if (!journal.ok()) break;
    if (absl::Status status = journal->Append(record); !status.ok()) return status;
  }
  return journal;
}

absl::StatusOr<Recording> Recorder::Run(const Report& report, const Say& say) {
  if (absl::Status status = Select(); !status.ok()) return status;
  if (FindGpu(device_.gpu().name()) == nullptr) {
    say(absl::StrCat(device_.gpu().name(), " is not in profiles/gpus: times are not held against a roofline floor"));
  }
  if (bundle_.work_flops().empty() && bundle_.work_bytes().empty()) {
    say("the bundle has no [work]: times are not held against a roofline floor");
  }
  if (absl::Status status = PrepareStart(say); !status.ok()) return status;
  const std::filesystem::path part = options_.output.string() + ".part";
  absl::StatusOr<RecordingJournal> journal = OpenJournal(part, say);
  if (!journal.ok()) return journal.status();

  RecordProgress progress;
  progress.planned = selection_.size();
  auto count = [&](const v1::RecordedVariant& record, std::optional<double> log_speedup) {
    ++progress.done;
    progress.failed += record.has_failure();
    if (!log_speedup || std::exp(*log_speedup) <= progress.best_speedup) return;
    progress.best_speedup = std::exp(*log_speedup);
    progress.best = VariantText(record.variant());
  };
  std::map<std::string, v1::RecordedVariant> before;
  const Recording& begun = journal->recording();
  const RecordedSpeedups speedups = SpeedupsOf(begun.header, begun.variants);
  auto log_speedup_before = [&](const v1::RecordedVariant& record) -> std::optional<double> {
    const auto found = speedups.log_speedup.find(VariantText(record.variant()));
    if (!LogSpeedup(record) || found == speedups.log_speedup.end()) return std::nullopt;
    return found->second;
  };
  for (const v1::RecordedVariant& record : begun.variants) {
    before[VariantText(record.variant())] = record;
    count(record, log_speedup_before(record));
    const bool is_start = VariantText(record.variant()) == VariantText(StartVariant(bundle_));
    if (is_start && !record.has_failure()) start_us_ = DecidingUs(record.warm_us(), record.cold_us());
  }
  if (!before.empty()) say(absl::StrCat("going on: ", before.size(), " variants are in ", part.string()));
  // What an earlier run got through is neither built nor measured again.
  auto left = [&](const v1::Variant& variant) {
    const auto found = before.find(VariantText(variant));
    return found == before.end() || (options_.profile && !found->second.has_failure() && !found->second.has_evidence());
  };

  const absl::Time start = absl::Now();
  BuildAhead builds({}, [&](const v1::Variant& variant) {
    return BuildVariant(device_.builder(), bundle_, variant, Sizes(), device_.gpu());
  });
  auto next_round = [&]() -> absl::StatusOr<std::vector<v1::Variant>> {
    absl::StatusOr<std::vector<v1::Variant>> round = NextRound();
    if (!round.ok()) return round.status();
    std::vector<v1::Variant> to_build;
    std::copy_if(round->begin(), round->end(), std::back_inserter(to_build), left);
    builds.Add(to_build);
    return round;
  };
  std::vector<Measured> to_profile;
  auto measure = [&](const v1::Variant& variant) -> absl::Status {
    absl::StatusOr<BuiltVariant> built = builds.Next();
    if (!built.ok()) return built.status();
    const auto found = before.find(VariantText(variant));
    const bool fresh = found == before.end();
    absl::StatusOr<Measured> measured =
        fresh ? Measure(*std::move(built)) : LoadAgain(*std::move(built), found->second);
    if (!measured.ok()) return measured.status();
    const v1::RecordedVariant& record = measured->record;
    if (fresh) {
      if (absl::Status status = journal->Append(record); !status.ok()) return status;
      if (progress.fresh == 0 && !record.pairs().empty() && record.pairs(0).before().sm_clock_mhz() == 0) {
        say("NVML is not to be had: pairs measured while the GPU throttled can't be told apart");
      }
      count(record, LogSpeedup(record));
      if (record.has_failure()) {
        say(absl::StrCat(VariantText(record.variant()), ": ", v1::Check_Name(record.failure().check()), " at ",
                         record.failure().size(), ": ", record.failure().message()));
      }
      ++progress.fresh;
      progress.seconds = absl::ToDoubleSeconds(absl::Now() - start);
      report(progress);
    }
    if (walk_) walk_->Learn(variant, LogSpeedup(record));
    if (options_.profile && !record.has_failure()) to_profile.push_back(*std::move(measured));
    return absl::OkStatus();
  };
  absl::StatusOr<std::vector<v1::Variant>> round = next_round();
  while (round.ok() && !round->empty()) {
    absl::StatusOr<std::vector<v1::Variant>> next = next_round();  // is built while this one is measured
    if (!next.ok()) return next.status();
    for (const v1::Variant& variant : *round) {
      if (left(variant)) {
        if (absl::Status status = measure(variant); !status.ok()) return status;
      } else if (walk_) {
        walk_->Learn(variant, log_speedup_before(before.at(VariantText(variant))));
      }
    }
    round = next->empty() ? next_round() : std::move(next);  // none: this one may have shown where to go on
  }
  if (!round.ok()) return round.status();
  if (absl::Status status = ProfileAll(&to_profile, &*journal, report, say, &progress); !status.ok()) return status;
  if (absl::Status status = WriteRecording(options_.output, journal->recording()); !status.ok()) return status;
  std::error_code ignored;
  std::filesystem::remove(part, ignored);
  return journal->recording();
}

}  // namespace pawl
