#pragma once

#include <optional>

#include "absl/time/time.h"
#include "orchestrator/engine/search/chooser.h"
#include "orchestrator/engine/state/campaign.h"
#include "profiles/profile_set.h"

namespace pawl {

// The next event that a campaign itself causes: it plans a trial, pauses, or ends. Nothing while it is paused, has
// ended, waits for a proposal, or has as many open iterations as workers can take at once (`slots`).
// Pure; the event has no sequence, name or time yet.
std::optional<v1::Event> Decide(const CampaignState& campaign, const Chooser& chooser, const Moment& now,
                                const ProfileSet& profiles = ProfileSet::Default(), int slots = 1);

// False: Decide returns nothing. Takes no time, and uses no memo of the campaign.
bool MayDecide(const CampaignState& campaign, int slots);

// The oldest proposal, where it is an edit that was not applied to the best variant yet; null: it is not. Decide would
// apply it, which takes long: where others wait for a lock, the result is put into Proposal::patched before.
const CampaignState::Proposal* UnappliedEdit(const CampaignState& campaign);

// How much longer the campaign waits for a proposal; InfiniteDuration: without a limit; nothing: it does not wait.
std::optional<absl::Duration> WaitsForProposal(const CampaignState& campaign, const Moment& now);
// Until when, by the clock: for people. It is wrong where no orchestrator served meanwhile, or the clock was set.
std::optional<absl::Time> ProposalDeadline(const CampaignState& campaign);

// The success tier of the best variant.
v1::SuccessTier TierOf(const v1::Campaign& summary, const Gates& gates);

}  // namespace pawl
