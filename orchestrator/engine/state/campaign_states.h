#pragma once

#include <span>
#include <string>

#include "pawl/v1/campaign.pb.h"

namespace pawl {

// What can happen to a campaign's state.
enum class CampaignAction { kLease, kPause, kResume, kCancel, kFinish, kFail };

struct CampaignTransition {
  v1::CampaignState from;
  CampaignAction action;
  v1::CampaignState to;
  const char* who;  // may make it
  const char* when;
};

// Every transition there is. docs/campaign-states.md is this table in words, written by a test.
std::span<const CampaignTransition> CampaignTransitions();

// The state after the action; CAMPAIGN_STATE_UNSPECIFIED: not allowed from there.
v1::CampaignState After(v1::CampaignState state, CampaignAction action, bool leased_before);

bool IsFinal(v1::CampaignState state);

// The table as Markdown.
std::string CampaignStatesPage();

}  // namespace pawl
