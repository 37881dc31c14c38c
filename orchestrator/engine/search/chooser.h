#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "orchestrator/engine/state/campaign.h"
#include "pawl/v1/campaign.pb.h"

namespace pawl {

// The next change to try, with everything `explain` needs.
struct Choice {
  v1::Change change;
  int parent = 0;  // a kept iteration
  v1::Variant variant;
  std::optional<v1::Finding> finding;  // that the change serves
  std::optional<v1::Effect> effect;    // that the finding wants and the change gives
  std::vector<v1::Finding> findings;   // everything that the parent's evidence shows
  std::optional<v1::Prediction> prediction;
  std::optional<v1::Score> score;  // why it ranks first; nothing: it was not ranked
  std::vector<v1::PassedOver> passed_over;
  std::string patched_source;  // of a source edit: the device code with it
  std::string author;
  std::string why;
};

// Picks the next change of a campaign. Pure: the same campaign gives the same choice.
class Chooser {
 public:
  virtual ~Chooser() = default;
  // Nothing: no change is left to try. While iterations are open it chooses another change of the same parent, or
  // nothing.
  virtual std::optional<Choice> Next(const CampaignState& campaign) const = 0;
};

// The variant that a change of a variable makes of a kept one. Nothing when a constraint forbids it, the GPU can't
// launch it, the variable or value is unknown, or it changes nothing; *why says which.
std::optional<v1::Variant> Changed(const CampaignState& campaign, const v1::Variant& parent, const v1::Change& change,
                                   std::string* why);

// What a patch makes of a source.
struct PatchedSource {
  std::string source;
  absl::StatusOr<std::string> patched;
};

// A proposed change of the best variant: of a variable, or a source edit. Nothing if it can't be made (*why says why)
// or was tried before (*why is empty). The edit is not applied again where `patched_before` is of the same source.
std::optional<Choice> Proposed(const CampaignState& campaign, const v1::Change& change, std::string* why,
                               const PatchedSource* patched_before = nullptr);

// The number of variables in which two variants differ. A trial is refused unless its variant differs from its parent
// in one.
int Differences(const v1::Variant& a, const v1::Variant& b);

}  // namespace pawl
