// pawl-fleet: keeps as many workers running on a cluster as the queue of trials asks for.
#include <signal.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/channel/address.h"
#include "base/options/help_format.h"
#include "base/options/layered_options.h"
#include "base/streams/standard_streams.h"
#include "fleet/controller.h"
#include "fleet/service_client.h"
#include "fleet/slurm.h"

namespace pawl {
namespace {

constexpr time_t kBetweenDecisions = 10;  // seconds

struct FleetFlags {
  std::string orchestrator;
  ServiceAddress service;
  SlurmOptions slurm;
  FleetOptions fleet;
  std::vector<std::string> gpus;
  std::string idle = "120s";
  std::string worker_token;
  std::string worker_ca;
  std::string log_level = "info";
  bool once = false;
};

// In an installed package.
std::string ShippedScript() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path script = program.parent_path().parent_path() / "share/pawl/slurm/pawl-worker.sbatch";
  return !error && std::filesystem::exists(script, error) ? script.string() : "";
}

// An error, or empty.
std::string Complete(FleetFlags* flags) {
  if (flags->orchestrator.empty()) return "name the orchestrator: --orchestrator host:port, or PAWL_ORCHESTRATOR";
  if (flags->service.url.empty()) {
    if (IsUnixSocket(flags->orchestrator)) return "name the dashboard's address: --http http://host:port";
    const std::string host = flags->orchestrator.substr(0, flags->orchestrator.rfind(':'));
    flags->service.url = absl::StrCat(IsLocal(flags->orchestrator) ? "http://" : "https://", host, ":7466");
  }
  if (!absl::StartsWith(flags->service.url, "http://") && !absl::StartsWith(flags->service.url, "https://")) {
    return absl::StrCat("--http: \"", flags->service.url, "\"; expected http://host:port or https://host:port");
  }
  std::error_code error;
  if (flags->slurm.script.empty()) return "name the worker's batch script: --script pawl-worker.sbatch";
  if (!std::filesystem::is_regular_file(flags->slurm.script, error)) {
    return absl::StrCat("--script: there is no file ", flags->slurm.script);
  }
  if (flags->fleet.limits.floor > flags->fleet.limits.ceiling) return "--min is above --max";
  if (flags->slurm.logs.empty()) {
    flags->slurm.logs = std::filesystem::current_path(error).string();
    if (access(flags->slurm.logs.c_str(), W_OK) != 0 || flags->slurm.logs == "/") {
      return absl::StrCat("jobs can't write their logs to the current folder, ", flags->slurm.logs,
                          ": name one that the nodes have and this user may write: --logs FOLDER");
    }
  }
  if (!flags->gpus.empty()) flags->fleet.classes.clear();
  for (const std::string& gpu : flags->gpus) {
    const size_t equals = gpu.find('=');
    const GpuClass made = {gpu.substr(0, equals), equals == std::string::npos ? "" : gpu.substr(equals + 1)};
    if (made.gpu.empty() || made.gres.empty()) {
      return absl::StrCat("--gpu: \"", gpu, "\"; expected NAME=GRES, as in H200=gpu:h200:1");
    }
    flags->fleet.classes.push_back(made);
  }
  flags->slurm.worker = {"--orchestrator", flags->orchestrator, "--exit-when-idle", flags->idle};
  if (!flags->worker_token.empty())
    flags->slurm.worker.insert(flags->slurm.worker.end(), {"--token-file", flags->worker_token});
  if (!flags->worker_ca.empty()) flags->slurm.worker.insert(flags->slurm.worker.end(), {"--tls-ca", flags->worker_ca});
  return "";
}

int ControlSlurm(const FleetFlags& flags, const sigset_t& signals) {
  const Slurm slurm(flags.slurm);
  FleetSeams seams;
  seams.ask = [&] { return AskService(flags.service); };
  seams.all_workers = [&] { return AskForAllWorkers(flags.service); };
  seams.jobs = [&] { return slurm.Jobs(); };
  seams.submit = [&](const GpuClass& gpu) { return slurm.Submit(gpu); };
  seams.cancel = [&](const std::vector<int64_t>& jobs) {
    spdlog::info("cancelling {} jobs that have not begun: the queue does not need them any more", jobs.size());
    return slurm.CancelPending(jobs);
  };
  seams.say = [](bool warning, const std::string& text) {
    spdlog::log(warning ? spdlog::level::warn : spdlog::level::info, "{}", text);
  };
  const bool has_ca = !flags.worker_ca.empty() || getenv("PAWL_TLS_CA") != nullptr;
  if (!has_ca && !IsUnixSocket(flags.orchestrator) && !IsLocal(flags.orchestrator)) {
    spdlog::warn(
        "workers need TLS to reach {}: name the authority's certificate with --worker-tls-ca, unless the script "
        "does",
        flags.orchestrator);
  }
  FleetController controller(flags.fleet, seams);
  const timespec pause = {kBetweenDecisions, 0};
  do {
    const bool well = controller.Step(absl::Now());
    if (flags.once) return well ? 0 : 1;
  } while (sigtimedwait(&signals, nullptr, &pause) < 0);
  spdlog::info("ended; the jobs stay, their workers end by themselves when they are idle");
  return 0;
}

int Run(int argc, char** argv) {
  FleetFlags flags;
  flags.slurm.script = ShippedScript();
  CLI::App app("Keeps as many workers on a cluster as the queue of trials asks for.", "pawl-fleet");
  app.set_version_flag("--version", "pawl-fleet " PAWL_VERSION, "Print the version");
  UseHelpFormat(app);
  app.require_subcommand(1);
  CLI::App* slurm =
      app.add_subcommand("slurm", "Workers as Slurm jobs, by sbatch, squeue and scancel")->group("Commands");
  slurm->footer(
      "Example: pawl-fleet slurm --orchestrator head:7465 --partition gpu \\\n"
      "             --gpu H200=gpu:h200:1 --max 16\n"
      "Words after -- are further options of sbatch: -- --account=kernels --time=8:00:00\n"
      "It decides every ten seconds, and can be stopped and started at any time: it finds its jobs by their name. Each "
      "option can also be set in the environment (PAWL_PARTITION for --partition).\n"
      "Exit codes: 0 ended, 1 failed (with --once also where something is in trouble), 2 wrong usage.");
  const auto option = [&](const std::string& name, auto& value, const std::string& text) {
    return slurm->add_option("--" + name, value, text)->envname(EnvironmentName(name));
  };
  option("orchestrator", flags.orchestrator, "Address of the orchestrator for the workers: host:port")
      ->type_name("ADDRESS");
  option("http", flags.service.url, "Its dashboard, whose metrics are read (default: port 7466 of the same host)")
      ->type_name("URL");
  option("token-file", flags.service.token_file, "File with a token of the role read, for the dashboard")
      ->type_name("FILE");
  option("tls-ca", flags.service.ca, "Certificate authority that signed the dashboard's certificate")
      ->type_name("FILE");
  option("worker-token-file", flags.worker_token, "The workers' --token-file, as their nodes see it")
      ->type_name("FILE");
  option("worker-tls-ca", flags.worker_ca, "The workers' --tls-ca, as their nodes see it")->type_name("FILE");
  option("partition", flags.slurm.partition, "Partition of the jobs")->type_name("NAME")->required();
  option("gpu", flags.gpus, "A GPU of the partition and its name in Slurm: H200=gpu:h200:1; can be given several times")
      ->type_name("NAME=GRES")
      ->allow_extra_args(false)
      ->delimiter(',');
  option("max", flags.fleet.limits.ceiling, "Maximum number of jobs")->required()->check(CLI::Range(1, 10000));
  option("min", flags.fleet.limits.floor, "Minimum number of jobs, also when no trial is queued")
      ->check(CLI::Range(0, 10000))
      ->capture_default_str();
  option("exit-when-idle", flags.idle, "Workers exit after this long without a trial")
      ->type_name("DURATION")
      ->capture_default_str();
  option("fleet-name", flags.slurm.name, "Name of the jobs; two fleets of one user need two names")
      ->type_name("NAME")
      ->check([](const std::string& name) {
        const bool right = !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
          return isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
        });
        return right ? std::string() : std::string("expected letters, digits, -, _ and .");
      })
      ->capture_default_str();
  option("script", flags.slurm.script, "Batch script of a worker (default: the one that ships with Pawl)")
      ->type_name("FILE");
  option("logs", flags.slurm.logs, "Folder for the jobs' logs, as the nodes see it (default: the current one)")
      ->type_name("FOLDER");
  option("log-level", flags.log_level, "Least severe messages that are logged")
      ->check(CLI::IsMember({"debug", "info", "warn", "error"}))
      ->capture_default_str();
  slurm->add_flag("--once", flags.once, "Make one decision and exit; for cron");
  slurm->add_option("SBATCH_OPTIONS", flags.slurm.sbatch, "Further options of sbatch, after --");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (const std::string wrong = Complete(&flags); !wrong.empty()) {
    fprintf(stderr, "pawl-fleet: %s\nRun with --help for more information.\n", wrong.c_str());
    return 2;
  }
  spdlog::set_default_logger(spdlog::stderr_color_mt("pawl-fleet"));
  spdlog::set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %^%l%$ %v", spdlog::pattern_time_type::utc);
  spdlog::set_level(spdlog::level::from_str(flags.log_level));
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return ControlSlurm(flags, signals);
}

}  // namespace
}  // namespace pawl

int main(int argc, char** argv) {
  pawl::PrepareStreams();
  try {
    return pawl::Run(argc, argv);
  } catch (const std::exception& error) {
    fprintf(stderr, "pawl-fleet: %s\n", error.what());
    return 1;
  }
}
