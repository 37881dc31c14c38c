#include "worker/trial/few_at_a_time.h"

#include <algorithm>
#include <utility>

namespace pawl {

std::vector<absl::StatusOr<v1::BuildReply>> FewAtATime::BuildBeside(const std::vector<v1::BuildRequest>& requests,
                                                                    const Stopped& stopped) {
  std::vector<absl::StatusOr<v1::BuildReply>> replies;
  for (auto begin = requests.begin(); begin != requests.end();) {
    const std::ptrdiff_t count = Begin(requests.end() - begin);
    for (absl::StatusOr<v1::BuildReply>& reply : builder_.BuildBeside(std::vector(begin, begin + count), stopped)) {
      replies.push_back(std::move(reply));
    }
    End(count);
    begin += count;
  }
  return replies;
}

void FewAtATime::Hurry() {
  absl::MutexLock lock(&mutex_);
  hurries_ = true;
}

std::ptrdiff_t FewAtATime::Begin(std::ptrdiff_t wanted) {
  absl::MutexLock lock(&mutex_);
  const auto may = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return free_ > 0 || hurries_; };
  mutex_.Await(absl::Condition(&may));
  const std::ptrdiff_t count = hurries_ ? wanted : std::min(wanted, free_);
  free_ -= count;
  return count;
}

void FewAtATime::End(std::ptrdiff_t built) {
  absl::MutexLock lock(&mutex_);
  free_ += built;
}

}  // namespace pawl
