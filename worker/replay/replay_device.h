#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "worker/replay/replay_recording.h"
#include "worker/trial/trial_device.h"

namespace pawl {

struct ReplayOptions {
  std::vector<std::filesystem::path> recordings;  // files, or folders with *.jsonl.gz in them
  double speed = 0;  // recorded stages are slept through this many times faster; 0: not at all
};

// Answers trials from recordings of one GPU model, and says so wherever a GPU's name would stand. What was not recorded
// is passed over. A recording is of one size: a goal over several needs one of each. The same trial gets the same
// answer.
class ReplayDevice : public TrialDevice {
 public:
  // Reads the headers; a recording itself when the first trial asks for it. NotFound: there are none. Of recordings of
  // several GPUs those of the one with the most are served, of several of one bundle the newest; `left_out` says which
  // are not.
  static absl::StatusOr<std::unique_ptr<ReplayDevice>> Open(const ReplayOptions& options);

  const v1::Device& device() const override { return device_; }
  const std::vector<std::string>& left_out() const { return left_out_; }

  absl::StatusOr<std::unique_ptr<PreparedTrial>> Prepare(const v1::Trial& trial,
                                                         std::shared_ptr<const v1::Bundle> bundle,
                                                         TrialObserver& observer) override;
  absl::StatusOr<TrialOutcome> Run(PreparedTrial& prepared, TrialObserver& observer) override;

 private:
  struct Prepared;
  struct Served {
    std::filesystem::path file;
    v1::RecordingHeader header;
    std::string label;
    std::unique_ptr<const ReplayRecording> recording;  // null: not asked for yet
  };
  explicit ReplayDevice(double speed) : speed_(speed) {}

  void Choose(std::vector<Served> found);
  void Describe();
  // Null: there is none of this size.
  absl::StatusOr<const Served*> FindRecording(const v1::Trial& trial, const v1::Bundle& bundle,
                                              const std::string& size);
  absl::Status Sleep(const Prepared& prepared, v1::Stage stage, TrialObserver& observer) const;
  std::string BuildOf(const Prepared& prepared, const v1::Size& size);
  void Measure(const Prepared& prepared, TrialOutcome* outcome) const;
  absl::Status AddSizeTimes(const Prepared& prepared, v1::TrialResult* result);

  const double speed_;
  v1::Device device_;
  std::vector<std::string> left_out_;

  absl::Mutex mutex_;
  std::vector<Served> served_ ABSL_GUARDED_BY(mutex_);  // newest first
  // From the hash of a bundle's blob to its BundleHash, which takes long to compute.
  std::map<std::string, std::string> of_blobs_ ABSL_GUARDED_BY(mutex_);
  // Commands by bundle's blob and variant: which of a source's lines matter for one takes longer than the rest of a
  // replay.
  std::map<std::pair<std::string, const v1::RecordedVariant*>, std::string> builds_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pawl
