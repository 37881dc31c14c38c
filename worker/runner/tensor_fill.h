#pragma once

#include <array>
#include <vector>

#include "pawl/v1/plan.pb.h"
#include "pawl/v1/runner.pb.h"
#include "worker/runner/fills.h"
#include "worker/runner/placement.h"

namespace pawl {

// What a tensor is filled with before a call: a segment whose address, bytes, stream and call are still to be set.
// `source` is where the bytes lie that were handed over for it; 0: none were, and its fill says what to make.
//
// A range that the contract states holds for every distribution, the fill's own included. Other distributions than the
// fill's own apply only where the contract leaves them room: fills with a structure keep it.
Segment InputFill(const v1::PlanTensor& tensor, const v1::InputDraw& draw, u64 source);

// Random values, which in some fills resemble data and in others do not.
Segment PoisonFill(const v1::PlanTensor& tensor);

// The same for calls that take turns: of each segment one of the two resembles data and the other does not.
std::array<std::vector<Segment>, 2> PoisonsInTurn(const std::vector<Segment>& poisons, SecretRandom& random);

// Fills whose content follows from nothing that a draw can vary: bytes of a file or of a program, constants, 0, 1, 2,
// ...
bool IsFixedFill(v1::Fill fill);

}  // namespace pawl
