#include "orchestrator/core/held_bytes.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "orchestrator/core/errors.h"

namespace pawl {
namespace {

std::string Megabytes(int64_t bytes) { return absl::StrFormat("%.1f MB", static_cast<double>(bytes) / (1 << 20)); }

// Calls `add(author, bytes)` for each.
template <typename Add>
void AddProposals(const CampaignState& campaign, const Add& add) {
  for (const CampaignState::Proposal& waiting : campaign.proposals()) {
    add(waiting.proposed.author(), static_cast<int64_t>(waiting.proposed.ByteSizeLong()));
  }
  for (const v1::Iteration& iteration : campaign.iterations()) {
    if (!iteration.change().has_source()) continue;
    add(iteration.author(), static_cast<int64_t>(campaign.SourceOf(iteration.number()).size()));
  }
}

}  // namespace

absl::Status CheckHeldBytes(const LiveState& state, const OrchestratorOptions& options, const std::string& author,
                            int64_t bytes, const std::string& bundle_hash) {
  std::set<std::string> all = {bundle_hash}, own = {bundle_hash};
  int64_t all_bytes = bytes, own_bytes = bytes;
  for (const auto& [number, campaign] : state.campaigns) {
    if (campaign->ended()) continue;  // only verifies
    const std::string& other = campaign->summary().bundle_hash();
    const auto size = static_cast<int64_t>(campaign->bundle().ByteSizeLong());
    if (all.insert(other).second) all_bytes += size;
    if (campaign->author() == author && own.insert(other).second) own_bytes += size;
    AddProposals(*campaign, [&](const std::string& proposer, int64_t proposed) {
      all_bytes += proposed;
      if (proposer == author) own_bytes += proposed;
    });
  }
  const bool own_limit = own_bytes > options.max_author_bytes;
  if (!own_limit && all_bytes <= options.max_bundle_bytes) return absl::OkStatus();
  v1::ErrorDetail detail;
  detail.set_retry_after_seconds(30);
  detail.set_fix(absl::StrCat("wait for campaigns to end or cancel some; the orchestrator's ",
                              own_limit ? "--max-author-megabytes" : "--max-bundle-megabytes", " is the limit"));
  const std::string whose = author.empty() ? " without an author" : absl::StrCat(" of ", author);
  return Error(absl::StatusCode::kResourceExhausted,
               absl::StrCat("the bundles and proposals of unfinished campaigns", own_limit ? whose : "", " would be ",
                            Megabytes(own_limit ? own_bytes : all_bytes), " with this one, and at most ",
                            Megabytes(own_limit ? options.max_author_bytes : options.max_bundle_bytes), " are taken"),
               detail);
}

}  // namespace pawl
