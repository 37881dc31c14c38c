// pawl-verdict-study: how much the results of fresh processes differ on this machine's GPU, and whether a kernel is
// ever kept over a copy of itself.
//   pawl-verdict-study --output FILE BUNDLE...         random single changes, each compared in several processes
//   pawl-verdict-study --same --output FILE BUNDLE...  variants against copies of them whose code is placed differently
//   pawl-verdict-study --noise --output FILE           the [noise] of the GPU's file that FILE shows; needs no GPU
// FILE gets a JSON line a process (tests/profiles/recorded_series.h); what is in it already is not measured again.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/math/distributions/fisher_f.hpp>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "kernels/bundle_reader.h"
#include "kernels/plan.h"
#include "kernels/space.h"
#include "profiles/gpus.h"
#include "profiles/verdict_protocol.h"
#include "worker/record/recorder.h"
#include "worker/trial/cuda_device.h"
#include "worker/trial/timed_comparison.h"
#include "worker/trial/timer.h"
#include "worker/validate/output_check.h"
#include "worker/validate/validator.h"

namespace pawl {
namespace {

constexpr int kSample = 200;   // variants around the start that changes are drawn from
constexpr int kAttempts = 20;  // at a change that is allowed, builds and validates

struct Options {
  std::vector<std::string> bundles;
  std::string output;
  bool same = false;
  bool noise = false;
  int pairs = 10;     // of variants, a bundle
  int processes = 6;  // a pair of variants
  double seconds = 540;
  uint64_t seed = 1;
};

// Two variants at the goal's size.
struct Pair {
  std::string name;
  v1::Bundle bundle;
  BuiltSize parent, candidate;
};

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

nlohmann::json LineOf(const std::string& pair, int process,
                      const google::protobuf::RepeatedPtrField<v1::PairSample>& pairs) {
  const auto rounded = [](double value, double digits) { return std::round(value * digits) / digits; };
  nlohmann::json line = {{"pair", pair}, {"process", process}};
  for (const char* list : {"log_ratios", "parent", "candidate", "anchor"}) line[list] = nlohmann::json::array();
  for (const v1::PairSample& one : pairs) {
    line["log_ratios"].push_back(rounded(one.log_ratio(), 1e7));
    line["parent"].push_back(rounded(one.parent_us(), 1e5));
    line["candidate"].push_back(rounded(one.candidate_us(), 1e5));
    line["anchor"].push_back(rounded(one.anchor_us(), 1e5));
  }
  return line;
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

class Study {
 public:
  Study(CudaDevice& device, const Options& options)
      : device_(device), options_(options), end_(absl::Now() + absl::Seconds(options.seconds)) {
    std::ifstream before(options.output);
    for (std::string line; std::getline(before, line);) {
      const nlohmann::json json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
      if (!json.is_object()) continue;  // broken off
      done_[json.value("pair", "")] += json.contains("result") ? options.processes : 1;
    }
    output_.open(options.output, std::ios::app);
    if (!output_) {
      fprintf(stderr, "can't write %s\n", options.output.c_str());
      exit(1);
    }
  }

  void Run() {
    for (size_t i = 0; i < options_.bundles.size() && !TimeIsUp(); ++i) {
      const v1::Bundle bundle = ReadOrExit(options_.bundles[i]);
      // The same pairs again when it goes on.
      random_.seed(options_.seed * 1000 + std::hash<std::string>()(bundle.name()) % 1000);
      sample_ = Must(ConnectedSample(bundle, kSample));
      options_.same ? CompareCopies(bundle) : CompareChanges(bundle);
    }
    printf("%s; %d processes in %s\n", TimeIsUp() ? "the time is up" : "all done", measured_, options_.output.c_str());
    if (options_.same) {
      printf(
          "%d variants compared with copies of themselves: %d kept, %d slower, %d the same, %d unclear; GPU %.3f s "
          "each\n",
          results_[0], results_[v1::FASTER], results_[v1::SLOWER], results_[v1::SAME], results_[v1::UNCLEAR],
          gpu_seconds_ / std::max(1, results_[0]));
    }
  }

 private:
  bool TimeIsUp() const { return absl::Now() > end_; }
  bool Done(const std::string& pair) const {
    const auto found = done_.find(pair);
    return found != done_.end() && found->second >= options_.processes;
  }

  // At the goal's size; nothing where it fails.
  std::optional<BuiltSize> Built(const v1::Bundle& bundle, const v1::Variant& variant) {
    std::vector<v1::Size> goal;
    for (const v1::Size& size : bundle.sizes()) {
      if (size.name() == bundle.goal().size()) goal.push_back(size);
    }
    const BuiltVariant built = Must(BuildVariant(device_.builder(), bundle, variant, goal, device_.gpu()));
    if (built.failure) return std::nullopt;
    const absl::StatusOr<Validation> validation = Validate(device_, bundle, built, {});
    if (!validation.ok() || validation->failure) {
      device_.runner().Restart();
      return std::nullopt;
    }
    return *built.Find(bundle.goal().size());
  }

  // A variant and another one that differs in one variable.
  std::optional<Pair> DrawChange(const v1::Bundle& bundle) {
    const v1::Variant& from = sample_[random_() % sample_.size()];
    v1::Variant to = from;
    const v1::Variable& variable = bundle.variables(static_cast<int>(random_() % bundle.variables_size()));
    const int32_t value = variable.values(static_cast<int>(random_() % variable.values_size()));
    if (value == to.values().at(variable.name())) return std::nullopt;
    (*to.mutable_values())[variable.name()] = value;
    const absl::StatusOr<bool> allowed = IsAllowed(bundle, to);
    if (!allowed.ok() || !*allowed) return std::nullopt;
    Pair pair;
    pair.name = absl::StrCat(bundle.name(), ": ", VariantText(from), " -> ", variable.name(), "=", value);
    pair.bundle = bundle;
    if (Done(pair.name)) return pair;
    std::optional<BuiltSize> parent = Built(bundle, from), candidate = parent ? Built(bundle, to) : std::nullopt;
    if (!parent || !candidate) return std::nullopt;
    pair.parent = *std::move(parent);
    pair.candidate = *std::move(candidate);
    return pair;
  }

  void CompareChanges(const v1::Bundle& bundle) {
    std::vector<Pair> drawn;
    for (int attempt = 0; attempt < kAttempts * options_.pairs && !TimeIsUp(); ++attempt) {
      if (static_cast<int>(drawn.size()) >= options_.pairs) break;
      if (std::optional<Pair> pair = DrawChange(bundle)) drawn.push_back(*std::move(pair));
    }
    // Processes of one pair lie apart in time, as those of a later measurement would.
    for (int process = 0; process < options_.processes; ++process) {
      for (const Pair& pair : drawn) {
        if (TimeIsUp()) return;
        if (done_[pair.name] > process) continue;
        device_.runner().Restart();
        const absl::StatusOr<Timing> timing =
            TimeAgainst(device_, pair.bundle, pair.candidate, pair.parent,
                        {.pairs = KeepRule().extended_pairs, .candidate_first = random_() % 2 == 0});
        Say(pair.name, process, timing);
        if (!timing.ok() || timing->failure || timing->times.pairs_size() < KeepRule().extended_pairs) continue;
        Write(LineOf(pair.name, process, timing->times.pairs()));
        ++done_[pair.name];
      }
    }
  }

  void Say(const std::string& name, int process, const absl::StatusOr<Timing>& timing) {
    std::string what = timing.ok() ? "" : std::string(timing.status().message());
    if (timing.ok() && timing->failure) what = timing->failure->message();
    if (what.empty()) {
      double mean = 0;
      for (const v1::PairSample& pair : timing->times.pairs()) mean += pair.log_ratio() / timing->times.pairs_size();
      what = absl::StrFormat("%+.3f %%, %d pairs, %d discarded, %.3f s", 100 * std::expm1(mean),
                             timing->times.pairs_size(), timing->times.discarded(), timing->seconds);
    }
    printf("%s, process %d: %s\n", name.c_str(), process, what.c_str());
    fflush(stdout);
  }

  // Through the whole protocol, with copies that are built apart.
  void CompareCopies(const v1::Bundle& bundle) {
    for (int number = 0; number < options_.pairs && !TimeIsUp(); ++number) {
      const v1::Variant& variant = sample_[random_() % sample_.size()];
      v1::Bundle copies[2] = {bundle, bundle};
      for (v1::Bundle& copy : copies) {
        copy.mutable_source()->set_text(WithPadding(copy.source().text(), random_));
      }
      const std::string name = absl::StrCat(bundle.name(), " with itself, ", number, ": ", VariantText(variant));
      if (Done(name)) continue;
      const std::optional<BuiltSize> parent = Built(copies[0], variant), candidate = Built(copies[1], variant);
      if (!parent || !candidate) continue;
      CompareCopy(name, bundle, *parent, *candidate);
    }
  }

  void CompareCopy(const std::string& name, const v1::Bundle& bundle, const BuiltSize& parent,
                   const BuiltSize& candidate) {
    const double busy = device_.runner().busy_seconds() + device_.reference().busy_seconds();
    PairTimer timer;
    timer.time = [&](int pairs, int process) {
      TimingOptions options{.pairs = pairs, .candidate_first = process % 2 == 0};
      if (process > 0) {
        options.checked_calls = kConfirmingCalls;
        options.checked_bytes = kConfirmingBytes;
      }
      return TimeAgainst(device_, bundle, candidate, parent, options);
    };
    timer.start_fresh_process = [&] { device_.runner().Restart(); };
    device_.runner().Restart();
    const absl::StatusOr<TimedComparison> timed =
        CompareTimed(timer, bundle.timing(), NoiseOf(device_.gpu().name()), KeepRule());
    if (!timed.ok() || timed->failure) {
      printf("%s: %s\n", name.c_str(),
             timed.ok() ? timed->failure->message().c_str() : std::string(timed.status().message()).c_str());
      return;
    }
    const v1::Comparison& comparison = timed->comparison;
    gpu_seconds_ += device_.runner().busy_seconds() + device_.reference().busy_seconds() - busy;
    ++results_[0];
    ++results_[comparison.result()];
    printf("%s: %s\n", name.c_str(), comparison.reason().c_str());
    fflush(stdout);
    for (size_t i = 0; i < timed->processes.size(); ++i) {
      const std::vector<v1::PairSample>& pairs = timed->processes[i].pairs;
      nlohmann::json line = LineOf(name, static_cast<int>(i), {pairs.begin(), pairs.end()});
      if (i + 1 == timed->processes.size()) line["result"] = v1::ComparisonResult_Name(comparison.result());
      Write(line);
    }
  }

  void Write(const nlohmann::json& line) {
    output_ << line.dump() << std::endl;
    ++measured_;
  }

  CudaDevice& device_;
  const Options& options_;
  const absl::Time end_;
  std::map<std::string, int> done_;  // processes by pair
  std::ofstream output_;
  std::mt19937_64 random_;
  std::vector<v1::Variant> sample_;
  int measured_ = 0;
  std::map<int, int> results_;  // by ComparisonResult; 0: all
  double gpu_seconds_ = 0;
};

// The variance between the processes of one comparison.
struct Between {
  double variance = 0;   // of their means
  double explained = 0;  // of it by the spread of pairs
  double degrees = 0;
};

Between BetweenOf(const std::vector<std::vector<double>>& processes, bool explain) {
  const double k = static_cast<double>(processes.size());
  Between between{.degrees = k - 1};
  std::vector<double> means;
  double all = 0;
  for (const std::vector<double>& process : processes) {
    const double n = static_cast<double>(process.size());
    double mean = 0, squares = 0;
    for (const double value : process) mean += value / n;
    for (const double value : process) squares += (value - mean) * (value - mean);
    if (explain) between.explained += squares / (n - 1) / n / k;
    means.push_back(mean);
    all += mean / k;
  }
  for (const double mean : means) between.variance += (mean - all) * (mean - all) / (k - 1);
  return between;
}

// Kernels differ in their noise. With its variance distributed over them as an inverse chi square with these degrees of
// freedom, the variance that a comparison shows, relative to the one expected, has the F distribution: the most likely
// parameters are what a comparison of the next kernel should assume.
void PrintFit(const char* name, const std::vector<Between>& all) {
  double best = -INFINITY, best_sd = 0, best_degrees = 0, sum = 0, degrees = 0;
  for (double sd = 1e-4; sd < 0.05; sd *= 1.03) {
    for (double assumed = 2; assumed < 300; assumed *= 1.1) {
      double likelihood = 0;
      for (const Between& one : all) {
        const double expected = sd * sd + one.explained;
        const boost::math::fisher_f distribution(one.degrees, assumed);
        likelihood += std::log(boost::math::pdf(distribution, one.variance / expected) / expected);
      }
      if (likelihood <= best) continue;
      best = likelihood;
      best_sd = sd;
      best_degrees = assumed;
    }
  }
  for (const Between& one : all) {
    sum += one.degrees * (one.variance - one.explained);
    degrees += one.degrees;
  }
  printf("%s_sd = %.5f\n%s_degrees = %.1f   # %zu comparisons, %.0f degrees in all, pooled %.5f\n", name, best_sd, name,
         best_degrees, all.size(), degrees, std::sqrt(std::max(0.0, sum / degrees)));
}

void PrintNoise(const std::string& file) {
  std::map<std::string, std::vector<std::vector<double>>> ratios, times;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const nlohmann::json json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) continue;  // broken off
    const std::string pair = json["pair"];
    ratios[pair].push_back(json["log_ratios"].get<std::vector<double>>());
    for (const char* side : {"parent", "candidate"}) {
      std::vector<double>& relative = times[absl::StrCat(side, " ", pair)].emplace_back();
      for (size_t i = 0; i < json[side].size(); ++i) {
        relative.push_back(std::log(json[side][i].get<double>() / json["anchor"][i].get<double>()));
      }
    }
  }
  std::vector<Between> process, anchor;
  for (const auto& [pair, lists] : ratios) {
    if (lists.size() > 1) process.push_back(BetweenOf(lists, true));
  }
  for (const auto& [pair, lists] : times) {
    if (lists.size() > 1) anchor.push_back(BetweenOf(lists, false));
  }
  printf("[noise]\n");
  PrintFit("process", process);
  PrintFit("anchor", anchor);
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Measures how much fresh processes differ on this machine's GPU");
  app.add_option("bundles", options.bundles, "Folders of bundles");
  app.add_option("--output", options.output, "File that gets a JSON line a process")->required();
  app.add_flag("--same", options.same, "Compare variants with copies of themselves, by the whole protocol");
  app.add_flag("--noise", options.noise, "Print the noise that the file shows");
  app.add_option("--pairs", options.pairs, "Pairs of variants, a bundle");
  app.add_option("--processes", options.processes, "Fresh processes, a pair");
  app.add_option("--seconds", options.seconds, "Time limit");
  app.add_option("--seed", options.seed, "Which pairs are drawn");
  CLI11_PARSE(app, argc, argv);
  if (options.noise) {
    PrintNoise(options.output);
    return 0;
  }
  const std::unique_ptr<CudaDevice> device = Must(CudaDevice::Open({}));
  printf("%s, driver %s\n", device->gpu().name().c_str(), device->gpu().driver_version().c_str());
  Study(*device, options).Run();
  return 0;
}

}  // namespace
}  // namespace pawl

int main(int argc, char** argv) { return pawl::Main(argc, argv); }
