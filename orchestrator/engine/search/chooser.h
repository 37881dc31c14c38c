#pragma once

#include <optional>
#include <string>
#include <vector>

#include "orchestrator/engine/state/campaign.h"
#include "pawl/v1/campaign.pb.h"

namespace pawl {

// The next change to try, with everything `explain` needs.
struct Choice {
  v1::Change change;
  int parent = 0;  // a measured iteration
  v1::Variant variant;
  std::optional<v1::Finding> finding;  // that the change serves
  std::optional<v1::Effect> effect;    // that the finding wants and the change gives
  std::vector<v1::Finding> findings;   // everything that the parent's evidence shows
  std::optional<v1::Prediction> prediction;
  std::optional<v1::Score> score;  // why it ranks first; nothing: it was not ranked
  // The change with the largest expected improvement, which may not be the one that ranks first; nothing: as `score`.
  struct Expected {
    v1::Change change;
    int parent = 0;
    double gain = 0;
  };
  std::optional<Expected> most;
  std::vector<SearchMemo::Step> next;  // what ranks after it, of any parent; some of them
  std::vector<v1::PassedOver> passed_over;
  std::string patched_source;  // of a source edit: the device code with it
  std::string author;
  std::string why;
  int proposal = 0;  // its number, where it was proposed
};

// Picks the next change of a campaign. Pure: the same campaign gives the same choice.
class Chooser {
 public:
  virtual ~Chooser() = default;
  // Nothing: no change is left to try. While iterations are open it chooses another change of the same parent, or
  // nothing.
  virtual std::optional<Choice> Next(const CampaignState& campaign) const = 0;
};

}  // namespace pawl
