#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "db/store.h"
#include "orchestrator/core/history.h"
#include "orchestrator/core/orchestrator.h"
#include "orchestrator/core/watch_hub.h"
#include "orchestrator/engine/search/chooser.h"
#include "pawl/v1/error.pb.h"
#include "tests/orchestrator/engine/neighbour_chooser.h"
#include "tests/orchestrator/engine/tiny_bundle.h"
#include "worker/process/temporary_folder.h"

namespace pawl {

// An orchestrator without a socket: a real store in a temporary folder, and a clock that moves only when told.
class World {
 public:
  // Without a chooser: neighbour by neighbour.
  explicit World(OrchestratorOptions options = {}, int64_t max_pages = 0, const Chooser* chooser = nullptr);

  Orchestrator& operator*() { return *orchestrator_; }
  Orchestrator* operator->() { return orchestrator_.get(); }
  Store& store() { return *store_; }
  const History& history() const { return *history_; }
  WatchHub& hub() { return hub_; }
  std::filesystem::path file() const { return folder_.path() / "pawl.db"; }
  absl::Time now() const { return absl::FromUnixMicros(micros_); }

  // Moves the clock, and ticks.
  void Pass(absl::Duration time);
  // Moves the clocks only.
  void Advance(absl::Duration time) {
    SetClock(time);
    monotonic_ += absl::ToInt64Microseconds(time);
  }
  // Sets the system's clock by this much; no time passes.
  void SetClock(absl::Duration by) { micros_ += absl::ToInt64Microseconds(by); }
  // As after kill -9: everything is read again from the file.
  void Restart(int64_t max_pages = 0);
  // The same where it is down for a while, or where a backup replaces the file.
  void RestartAfter(absl::Duration down);
  void Restore(const std::filesystem::path& backup);
  // The same with other limits by author, or where something is done to the file meanwhile.
  void RestartWithLimits(std::map<std::string, SpendingLimit> limits);
  void RestartAfter(const std::function<void()>& act);

  // Submits TinyBundle; the campaign's name. The test fails where it is refused.
  std::string Submit(const v1::CampaignSpec& spec = {}, const v1::Bundle& bundle = TinyBundle());
  v1::Campaign Get(const std::string& campaign);
  // Waits for the answer.
  absl::StatusOr<v1::CompleteTrialResponse> Complete(const v1::CompleteTrialRequest& request);
  // Sends these while another is being answered: all are there before the first is looked at, where the options have
  // one thread for results. Waits for all answers.
  std::vector<absl::Status> CompleteTogether(const std::vector<v1::CompleteTrialRequest>& requests);
  std::vector<v1::Event> Events(const std::string& campaign);
  std::vector<v1::Iteration> Iterations(const std::string& campaign);
  // Of this kind, in order.
  std::vector<v1::Event> Events(const std::string& campaign, v1::Event::EventCase kind);

 private:
  void Stop();
  void Start(int64_t max_pages);

  OrchestratorOptions options_;
  TemporaryFolder folder_;
  std::atomic<int64_t> micros_ = 1'790'000'000'000'000;
  std::atomic<int64_t> monotonic_ = 1;
  const NeighbourChooser neighbours_;
  const Chooser& chooser_;
  WatchHub hub_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Orchestrator> orchestrator_;
  std::unique_ptr<History> history_;
};

v1::ErrorDetail DetailOf(const absl::Status& status);
// The code; a message and an advice that are not empty.
void ExpectError(const absl::Status& status, absl::StatusCode code, const std::string& message);

}  // namespace pawl
