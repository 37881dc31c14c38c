#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/connect/connection.h"
#include "cli/follow/event_printer.h"

namespace pawl {

struct WatchingOptions {
  EventPrinter::Options printer;
  int64_t after_sequence = 0;
  std::string flags;          // FlagsText: what later commands need
  bool summary_json = false;  // the campaign as it ended, one object on standard output
  bool summary = true;        // the same for people
  // Leave it, with exit code 4, when no worker could take it for so long.
  absl::Duration worker_patience = absl::InfiniteDuration();
};

// Follows a campaign that others run, prints its events and what became of it. Answers the exit code; leaving it
// (Ctrl-C) does not end it.
absl::StatusOr<int> WatchToTheEnd(Connection& connection, const std::string& campaign, const WatchingOptions& options);

// Prints what became of a campaign, with the changes that were kept.
absl::Status PrintSummary(Connection& connection, const v1::Campaign& campaign);

}  // namespace pawl
