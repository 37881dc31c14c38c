// What commits and pages of history cost. store_bench [ITERATIONS] makes a campaign with 1,000,000 iterations, or so
// many, in the current folder, prints, and removes it. Fails if the median page
// of a filter and order takes over 5 ms; the worst is printed beside it, and on a busy machine is the scheduler's.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/names/resource_name.h"
#include "db/sqlite.h"
#include "db/store.h"

namespace pawl {
namespace {

constexpr double kPageLimitMs = 5;

double Milliseconds(std::chrono::steady_clock::time_point since) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - since).count();
}

template <typename Value>
Value OrDie(absl::StatusOr<Value> value) {
  if (value.ok()) return *std::move(value);
  fprintf(stderr, "%s\n", value.status().ToString().c_str());
  exit(1);
}

void OrDie(const absl::Status& status) {
  if (status.ok()) return;
  fprintf(stderr, "%s\n", status.ToString().c_str());
  exit(1);
}

v1::Campaign TheCampaign() {
  v1::Campaign campaign;
  campaign.set_name(CampaignName(1));
  campaign.set_state(v1::RUNNING);
  campaign.set_bundle("attention");
  campaign.set_device("NVIDIA H200");
  return campaign;
}

// About 4 KB, half of it samples.
void AddEvidence(v1::TrialResult* result) {
  for (int i = 0; i < 64; ++i) {
    v1::PairSample* pair = result->add_pairs();
    pair->set_parent_us(10.25 + i);
    pair->set_candidate_us(10.5 + i);
    pair->set_log_ratio(-0.01 * i);
  }
  auto& metrics = *result->mutable_evidence()->add_launches()->mutable_metrics();
  for (int i = 0; i < 50; ++i) metrics["some_counter_of_the_profiler_" + std::to_string(i)] = i * 1.5;
}

v1::Event Judged(int number, bool evidence, std::mt19937* random) {
  v1::Event event;
  event.set_campaign(CampaignName(1));
  event.mutable_time()->set_seconds(1700000000 + number);
  if (evidence) AddEvidence(event.mutable_finished()->mutable_result());
  v1::Iteration* iteration = event.mutable_finished()->mutable_iteration();
  iteration->set_name(IterationName(1, number));
  iteration->set_number(number);
  iteration->set_parent(number / 2);
  const int fate = (*random)() % 20;
  iteration->set_verdict(fate == 0 ? v1::KEPT : fate < 15 ? v1::REVERTED : v1::REJECTED);
  for (const char* variable : {"KV_SPLITS", "TILE_M", "TILE_N", "STAGES", "WARPS", "PAD", "UNROLL", "MAX_REGISTERS"}) {
    (*iteration->mutable_variant())[variable] = (*random)() % 64;
  }
  const char* variables[] = {"KV_SPLITS", "TILE_M", "TILE_N", "STAGES", "WARPS", "PAD", "UNROLL", "MAX_REGISTERS"};
  iteration->mutable_change()->set_variable(variables[(*random)() % 8]);
  iteration->mutable_finding()->set_rule("rule-" + std::to_string((*random)() % 12));
  iteration->mutable_finding()->set_text("The grid fills 0.06 of a wave: 8 blocks for 132 SMs");
  iteration->set_reason("slower than its parent: 0.97 of its speed, 95 % interval 0.96 to 0.98");
  if (iteration->verdict() != v1::REJECTED) iteration->set_speedup_over_start(0.5 + (*random)() % 100000 * 1e-5);
  return event;
}

// What the orchestrator makes of it: one of 60 patterns, with a gain as measured, rounded to a thousandth.
v1::Pattern LessonOf(const v1::Iteration& iteration, std::mt19937* random) {
  v1::Pattern lesson;
  lesson.set_bundle("bundle-" + std::to_string((*random)() % 5));
  lesson.set_rule(iteration.finding().rule());
  lesson.set_architecture("sm_90");
  lesson.mutable_effect()->set_resource(v1::RESOURCE_PARALLELISM);
  lesson.mutable_effect()->set_direction(v1::DIRECTION_MORE);
  lesson.set_tried(1);
  lesson.set_kept(iteration.verdict() == v1::KEPT);
  if (iteration.verdict() == v1::REJECTED) return lesson;
  lesson.set_timed(1);
  lesson.set_median_gain(std::exp(std::round(std::normal_distribution(0.0, 200.0)(*random)) / 1000));
  return lesson;
}

struct Times {
  double median;
  double worst;
};

template <typename Action>
Times Time(int repetitions, Action action) {
  std::vector<double> times;
  for (int i = 0; i < repetitions; ++i) {
    const auto start = std::chrono::steady_clock::now();
    action();
    times.push_back(Milliseconds(start));
  }
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times.back()};
}

void TimeBareCommits(const std::filesystem::path& folder) {
  auto connection = OrDie(SqliteConnection::Open(folder / "bare.db", SqliteConnection::Mode::kWrite, 1000));
  OrDie(connection->Execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE t (i INTEGER) STRICT"));
  const Times times = Time(500, [&] { OrDie(connection->Use("INSERT INTO t VALUES (1)").Run()); });
  printf("bare commit, one small row                %7.3f ms (median), %7.3f ms (worst of 500)\n", times.median,
         times.worst);
}

void TimeCommits(Store* store, int* number, const char* where) {
  std::mt19937 random(2);
  const Times times = Time(500, [&] {
    Writes writes;
    for (int i = 0; i < 3; ++i) writes.events.push_back(Judged(*number, true, &random));
    for (int i = 0; i < 2; ++i) writes.events[i].mutable_finished()->clear_iteration();
    ++*number;
    writes.campaigns = {TheCampaign()};
    writes.lessons = {LessonOf(writes.events[2].finished().iteration(), &random)};
    OrDie(store->Commit(&writes));
  });
  printf("Commit, 3 events with evidence, %-9s %7.3f ms (median), %7.3f ms (worst of 500)\n", where, times.median,
         times.worst);
}

void Fill(Store* store, int* number, int iterations) {
  std::mt19937 random(1);
  const auto start = std::chrono::steady_clock::now();
  while (*number < iterations) {
    Writes writes;
    writes.campaigns = {TheCampaign()};
    for (int i = 0; i < 2000 && *number < iterations; ++i) {
      writes.events.push_back(Judged((*number)++, false, &random));
      writes.lessons.push_back(LessonOf(writes.events.back().finished().iteration(), &random));
    }
    OrDie(store->Commit(&writes));
  }
  printf("%d iterations made in %.0f s\n", iterations, Milliseconds(start) / 1000);
}

// Of one filter and order. False: too slow.
bool TimePages(Store* store, IterationQuery query, int iterations) {
  std::mt19937 random(3);
  size_t rows = 0;
  const Times first = Time(21, [&] { rows = OrDie(store->ListIterations(query)).size(); });
  const Times deep = Time(101, [&] {
    query.after = IterationQuery::Place{.number = static_cast<int>(random() % iterations),
                                        .speedup = 0.5 + random() % 100000 * 1e-5};
    OrDie(store->ListIterations(query));
  });
  const bool fast = first.median < kPageLimitMs && deep.median < kPageLimitMs;
  printf("%-8s %-8s %-7s %-17s %5zu %8.3f %8.3f %8.3f %8.3f%s\n",
         query.verdict ? v1::Verdict_Name(query.verdict).c_str() : "all", query.variable.c_str(), query.finding.c_str(),
         v1::IterationOrder_Name(query.order).c_str() + sizeof "ITERATION_ORDER", rows, first.median, first.worst,
         deep.median, deep.worst, fast ? "" : "  TOO SLOW");
  return fast;
}

bool TimeAllPages(Store* store, int iterations) {
  printf("\nA page of 100, in ms; deep: from 101 random places\n%-8s %-8s %-7s %-17s %5s %8s %8s %8s %8s\n", "verdict",
         "variable", "finding", "order", "rows", "first", "worst", "deep", "worst");
  bool fast = true;
  for (const v1::Verdict verdict : {v1::VERDICT_UNSPECIFIED, v1::KEPT, v1::REVERTED, v1::REJECTED}) {
    for (const char* variable : {"", "TILE_M", "NONE"}) {
      for (const char* finding : {"", "rule-3"}) {
        for (const auto order :
             {v1::ITERATION_ORDER_NUMBER, v1::ITERATION_ORDER_NUMBER_DESCENDING, v1::ITERATION_ORDER_SPEEDUP}) {
          fast &= TimePages(
              store, {.campaign = 1, .verdict = verdict, .variable = variable, .finding = finding, .order = order},
              iterations);
        }
      }
    }
  }
  return fast;
}

int Main(int argc, char** argv) {
  const int iterations = argc > 1 ? atoi(argv[1]) : 1000000;
  if (iterations < 1) {
    fprintf(stderr, "usage: store_bench [ITERATIONS]\n");
    return 2;
  }
  const std::filesystem::path folder = std::filesystem::current_path() / "store_bench.tmp";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  TimeBareCommits(folder);
  bool fast = false;
  {
    auto store = OrDie(Store::Open({.file = folder / "pawl.db"}));
    int number = 0;
    TimeCommits(store.get(), &number, "empty");
    Fill(store.get(), &number, iterations);
    TimeCommits(store.get(), &number, "filled");
    size_t rows = 0;
    const Times lessons = Time(5, [&] { rows = OrDie(store->Lessons()).size(); });
    printf("Lessons, which a start reads, %6zu rows   %7.3f ms (median)\n", rows, lessons.median);
    fast = TimeAllPages(store.get(), iterations);
  }
  const auto start = std::chrono::steady_clock::now();
  OrDie(Store::Open({.file = folder / "pawl.db"}));
  printf("\nopening with quick_check: %.1f s for %.0f MB\n", Milliseconds(start) / 1000,
         std::filesystem::file_size(folder / "pawl.db") / 1e6);
  std::filesystem::remove_all(folder);
  return fast ? 0 : 1;
}

}  // namespace
}  // namespace pawl

int main(int argc, char** argv) { return pawl::Main(argc, argv); }
