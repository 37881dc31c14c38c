#include "worker/replay/recorded_speedups.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "kernels/space.h"

namespace pawl {
namespace {

constexpr char kWhatToDo[] = ". Make the recording again (`pawl record`), or remove the variant's line from the file";

double MeanLogRatio(const v1::RecordedVariant& variant) {
  if (variant.pairs().empty()) return 0;
  double sum = 0;
  for (const v1::PairSample& pair : variant.pairs()) sum += pair.log_ratio();
  return sum / variant.pairs_size();
}

// Follows each variant to the start. Variants may stand in any order, and a chain may be as long as the file.
class Chains {
 public:
  Chains(const v1::RecordingHeader& header, const std::vector<v1::RecordedVariant>& variants)
      : variants_(variants), start_(VariantText(header.start())), marks_(variants.size(), Mark::kNew) {
    for (size_t i = 0; i < variants.size(); ++i) {
      places_.emplace(texts_.emplace_back(VariantText(variants[i].variant())), i);
    }
  }

  RecordedSpeedups Follow() {
    for (size_t i = 0; i < variants_.size(); ++i) FollowFrom(i);
    return std::move(speedups_);
  }

 private:
  enum class Mark { kNew, kUnderWay, kKnown, kLost };

  bool IsBesideStart(size_t place) const {
    return texts_[place] == start_ || !variants_[place].has_beside() ||
           VariantText(variants_[place].beside()) == start_;
  }

  // Nothing, and the problem noted: it leads nowhere.
  std::optional<size_t> BesideOf(size_t place) {
    const std::string beside = VariantText(variants_[place].beside());
    const auto found = places_.find(beside);
    const char* wrong = nullptr;
    if (found == places_.end()) {
      wrong = ", which is not in the recording";
    } else if (variants_[found->second].has_failure()) {
      wrong = ", which failed and has no time";
    } else if (marks_[found->second] == Mark::kUnderWay) {
      wrong = ", which was itself measured beside it, directly or by others: none of them leads to the start";
    }
    if (wrong == nullptr) return found->second;
    if (speedups_.problem.empty()) {
      speedups_.problem = absl::StrCat(texts_[place], " was measured beside ", beside, wrong, kWhatToDo);
    }
    return std::nullopt;
  }

  void FollowFrom(size_t place) {
    std::vector<size_t> way;
    double log_speedup = 0;
    bool leads = true;
    for (size_t at = place;;) {
      if (marks_[at] == Mark::kKnown) log_speedup = speedups_.log_speedup[texts_[at]];
      leads = marks_[at] != Mark::kLost;
      if (marks_[at] != Mark::kNew) break;
      marks_[at] = Mark::kUnderWay;
      way.push_back(at);
      if (IsBesideStart(at)) break;
      const std::optional<size_t> beside = BesideOf(at);
      leads = beside.has_value();
      if (!leads) break;
      at = *beside;
    }
    for (auto at = way.rbegin(); at != way.rend(); ++at) {
      marks_[*at] = leads ? Mark::kKnown : Mark::kLost;
      if (!leads) continue;
      if (texts_[*at] != start_) log_speedup += MeanLogRatio(variants_[*at]);
      speedups_.log_speedup[texts_[*at]] = log_speedup;
    }
  }

  const std::vector<v1::RecordedVariant>& variants_;
  const std::string start_;
  std::vector<std::string> texts_;
  std::unordered_map<std::string, size_t> places_;
  std::vector<Mark> marks_;
  RecordedSpeedups speedups_;
};

}  // namespace

RecordedSpeedups SpeedupsOf(const v1::RecordingHeader& header, const std::vector<v1::RecordedVariant>& variants) {
  return Chains(header, variants).Follow();
}

}  // namespace pawl
