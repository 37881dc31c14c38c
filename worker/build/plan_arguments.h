// How a launch's arguments lie in memory, and which buffer each tensor's name means as launches exchange them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "pawl/v1/evidence.pb.h"
#include "pawl/v1/plan.pb.h"

namespace pawl {

// Bytes of the kernel's parameter: of a struct in memory those of the pointer to it.
int ArgumentBytes(const v1::PlanArgument& argument);

// Where each field of a struct begins, as C lays it out, and the bytes of the whole.
struct StructLayout {
  std::vector<int> offsets;
  int bytes = 0;
};
StructLayout LayoutOf(const v1::PlanStruct& fields);

// The bytes of an argument that is no struct: `tensors` are addresses, `index` is the number of the launch.
std::string ArgumentContent(const v1::PlanArgument& argument, const std::vector<uint64_t>& tensors, int32_t index);
// The bytes of a struct, the room between its fields zero.
std::string StructContent(const v1::PlanStruct& fields, const std::vector<uint64_t>& tensors, int32_t index);

// How often the launch runs: once where the plan does not say.
inline int32_t RepeatsOf(const v1::PlanLaunch& launch) { return launch.repeat() > 0 ? launch.repeat() : 1; }

// Calls `each` with every launch in the order in which a call has them, repetitions included: its number in the list,
// and the number of the repetition. Ends with the first status that is not OK.
template <typename Launches, typename Each>
absl::Status VisitInOrder(const Launches& launches, const Each& each) {
  for (int begin = 0; begin < launches.size();) {
    const int end = std::min<int>(launches.size(), begin + std::max(1, launches[begin].loop()));
    for (int32_t index = 0; index < RepeatsOf(launches[begin]); ++index) {
      for (int i = begin; i < end; ++i) {
        if (absl::Status status = each(i, index); !status.ok()) return status;
      }
    }
    begin = end;
  }
  return absl::OkStatus();
}

// Of each tensor the one whose buffer its name means once all launches have exchanged theirs.
std::vector<int> BuffersAfter(const v1::Plan& plan);

// Whether each output and inout ends in the buffer, by its tensor's name, in which the start variant leaves it at this
// size: otherwise a call that exchanges a result with scratch would leave the copy that its caller needs out of its
// time. A plan of a contract alone has no launches, so that each result belongs in its own tensor.
std::optional<v1::Failure> CheckResultPlaces(const v1::Plan& plan, const v1::Plan& start);

// InvalidArgument: an argument without a value, an index outside of the plan's tensors, an exchange of two tensors
// that differ in bytes, or a loop whose launches are not repeated alike.
absl::Status CheckPlan(const v1::Plan& plan);

}  // namespace pawl
