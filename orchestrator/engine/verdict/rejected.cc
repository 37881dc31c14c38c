#include "orchestrator/engine/verdict/rejected.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/revision/revision.h"

namespace pawl {

std::vector<v1::RevisedIteration> RejectedWith(const CampaignState& campaign, int iteration, const v1::Failure& failure,
                                               double value, const Gate& gate, const std::set<int>& built_on_it,
                                               const std::set<v1::Verdict>& verdicts) {
  std::vector<v1::RevisedIteration> all;
  for (const v1::Iteration& other : campaign.iterations()) {
    const bool itself = other.number() == iteration;
    const bool with_it = built_on_it.contains(other.number()) && verdicts.contains(other.verdict());
    if (!itself && !with_it) continue;
    const std::string& why = failure.message();
    const std::string text =
        itself ? why : absl::StrCat("it was built on iteration ", iteration, ", which was rejected: ", why);
    v1::RevisedIteration& revised = all.emplace_back(Unrevised(other));
    revised.set_verdict(v1::REJECTED);
    revised.set_reason(absl::StrCat(other.reason(), "; but ", text));
    *revised.mutable_failure() = failure;
    revised.mutable_failure()->set_message(text);
    *revised.mutable_failed_gate() = gate.Failed(value, text);
  }
  return all;
}

}  // namespace pawl
