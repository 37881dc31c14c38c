#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "db/store.h"
#include "orchestrator/engine/state/campaign.h"
#include "pawl/v1/bundle.pb.h"

namespace pawl {

// Bundles, and what is known of their variants, in memory once, however many campaigns run them: by the hash of the
// blob, as long as one of them does. Thread-safe: campaigns are also read while others hold the orchestrator's lock.
class BundlePool {
 public:
  std::shared_ptr<const BundleSpace> Find(const std::string& hash);  // null: nobody has it
  std::shared_ptr<const BundleSpace> Put(const std::string& hash, v1::Bundle bundle);

 private:
  std::shared_ptr<const BundleSpace> FindLocked(const std::string& hash) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Mutex mutex_;
  std::map<std::string, std::weak_ptr<const BundleSpace>> bundles_ ABSL_GUARDED_BY(mutex_);
};

// NOT_FOUND, with the file that it was archived to, if it was.
absl::Status NoSuchCampaign(Store& store, int64_t number);

struct StoredCampaign {
  std::unique_ptr<CampaignState> state;
  int64_t last_sequence = 0;  // of the events that made it
};

// A campaign as its events in the store make it; they are read a few at a time, so that others who read do not wait for
// a long log. NOT_FOUND: there is none. DATA_LOSS: its bundle is gone, or CampaignState::damage. With a pool it shares
// its bundle with others.
absl::StatusOr<StoredCampaign> ReadCampaign(Store& store, int64_t number, BundlePool* pool = nullptr);

// Whether a campaign of an archive is what its events make of it: everything that is asked of it later follows from
// them. DATA_LOSS: it is not; the message names `file`.
absl::Status CheckReplay(int64_t number, const ArchivedCampaign& archived, const std::string& file);

// Writes the rows of every campaign from its events where the store says that an older Pawl wrote them: it corrected
// fewer rows by a total gain than the state did, and counted differently. Does nothing on any later call. A campaign
// that can't be read any more keeps its rows.
absl::Status BringRowsUpToDate(Store& store);

}  // namespace pawl
