#pragma once

#include <cstdio>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "pawl/v1/campaign_service.pb.h"

namespace pawl {

// Tells a person what happens to a campaign, or a program everything.
class EventPrinter {
 public:
  struct Options {
    std::FILE* out = stdout;
    int width = 0;      // lines are cut there; 0: nowhere
    bool json = false;  // every message as it came, one object a line
    bool quiet = false;
  };
  explicit EventPrinter(Options options) : options_(options) {}

  // What is of no interest once it is over (which change is being tried, who runs it) waits to be shown until it has
  // lasted a second; a fast replay shows verdicts only.
  void See(const v1::WatchCampaignResponse& message, absl::Time now);
  // Nothing came for a while. Shows what waits, and progress every ten seconds.
  void Tick(absl::Time now);
  // A line of Pawl's own.
  void Say(const std::string& line);

 private:
  void Print(const std::string& line);

  const Options options_;
  std::string device_;
  std::optional<std::string> trying_;
  std::optional<std::string> progress_;
  absl::Time last_;
};

}  // namespace pawl
