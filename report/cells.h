// Cells that several tables of a report have.
#pragma once

#include <string>

#include "pawl/v1/campaign.pb.h"
#include "report/document.h"

namespace pawl {

Tone VerdictTone(v1::Verdict verdict);
Cell NumberCell(const v1::Iteration& iteration);
Cell FromCell(const v1::Iteration& iteration);
// With who proposed it, and why. `more` stands behind the change.
Cell ChangeCell(const v1::Iteration& iteration, const std::string& more = "");

// A person or an agent, not Pawl.
bool IsProposed(const v1::Iteration& iteration);
// Of all stages of its trial.
double SecondsOf(const v1::Iteration& iteration);

}  // namespace pawl
