// The space of a bundle: the product of its variables' values, less what the constraints forbid.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/limits.h"
#include "pawl/v1/bundle.pb.h"

namespace pawl {

// AllowedVariants refuses to hold more than this.
inline constexpr int64_t kMaxListed = 200'000;

v1::Variant StartVariant(const v1::Bundle& bundle);

// Variants in the product of the values; INT64_MAX when there are more.
int64_t SpaceSize(const v1::Bundle& bundle);

// Calls `visit` for each allowed variant, in a fixed order: the last variable changes fastest, values in the order of
// their list. Stops early when it answers false. An error when a constraint can't be evaluated or the space is over
// kMaxSpace; RESOURCE_EXHAUSTED also after `most` steps: there may be many combinations of which none is allowed.
inline constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();
absl::Status VisitAllowed(const v1::Bundle& bundle, const std::function<bool(const std::vector<int32_t>&)>& visit,
                          int64_t most = kUnlimited);

absl::StatusOr<int64_t> CountAllowed(const v1::Bundle& bundle, int64_t most = kUnlimited);
absl::StatusOr<std::vector<v1::Variant>> AllowedVariants(const v1::Bundle& bundle);

// An error when the variant lacks a variable, has one too many, or a value that is not in its list. A constraint over
// sizes must hold at every size of the ladder.
absl::StatusOr<bool> IsAllowed(const v1::Bundle& bundle, const v1::Variant& variant);

// IsAllowed for many variants of one bundle: the constraints are parsed once. One thread at a time. The bundle must
// outlive it.
class AllowedSpace {
 public:
  explicit AllowedSpace(const v1::Bundle& bundle);
  ~AllowedSpace();

  absl::StatusOr<bool> Has(const v1::Variant& variant);
  // The constraint that forbids a variant that is not allowed; empty: none does.
  absl::StatusOr<std::string> Forbidding(const v1::Variant& variant);

 private:
  struct Bound;
  const v1::Bundle& bundle_;
  std::unique_ptr<Bound> bound_;
};

// "KV_SPLITS=4 TILE_M=16", sorted by name: the same for the same variant. Words are positions here; variable_values.h
// has the text for users.
std::string VariantText(const v1::Variant& variant);

// Of sources, space, sizes, tensors and launches: what a recording depends on. Not of summary, goal, tolerance,
// baseline or what variables are said to affect.
std::string BundleHash(const v1::Bundle& bundle);
// Of source, assignment, compile options and architecture: what a cubin depends on.
std::string VariantHash(const v1::Bundle& bundle, const v1::Variant& variant, const std::string& architecture);

}  // namespace pawl
