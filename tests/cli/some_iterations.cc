#include "tests/cli/some_iterations.h"

#include "absl/strings/str_cat.h"

namespace pawl {
namespace {

v1::Iteration Make(int number, int parent, int tile, v1::Verdict verdict, double over_parent, double over_start) {
  v1::Iteration iteration;
  iteration.set_name(absl::StrCat("campaigns/7/iterations/", number));
  iteration.set_number(number);
  iteration.set_verdict(verdict);
  (*iteration.mutable_variant())["TILE_M"] = tile;
  (*iteration.mutable_variant())["WARPS"] = 4;
  iteration.set_device("NVIDIA H200");
  if (parent >= 0) {
    iteration.set_parent(parent);
    iteration.mutable_change()->set_variable("TILE_M");
    iteration.mutable_change()->set_from(64);
    iteration.mutable_change()->set_to(tile);
  }
  iteration.set_speedup_over_parent(over_parent);
  iteration.set_speedup_over_start(over_start);
  iteration.set_speedup_over_baseline(over_start * 0.3);
  if (over_start > 0) iteration.set_time_us(20.12 / over_start);
  return iteration;
}

}  // namespace

std::vector<v1::Iteration> SomeIterations() {
  std::vector<v1::Iteration> all = {
      Make(0, -1, 64, v1::KEPT, 0, 1),   Make(1, 0, 32, v1::KEPT, 1.5, 1.5),  Make(2, 1, 16, v1::REVERTED, 0.98, 1.47),
      Make(3, 1, 8, v1::REJECTED, 0, 0), Make(4, 1, 128, v1::KEPT, 1.2, 1.8),
  };
  all[0].set_reason("the start");
  all[1].set_reason("faster: 1.45 to 1.55");
  all[2].set_reason("slower");
  all[3].set_reason("compile: error:\nundefined identifier");
  all[4].set_reason("faster: 1.15 to 1.25");
  return all;
}

}  // namespace pawl
