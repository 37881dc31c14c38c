#include "bench/verdict/study.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/read/bundle_reader.h"
#include "kernels/space.h"
#include "profiles/gpus.h"
#include "profiles/keep_rule.h"
#include "worker/record/recorder.h"
#include "worker/trial/timed_comparison.h"

namespace pawl {
namespace {

constexpr size_t kUuidDigits = 12;  // "GPU-" and eight digits
constexpr int kSample = 200;        // variants around the start that changes are drawn from
constexpr int kAttempts = 40;       // at a change that is allowed
constexpr double kSpare = 1.3;      // more are built than are asked for: some fail
constexpr int kBuilders = 16;
constexpr int kCheckedCalls = 4;  // nobody cheats here

v1::Bundle ReadOrExit(const std::string& folder) {
  BundleReading reading = ReadBundle(folder);
  for (const Problem& problem : reading.problems) fprintf(stderr, "%s\n", FormatProblem(problem).c_str());
  if (!reading.problems.empty()) exit(1);
  return reading.bundle;
}

template <typename T>
T Must(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  fprintf(stderr, "%s\n", std::string(value.status().message()).c_str());
  exit(1);
}

// Kernels that nothing launches, so that what follows lies elsewhere.
std::string WithPadding(const std::string& source, std::mt19937_64& random) {
  std::string padded;
  for (uint64_t i = 0, kernels = 1 + random() % 8; i < kernels; ++i) {
    absl::StrAppend(&padded, "extern \"C\" __global__ void pawl_padding_", i, "(float* p) {\n");
    for (uint64_t k = 0, lines = 1 + random() % 40; k < lines; ++k) {
      absl::StrAppend(&padded, "  p[", random() % 1000, "] = p[", random() % 1000, "] * ", 1 + random() % 9, ".5f;\n");
    }
    absl::StrAppend(&padded, "}\n");
  }
  return absl::StrCat(padded, source);
}

}  // namespace

Study::Study(StudyDevice& device, const StudyOptions& options)
    : device_(device),
      options_(options),
      end_(absl::Now() + absl::Seconds(options.seconds)),
      crew_(kBuilders),
      file_(options.output, device.gpu().uuid().substr(0, kUuidDigits)) {
  for (const SeriesLine& line : ReadSeries(options.output)) {
    done_[line.pair] += line.result.empty() ? 1 : options.processes;
  }
  for (const std::string& folder : options.bundles) {
    Space& space = spaces_.emplace_back();
    space.bundle = ReadOrExit(folder);
    if (FindSize(space.bundle, options.size) != nullptr) space.bundle.mutable_goal()->set_size(options.size);
    space.sample = Must(ConnectedSample(space.bundle, kSample));
  }
  random_.seed(options.seed);  // the same pairs again when it goes on
}

std::optional<BuiltSize> Study::Built(const v1::Bundle& bundle, const v1::Variant& variant) {
  std::vector<v1::Size> timed;
  for (const v1::Size& size : bundle.sizes()) {
    if (size.name() == bundle.goal().size()) timed.push_back(size);
  }
  const BuiltVariant built = Must(BuildVariant(device_.builder(), bundle, variant, timed, device_.gpu()));
  if (built.failure || built.sizes.empty()) return std::nullopt;
  return built.sizes.front();
}

void Study::Build(const std::vector<std::pair<std::optional<BuiltSize>*, std::pair<v1::Bundle, v1::Variant>>>& wanted) {
  const absl::Time start = absl::Now();
  std::vector<std::function<void()>> jobs;
  for (const auto& [built, what] : wanted) {
    jobs.push_back([this, built = built, &what = what] { *built = Built(what.first, what.second); });
  }
  crew_.Run(std::move(jobs));
  printf("%zu builds in %.1f s\n", wanted.size(), absl::ToDoubleSeconds(absl::Now() - start));
  fflush(stdout);
}

std::optional<std::pair<v1::Variant, v1::Variant>> Study::DrawChange(const Space& space) {
  const v1::Variant& from = space.sample[random_() % space.sample.size()];
  v1::Variant to = from;
  const v1::Variable& variable = space.bundle.variables(static_cast<int>(random_() % space.bundle.variables_size()));
  const int32_t value = variable.values(static_cast<int>(random_() % variable.values_size()));
  if (value == to.values().at(variable.name())) return std::nullopt;
  (*to.mutable_values())[variable.name()] = value;
  const absl::StatusOr<bool> allowed = IsAllowed(space.bundle, to);
  if (!allowed.ok() || !*allowed) return std::nullopt;
  return std::make_pair(from, to);
}

std::vector<StudyPair> Study::DrawPairs() {
  std::vector<std::pair<StudyPair, std::pair<v1::Variant, v1::Variant>>> drawn;
  for (const Space& space : spaces_) {
    const int wanted = static_cast<int>(std::ceil(kSpare * options_.pairs));
    std::set<std::string> names;
    for (int attempt = 0; attempt < kAttempts * wanted && static_cast<int>(names.size()) < wanted; ++attempt) {
      const auto change = DrawChange(space);
      if (!change) continue;
      const std::string name =
          absl::StrCat(space.bundle.name(), ": ", VariantText(change->first), " -> ", VariantText(change->second));
      if (!names.insert(name).second) continue;
      drawn.push_back({{.name = name, .bundle = &space.bundle}, *change});
    }
  }
  std::vector<std::pair<std::optional<BuiltSize>*, std::pair<v1::Bundle, v1::Variant>>> wanted;
  for (auto& [pair, variants] : drawn) {
    wanted.push_back({&pair.parent, {*pair.bundle, variants.first}});
    wanted.push_back({&pair.candidate, {*pair.bundle, variants.second}});
  }
  Build(wanted);
  std::vector<StudyPair> pairs;
  std::map<const v1::Bundle*, int> counts;
  for (auto& [pair, variants] : drawn) {
    if (pair.parent && pair.candidate && counts[pair.bundle]++ < options_.pairs) pairs.push_back(std::move(pair));
  }
  return pairs;
}

std::optional<std::vector<v1::PairSample>> Study::Time(const std::string& name, const v1::Bundle& bundle,
                                                       const BuiltSize& candidate, const BuiltSize& parent,
                                                       TimingOptions options) {
  if (absl::Status status = device_.Next(); !status.ok()) {
    fprintf(stderr, "%s\n", std::string(status.message()).c_str());
    exit(1);
  }
  options.candidate_first = random_() % 2 == 0;
  options.checked_calls = kCheckedCalls;
  const absl::StatusOr<Timing> timing = TimeAgainst(device_, bundle, candidate, parent, options);
  std::string why = timing.ok() ? "" : std::string(timing.status().message());
  if (timing.ok() && timing->failure) why = timing->failure->message();
  if (why.empty() && timing->times.pairs_size() < options.pairs) {
    why = absl::StrCat(timing->times.discarded(), " pairs discarded");
  }
  if (!why.empty()) {
    printf("%s: %s\n", name.c_str(), why.c_str());
    return std::nullopt;
  }
  printf(
      "%s: by the host's clock %+.2f us a replay beside its parent (standard error %.2f), %+.2f beside Pawl's own "
      "kernel\n",
      name.c_str(), timing->times.unseen_over_parent_us(), timing->times.unseen_error_us(),
      timing->times.unseen_over_own_us());
  return std::vector<v1::PairSample>(timing->times.pairs().begin(), timing->times.pairs().end());
}

void Study::CompareChanges() {
  std::vector<StudyPair> pairs = DrawPairs();
  for (int process = 0; process < options_.processes; ++process) {
    for (StudyPair& pair : pairs) {
      if (TimeIsUp()) break;
      if (pair.failed || done_[pair.name] > process) continue;
      const auto samples = Time(pair.name, *pair.bundle, *pair.candidate, *pair.parent, {.pairs = options_.series});
      pair.failed = !samples;
      if (!samples) continue;
      file_.Write(LineOf(pair.name, process, *samples));
      ++done_[pair.name];
    }
  }
  Say();
}

void Study::CompareCopies() {
  std::vector<StudyPair> pairs;
  std::vector<std::pair<v1::Bundle, v1::Variant>> sources;
  for (const Space& space : spaces_) {
    for (int number = 0; number < options_.pairs; ++number) {
      const v1::Variant& variant = space.sample[random_() % space.sample.size()];
      pairs.push_back({.name = absl::StrCat(space.bundle.name(), " with itself, ", number, ": ", VariantText(variant)),
                       .bundle = &space.bundle});
      for (int side = 0; side < 2; ++side) {
        sources.push_back({space.bundle, variant});
        v1::SourceFile& source = *sources.back().first.mutable_source();
        source.set_text(WithPadding(source.text(), random_));
      }
    }
  }
  std::vector<std::pair<std::optional<BuiltSize>*, std::pair<v1::Bundle, v1::Variant>>> wanted;
  for (size_t i = 0; i < pairs.size(); ++i) {
    if (done_[pairs[i].name] > 0) continue;
    wanted.push_back({&pairs[i].parent, sources[2 * i]});
    wanted.push_back({&pairs[i].candidate, sources[2 * i + 1]});
  }
  Build(wanted);
  // Bundles in turn: what the time allows is of all of them.
  for (int number = 0; number < options_.pairs; ++number) {
    for (size_t i = static_cast<size_t>(number); i < pairs.size(); i += static_cast<size_t>(options_.pairs)) {
      if (pairs[i].parent && pairs[i].candidate && !TimeIsUp()) CompareCopy(pairs[i]);
    }
  }
  Say();
  SayResults("variants compared with copies of themselves");
}

void Study::CompareCopy(const StudyPair& pair) {
  const double busy = device_.busy_seconds();
  PairTimer timer;
  ChecksOfComparison checks;
  timer.time = [&](const std::string& size, int pairs, int process) {
    TimingOptions options = checks.Options(size, pairs, process);
    options.candidate_first = process % 2 == 0;
    absl::StatusOr<Timing> timing = TimeAgainst(device_, *pair.bundle, *pair.candidate, *pair.parent, options);
    if (timing.ok()) checks.Add(size, process, *timing);
    return timing;
  };
  absl::Status fresh;
  timer.start_fresh_process = [&] { fresh.Update(device_.Next()); };
  fresh = device_.Next();
  const absl::StatusOr<TimedComparison> timed =
      CompareTimed(timer, pair.bundle->timing(), NoiseOf(device_.gpu().name()), KeepRule());
  if (!fresh.ok() || !timed.ok() || timed->failure) {
    const absl::Status& status = fresh.ok() ? timed.status() : fresh;
    printf("%s: %s\n", pair.name.c_str(),
           status.ok() ? timed->failure->message().c_str() : std::string(status.message()).c_str());
    return;
  }
  const v1::Comparison& comparison = timed->comparison;
  gpu_seconds_ += device_.busy_seconds() - busy;
  ++results_[0];
  ++results_[comparison.result()];
  printf("%s: %s\n", pair.name.c_str(), comparison.reason().c_str());
  fflush(stdout);
  for (size_t i = 0; i < timed->processes.size(); ++i) {
    SeriesLine line = LineOf(pair.name, static_cast<int>(i), timed->processes[i].pairs);
    if (i + 1 == timed->processes.size()) line.result = v1::ComparisonResult_Name(comparison.result());
    file_.Write(line);
  }
}

void Study::Say() const {
  printf("%s; %d processes in %s\n", TimeIsUp() ? "the time is up" : "all done", file_.written(),
         options_.output.c_str());
}

void Study::SayResults(const std::string& what) const {
  const auto count = [&](int result) {
    const auto found = results_.find(result);
    return found == results_.end() ? 0 : found->second;
  };
  printf("%d %s: %d kept, %d slower, %d the same, %d unclear; GPU %.3f s each\n", count(0), what.c_str(),
         count(v1::FASTER), count(v1::SLOWER), count(v1::SAME), count(v1::UNCLEAR),
         gpu_seconds_ / std::max(1, count(0)));
}

}  // namespace pawl
