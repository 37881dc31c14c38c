#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pawl/v1/plan.pb.h"
#include "pawl/v1/runner.pb.h"
#include "worker/runner/arena.h"
#include "worker/runner/driver/device_buffer.h"

namespace pawl {

// Reads `bytes` at `offset` of a file in pieces and copies them to the GPU: large ones by several threads.
absl::Status CopyFileToGpu(int fd, int64_t offset, int64_t bytes, CUdeviceptr to);

// Content of tensors that was handed over: by a program of the bundle, or as files. It stays in GPU memory, from which
// tensors are restored before every call.
class InputPools {
 public:
  // Copies the request's parts from the file, or forgets the pool.
  absl::Status Provide(const v1::ProvideRequest& request, int fd);

  // Where the content lies that a draw names for the tensors of a plan: of its pool, or of a tensor's file, whose pool
  // is named as it is and has one entry. FailedPrecondition: it was not provided. InvalidArgument: it is too short.
  absl::StatusOr<Sources> SourcesOf(const v1::Plan& plan, const v1::InputDraw& draw) const;
  // The same of outputs, all of which must be there.
  absl::StatusOr<Sources> ExpectedOf(const v1::Plan& plan, const std::string& pool, uint32_t entry) const;

 private:
  struct Part {
    DeviceBuffer memory;
    int64_t bytes = 0;
  };
  using Entry = std::map<std::string, std::unique_ptr<Part>>;  // by tensor

  absl::StatusOr<const Entry*> Find(const std::string& pool, uint32_t entry) const;

  std::map<std::pair<std::string, uint32_t>, Entry> entries_;
};

}  // namespace pawl
