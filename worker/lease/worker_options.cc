#include "worker/lease/worker_options.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <iostream>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/options/layered_options.h"

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
    return absl::StrCat("\"", word, "\" is no device; expected auto, cuda:N or replay");
  }
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
  CLI::App app("Measures the trials of a Pawl orchestrator on a GPU, or answers them from recordings.", "pawl-worker");
  app.footer(
      "Example: pawl-worker --orchestrator gpu-head:7465 --device cuda:0\n"
      "Each option may also stand in the environment (PAWL_DEVICE) or in the file of --config (device =\n"
      "\"cuda:0\"); flags win over the environment, that over the file. TERM ends the worker after the trial\n"
      "that runs, which is given back if it takes longer than 15 s; a second TERM at once.\n"
      "Exit codes: 0 drained, 1 failed, 2 wrong usage.");
  app.set_version_flag("--version", version);
  AddConfigFile(app);
  const auto option = [&](const std::string& flag, auto& value, const std::string& text) {
    return app.add_option("--" + flag, value, text)->envname(EnvironmentName(flag));
  };
  option("orchestrator", options.orchestrator, "Address: host:port or unix:/path");
  option("device", device, "auto: cuda:0 where there is a GPU, otherwise replay; cuda:N; replay")
      ->capture_default_str();
  option("recordings", options.recordings, "Recordings for replay: files, or folders (default: those that ship)");
  option("replay-speed", options.replay_speed, "Sleep through recorded stages, so many times faster; 0: not at all")
      ->check(CLI::NonNegativeNumber);
  option("name", options.name, "Name among the orchestrator's workers (default: this host's and the device's)");
  option("ahead", options.ahead,
         "Trials to lease and build while another is measured (default: 2 on a GPU, 0 in a replay)")
      ->check(CLI::Range(0, 16));
  option("profiles", options.profiles, "Folder whose metrics.toml replaces the one that was built in");
  option("tls-cert", options.credentials.tls.cert, "This worker's certificate, with the role work")->type_name("FILE");
  option("tls-key", options.credentials.tls.key, "Its key, which nobody else may read")->type_name("FILE");
  option("tls-ca", options.credentials.tls.ca, "The authority of the orchestrator's certificate")->type_name("FILE");
  option("token-file", options.credentials.token_file, "Holds a token of the role work")->type_name("FILE");
  app.add_flag("--allow-unsandboxed", options.allow_unsandboxed,
               "Build and run candidates even where no sandbox is to be had")
      ->envname(EnvironmentName("allow-unsandboxed"));
  options.log_level = "info";
  option("log-level", options.log_level, "debug, info, warn or error")
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
  if (const std::string wrong = ReadDevice(device, &options); !wrong.empty()) return mistake("--device: " + wrong);
  options.name = std::string(absl::StripPrefix(options.name, "workers/"));
  if (!IsWorkerName(options.name)) {
    return mistake(absl::StrCat("--name: \"", options.name, "\"; expected at most 64 letters, digits, -, _ and ."));
  }
  if (options.orchestrator.empty()) {
    return mistake("where is the orchestrator? --orchestrator host:port or unix:/path, or PAWL_ORCHESTRATOR");
  }
  return options;
}

}  // namespace pawl
