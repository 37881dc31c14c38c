#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pawl/v1/bundle.pb.h"
#include "worker/trial/side_by_side.h"

namespace pawl {

// A side of `pawl compare` and what it is called: "TILE_M=16", "start", "new/", "edit.patch".
struct NamedSide {
  ComparedSide side;
  std::string name;
};

struct NamedSides {
  NamedSide base, candidate;
};

// What a user asks to compare.
struct SidesAsked {
  std::string bundle;               // a folder, or the name of a bundle that ships with Pawl
  std::vector<std::string> others;  // A=1,B=2 once or twice; or another bundle
  std::string patch_name, patch;    // a unified diff of the bundle's implementation; empty: none
};

// The two sides, with everything checked that needs no GPU. INVALID_ARGUMENT: there is no such bundle, variable or
// value, the bundle's constraints forbid one, the patch does not apply or touches the contract, the contracts differ,
// or both sides are the same.
absl::StatusOr<NamedSides> ReadSides(const SidesAsked& asked);

// The sizes of this name, or all of them, or, where neither is asked for, the goal's. INVALID_ARGUMENT: there is no
// such size.
absl::StatusOr<std::vector<std::string>> ReadSizes(const v1::Bundle& bundle, const std::vector<std::string>& names,
                                                   bool all);

}  // namespace pawl
