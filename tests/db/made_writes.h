#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "db/store.h"

namespace pawl {

// What tests write.
v1::Campaign MakeCampaign(int64_t number, v1::CampaignState state = v1::RUNNING);
v1::Event MakeProposal(int64_t campaign, const std::string& why);
v1::Iteration MakeIteration(int64_t campaign, int number, v1::Verdict verdict);
v1::Event MakeJudged(int64_t campaign, const v1::Iteration& iteration);

// One campaign that runs, and this event of it.
Writes MakeWrites(const v1::Event& event);

// Fails the test, and gives nothing, if it can't be opened.
std::unique_ptr<Store> OpenStore(const StoreOptions& options);

}  // namespace pawl
