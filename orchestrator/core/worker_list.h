#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "db/store.h"
#include "pawl/v1/trial.pb.h"
#include "pawl/v1/worker_service.pb.h"

namespace pawl {

// The workers an orchestrator knows. Not thread-safe: the orchestrator's lock guards it.
class WorkerList {
 public:
  explicit WorkerList(absl::Duration silence) : silence_(silence) {}

  void Load(const std::vector<StoredWorker>& stored, absl::Time now);
  // Those that hold nothing and registered and were heard of before this time only; their names. One that is there
  // after all registers again.
  std::vector<std::string> RemoveOld(absl::Time before);

  // What registering makes of the entry, to be stored and then Put; an error as the rpc has it.
  absl::StatusOr<StoredWorker> Register(const v1::RegisterWorkerRequest& request, absl::Time now) const;
  void Put(const StoredWorker& worker, absl::Time now);

  // An error (NOT_FOUND) unless this process is registered under the name; notes that it was heard of.
  absl::Status Hear(const std::string& name, const std::string& instance, absl::Time now);

  const v1::Worker* Find(const std::string& name) const;
  v1::Worker* Mutable(const std::string& name);
  bool Gone(const std::string& name, absl::Time now) const;
  // It was heard of within this time.
  bool HeardWithin(absl::Duration time, const std::string& name, absl::Time now) const;
  // Sick ones also after their end, until a new process takes the name.
  std::vector<v1::Worker> All(bool gone_too, absl::Time now) const;
  // Of every worker that is there, or sick: the label of its device and the state that All shows.
  std::vector<std::pair<std::string, v1::WorkerState>> LabelsAndStates(absl::Time now) const;
  // Those that can be given work.
  std::vector<const v1::Worker*> Present(absl::Time now) const;

 private:
  struct Entry {
    std::string instance;
    v1::Worker worker;
    absl::Time last_seen;
    bool heard = true;  // since the last Load
  };
  v1::WorkerState StateOf(const Entry& entry, absl::Time now) const;

  const absl::Duration silence_;  // after which a worker counts as gone
  std::map<std::string, Entry> workers_;
};

// Whether a worker's device can run trials of a campaign; what is wrong otherwise.
absl::Status CanRun(const v1::Device& device, const v1::Campaign& campaign, const std::string& space_hash);

}  // namespace pawl
