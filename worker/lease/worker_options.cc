#include "worker/lease/worker_options.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <iostream>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/options/help_format.h"
#include "base/options/layered_options.h"
#include "worker/host/header_libraries.h"
#include "worker/host/machine.h"

namespace pawl {
namespace {

constexpr int kWrongUsage = 2;

// "auto", "cuda:1", "replay"; "cuda" is cuda:0.
std::string ReadDevice(const std::string& word, WorkerOptions* options) {
  absl::string_view rest = word;
  if (word == "auto") {
    options->device = DeviceChoice::kAuto;
  } else if (word == "replay") {
    options->device = DeviceChoice::kReplay;
  } else if (absl::ConsumePrefix(&rest, "cuda") &&
             (rest.empty() || (absl::ConsumePrefix(&rest, ":") && absl::SimpleAtoi(rest, &options->cuda) &&
                               options->cuda >= 0 && absl::ascii_isdigit(rest[0])))) {
    options->device = DeviceChoice::kCuda;
  } else {
    return absl::StrCat("\"", word, "\" is not a device; expected auto, all, cuda:N, replay or a list of the last two");
  }
  return "";
}

// "all", or a list: "cuda:0,cuda:1".
std::string ReadDevices(const std::string& word, WorkerOptions* options) {
  std::vector<std::string> words = absl::StrSplit(word, ',');
  if (word == "all") {
    const int gpus = CountGpus();
    if (gpus == 0) return "all: there is no NVIDIA GPU here";
    words.clear();
    for (int i = 0; i < gpus; ++i) words.push_back(absl::StrCat("cuda:", i));
  }
  for (const std::string& each : words) {
    if (words.size() > 1 && each == "auto") return "auto can't be one of several devices";
    if (each != "replay" && std::count(words.begin(), words.end(), each) > 1) {
      return absl::StrCat(each, " is there twice: workers that share a GPU would disturb each other");
    }
    if (std::string wrong = ReadDevice(each, options); !wrong.empty()) return wrong;
  }
  if (words.size() > 1) options->devices = std::move(words);
  return "";
}

// "120s", "5m", "1h30m", or seconds without a unit.
std::string ReadSeconds(const std::string& word, std::chrono::duration<double>* seconds) {
  double plain = 0;
  absl::Duration duration;
  if (absl::SimpleAtod(word, &plain)) {
    duration = absl::Seconds(plain);
  } else if (!absl::ParseDuration(word, &duration)) {
    return absl::StrCat("\"", word, "\" is not a duration; expected seconds, or a duration such as 90s, 5m or 1h30m");
  }
  if (duration <= absl::ZeroDuration() || duration > absl::Hours(24 * 365)) {
    return absl::StrCat("\"", word, "\" is not between 0 and a year");
  }
  *seconds = std::chrono::duration<double>(absl::ToDoubleSeconds(duration));
  return "";
}

// "2026-11-16T18:00:00Z", or seconds since 1970, which is how Slurm says when a job ends.
std::string ReadTime(const std::string& word, absl::Time* time) {
  int64_t seconds = 0;
  std::string error;
  if (absl::SimpleAtoi(word, &seconds)) {
    *time = absl::FromUnixSeconds(seconds);
  } else if (!absl::ParseTime(absl::RFC3339_full, word, time, &error)) {
    return absl::StrCat("\"", word, "\" is not a time; expected 2026-11-16T18:00:00Z, or seconds since 1970");
  }
  if (*time < absl::Now()) return absl::StrCat("\"", word, "\" has passed");
  return "";
}

bool IsWorkerName(const std::string& name) {
  return name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
           return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.';
         });
}

}  // namespace

std::optional<WorkerOptions> ReadWorkerOptions(int argc, const char* const* argv, const std::string& version,
                                               int* exit_code) {
  WorkerOptions options;
  std::string device = "auto";
  CLI::App app("Measures the trials of a Pawl orchestrator on a GPU, or replays recordings.", "pawl-worker");
  UseHelpFormat(app);
  app.footer(
      "Example: pawl-worker --orchestrator gpu-head:7465 --device cuda:0\n"
      "Each option can also be set in the environment (PAWL_DEVICE for --device) or in the file of --config (device = "
      "\"cuda:0\"). Flags take precedence over the environment, the environment over the file.\n"
      "SIGTERM: the worker finishes the running trial and exits. If the trial takes too long for --grace (with 30 s: "
      "longer than 15 s), the worker returns it to the orchestrator. A second SIGTERM ends the worker at once.\n"
      "Exit codes: 0 drained, 1 failed, 2 wrong usage.");
  app.set_version_flag("--version", "pawl-worker " + version, "Print the version");
  AddConfigFile(app);
  const auto option = [&](const std::string& flag, auto& value, const std::string& text) {
    return app.add_option("--" + flag, value, text)->envname(EnvironmentName(flag));
  };
  option("orchestrator", options.orchestrator, "Address of the orchestrator: host:port or unix:/path")
      ->type_name("ADDRESS");
  option("device", device,
         "auto (cuda:0 if there is a GPU, otherwise replay), cuda:N, replay, a list of these (cuda:0,cuda:1), or all: "
         "a worker for each GPU")
      ->type_name("DEVICE")
      ->capture_default_str();
  option("recordings", options.recordings,
         "Recordings to replay: files or folders; can be given several times (default: those that ship with Pawl)")
      ->type_name("PATH");
  option("replay-speed", options.replay_speed,
         "Replay in the recorded time of each stage, this many times as fast; 0: without waiting")
      ->check(CLI::Range(0.0, 1e9))
      ->check([](const std::string& text) {
        return absl::StrContains(absl::AsciiStrToLower(text), "nan") ? text + " is no number" : "";
      });
  option("name", options.name, "Name of this worker (default: Slurm job and node, Kubernetes pod, or host; and device)")
      ->type_name("NAME");
  std::string idle, until, grace;
  option("exit-when-idle", idle, "Exit after this long without a trial: 120s, 5m")->type_name("DURATION");
  option("max-trials", options.limits.trials, "Exit after this many trials")->check(CLI::Range(1, 1 << 30));
  option("until", until, "Take no trial after this time, and exit: 2026-11-16T18:00:00Z, or seconds since 1970")
      ->type_name("TIME");
  option("grace", grace,
         "Time that the machine leaves between SIGTERM and SIGKILL: a trial that takes longer is given back (default: "
         "30s)")
      ->type_name("DURATION");
  option("ahead", options.ahead,
         "Trials to lease and build while another is measured (default: 2 on a GPU, 0 in a replay)")
      ->check(CLI::Range(0, 16));
  option("profiles", options.profiles, "Folder whose metrics.toml replaces the built-in one")->type_name("FOLDER");
  std::vector<std::string> libraries;
  option("include", libraries,
         "Header library that bundles may name in `include`, beside the toolkit's own: cutlass=/opt/cutlass/include. "
         "Builds can read this folder. Can be given several times")
      ->type_name("NAME=FOLDER")
      ->delimiter(',');
  option("tls-cert", options.credentials.tls.cert, "This worker's certificate, with the role work")->type_name("FILE");
  option("tls-key", options.credentials.tls.key,
         "Private key of the certificate, readable by its owner only (mode 600)")
      ->type_name("FILE");
  option("tls-ca", options.credentials.tls.ca, "Certificate authority that signed the orchestrator's certificate")
      ->type_name("FILE");
  option("token-file", options.credentials.token_file, "File with a token of the role work")->type_name("FILE");
  app.add_flag("--allow-unsandboxed", options.allow_unsandboxed,
               "Build and run candidates even if no sandbox is available")
      ->envname(EnvironmentName("allow-unsandboxed"));
  options.log_level = "info";
  option("log-level", options.log_level, "Least severe messages that are logged")
      ->check(CLI::IsMember({"debug", "info", "warn", "error"}))
      ->capture_default_str();
  try {
    app.parse(argc, const_cast<char**>(argv));
  } catch (const CLI::ParseError& error) {
    *exit_code = app.exit(error) == 0 ? 0 : kWrongUsage;
    return std::nullopt;
  }
  const auto mistake = [&](const std::string& text) {
    std::cerr << "pawl-worker: " << text << "\nRun with --help for more information.\n";
    *exit_code = kWrongUsage;
    return std::nullopt;
  };
  if (const std::string wrong = ReadDevices(device, &options); !wrong.empty()) return mistake("--device: " + wrong);
  for (const std::string& library : libraries) {
    if (const std::string wrong = AddLibrary(library, &options.libraries); !wrong.empty()) {
      return mistake("--include: " + wrong);
    }
  }
  if (!idle.empty()) {
    if (const std::string wrong = ReadSeconds(idle, &options.limits.idle.emplace()); !wrong.empty()) {
      return mistake("--exit-when-idle: " + wrong);
    }
  }
  if (!grace.empty()) {
    if (const std::string wrong = ReadSeconds(grace, &options.grace); !wrong.empty())
      return mistake("--grace: " + wrong);
  }
  if (!until.empty()) {
    if (const std::string wrong = ReadTime(until, &options.limits.until.emplace()); !wrong.empty()) {
      return mistake("--until: " + wrong);
    }
  }
  options.name = std::string(absl::StripPrefix(options.name, "workers/"));
  if (!IsWorkerName(options.name)) {
    return mistake(absl::StrCat("--name: \"", options.name, "\"; expected at most 64 letters, digits, -, _ and ."));
  }
  if (options.orchestrator.empty()) {
    return mistake("name the orchestrator: --orchestrator host:port or unix:/path, or PAWL_ORCHESTRATOR");
  }
  return options;
}

}  // namespace pawl
