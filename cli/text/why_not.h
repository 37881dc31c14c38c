#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/campaign.pb.h"

namespace pawl {

// The change that a user wrote, "TILE_M=16" or "ACC=half". INVALID_ARGUMENT: there is no such variable or value in
// `of`; the message lists those there are, and the nearest name.
absl::StatusOr<v1::Change> KnownChange(const std::string& text,
                                       const google::protobuf::RepeatedPtrField<v1::Variable>& variables,
                                       const std::string& of);

// Why a decision did not choose a change: `asked` is the change as a user wrote it, `decision` is the iteration that
// was chosen instead (as GetIteration tells it), `iterations` are all of the campaign, `bundle` is what it optimises.
// INVALID_ARGUMENT: there is no such variable or value; the message lists those there are.
absl::StatusOr<std::string> WhyNot(const std::string& asked, const v1::Iteration& decision,
                                   const std::vector<v1::Iteration>& iterations, const v1::Bundle& bundle, int width);

}  // namespace pawl
