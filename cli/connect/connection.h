#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/sync/steady_time.h"
#include "cli/connect/campaign_client.h"
#include "cli/connect/daemon.h"
#include "cli/connect/settings.h"
#include "worker/process/temporary_folder.h"

namespace pawl {

// What a command needs where no orchestrator has the database open.
enum class Need {
  kCampaigns,  // a private orchestrator over the database that is there
  kDatabase,   // the same, over a new database if need be
  kRunning,    // none: somebody must have started one
};

// The way to the orchestrator: the address that the settings name; otherwise that in the database's lock file;
// otherwise an orchestrator of our own on a private socket, which ends with this object. For one thread.
class Connection {
 public:
  // `log` takes what an orchestrator of our own says; empty: a file that goes with this object.
  static absl::StatusOr<std::unique_ptr<Connection>> Open(const Settings& settings, Need need,
                                                          const std::filesystem::path& log = {});

  CampaignClient& client() { return *client_; }
  const std::string& address() const { return client_->address(); }
  const Settings& settings() const { return settings_; }
  // Whether the orchestrator is our own.
  bool own() const { return daemon_ != nullptr; }

  // Where the orchestrator is now, after it stopped answering. An error where it is our own: that one does not come
  // back.
  absl::Status Reopen(Need need);

  // Asks what may be asked twice, and does so where the orchestrator that had the database was another command's and
  // ended with it.
  template <typename Question>
  std::invoke_result_t<Question, CampaignClient&> Ask(const Question& question) {
    auto answer = question(*client_);
    for (const SteadyTime deadline = SteadyNow() + absl::Seconds(10);
         absl::IsUnavailable(answer.status()) && FindAgain(deadline);) {
      answer = question(*client_);
    }
    return answer;
  }

  // Stops an orchestrator of our own. Nothing can be asked after it.
  void Close();

 private:
  Connection(Settings settings, std::filesystem::path log) : settings_(std::move(settings)), log_(std::move(log)) {}
  absl::Status Find(Need need);
  bool FindAgain(SteadyTime deadline);
  absl::Status Connect(const std::string& address);
  // ALREADY_EXISTS: another orchestrator was faster.
  absl::Status StartOwn(Need need);

  const Settings settings_;
  std::filesystem::path log_;
  std::unique_ptr<TemporaryFolder> folder_;  // of the socket, and of the log if nobody wants it
  std::unique_ptr<Daemon> daemon_;
  std::unique_ptr<CampaignClient> client_;
};

}  // namespace pawl
