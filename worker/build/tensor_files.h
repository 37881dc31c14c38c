#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/plan.pb.h"

namespace pawl {

// The content of an input that a file of the bundle holds.
struct TensorFile {
  std::string id;  // names path and content: what runners know it by
  std::shared_ptr<const std::string> content;
};

// Those of a plan, each once; its tensors name their ids from then on. InvalidArgument: a file is not in the bundle, or
// does not hold what its tensor needs. Equal contents are kept in memory once. Thread-safe.
absl::StatusOr<std::vector<TensorFile>> TakeFiles(const v1::Bundle& bundle, v1::Plan* plan);

}  // namespace pawl
