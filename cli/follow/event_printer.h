#pragma once

#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "base/sync/steady_time.h"
#include "pawl/v1/campaign_service.pb.h"

namespace pawl {

// Tells a person what happens to a campaign, or a program everything. On a terminal the campaign and the trial that is
// under way stand in a few lines that change in place, below the verdicts; in a log there is a line an event, and at
// least one every half minute. A terminal's width is asked for again before anything is shown: it may have changed.
class EventPrinter {
 public:
  struct Options {
    std::FILE* out = stdout;
    int width = 0;      // lines are cut there, unless `out` is a terminal that says otherwise; 0: nowhere
    bool json = false;  // every message as it came, one object a line
    bool quiet = false;
    bool live = false;  // a terminal that can take lines back
    bool color = false;
  };
  // For what a stream is: a terminal or not; the environment may forbid colour (NO_COLOR) or more (TERM=dumb).
  static Options For(std::FILE* out);

  explicit EventPrinter(Options options);
  ~EventPrinter();

  // What to say while no worker is registered: how to start one, or that one is about to be.
  void set_without_worker(std::string text) { without_worker_ = std::move(text); }

  // What is of no interest once it is over (which change is being tried, who runs it) waits to be shown until it has
  // lasted a second; a fast replay shows verdicts only.
  void See(const v1::WatchCampaignResponse& message, SteadyTime now);
  // The campaign as it stands; worth asking for when `wants_campaign`.
  void See(const v1::Campaign& campaign, SteadyTime now);
  bool wants_campaign(SteadyTime now) const;
  // Nothing came for a while. Shows what waits.
  void Tick(SteadyTime now);
  // A line of Pawl's own.
  void Say(const std::string& line);
  // Nothing more comes: takes the changing lines away.
  void End();

 private:
  class LiveLines;

  void Print(const std::string& line, v1::Verdict verdict = v1::VERDICT_UNSPECIFIED);
  void ShowLive(SteadyTime now);
  void Note(const v1::Iteration& judged);
  int Width() const;

  const Options options_;
  std::unique_ptr<LiveLines> live_;
  std::string device_;
  std::optional<v1::Campaign> campaign_;  // as it was when it was asked for, and what was judged since
  std::string nobody_;                    // no worker runs it, and what to do about that
  std::string without_worker_;
  bool titled_ = false;  // what stands above verdicts was printed
  bool changed_ = true;  // since the campaign was asked for
  std::optional<std::string> trying_;
  std::optional<v1::Progress> progress_;
  SteadyTime progress_time_;
  SteadyTime last_ = SteadyTime::InfinitePast();   // something was printed
  SteadyTime asked_ = SteadyTime::InfinitePast();  // for the campaign
};

}  // namespace pawl
