#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pawl/v1/plan.pb.h"
#include "worker/runner/driver/cuda_driver.h"
#include "worker/runner/driver/device_buffer.h"

namespace pawl {

// The structs in GPU memory to which arguments point, of any number of calls. Launches that exchange tensors or count
// themselves point to as many structs as there are contents.
class StructTable {
 public:
  void Clear();
  // Those of one call, whose tensors lie at these addresses.
  void Add(const v1::Plan& plan, const std::vector<CUdeviceptr>& tensors);
  // Makes room; addresses are known from then on.
  absl::Status Reserve();
  // Writes all of them: whatever a kernel did to one is undone.
  absl::Status Upload() const;
  // Whether they are what was written.
  absl::StatusOr<bool> Unchanged() const;

  absl::StatusOr<CUdeviceptr> Find(const std::string& content) const;
  size_t size() const { return offsets_.size(); }

 private:
  std::map<std::string, uint64_t> offsets_;  // by content
  std::string image_;
  DeviceBuffer memory_;
};

}  // namespace pawl
