#pragma once

#include <string>

#include "pawl/v1/report.pb.h"

namespace pawl {

// Of a campaign on a recording, as an orchestrator gave it.
v1::Report RecordedReport();

// The same with two edits of agents, iterations 1 and 2; the second is the end of an expedition.
v1::Report EditedReport();

// With so many iterations, one in fifty kept.
v1::Report LongReport(int iterations);

// A campaign whose start variant did not pass.
v1::Report FailedReport();

std::string GoldenFile(const std::string& name);

}  // namespace pawl
