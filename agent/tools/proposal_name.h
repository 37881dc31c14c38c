#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "pawl/v1/event.pb.h"

namespace pawl {

// What `propose` hands out and `wait` takes: campaigns/7/proposals/1234-5f3a…. It says from which event on the proposal
// is to be looked for, and what it is; so it means the same to any server, before and after a restart.
struct ProposalName {
  std::string campaign;
  int64_t after_sequence = 0;
  std::string digest;
};

std::string WriteProposalName(const std::string& campaign, int64_t after_sequence, const std::string& digest);
absl::StatusOr<ProposalName> ReadProposalName(const std::string& name);

// Of an author's proposal.
std::string ProposalDigest(const std::string& author, const v1::Change& change);

// Whether a trial, or a dropped proposal, is of this change: the orchestrator may add what a value was before.
bool IsSameChange(const v1::Change& proposed, const v1::Change& other);

}  // namespace pawl
