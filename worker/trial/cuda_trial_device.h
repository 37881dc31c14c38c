#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/device/cuda_device.h"
#include "worker/trial/trial_build.h"
#include "worker/trial/trial_device.h"

namespace pawl {

// One GPU that takes trials through the whole pipeline (trial_pipeline.h).
class CudaTrialDevice : public TrialDevice {
 public:
  // Opens the GPU and looks at what this machine has for it: tools, sandbox, counters. Takes seconds.
  // The metrics must outlive it.
  static absl::StatusOr<std::unique_ptr<CudaTrialDevice>> Open(const CudaDevice::Options& options,
                                                               const Metrics& metrics = Metrics::Default());

  const v1::Device& device() const override { return described_; }
  absl::StatusOr<std::unique_ptr<PreparedTrial>> Prepare(const v1::Trial& trial,
                                                         std::shared_ptr<const v1::Bundle> bundle,
                                                         TrialObserver& observer) override;
  void Expect(const v1::Trial& trial, std::shared_ptr<const v1::Bundle> bundle,
              const std::vector<v1::ForeseenVariant>& foreseen) override {
    builder_.Expect(trial, std::move(bundle), foreseen);
  }
  absl::StatusOr<TrialOutcome> Run(PreparedTrial& prepared, TrialObserver& observer) override;

  CudaDevice& cuda() { return *cuda_; }
  // What trials on this machine go without, and how to fix it.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  explicit CudaTrialDevice(std::unique_ptr<CudaDevice> cuda, int builders)
      : cuda_(std::move(cuda)), builder_(*cuda_, builders / 2) {}
  void Describe();
  // Where PyTorch was still being imported after the trial was leased, once.
  void AddPythonStart(const TrialObserver& observer, v1::TrialResult* result);

  const std::unique_ptr<CudaDevice> cuda_;
  TrialBuilder builder_;
  v1::Device described_;
  std::vector<std::string> warnings_;
  std::chrono::steady_clock::time_point told_start_;
};

}  // namespace pawl
