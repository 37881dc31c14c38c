#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/sync/steady_time.h"
#include "cli/connect/connection.h"
#include "cli/connect/daemon.h"
#include "cli/connect/local_worker.h"
#include "cli/follow/event_printer.h"
#include "pawl/v1/campaign.pb.h"
#include "pawl/v1/campaign_service.pb.h"

namespace pawl {

// Has a stored iteration built and measured again, by a running worker or, where there is none, by one of our own.
class VerificationRun {
 public:
  VerificationRun(Connection& connection, WorkerFlags worker, EventPrinter::Options printer)
      : connection_(connection),
        flags_(std::move(worker)),
        printer_(printer),
        log_(DaemonLog(connection.settings(), "worker")) {}

  // FAILED_PRECONDITION with no_worker(): none can take it. CANCELLED: interrupted.
  absl::StatusOr<v1::Verification> Run(const v1::Campaign& campaign, const v1::VerifyIterationRequest& request);
  bool no_worker() const { return no_worker_; }
  // By a recording: figures were compared, and nothing was built or measured.
  bool replayed() const { return replayed_; }

 private:
  absl::Status NeedWorker(const v1::Campaign& campaign);
  absl::Status Tick(const v1::Campaign& campaign);

  Connection& connection_;
  WorkerFlags flags_;
  EventPrinter printer_;
  const std::filesystem::path log_;
  std::unique_ptr<Daemon> worker_;  // our own; null: others do it
  bool leased_ = false;
  bool no_worker_ = false;
  bool replayed_ = false;
  SteadyTime next_look_ = SteadyTime::InfinitePast();
  SteadyTime idle_since_ = SteadyTime::InfiniteFuture();  // workers are there and none takes it
};

// For people.
std::string VerificationText(const v1::Verification& verification, bool replayed = false);

}  // namespace pawl
