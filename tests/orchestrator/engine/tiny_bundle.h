#pragma once

#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/campaign.pb.h"
#include "pawl/v1/trial.pb.h"
#include "pawl/v1/worker_service.pb.h"

namespace pawl {

// The smallest bundle that is sound: TILE in 16, 32, 64 from 32 on, SPLIT in 1, 2, 4 from 1 on, and a constraint that
// forbids TILE=64 with SPLIT=4.
v1::Bundle TinyBundle();
// The same with UNROLL in 1, 2, 4, 8 from 1 on: enough changes for campaigns of several steps.
v1::Bundle WideBundle();

// What an honest worker sends of a variant without a parent.
v1::TrialResult MeasuredStart(double us);
// As a worker says what its result is of.
void SayWhatItIsOf(const v1::Trial& trial, v1::CompleteTrialRequest* request);
// Of one with a parent: nine pairs with a little noise, and nine of a fresh process where it is faster.
v1::TrialResult Measured(double parent_us, double candidate_us);
v1::TrialResult FailedCheck(v1::Check check, const std::string& message);

void AddPairs(google::protobuf::RepeatedPtrField<v1::PairSample>* pairs, double parent_us, double candidate_us,
              int count, int process = 0);

}  // namespace pawl
