// `pawl doctor`: whether this machine can run campaigns, and what to do where it can't.

#include <google/protobuf/util/json_util.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/commands/commands.h"
#include "cli/text/layout.h"
#include "worker/build/builder.h"
#include "worker/device/cuda_device.h"
#include "worker/device/profiler.h"
#include "worker/host/machine.h"

namespace pawl {
namespace {

struct Look {
  const char* word;
  const char* color;
};

Look LookOf(v1::DoctorState state) {
  switch (state) {
    case v1::DOCTOR_STATE_OK:
      return {"ok", "\033[32m"};
    case v1::DOCTOR_STATE_WARNING:
      return {"warning", "\033[33m"};
    default:
      return {"failed", "\033[31m"};
  }
}

void Print(const v1::DoctorReport& report) {
  const bool color = TakesColor(STDOUT_FILENO);
  std::vector<std::string> failed;
  for (const v1::DoctorLine& line : report.lines()) {
    const Look look = LookOf(line.state());
    std::printf("%s%-8s%s %-18s %s\n", color ? look.color : "", look.word, color ? "\033[0m" : "", line.name().c_str(),
                line.seen().c_str());
    if (!line.fix().empty()) std::printf("%-8s %-18s fix: %s\n", "", "", line.fix().c_str());
    if (line.state() == v1::DOCTOR_STATE_FAILED) failed.push_back(line.name());
  }
  if (report.can_run()) {
    std::printf("Campaigns can run here.\n");
  } else {
    std::printf("Campaigns can't measure here: %s. They can replay recordings: pawl run attention --device replay\n",
                absl::StrJoin(failed, ", ").c_str());
  }
}

Asked ProbeCounters() {
  Asked asked;
  absl::StatusOr<std::unique_ptr<CudaDevice>> device = CudaDevice::Open({.allow_unsandboxed = true});
  if (!device.ok()) {
    asked.err = std::string(device.status().message());
    return asked;
  }
  asked.found = true;
  const absl::Status counters = TryCounters(**device, (*device)->profiler());
  asked.ok = counters.ok();
  asked.err = std::string(counters.message());
  return asked;
}

int Doctor(bool json) {
  const v1::DoctorReport report = Examine(LookAtMachine({.builds = ProbeBuilds, .counters = ProbeCounters}));
  if (json) {
    std::string text;
    google::protobuf::util::JsonPrintOptions print;
    print.always_print_primitive_fields = true;
    if (!google::protobuf::util::MessageToJsonString(report, &text, print).ok()) return kFailed;
    std::printf("%s\n", text.c_str());
  } else {
    Print(report);
  }
  return report.can_run() ? kDone : kFailed;
}

}  // namespace

void AddDoctor(CLI::App& app, int* exit_code) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("doctor", "Check whether this machine can run campaigns, and how to fix it");
  command->group(kPreparing)
      ->footer(
          "Example: pawl doctor\n"
          "Exit code 1: campaigns can't measure here. With --device replay they replay recordings and need no GPU.");
  command->add_flag("--json", *json, "Print JSON for programs: one object");
  command->callback([json, exit_code] { *exit_code = Doctor(*json); });
}

}  // namespace pawl
