#include "worker/trial/few_at_a_time.h"

#include <algorithm>
#include <utility>

namespace pawl {

std::vector<absl::StatusOr<v1::BuildReply>> FewAtATime::BuildBeside(const std::vector<v1::BuildRequest>& requests,
                                                                    const Stopped& stopped) {
  std::vector<absl::StatusOr<v1::BuildReply>> replies;
  auto begin = requests.begin();
  const auto build_until = [&](auto end) {
    for (absl::StatusOr<v1::BuildReply>& reply : builder_.BuildBeside(std::vector(begin, end), stopped)) {
      replies.push_back(std::move(reply));
    }
    begin = end;
  };
  while (begin != requests.end() && !hurries_) {
    absl::MutexLock lock(&building_);
    if (!hurries_) build_until(begin + std::min<std::ptrdiff_t>(most_, requests.end() - begin));
  }
  if (begin != requests.end()) build_until(requests.end());
  return replies;
}

}  // namespace pawl
