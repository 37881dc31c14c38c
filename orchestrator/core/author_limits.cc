#include "orchestrator/core/author_limits.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace pawl {
namespace {

std::string WindowText(absl::Duration window) {
  const bool days = window % absl::Hours(24) == absl::ZeroDuration();
  const int64_t count = days ? window / absl::Hours(24) : window / absl::Hours(1);
  return absl::StrCat(count, days ? " day" : " hour", count == 1 ? "" : "s");
}

}  // namespace

int64_t HourOf(absl::Time time) { return absl::ToUnixSeconds(time) / 3600; }

// An hour counts until all of it is outside.
int64_t AuthorLimits::FirstHour(absl::Time now) const { return HourOf(now - options_.limit_window); }

const SpendingLimit* AuthorLimits::LimitOf(const std::string& author) const {
  auto found = options_.limits.find(author);
  if (found == options_.limits.end()) found = options_.limits.find(kEachAuthor);
  return found == options_.limits.end() ? nullptr : &found->second;
}

void AuthorLimits::Load(const std::vector<SpentHour>& hours) {
  spent_.clear();
  for (const SpentHour& spent : hours) Add(spent);
}

void AuthorLimits::Add(const SpentHour& spent) {
  if (LimitOf(spent.author) == nullptr) return;
  std::map<int64_t, Spent>& hours = spent_[spent.author];
  Spent& hour = hours[spent.hour];
  hour.gpu_seconds += spent.gpu_seconds;
  hour.dollars += spent.dollars;
  hours.erase(hours.begin(), hours.lower_bound(spent.hour - options_.limit_window / absl::Hours(1) - 1));
}

std::optional<AuthorLimits::Reached> AuthorLimits::Find(const std::string& author, absl::Time now) const {
  const SpendingLimit* limit = LimitOf(author);
  const auto spent = spent_.find(author);
  if (limit == nullptr || spent == spent_.end()) return std::nullopt;
  const auto first = spent->second.lower_bound(FirstHour(now));
  Spent sum;
  for (auto hour = first; hour != spent->second.end(); ++hour) {
    sum.gpu_seconds += hour->second.gpu_seconds;
    sum.dollars += hour->second.dollars;
  }
  const auto within = [&](const Spent& used) {
    return (!limit->gpu_seconds || used.gpu_seconds < *limit->gpu_seconds) &&
           (!limit->dollars || used.dollars < *limit->dollars);
  };
  if (within(sum)) return std::nullopt;
  Reached reached;
  const std::string who = author.empty() ? "submissions without an author have" : absl::StrCat(author, " has");
  const std::string when = absl::StrCat(" within ", WindowText(options_.limit_window));
  if (limit->gpu_seconds && sum.gpu_seconds >= *limit->gpu_seconds) {
    reached.flag = "--limit-gpu-seconds";
    reached.text =
        absl::StrFormat("%s used %.0f of %.0f GPU seconds%s", who, sum.gpu_seconds, *limit->gpu_seconds, when);
  } else {
    reached.flag = "--limit-dollars";
    reached.text = absl::StrFormat("%s used $%.2f of $%.2f%s", who, sum.dollars, *limit->dollars, when);
  }
  for (auto hour = first; hour != spent->second.end() && !within(sum); ++hour) {
    sum.gpu_seconds -= hour->second.gpu_seconds;
    sum.dollars -= hour->second.dollars;
    reached.until = absl::FromUnixSeconds((hour->first + 1) * 3600) + options_.limit_window;
  }
  return reached;
}

}  // namespace pawl
