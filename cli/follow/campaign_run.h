#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/sync/steady_time.h"
#include "cli/connect/connection.h"
#include "cli/connect/daemon.h"
#include "cli/connect/local_worker.h"
#include "cli/follow/event_printer.h"
#include "cli/follow/waits.h"
#include "pawl/v1/campaign.pb.h"

namespace pawl {

struct RunOptions {
  v1::Bundle bundle;
  bool contract_alone = false;  // the bundle has no device code
  v1::CampaignSpec spec;
  WorkerFlags worker;
  Settings settings;
  std::string flags;  // FlagsText: what later commands need
  EventPrinter::Options printer;
  bool json = false;  // the campaign as it ended, instead of a summary
};

// A whole campaign as the work of one command: an orchestrator (unless the database has one), a worker, the campaign,
// and its end. Owns the daemons; they end with it. For one thread.
class CampaignRun {
 public:
  explicit CampaignRun(RunOptions options);

  // Answers the exit code: 0 improved or at the goal, 3 no improvement, 4 no worker can take it, 5 the campaign paused
  // itself (and stays so) or has no variables and waits for proposals, 1 failed, 130 interrupted (the campaign is
  // cancelled then).
  absl::StatusOr<int> Run();

 private:
  absl::Status Start();
  absl::Status Follow();
  void See(const v1::WatchCampaignResponse& message);
  absl::Status Tick();
  absl::Status RestartWorker();
  absl::Status LookWhatItWaitsFor(SteadyTime now);
  // Of a campaign without variables, once its start is measured: nothing goes on before somebody proposes an edit.
  void PauseBeforeProposals();
  absl::StatusOr<int> Conclude(int exit_code);
  void SayWhatElseRuns();
  absl::Status StartWorker();
  void Cancel(const std::string& reason);

  const RunOptions options_;
  const std::filesystem::path worker_log_;
  EventPrinter printer_;
  std::unique_ptr<Connection> connection_;
  std::string worker_name_;
  std::unique_ptr<Daemon> worker_;  // ends before the orchestrator
  int restarts_ = 0;
  std::string campaign_;
  std::optional<ProposalWait> wait_;  // once there is a campaign

  bool leased_ = false;  // a worker has taken a trial of it
  bool no_worker_ = false;
  bool only_proposals_ = false;  // paused for them
  std::string paused_;           // why it paused itself; empty: it did not
  SteadyTime next_look_ = SteadyTime::InfinitePast();
  SteadyTime waits_since_ = SteadyTime::InfiniteFuture();  // with a reason that will not go away
};

}  // namespace pawl
