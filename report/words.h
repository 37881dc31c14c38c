// How values of the vocabulary read in a sentence or a table.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "google/protobuf/map.h"
#include "google/protobuf/timestamp.pb.h"
#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/campaign.pb.h"
#include "pawl/v1/finding.pb.h"

namespace pawl {

// "static check" of STAGE_STATIC_CHECK, without the prefix STAGE_.
std::string EnumWords(const std::string& name, absl::string_view prefix);

std::string VerdictWord(v1::Verdict verdict);
std::string StateWord(v1::CampaignState state);
std::string StageWord(v1::Stage stage);
std::string PhaseWord(v1::Phase phase);
std::string TierWord(v1::SuccessTier tier);                // "-" where there is none
std::string OutcomeText(v1::Prediction::Outcome outcome);  // "came true", "failed", "unchecked"
std::string StopText(v1::StopReason reason);
// Why a campaign is in its state: the message, else the reason it stopped; ": wrong size", or nothing. Follows the
// state's word.
std::string WhyText(v1::CampaignState state, const std::string& message, v1::StopReason reason);

// "at main"; of several sizes, the heaviest first: "over main (0.6), large (0.4)". Follows a kernel's name.
std::string ObjectiveText(const v1::Goal& goal);

// "25: 4 kept, 20 reverted, 1 rejected; the recording lacks 29 others".
std::string CountsText(const v1::Counts& counts);

// " 64→16", which follows the variable's name; empty where the change is not one of a variable.
std::string ChangedValuesText(const v1::Change& change);
// "TILE_M 64→16"; "edit unroll-inner"; "start" where there is none.
std::string ChangeText(const v1::Change& change);
// "parallelism+".
std::string EffectText(const v1::Effect& effect);
// The value of a variable as the bundle has it: "64", "half", "true"; empty where the iteration has none.
std::string ValueOf(const v1::Iteration& iteration, const std::string& variable);
// "ACC=half KV_SPLITS=4", sorted by name.
std::string ValuesText(const v1::Iteration& iteration);
// The same of numbers alone: "B=1 S=128".
std::string ValuesText(const google::protobuf::Map<std::string, int32_t>& values);
// "3.361 us": four figures; "-" where nothing was measured.
std::string TimeText(double us);
// "1.420x"; "-" where nothing was compared.
std::string SpeedupText(double speedup);
// Four figures, and all of a number that is not too long.
std::string NumberText(double value);
// "0.35 s", "12 s", "3 min 05 s".
std::string SecondsText(double seconds);
// "build 1.2 s, validate 0.4 s": what each stage took in all, in the order in which they began.
std::string StagesText(const v1::Iteration& iteration);
// "43 %" of 0.43.
std::string ShareText(double share);
// "65536 B", "16.0 KiB", "1.50 GiB"; "-" for 0.
std::string BytesText(int64_t bytes);
// "$0.07"; what is less than a cent with the figures it takes.
std::string DollarsText(double dollars);
// "2026-11-15 14:03:21 UTC"; "-" where it is not set.
std::string UtcText(const google::protobuf::Timestamp& time);

}  // namespace pawl
