#include "agent/tools/proposal_name.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/hash/hash.h"
#include "base/names/resource_name.h"

namespace pawl {
namespace {

constexpr size_t kDigest = 12;
constexpr absl::string_view kProposals = "/proposals/";

}  // namespace

std::string WriteProposalName(const std::string& campaign, int64_t after_sequence, const std::string& digest) {
  return absl::StrCat(campaign, kProposals, after_sequence, "-", digest);
}

absl::StatusOr<ProposalName> ReadProposalName(const std::string& name) {
  ProposalName read;
  const std::vector<std::string> parts = absl::StrSplit(name, absl::ByString(kProposals));
  if (parts.size() == 2 && ParseCampaignName(parts[0])) {
    const std::vector<std::string> ends = absl::StrSplit(parts[1], '-');
    if (ends.size() == 2 && absl::SimpleAtoi(ends[0], &read.after_sequence) && read.after_sequence >= 0 &&
        ends[1].size() == kDigest) {
      read.campaign = parts[0];
      read.digest = ends[1];
      return read;
    }
  }
  return absl::InvalidArgumentError(
      "proposal: expected what `propose` returned, like campaigns/7/proposals/1234-5f3a9b2c4d6e");
}

std::string ProposalDigest(const std::string& author, const v1::Change& change) {
  return Sha256(absl::StrCat(author, "\n", change.variable(), "\n", change.to(), "\n", change.source().name(), "\n",
                             change.source().patch()))
      .substr(0, kDigest);
}

bool IsSameChange(const v1::Change& proposed, const v1::Change& other) {
  if (proposed.kind_case() != other.kind_case()) return false;
  if (proposed.has_source()) {
    return proposed.source().name() == other.source().name() && proposed.source().patch() == other.source().patch();
  }
  return proposed.variable() == other.variable() && proposed.to() == other.to();
}

}  // namespace pawl
