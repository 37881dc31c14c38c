#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pawl/v1/evidence.pb.h"
#include "pawl/v1/plan.pb.h"
#include "worker/runner/driver/cuda_driver.h"
#include "worker/runner/struct_table.h"

namespace pawl {

// A cubin in the runner's context. Owns the module; launches plans from it.
class Module {
 public:
  using Launches = google::protobuf::RepeatedPtrField<v1::PlanLaunch>;
  // What is called before and after a launch is queued: which of the plan's it is, and which repetition of it.
  using Around = std::function<absl::Status(int launch, int32_t index, bool before)>;

  Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  ~Module();

  absl::Status Load(const std::string& cubin);
  const std::string& cubin() const { return cubin_; }
  int64_t bytes() const;  // of GPU memory that its code and globals take
  absl::StatusOr<v1::ResourceUse> Resources(const v1::PlanLaunch& launch);
  // The most that a thread of these launches has of it.
  absl::StatusOr<int> LocalBytes(const Launches& launches);

  // Queues launches in their order, each as often as it says, its tensors at these addresses. The structs that they
  // point to must be in the table.
  absl::Status Launch(const Launches& launches, const std::vector<CUdeviceptr>& tensors, const StructTable& structs,
                      CUstream stream, const Around& around = nullptr);

  // Queues the copies of tensors to the variables that hold them when a call begins. Static inputs are the same for
  // every call, so that this is needed once before calls, outside of what is timed.
  absl::Status FillSymbols(const v1::Plan& plan, const std::vector<CUdeviceptr>& tensors, CUstream stream);
  // The first of these variables that no longer holds its tensor; empty: none.
  absl::StatusOr<std::string> ChangedSymbol(const v1::Plan& plan, const std::vector<CUdeviceptr>& tensors);

  // Gives the module's global variables their first content again, as far as the cubin names them; but for symbols that
  // were filled.
  absl::Status ResetGlobals(CUstream stream);
  // Before any call: remembers their content.
  absl::Status FindGlobals();
  // Whether a call has left one of them with another content than its first. Large ones are taken to be changed.
  absl::StatusOr<bool> GlobalsChanged();
  // Whether there are variables that can't be reset, because the driver does not say where they lie.
  absl::StatusOr<bool> HasHiddenGlobals();

 private:
  // A function and its attributes, ready for this launch.
  absl::StatusOr<CUfunction> Prepare(const v1::PlanLaunch& launch);
  absl::StatusOr<CUfunction> Function(const std::string& entry);

  struct Global {
    CUdeviceptr address = 0;
    size_t bytes = 0;
    std::string content;  // empty: zeros
  };
  struct Section;
  absl::Status AddGlobals(const Section& section);
  absl::Status AddGlobal(Global global, bool zero);
  // It is input, not state.
  void LeaveOut(const Global& symbol);

  absl::StatusOr<Global*> FindSymbol(const v1::PlanSymbol& symbol, const v1::PlanTensor& tensor);

  CUmodule module_ = nullptr;
  std::string cubin_;
  std::map<std::string, CUfunction> functions_;
  std::map<std::string, int> dynamic_shared_;  // the limit raised so far
  bool knows_globals_ = false, hidden_ = false;
  std::vector<Global> globals_;            // with the gaps between them, without symbols_
  std::map<std::string, Global> symbols_;  // that were filled
};

}  // namespace pawl
