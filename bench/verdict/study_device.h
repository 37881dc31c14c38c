#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "worker/device/cuda_device.h"

namespace pawl {

// A GPU whose every comparison meets a fresh runner process. The processes are started some at a time, before any of
// them is asked to measure: creating their contexts takes longer than a comparison, and must not happen beside one.
class StudyDevice : public GpuDevice {
 public:
  StudyDevice(CudaDevice& cuda, int ahead) : cuda_(cuda), ahead_(ahead) {}

  // The next request meets a process that has done nothing yet.
  absl::Status Next();
  // Seconds that runners and reference spent on requests.
  double busy_seconds() const { return busy_ + cuda_.reference().busy_seconds(); }

  const v1::GpuInfo& gpu() const override { return cuda_.gpu(); }
  v1::Toolchain toolchain() const override { return cuda_.toolchain(); }
  Compiler& builder() override { return cuda_.builder(); }
  ReferenceCache& references() override { return cuda_.references(); }
  InputLimits& input_limits() override { return cuda_.input_limits(); }
  RunnerProcess& runner() override { return *runners_.front(); }
  RunnerProcess& reference() override { return cuda_.reference(); }
  ProblemServer& problem() override { return cuda_.problem(); }
  ProvidedPools& pools() override { return cuda_.pools(); }
  void StopWhen(const Stopped& stopped) override { cuda_.StopWhen(stopped); }
  const Stopped& stopped() const override { return cuda_.stopped(); }
  bool has_sanitizer() const override { return cuda_.has_sanitizer(); }
  absl::StatusOr<std::unique_ptr<SanitizerRun>> StartSanitizing(const std::vector<const BuiltSize*>& sizes,
                                                                SanitizerTools tools) override {
    return cuda_.StartSanitizing(sizes, tools);
  }
  absl::StatusOr<Profiling> Profile(const std::vector<ProfileItem>& items) override { return cuda_.Profile(items); }
  const Metrics& metrics() const override { return cuda_.metrics(); }
  absl::StatusOr<std::vector<v1::BaselineTime>> TimeBaseline(const v1::Bundle& bundle,
                                                             const std::filesystem::path& folder) override {
    return cuda_.TimeBaseline(bundle, folder);
  }
  absl::StatusOr<v1::BesideBaseline> TimeBesideBaseline(const v1::Bundle& bundle, const BuiltSize& best) override {
    return cuda_.TimeBesideBaseline(bundle, best);
  }
  absl::StatusOr<std::vector<v1::HandOffCheck>> CheckHandOff(
      const v1::Bundle& bundle, const google::protobuf::RepeatedPtrField<v1::SourceFile>& files) override {
    return cuda_.CheckHandOff(bundle, files);
  }

 private:
  CudaDevice& cuda_;
  const int ahead_;
  std::deque<std::unique_ptr<RunnerProcess>> runners_;  // the first is in use
  double busy_ = 0;
};

}  // namespace pawl
