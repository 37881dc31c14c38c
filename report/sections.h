// The sections of a report, in its order; one function each.
#pragma once

#include "pawl/v1/report.pb.h"
#include "report/document.h"

namespace pawl {

Section SummarySection(const v1::Report& report);
Section JourneySection(const v1::Report& report);
Section PathSection(const v1::Report& report);
Section RooflineSection(const v1::Report& report);
Section SpeedOfLightSection(const v1::Report& report);
Section BeforeAfterSection(const v1::Report& report);
Section RevertedSection(const v1::Report& report);
// Without blocks where nothing was edited.
Section EditsSection(const v1::Report& report);
Section SizesSection(const v1::Report& report);
Section StagesSection(const v1::Report& report);
Section CostSection(const v1::Report& report);
Section EnvironmentSection(const v1::Report& report);
Section NextSection(const v1::Report& report);
Section PatternsSection(const v1::Report& report);
Section RebuildSection(const v1::Report& report);

}  // namespace pawl
