#include "cli/connect/connection.h"

#include <sysexits.h>

#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/sync/steady_time.h"
#include "cli/connect/lock_file.h"
#include "cli/text/failure.h"

namespace pawl {
namespace {

// An orchestrator checks its database before it serves.
constexpr absl::Duration kStart = absl::Minutes(2);
constexpr absl::Duration kLook = absl::Milliseconds(20);

absl::Status NotRunning(const std::filesystem::path& database) {
  v1::ErrorDetail detail;
  detail.set_fix(
      "start one with `pawl-orchestrator --listen ADDRESS --database FILE` and name it with --orchestrator, "
      "or use `pawl run BUNDLE`, which starts its own");
  return WithDetail(absl::FailedPreconditionError(absl::StrCat("no orchestrator serves ", database.string())), detail);
}

absl::Status NoCampaigns(const std::filesystem::path& database) {
  v1::ErrorDetail detail;
  detail.set_fix("`pawl run BUNDLE` starts one; --database names another database, --orchestrator an orchestrator");
  return WithDetail(absl::NotFoundError(absl::StrCat("no campaigns yet: there is no database ", database.string())),
                    detail);
}

absl::Status OthersFlag(const char* flag, const std::filesystem::path& database, const std::string& address) {
  v1::ErrorDetail detail;
  detail.set_fix(absl::StrCat("give ", flag, " to that pawl-orchestrator, or use another --database"));
  return WithDetail(
      absl::FailedPreconditionError(absl::StrCat(flag, " is for the orchestrator that this command starts, but ",
                                                 database.string(), " is served by the one at ", address)),
      detail);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Connection>> Connection::Open(const Settings& settings, Need need,
                                                             const std::filesystem::path& log) {
  std::unique_ptr<Connection> connection(new Connection(settings, log));
  if (absl::Status found = connection->Find(need); !found.ok()) return found;
  return connection;
}

absl::Status Connection::Reopen(Need need) {
  if (!own()) return Find(need);
  return daemon_->alive() ? absl::OkStatus() : absl::UnavailableError(daemon_->Obituary());
}

bool Connection::FindAgain(SteadyTime deadline) {
  if (!settings_.orchestrator.empty() || SteadyNow() >= deadline) return false;
  absl::SleepFor(kLook);  // one that is ending has its lock a little longer than it answers
  return Reopen(Need::kCampaigns).ok();
}

absl::Status Connection::Find(Need need) {
  if (!settings_.orchestrator.empty()) {
    return Connect(settings_.orchestrator);
  }
  // More than one round: another command's orchestrator may end, or win the race for the database, while we look.
  for (const SteadyTime deadline = SteadyNow() + kStart; SteadyNow() < deadline; absl::SleepFor(kLook)) {
    if (const std::optional<LockHolder> holder = FindLockHolder(settings_.database)) {
      if (holder->address.empty()) continue;
      if (!settings_.profiles.empty()) return OthersFlag("--profiles", settings_.database, holder->address);
      if (!settings_.http.empty()) return OthersFlag("--http", settings_.database, holder->address);
      return Connect(holder->address);
    }
    if (need == Need::kRunning) return NotRunning(settings_.database);
    std::error_code error;
    if (need == Need::kCampaigns && !std::filesystem::exists(settings_.database, error)) {
      return NoCampaigns(settings_.database);
    }
    const absl::Status started = StartOwn(need);
    if (!absl::IsAlreadyExists(started)) return started;
  }
  return absl::DeadlineExceededError(absl::StrCat("the orchestrator that holds ",
                                                  LockFilePath(settings_.database).string(),
                                                  " has not published its address; it may still be starting"));
}

absl::Status Connection::Connect(const std::string& address) {
  absl::StatusOr<std::unique_ptr<CampaignClient>> client = CampaignClient::Open(address, settings_.credentials);
  if (!client.ok()) return client.status();
  client_ = *std::move(client);
  return absl::OkStatus();
}

absl::Status Connection::StartOwn(Need need) {
  std::error_code error;
  std::filesystem::create_directories(settings_.database.parent_path(), error);
  folder_ = std::make_unique<TemporaryFolder>("pawl-");
  if (folder_->path().empty()) return absl::UnavailableError("can't create a folder for the socket in TMPDIR");
  DaemonOptions options;
  options.program = "pawl-orchestrator";
  options.log = log_.empty() ? folder_->path() / "log" : log_;
  options.announces = true;
  // What a user has set for the service of others is not for this one, which listens on a socket of their own.
  options.env = {{"PAWL_TLS_CERT", ""}, {"PAWL_TLS_KEY", ""}, {"PAWL_TLS_CA", ""}, {"PAWL_TOKENS", ""}};
  const std::string address = absl::StrCat("unix:", (folder_->path() / "orchestrator").string());
  options.arguments = {"--listen", address, "--database", settings_.database.string()};
  if (!settings_.profiles.empty()) {
    options.arguments.insert(options.arguments.end(), {"--profiles", settings_.profiles.string()});
  }
  if (!settings_.http.empty()) options.arguments.insert(options.arguments.end(), {"--http", settings_.http});
  if (need == Need::kCampaigns) options.arguments.push_back("--skip-check");  // who only looks should not wait for it
  absl::StatusOr<std::unique_ptr<Daemon>> daemon = Daemon::Start(options);
  if (!daemon.ok()) return daemon.status();
  // Its first line says that it listens, whatever the words.
  if (const absl::StatusOr<std::string> line = (*daemon)->FirstLine(kStart); !line.ok()) {
    const std::optional<ProcessEnd>& end = (*daemon)->end();  // orchestrator/main.cc has its exit codes
    return end && end->exit_code == EX_TEMPFAIL ? absl::AlreadyExistsError(line.status().message()) : line.status();
  }
  daemon_ = *std::move(daemon);
  client_ = std::make_unique<CampaignClient>(address);
  return absl::OkStatus();
}

void Connection::Close() {
  client_ = nullptr;  // an orchestrator that ends waits a moment for its clients
  daemon_ = nullptr;
  folder_ = nullptr;
}

}  // namespace pawl
