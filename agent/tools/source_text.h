#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "agent/campaigns/campaigns.h"
#include "kernels/source/source_patch.h"

namespace pawl {

// The bundle that a campaign was submitted with.
absl::StatusOr<v1::Bundle> BundleOf(Campaigns& campaigns, const v1::Campaign& campaign);

// The implementation of an iteration, as kernels/read/implementation.h writes it: after edits, or the bundle's.
absl::StatusOr<std::string> SourceOf(Campaigns& campaigns, const v1::Bundle& bundle, const v1::Iteration& iteration);

// What an edit of the iteration may change: its source, the other files, and last its part of kernel.toml.
absl::StatusOr<SourceFiles> FilesOf(Campaigns& campaigns, const v1::Bundle& bundle, const v1::Iteration& iteration);

// The same of the campaign's best variant; of a contract alone, kernel.toml without anything.
absl::StatusOr<SourceFiles> FilesToEdit(Campaigns& campaigns, const v1::Campaign& campaign);

// Of a contract alone, what somebody needs who writes its start: the contract's files, and the rest of it as
// contract.json. None where the bundle has an implementation.
SourceFiles ContractToStartFrom(const v1::Bundle& bundle);

int LinesOf(const std::string& text);

// Some lines of a text.
struct SourcePage {
  std::string text;
  int first = 1;  // line, from 1
  int last = 0;
  int lines = 0;  // of the whole text
};

// From this line on, as many whole lines as have no more than so many bytes; one at least, where there is one.
SourcePage PageOf(const std::string& text, int first, int last, size_t bytes);

}  // namespace pawl
