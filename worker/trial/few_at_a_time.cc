#include "worker/trial/few_at_a_time.h"

#include <algorithm>
#include <utility>

namespace pawl {

std::vector<absl::StatusOr<v1::BuildReply>> FewAtATime::BuildBeside(const std::vector<v1::BuildRequest>& requests,
                                                                    const Stopped& stopped) {
  std::vector<absl::StatusOr<v1::BuildReply>> replies;
  for (auto begin = requests.begin(); begin != requests.end();) {
    absl::MutexLock lock(&building_);
    const auto end = begin + std::min<std::ptrdiff_t>(most_, requests.end() - begin);
    for (absl::StatusOr<v1::BuildReply>& reply : device_.builder().BuildBeside(std::vector(begin, end), stopped)) {
      replies.push_back(std::move(reply));
    }
    begin = end;
  }
  return replies;
}

}  // namespace pawl
