// pawl-orchestrator: keeps campaigns, hands trials to workers, answers queries.
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sysexits.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <map>
#include <optional>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/faults/fault_point.h"
#include "base/options/help_format.h"
#include "base/options/layered_options.h"
#include "base/streams/standard_streams.h"
#include "db/backup.h"
#include "orchestrator/archive/retention.h"
#include "orchestrator/rpc/server.h"
#include "spdlog/sinks/stdout_sinks.h"
#include "spdlog/spdlog.h"

namespace pawl {
namespace {

constexpr absl::Duration kDrainPatience = absl::Seconds(25);
constexpr timespec kLook = {0, 200'000'000};  // at the database's files

struct Flags {
  std::string listen = "127.0.0.1:7465";
  std::string database;
  std::string backup;
  ArchiveChoice archive;
  std::string output;
  std::string restore;
  std::string profiles;
  SecurityOptions security;
  std::string http;
  std::string reports;
  std::string log_level = "info";
  bool skip_check = false;
  bool reflection = false;
  int max_campaigns = OrchestratorOptions().max_unfinished;
  int64_t max_bundles = OrchestratorOptions().max_bundle_bytes >> 20;
  int64_t max_author = OrchestratorOptions().max_author_bytes >> 20;
  std::vector<std::string> shares;
  std::vector<std::string> limit_gpu_seconds;
  std::vector<std::string> limit_dollars;
  std::string limit_window = "30d";
};

// Empty: there is no home folder to keep it in. The base directory specification has relative folders ignored.
std::string DefaultDatabase() {
  const char* data = getenv("XDG_DATA_HOME");
  if (data != nullptr && *data == '/') return std::string(data) + "/pawl/pawl.db";
  const char* home = getenv("HOME");
  return home != nullptr && *home == '/' ? std::string(home) + "/.local/share/pawl/pawl.db" : "";
}

// Empty: none.
std::string ReportFolder(const Flags& flags) {
  if (flags.reports == "none") return "";
  if (!flags.reports.empty()) return flags.reports;
  return (std::filesystem::path(flags.database).parent_path() / "reports").string();
}

// ALICE=2. An author may have = in the name, a number has none.
absl::StatusOr<std::map<std::string, double>> ReadByAuthor(const std::string& flag,
                                                           const std::vector<std::string>& words, double least,
                                                           double most, const std::string& expected) {
  std::map<std::string, double> by_author;
  for (const std::string& word : words) {
    const size_t equals = word.rfind('=');
    double number = 0;
    if (equals == std::string::npos || equals == 0 || !absl::SimpleAtod(word.substr(equals + 1), &number) ||
        !(number >= least && number <= most)) {
      return absl::InvalidArgumentError(absl::StrCat(flag, ": \"", word, "\"; expected ", expected));
    }
    by_author[word.substr(0, equals)] = number;
  }
  return by_author;
}

// The limits of --limit-gpu-seconds, --limit-dollars and --limit-window.
absl::Status ReadLimits(const Flags& flags, OrchestratorOptions* options) {
  const auto seconds = ReadByAuthor("--limit-gpu-seconds", flags.limit_gpu_seconds, 0.001, 1e12,
                                    "AUTHOR=SECONDS with a number above 0, or '*=SECONDS'");
  if (!seconds.ok()) return seconds.status();
  const auto dollars = ReadByAuthor("--limit-dollars", flags.limit_dollars, 0.001, 1e12,
                                    "AUTHOR=DOLLARS with a number above 0, or '*=DOLLARS'");
  if (!dollars.ok()) return dollars.status();
  // Who has a limit of one kind keeps everybody's of the other.
  for (const std::map<std::string, double>* named : {&*seconds, &*dollars}) {
    for (const auto& [author, number] : *named) {
      const auto limit_of = [&author = author](const std::map<std::string, double>& limits) {
        auto found = limits.find(author);
        if (found == limits.end()) found = limits.find(kEachAuthor);
        return found == limits.end() ? std::nullopt : std::optional(found->second);
      };
      options->limits[author] = {.gpu_seconds = limit_of(*seconds), .dollars = limit_of(*dollars)};
    }
  }
  int64_t window = 0;
  const char unit = flags.limit_window.empty() ? ' ' : flags.limit_window.back();
  if (!absl::SimpleAtoi(flags.limit_window.substr(0, flags.limit_window.size() - (unit == ' ' ? 0 : 1)), &window) ||
      (unit != 'd' && unit != 'h') || window < 1 || window > 100'000) {
    return absl::InvalidArgumentError(
        absl::StrCat("--limit-window: \"", flags.limit_window, "\"; expected days or hours, as in 30d or 12h"));
  }
  options->limit_window = absl::Hours(unit == 'd' ? 24 * window : window);
  return absl::OkStatus();
}

int Fail(const absl::Status& status) {
  fprintf(stderr, "pawl-orchestrator: %s\n", std::string(status.message()).c_str());
  return absl::IsInvalidArgument(status) ? 2 : 1;
}

// Beside an orchestrator that may be running on the database: no lock is needed.
int Backup(const Flags& flags) {
  if (absl::Status status = BackUp(flags.database, flags.backup); !status.ok()) return Fail(status);
  fprintf(stderr, "backed up to %s\n", flags.backup.c_str());
  return 0;
}

// On a database that no orchestrator has.
int MoveCampaigns(const Flags& flags) {
  const absl::StatusOr<std::string> done = flags.restore.empty()
                                               ? ArchiveCampaigns(flags.database, flags.archive, flags.output)
                                               : RestoreCampaigns(flags.database, flags.restore);
  if (!done.ok()) return Fail(done.status());
  printf("%s\n", done->c_str());
  return 0;
}

int Serve(Store& store, const Flags& flags, const sigset_t& signals) {
  ServerOptions options;
  options.listen = flags.listen;
  options.security = flags.security;
  options.http = flags.http;
  options.reflection = flags.reflection;
  options.profiles = flags.profiles;
  options.reports = ReportFolder(flags);
  options.orchestrator.max_unfinished = flags.max_campaigns;
  options.orchestrator.max_bundle_bytes = flags.max_bundles << 20;
  options.orchestrator.max_author_bytes = flags.max_author << 20;
  absl::StatusOr<std::map<std::string, double>> shares =
      ReadByAuthor("--share", flags.shares, 0.01, 100, "AUTHOR=WEIGHT with a weight from 0.01 to 100");
  if (!shares.ok()) return Fail(shares.status());
  if (absl::Status status = ReadLimits(flags, &options.orchestrator); !status.ok()) return Fail(status);
  options.orchestrator.shares = *std::move(shares);
  absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(store, options);
  if (!server.ok()) return Fail(server.status());
  if (absl::Status status = store.SetAddress((*server)->address()); !status.ok()) return Fail(status);
  printf("listening on %s\n", (*server)->address().c_str());
  if (!(*server)->url().empty()) printf("dashboard at %s\n", (*server)->url().c_str());
  fflush(stdout);
  spdlog::info("listening on {}, database {}", (*server)->address(), flags.database);

  int signal = -1;
  while (signal < 0) {
    if (absl::Status status = store.Check(); !status.ok()) return Fail(status);
    signal = sigtimedwait(&signals, nullptr, &kLook);
  }
  spdlog::info("signal {}: draining; a second signal exits at once", signal);
  std::atomic<bool> forced = false, ended = false;
  std::thread second([&] {
    int again = 0;
    sigwait(&signals, &again);
    forced = true;
    // A request may compute for long. What was answered is on the disk.
    for (int i = 0; i < 20 && !ended; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    if (!ended) _exit(1);
  });
  (*server)->Drain(kDrainPatience, [&] { return forced.load() || !store.Check().ok(); });
  server->reset();
  ended = true;
  spdlog::info("ended");
  if (!forced) pthread_kill(second.native_handle(), SIGTERM);
  second.join();
  if (absl::Status status = store.Check(); !status.ok()) return Fail(status);  // harmed while it drained
  return 0;
}

// Each worker and each who watches has a connection. Many systems let a process open 1,024 files unless it asks for
// more.
void RaiseFileLimit() {
  rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
}

int Run(int argc, char** argv) {
  Flags flags;
  flags.database = DefaultDatabase();
  CLI::App app("Stores campaigns, leases their trials to workers and answers queries.", "pawl-orchestrator");
  app.set_version_flag("--version", "pawl-orchestrator " PAWL_VERSION, "Print the version");
  UseHelpFormat(app);
  app.footer(
      "Examples: pawl-orchestrator --listen 127.0.0.1:7465 --database pawl.db\n"
      "          pawl-orchestrator --database pawl.db --backup copy.db\n"
      "Each option can also be set in the environment (PAWL_LISTEN for --listen) or in the file of --config (listen = "
      "\"127.0.0.1:7465\"). Flags take precedence over the environment, the environment over the file.\n"
      "SIGTERM ends it when the leased trials have finished, after 25 s at the latest; a second SIGTERM ends it at "
      "once.\n"
      "Exit codes: 0 ended, 1 failed, 2 wrong usage, 75 another orchestrator has the database open.");
  AddConfigFile(app);
  const auto option = [&](const std::string& name, auto& value, const std::string& text) {
    return app.add_option("--" + name, value, text)->envname(EnvironmentName(name));
  };
  option("listen", flags.listen, "host:port or unix:/path; addresses that other machines can reach need TLS")
      ->type_name("ADDRESS")
      ->capture_default_str();
  option("tls-cert", flags.security.tls.cert, "This orchestrator's certificate, a PEM file")->type_name("FILE");
  option("tls-key", flags.security.tls.key, "Private key of the certificate, readable by its owner only (mode 600)")
      ->type_name("FILE");
  option("tls-ca", flags.security.tls.ca, "Certificate authority that signed the clients' certificates")
      ->type_name("FILE");
  option("tokens", flags.security.tokens, "File with `ROLE TOKEN` lines; the roles are read, submit, work and admin")
      ->type_name("FILE");
  option("http", flags.http, "Serve the dashboard: a port on 127.0.0.1, or host:port")->type_name("ADDRESS");
  option("database", flags.database, "SQLite file; created if missing")->type_name("FILE")->capture_default_str();
  option("max-campaigns", flags.max_campaigns, "Maximum number of unfinished campaigns; more are refused")
      ->check(CLI::Range(1, 1 << 30))
      ->capture_default_str();
  option("max-bundle-megabytes", flags.max_bundles,
         "Maximum size of the bundles and proposals of all unfinished campaigns; a shared bundle counts once")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  option("max-author-megabytes", flags.max_author, "Maximum size of those of one author")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  option(
      "share", flags.shares,
      "Weight of an author when several compete for the same workers; can be given several times (default: 1 for each)")
      ->type_name("AUTHOR=WEIGHT")
      ->allow_extra_args(false)
      ->delimiter(',');
  option("limit-gpu-seconds", flags.limit_gpu_seconds,
         "GPU seconds that the trials of an author's campaigns may take within --limit-window; can be given several "
         "times; '*' is every author who is not named (default: no limit)")
      ->type_name("AUTHOR=SECONDS")
      ->allow_extra_args(false)
      ->delimiter(',');
  option("limit-dollars", flags.limit_dollars,
         "Dollars that they may cost within --limit-window, by the prices of the GPUs (default: no limit)")
      ->type_name("AUTHOR=DOLLARS")
      ->allow_extra_args(false)
      ->delimiter(',');
  option("limit-window", flags.limit_window, "Time before now for which the limits are, in days or hours")
      ->type_name("DURATION")
      ->capture_default_str();
  option("profiles", flags.profiles,
         "Folder whose decision_tree.toml, gates.toml and metrics.toml replace the built-in ones")
      ->type_name("FOLDER");
  option("reports", flags.reports,
         "Folder for the report of each campaign that ends (default: reports next to the database); none writes no "
         "reports")
      ->type_name("FOLDER");
  option("log-level", flags.log_level, "Least severe messages that are logged")
      ->check(CLI::IsMember({"debug", "info", "warn", "error"}))
      ->capture_default_str();
  app.add_flag("--reflection", flags.reflection, "Serve gRPC reflection, for tools like grpcurl")
      ->envname(EnvironmentName("reflection"));
  app.add_flag("--skip-check", flags.skip_check,
               "Skip the check for damage of a database that was not closed; for short-lived readers");
  app.add_option("--backup", flags.backup, "Copy the database to this file and exit")
      ->type_name("FILE")
      ->configurable(false);
  app.add_option("--archive", flags.archive.campaigns, "Move these ended campaigns to the file of --output and exit")
      ->type_name("CAMPAIGN")
      ->configurable(false);
  app.add_option("--keep", flags.archive.keep,
                 "Move all campaigns that ended longer ago than this (90d) to the file of --output and exit")
      ->type_name("DURATION")
      ->configurable(false);
  app.add_flag("--keep-best", flags.archive.keep_best,
               "With --keep: leave the fastest campaign of each bundle, GPU and size in the database")
      ->configurable(false);
  app.add_option("--output", flags.output, "File of --archive or --keep")->type_name("FILE")->configurable(false);
  app.add_option("--restore", flags.restore, "Bring the campaigns of this archive back and exit")
      ->type_name("FILE")
      ->configurable(false);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  spdlog::set_default_logger(spdlog::stderr_logger_mt("pawl-orchestrator"));
  spdlog::set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %l %v", spdlog::pattern_time_type::utc);
  spdlog::set_level(spdlog::level::from_str(flags.log_level));

  if (flags.database.empty()) {
    return Fail(absl::InvalidArgumentError(
        "neither HOME nor XDG_DATA_HOME names a folder: say where the database is (--database FILE)"));
  }
  if (!flags.backup.empty()) return Backup(flags);
  const absl::StatusOr<std::string> fault = ArmFaultPoint();
  if (!fault.ok()) return Fail(fault.status());
  if (!fault->empty()) spdlog::warn("FOR TESTS ONLY: PAWL_FAULT makes this process kill itself at {}", *fault);
  if (!flags.archive.campaigns.empty() || !flags.archive.keep.empty() || !flags.restore.empty()) {
    return MoveCampaigns(flags);
  }

  RaiseFileLimit();
  // Before any thread is there, so that all inherit it and only sigwait sees these.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);

  StoreOptions options;
  options.file = flags.database;
  options.check = !flags.skip_check;
  absl::StatusOr<std::unique_ptr<Store>> store = Store::Open(options);
  if (!store.ok()) {
    const int failed = Fail(store.status());
    // Another has it open: `pawl` uses that one instead (cli/connect/connection.cc).
    return absl::IsAlreadyExists(store.status()) ? EX_TEMPFAIL : failed;
  }
  return Serve(**store, flags, signals);
}

}  // namespace
}  // namespace pawl

int main(int argc, char** argv) {
  pawl::PrepareStreams();
  setenv("GRPC_VERBOSITY", "NONE", /*replace=*/0);  // its errors come back as statuses, which are told in one line
  try {
    return pawl::Run(argc, argv);
  } catch (const std::exception& error) {
    fprintf(stderr, "pawl-orchestrator: %s\n", error.what());
    return 1;
  }
}
