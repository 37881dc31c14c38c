#include "report/content.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "report/sections.h"
#include "report/words.h"

namespace pawl {

Document ContentOf(const v1::Report& report) {
  const v1::Campaign& campaign = report.campaign();
  Document document;
  document.title = absl::StrCat(campaign.bundle(), " ", ObjectiveText(campaign.spec().goal()), ", ", campaign.name());
  document.subtitle = absl::StrCat(report.summary(), report.summary().empty() ? "" : "; ",
                                   campaign.device().empty() ? "no device" : absl::StrCat("on ", campaign.device()));
  document.sections = {SummarySection(report),  JourneySection(report),      PathSection(report),
                       RooflineSection(report), SpeedOfLightSection(report), BeforeAfterSection(report),
                       RevertedSection(report), SizesSection(report),        StagesSection(report),
                       CostSection(report),     EnvironmentSection(report),  NextSection(report),
                       PatternsSection(report), RebuildSection(report)};
  if (Section edits = EditsSection(report); !edits.blocks.empty()) {
    const auto path = std::find_if(document.sections.begin(), document.sections.end(),
                                   [](const Section& section) { return section.id == "path"; });
    document.sections.insert(path + 1, std::move(edits));
  }
  document.footer = absl::StrCat("Pawl ", report.version(), "; the same data as JSON: pawl report ", campaign.name(),
                                 " --format json");
  return document;
}

}  // namespace pawl
