// pawl-recorded-patterns [CAMPAIGNS [EVALUATIONS]]: what campaigns over the shipped recordings teach, as a file of
// patterns on stdout; the table for people goes to stderr. No GPU. After a change of the engine, the decision tree or a
// recording, from the checkout:
//
//   pawl-recorded-patterns > h200.json && mv h200.json profiles/patterns/
//
// Half of a bundle's campaigns begin at its start variant, half at random ones. They go without patterns, so that none
// feeds on another's. A change of a variant counts once, however many campaigns tried it: it was recorded once.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/measured_campaign.h"
#include "bench/measured_space.h"
#include "kernels/space.h"
#include "orchestrator/engine/search/patterns.h"
#include "orchestrator/engine/search/tree_chooser.h"
#include "profiles/pattern_file.h"

namespace pawl {
namespace {

using Entry = MeasuredSpace::Entry;

const Entry& StartOf(const MeasuredSpace& space, int campaign) {
  if (campaign % 2 == 0) return *space.Find(StartVariant(space.bundle).values());
  SeededRandom random("start", static_cast<uint64_t>(campaign));
  while (true) {
    const Entry& drawn = space.entries[random.Below(space.entries.size())];
    if (drawn.ok) return drawn;
  }
}

void Learn(const MeasuredSpace& space, int campaigns, int evaluations, PatternTable* table) {
  const TreeChooser chooser;
  v1::GpuInfo gpu;
  gpu.set_name(space.device);
  const std::string architecture = SmArchitecture(gpu);
  std::set<std::pair<Point, Point>> seen;
  for (int i = 0; i < campaigns; ++i) {
    RunMeasuredCampaign(
        space, StartOf(space, i), chooser, evaluations, static_cast<uint64_t>(i), {},
        [&](const CampaignState& campaign, const v1::Iteration& iteration) {
          const std::optional<v1::Pattern> lesson = LessonOf(iteration, space.bundle.name(), architecture);
          if (!lesson) return true;
          const auto point = [&](const v1::Iteration& of) { return PointOf(space.bundle, of.variant()); };
          if (!seen.emplace(point(*campaign.Find(iteration.parent())), point(iteration)).second) return true;
          table->Add(*lesson);
          return true;
        });
  }
}

void Print(const v1::Pattern& pattern) {
  fprintf(stderr, "%-12s %-28s %-14s %s %5d tried %5d kept, median %.3f of %d timed, %d of %d came true\n",
          pattern.bundle().c_str(), pattern.rule().c_str(),
          v1::Resource_Name(pattern.effect().resource()).c_str() + sizeof "RESOURCE",
          pattern.effect().direction() == v1::DIRECTION_MORE ? "+" : "-", pattern.tried(), pattern.kept(),
          pattern.median_gain(), pattern.timed(), pattern.came_true(), pattern.predictions());
}

int Main(int campaigns, int evaluations) {
  const char* source = getenv("PAWL_SOURCE_DIR");
  const std::filesystem::path checkout = source == nullptr ? "." : source;
  PatternTable table;
  const absl::StatusOr<std::vector<std::string>> bundles = RecordedBundles(checkout);
  if (!bundles.ok()) {
    fprintf(stderr, "pawl-recorded-patterns: %s\n", std::string(bundles.status().message()).c_str());
    return 1;
  }
  for (const std::string& bundle : *bundles) {
    const absl::StatusOr<MeasuredSpace> space = RecordedSpace(checkout, bundle);
    if (!space.ok()) {
      fprintf(stderr, "pawl-recorded-patterns: %s\n", std::string(space.status().message()).c_str());
      return 1;
    }
    Learn(*space, campaigns, evaluations, &table);
  }
  v1::PatternFile file;
  file.set_version(kPatternFileVersion);
  file.set_source("the recordings of an NVIDIA H200 that ship with Pawl");
  for (const v1::Pattern& pattern : table.List()) {
    Print(pattern);
    // Those over all bundles follow from the rest, with or without one of them.
    if (!pattern.bundle().empty()) *file.add_patterns() = pattern;
  }
  fputs(PatternFileText(file).c_str(), stdout);
  return 0;
}

}  // namespace
}  // namespace pawl

int main(int argc, char** argv) {
  return pawl::Main(argc > 1 ? std::max(1, atoi(argv[1])) : 100, argc > 2 ? std::max(2, atoi(argv[2])) : 50);
}
