#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "report/cells.h"
#include "report/sections.h"
#include "report/words.h"

namespace pawl {
namespace {

constexpr size_t kMostEdits = 500;
constexpr size_t kMostDiffBytes = 1 << 20;  // of all together: a page must open on any machine

// The newest.
std::vector<const v1::Iteration*> EditsOf(const v1::Report& report) {
  std::vector<const v1::Iteration*> edits;
  for (const v1::Iteration& iteration : report.iterations()) {
    if (iteration.change().has_source() && !iteration.untried()) edits.push_back(&iteration);
  }
  if (edits.size() > kMostEdits) edits.erase(edits.begin(), edits.end() - kMostEdits);
  return edits;
}

// Those whose diffs there is room for; what was kept comes first.
std::set<const v1::Iteration*> WithDiff(const std::vector<const v1::Iteration*>& edits) {
  std::set<const v1::Iteration*> shown;
  size_t left = kMostDiffBytes;
  for (const bool kept : {true, false}) {
    for (const v1::Iteration* edit : edits) {
      const size_t bytes = edit->change().source().patch().size();
      if ((edit->verdict() == v1::KEPT) != kept || bytes > left) continue;
      left -= bytes;
      shown.insert(edit);
    }
  }
  return shown;
}

Grid EditsGrid(const std::vector<const v1::Iteration*>& edits) {
  Grid grid{.columns = {{"iteration", true},
                        {"from", true},
                        {"edit"},
                        {"proposed by"},
                        {"why"},
                        {"verdict"},
                        {"over parent", true},
                        {"cost", true}}};
  for (const v1::Iteration* edit : edits) {
    grid.rows.push_back({NumberCell(*edit),
                         FromCell(*edit),
                         {edit->change().source().name(), Tone::kCode},
                         {edit->author()},
                         {edit->why().empty() ? "-" : edit->why()},
                         {VerdictWord(edit->verdict()), VerdictTone(edit->verdict())},
                         {SpeedupText(edit->speedup_over_parent())},
                         {SecondsText(SecondsOf(*edit))}});
  }
  return grid;
}

}  // namespace

Section EditsSection(const v1::Report& report) {
  Section section{"edits", "Edits", {}};
  const std::vector<const v1::Iteration*> edits = EditsOf(report);
  if (edits.empty()) return section;
  section.blocks.push_back(EditsGrid(edits));
  const std::set<const v1::Iteration*> shown = WithDiff(edits);
  const std::string left_out =
      shown.size() == edits.size()
          ? ""
          : absl::StrCat(" The page has no room for ", edits.size() - shown.size(), " of the diffs.");
  section.blocks.push_back(
      Paragraph{absl::StrCat("The diffs are as they were proposed. pawl diff ", report.campaign().name(),
                             " A B --source compares the files of iterations A and B.", left_out),
                Tone::kDim});
  for (const v1::Iteration* edit : edits) {
    if (!shown.contains(edit)) continue;
    section.blocks.push_back(
        Diff{.title = absl::StrCat("iteration ", edit->number(), ", ", VerdictWord(edit->verdict()), ": ",
                                   edit->change().source().name()),
             .patch = edit->change().source().patch(),
             .open = edit->verdict() == v1::KEPT});
  }
  return section;
}

}  // namespace pawl
