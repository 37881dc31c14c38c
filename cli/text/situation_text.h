#pragma once

#include <string>

#include "absl/time/time.h"
#include "pawl/v1/campaign_service.pb.h"

namespace pawl {

// An overview for someone who is to propose the next change, and how to do that. `flags`: what the next command needs
// to find the orchestrator (FlagsText). `all`: every untried change. No line is longer than `width`, commands excepted.
// `bundle`: the campaign's, whose contract is shown where there is no start yet.
std::string SituationText(const v1::Situation& situation, const v1::Bundle& bundle, const std::string& flags, bool all,
                          absl::Time now, int width);

// Whether campaigns with these settings wait for proposals.
bool WaitsForProposals(const v1::ChooserSettings& chooser);
// "for a proposal until 14:03:21 UTC (4 min 10 s left)"; empty where it does not wait.
std::string WaitsText(const v1::Situation& situation, absl::Time now);

}  // namespace pawl
