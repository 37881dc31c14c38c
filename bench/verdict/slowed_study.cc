// Studies on the GPU with copies of a variant that wait, and so take longer.
//
// Gains: how often a variant is kept over a copy of it.
//
// Seats: each bundle has a variant W, a variant P near it, and C, a change of P. P is timed as a candidate
// beside W; as a parent of C with W as the witness; and the same with a copy of P that waits in place of P, so that it
// is slower as a parent only.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/verdict/study.h"
#include "kernels/space.h"
#include "profiles/seat_rule.h"

namespace pawl {
namespace {

constexpr int kQuickPairs = 6;
constexpr int kDraws = 12;        // of variants, until two are near enough
constexpr int kCorrections = 4;   // of the wait
constexpr double kTaken = 0.003;  // a bias that is off by less is what was wanted

double MeanOf(const std::vector<v1::PairSample>& samples) {
  double sum = 0;
  for (const v1::PairSample& sample : samples) sum += sample.log_ratio();
  return sum / static_cast<double>(samples.size());
}

// All threads of every kernel wait for so many cycles before they begin.
std::string WithWait(const std::string& source, int cycles) {
  std::string text = absl::StrCat(
      "static __device__ __forceinline__ void pawl_wait() {\n  const long long start = clock64();\n  while (clock64() "
      "- "
      "start < ",
      cycles, ") {\n  }\n}\n");
  size_t from = 0;
  for (size_t kernel = source.find("__global__"); kernel != std::string::npos;
       kernel = source.find("__global__", from)) {
    const size_t body = source.find('{', kernel), end = source.find(';', kernel);
    if (body == std::string::npos) break;
    if (end < body) {  // a declaration
      text += source.substr(from, end + 1 - from);
      from = end + 1;
      continue;
    }
    absl::StrAppend(&text, source.substr(from, body + 1 - from), " pawl_wait();");
    from = body + 1;
  }
  return text + source.substr(from);
}

}  // namespace

struct Study::Seats {
  std::string name;
  const v1::Bundle* bundle = nullptr;
  BuiltSize witness, parent, candidate, biased;
  int calls = 0;  // of a graph, in each role: times with other numbers of them do not compare
};

std::optional<BuiltSize> Study::Slowed(const std::string& name, const v1::Bundle& bundle, const v1::Variant& variant,
                                       const BuiltSize& built, double share) {
  double low_bias = 0;
  int low = 0;
  int cycles = 400;
  std::optional<BuiltSize> slowed;
  for (int i = 0; i < kCorrections; ++i) {
    v1::Bundle waiting = bundle;
    waiting.mutable_source()->set_text(WithWait(waiting.source().text(), cycles));
    slowed = Built(waiting, variant);
    if (!slowed) return std::nullopt;
    const auto samples = Time(name, bundle, built, *slowed, {.pairs = 2 * kQuickPairs});
    if (!samples) return std::nullopt;
    const double bias = MeanOf(*samples);  // log(with wait / without)
    printf("%s: waiting %d cycles takes %.2f %% longer\n", name.c_str(), cycles, 100 * std::expm1(bias));
    if (std::abs(bias - std::log1p(share)) < kTaken) return slowed;
    // A straight line through the last two.
    const double slope = (bias - low_bias) / (cycles - low);
    if (!(slope > 0)) return std::nullopt;
    const int next = cycles + static_cast<int>((std::log1p(share) - bias) / slope);
    low = cycles;
    low_bias = bias;
    cycles = std::clamp(next, 1, 1'000'000);
    if (cycles == low) break;
  }
  return std::nullopt;  // no wait takes so much longer
}

std::optional<Study::Seats> Study::DrawSeats(const Space& space) {
  for (int draw = 0; draw < kDraws && !TimeIsUp(); ++draw) {
    const auto first = DrawChange(space), second = DrawChange(space);
    if (!first || !second) continue;
    std::optional<BuiltSize> w, p, c;
    Build({{&w, {space.bundle, first->first}},
           {&p, {space.bundle, first->second}},
           {&c, {space.bundle, second->second}}});
    if (!w || !p || !c) continue;
    Seats seats;
    seats.name = absl::StrCat("seats of ", space.bundle.name(), ": ", VariantText(first->second));
    seats.bundle = &space.bundle;
    seats.witness = *w;
    seats.parent = *p;
    seats.candidate = *c;
    const auto samples = Time(seats.name, space.bundle, *p, *w, {.pairs = kQuickPairs});
    if (!samples || std::abs(MeanOf(*samples)) > std::log(kNearWitness)) continue;
    seats.calls = samples->front().calls();
    if (!Time(seats.name, space.bundle, *c, *p, {.pairs = kQuickPairs})) continue;
    std::optional<BuiltSize> biased = Slowed(seats.name, space.bundle, first->second, *p, kSeatBias);
    if (!biased) continue;
    seats.biased = *std::move(biased);
    return seats;
  }
  return std::nullopt;
}

void Study::TimeRole(const Seats& seats, const char* role, int process) {
  const bool as_candidate = role == std::string("candidate");
  TimingOptions options{.pairs = options_.series, .calls = seats.calls};
  if (!as_candidate) options.witness = &seats.witness;
  const BuiltSize& parent = as_candidate ? seats.witness : role == std::string("biased") ? seats.biased : seats.parent;
  const auto samples = Time(seats.name, *seats.bundle, as_candidate ? seats.parent : seats.candidate, parent, options);
  if (!samples) return;
  SeriesLine line = LineOf(absl::StrCat(role, ": ", seats.name), process, *samples);
  line.role = role;
  file_.Write(line);
}

void Study::CompareSeats() {
  std::vector<Seats> all;
  for (const Space& space : spaces_) {
    for (int i = 0; i < options_.pairs; ++i) {
      if (std::optional<Seats> seats = DrawSeats(space)) all.push_back(*std::move(seats));
    }
  }
  for (int process = 0; process < options_.processes && !TimeIsUp(); ++process) {
    for (const Seats& seats : all) {
      for (const char* role : {"candidate", "parent", "biased"}) {
        if (!TimeIsUp()) TimeRole(seats, role, process);
      }
    }
  }
  Say();
}

void Study::CompareSlowed() {
  for (int number = 0; number < options_.pairs; ++number) {
    for (const Space& space : spaces_) {
      if (TimeIsUp()) break;
      const v1::Variant& variant = space.sample[random_() % space.sample.size()];
      StudyPair pair{
          .name = absl::StrCat(space.bundle.name(), " over a slower copy, ", number, ": ", VariantText(variant)),
          .bundle = &space.bundle,
          .candidate = Built(space.bundle, variant)};
      if (done_[pair.name] > 0 || !pair.candidate) continue;
      pair.parent = Slowed(pair.name, space.bundle, variant, *pair.candidate, options_.gain);
      if (pair.parent && !TimeIsUp()) CompareCopy(pair);
    }
  }
  Say();
  SayResults(absl::StrFormat("variants compared with copies of them that take %.1f %% longer", 100 * options_.gain));
}

}  // namespace pawl
