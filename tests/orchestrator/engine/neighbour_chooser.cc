#include "tests/orchestrator/engine/neighbour_chooser.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "orchestrator/engine/search/single_change.h"

namespace pawl {
namespace {

v1::Change ChangeOf(const v1::Variable& variable, int32_t from, int32_t to) {
  v1::Change change;
  change.set_variable(variable.name());
  change.set_from(from);
  change.set_to(to);
  return change;
}

// The value so many places up or down the list from the current one; nothing: the list ends before.
std::optional<int32_t> ValueAt(const v1::Variable& variable, int32_t current, int distance) {
  const auto& values = variable.values();
  const auto place = std::find(values.begin(), values.end(), current) - values.begin() + distance;
  if (place < 0 || place >= values.size()) return std::nullopt;
  return values[static_cast<int>(place)];
}

// Neighbours of every variable before anything farther away, up before down.
std::vector<v1::Change> Changes(const v1::Bundle& bundle, const v1::Variant& parent) {
  int farthest = 0;
  for (const v1::Variable& variable : bundle.variables()) farthest = std::max(farthest, variable.values_size());
  std::vector<v1::Change> changes;
  for (int distance = 1; distance < farthest; ++distance) {
    for (int step : {distance, -distance}) {
      for (const v1::Variable& variable : bundle.variables()) {
        const int32_t current = parent.values().at(variable.name());
        if (const std::optional<int32_t> to = ValueAt(variable, current, step)) {
          changes.push_back(ChangeOf(variable, current, *to));
        }
      }
    }
  }
  return changes;
}

}  // namespace

std::optional<Choice> NextNeighbour(const CampaignState& campaign, const v1::Iteration& parent) {
  Choice choice;
  choice.parent = parent.number();
  choice.author = "pawl";
  for (const v1::Change& change : Changes(campaign.bundle(), VariantOf(parent))) {
    std::string why;
    std::optional<v1::Variant> variant = Changed(campaign, parent, change, &why);
    if (variant && campaign.Tried(*variant, campaign.SourceIdOf(parent.number()))) why = "was tried before";
    if (variant && why.empty()) {
      choice.change = change;
      choice.variant = *std::move(variant);
      choice.why = absl::StrCat("the next untried neighbour of iteration ", parent.number());
      return choice;
    }
    v1::PassedOver& passed = choice.passed_over.emplace_back();
    *passed.mutable_change() = change;
    passed.set_reason(why);
  }
  return std::nullopt;
}

std::optional<Choice> NeighbourChooser::Next(const CampaignState& campaign) const {
  const v1::Iteration* best = campaign.best();
  return best == nullptr ? std::nullopt : NextNeighbour(campaign, *best);
}

}  // namespace pawl
