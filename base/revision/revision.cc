#include "base/revision/revision.h"

#include <algorithm>

namespace pawl {

void ReviseIteration(const v1::RevisedIteration& revision, v1::Iteration* iteration) {
  iteration->set_verdict(revision.verdict());
  iteration->set_reason(revision.reason());
  iteration->set_speedup_over_start(revision.speedup_over_start());
  iteration->set_speedup_over_baseline(revision.speedup_over_baseline());
  if (revision.has_failure()) *iteration->mutable_failure() = revision.failure();
  if (revision.has_failed_gate()) *iteration->add_failed_gates() = revision.failed_gate();
  if (revision.has_over_best()) {
    *iteration->mutable_over_best() = revision.over_best();
    iteration->set_compared_with(revision.compared_with());
    // What it was compared with is gone.
    if (revision.over_best().result() == v1::COMPARISON_RESULT_UNSPECIFIED) iteration->clear_over_best();
  }
  if (revision.has_as_candidate()) *iteration->mutable_as_candidate() = revision.as_candidate();
  if (revision.has_candidate_beside_witness()) {
    *iteration->mutable_candidate_beside_witness() = revision.candidate_beside_witness();
  }
  // What the parent took was measured in other runs.
  if (revision.time_us() > 0) {
    iteration->set_time_us(revision.time_us());
    iteration->clear_parent_time_us();
  }
  for (const v1::SizeComparison& revised : revision.sizes()) {
    for (v1::SizeComparison& size : *iteration->mutable_sizes()) {
      if (size.size() != revised.size()) continue;
      size.set_time_us(revised.time_us());
      size.clear_parent_time_us();
    }
  }
  if (!revision.notes().empty()) {
    const std::string between = iteration->notes().empty() ? "" : "; ";
    iteration->set_notes(iteration->notes() + between + revision.notes());
  }
  if (revision.has_unsanitized()) iteration->set_unsanitized(revision.unsanitized());
  iteration->mutable_beside()->MergeFrom(revision.beside());
}

v1::RevisedIteration Unrevised(const v1::Iteration& iteration) {
  v1::RevisedIteration revised;
  revised.set_number(iteration.number());
  revised.set_verdict(iteration.verdict());
  revised.set_reason(iteration.reason());
  revised.set_speedup_over_start(iteration.speedup_over_start());
  revised.set_speedup_over_baseline(iteration.speedup_over_baseline());
  return revised;
}

bool IsOfSanitizer(const v1::TrialFinished& finished) {
  const bool revises_only = !finished.has_iteration() && !finished.has_total_gain() && !finished.has_verification();
  // What the end of an expedition says of it has a comparison.
  const bool says_so = std::any_of(finished.revised().begin(), finished.revised().end(), [](const auto& revised) {
    return revised.has_unsanitized() && revised.over_best().result() == v1::COMPARISON_RESULT_UNSPECIFIED;
  });
  return revises_only && (says_so || !finished.result().sanitized_variants().empty());
}

std::string NotesOf(const v1::Iteration& iteration) {
  if (!iteration.unsanitized() || iteration.verdict() != v1::KEPT) return iteration.notes();
  return iteration.notes() + (iteration.notes().empty() ? "" : "; ") + "compute-sanitizer has not run over it yet";
}

bool AwaitsComparison(const v1::Iteration& iteration) {
  return iteration.verdict() == v1::REVERTED && iteration.compared_with() > 0 && !iteration.has_over_best();
}

}  // namespace pawl
