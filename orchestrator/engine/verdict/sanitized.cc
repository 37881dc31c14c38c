#include "orchestrator/engine/verdict/sanitized.h"

#include <map>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/revision/revision.h"
#include "orchestrator/engine/verdict/rejected.h"

namespace pawl {
namespace {

v1::Failure Unknown(const std::string& why) {
  v1::Failure failure;
  failure.set_stage(v1::STAGE_VALIDATE);
  failure.set_check(v1::CHECK_TIMEOUT);
  failure.set_message(absl::StrCat("compute-sanitizer could not run over it: ", why));
  return failure;
}

// A fault of the code, which what was built on it may have as well: too slow or too large for the tools is none.
bool IsInherited(const v1::Failure& failure) {
  switch (failure.check()) {
    case v1::CHECK_MEMCHECK:
    case v1::CHECK_RACECHECK:
    case v1::CHECK_INITCHECK:
    case v1::CHECK_SYNCCHECK:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::vector<v1::RevisedIteration> JudgeSanitized(const CampaignState& campaign, const v1::TrialPlanned& planned,
                                                 const v1::TrialResult& result, const Gates& gates) {
  std::map<int, std::optional<v1::Failure>> found;  // nothing: it passed
  for (const v1::SanitizedVariant& variant : result.sanitized_variants()) {
    found[variant.iteration()] = variant.has_failure() ? std::optional(variant.failure()) : std::nullopt;
  }
  std::map<int, v1::RevisedIteration> all;
  std::set<int> rejected_numbers;
  for (const int number : planned.unsanitized()) {
    const v1::Iteration* iteration = campaign.Find(number);
    if (iteration == nullptr || iteration->verdict() != v1::KEPT || all.contains(number)) continue;
    const auto of_this = found.find(number);
    const std::optional<v1::Failure> failure = of_this != found.end() ? of_this->second
                                               : result.has_failure() ? result.failure()
                                                                      : Unknown("the worker said nothing of it");
    if (!failure) {
      all[number] = Unrevised(*iteration);
      continue;
    }
    const bool inherited = IsInherited(*failure) || !iteration->has_parent();  // nothing stands without the start
    const std::set<int> heirs = inherited ? campaign.DescendedFrom(number) : std::set<int>();
    for (v1::RevisedIteration& rejected : RejectedWith(campaign, number, *failure, 0, gates.Get(GateKind::kSanitizer),
                                                       heirs, {v1::KEPT, v1::REVERTED})) {
      rejected_numbers.insert(rejected.number());
      all[rejected.number()] = std::move(rejected);
    }
  }
  // What was not kept because of one of these is compared with the best again.
  for (const v1::Iteration& other : campaign.iterations()) {
    const bool lost = other.verdict() == v1::REVERTED && other.has_over_best() &&
                      rejected_numbers.contains(other.compared_with()) && !all.contains(other.number());
    if (!lost) continue;
    v1::RevisedIteration& revised = all[other.number()] = Unrevised(other);
    revised.mutable_over_best();
    revised.set_compared_with(other.compared_with());
  }
  std::vector<v1::RevisedIteration> revised;
  for (auto& [number, one] : all) {
    one.set_unsanitized(false);
    revised.push_back(std::move(one));
  }
  return revised;
}

std::vector<v1::RevisedIteration> UnsanitizedFor(const CampaignState& campaign, const v1::TrialPlanned& planned,
                                                 const std::string& why, const Gates& gates) {
  if (planned.unsanitized_size() == 1) {
    v1::TrialResult result;
    *result.mutable_failure() = Unknown(why);
    return JudgeSanitized(campaign, planned, result, gates);
  }
  std::vector<v1::RevisedIteration> unrevised;
  for (const int number : planned.unsanitized()) {
    if (!campaign.unsanitized().contains(number)) continue;
    unrevised.push_back(Unrevised(*campaign.Find(number)));
    unrevised.back().set_unsanitized(true);
  }
  return unrevised;
}

}  // namespace pawl
