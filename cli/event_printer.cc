#include "cli/event_printer.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/campaign_line.h"
#include "cli/event_line.h"
#include "cli/iteration_row.h"
#include "cli/json_line.h"
#include "cli/table.h"

namespace pawl {
namespace {

constexpr absl::Duration kBrief = absl::Seconds(1);
constexpr absl::Duration kProgress = absl::Seconds(10);
constexpr absl::Duration kSilence = absl::Seconds(25);
constexpr absl::Duration kLook = absl::Seconds(1);

const char* ColorOf(v1::Verdict verdict) {
  switch (verdict) {
    case v1::KEPT:
      return "\x1b[32m";
    case v1::REJECTED:
      return "\x1b[31m";
    case v1::REVERTED:
      return "\x1b[2m";
    default:
      return "";
  }
}

bool IsSet(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

}  // namespace

EventPrinter::Options EventPrinter::For(std::FILE* out) {
  Options options;
  options.out = out;
  options.width = TerminalWidth(fileno(out));
  const char* kind = std::getenv("TERM");
  options.live = options.width > 0 && kind != nullptr && std::strcmp(kind, "dumb") != 0;
  options.color = options.live && !IsSet("NO_COLOR");
  return options;
}

EventPrinter::EventPrinter(Options options) : options_(options) {
  if (options.live && !options.json && !options.quiet) live_ = std::make_unique<LiveLines>(options.out, options.width);
}

void EventPrinter::See(const v1::WatchCampaignResponse& message, absl::Time now) {
  if (options_.quiet) return;
  if (options_.json) {
    Print(JsonLine(message));
    return;
  }
  if (message.has_progress()) {
    progress_ = message.progress();
    progress_time_ = now;
    Tick(now);
    return;
  }
  const v1::Event& event = message.event();
  if (event.has_planned()) {
    trying_ = EventLine(event);
  } else if (event.has_leased()) {
    if (event.leased().device() != device_) Print(absl::StrCat("on ", event.leased().device()));
    device_ = event.leased().device();
  } else {
    if (event.has_finished()) {
      trying_.reset();
      progress_.reset();
    }
    const bool judged = event.has_finished() && event.finished().has_iteration();
    if (judged && IsUntried(event.finished().iteration())) return;
    Print(EventLine(event), judged ? event.finished().iteration().verdict() : v1::VERDICT_UNSPECIFIED);
  }
  last_ = now;
  ShowLive(now);
}

void EventPrinter::See(const v1::Campaign& campaign, absl::Time now) {
  asked_ = now;
  campaign_ = CampaignLine(campaign);
  ShowLive(now);
}

bool EventPrinter::wants_campaign(absl::Time now) const {
  if (options_.quiet || options_.json) return false;
  return now - asked_ >= (live_ != nullptr ? kLook : kSilence);
}

void EventPrinter::Tick(absl::Time now) {
  if (live_ != nullptr) {
    ShowLive(now);
    return;
  }
  if (options_.quiet || options_.json) return;
  if (last_ == absl::InfinitePast()) last_ = now;  // silence begins with the first look
  if (trying_ && now - last_ >= kBrief) {
    Print(*trying_);
    trying_.reset();
    last_ = now;
  } else if (progress_ && now - last_ >= kProgress) {
    Print(ProgressLine(*progress_));
    progress_.reset();
    last_ = now;
  } else if (!campaign_.empty() && now - last_ >= kSilence) {
    Print(campaign_);
    last_ = now;
  }
}

void EventPrinter::ShowLive(absl::Time now) {
  if (live_ == nullptr) return;
  std::vector<std::string> lines;
  if (!campaign_.empty()) lines.push_back(campaign_);
  if (trying_ && now - last_ >= kBrief) lines.push_back(*trying_);
  if (progress_) {
    // Reports come every few seconds; the clock goes on between them.
    v1::Progress progress = *progress_;
    const double since = absl::ToInt64Seconds(now - progress_time_);
    progress.set_seconds(progress.seconds() + since);
    if (progress.seconds_left() > 0) progress.set_seconds_left(std::max(1.0, progress.seconds_left() - since));
    lines.push_back(ProgressLine(progress));
  }
  live_->Set(lines);
}

void EventPrinter::Say(const std::string& line) {
  if (options_.quiet) return;
  if (live_ != nullptr) live_->Clear();
  std::fprintf(stderr, "%s\n", line.c_str());
}

void EventPrinter::End() {
  if (live_ != nullptr) live_->Clear();
}

void EventPrinter::Print(const std::string& line, v1::Verdict verdict) {
  if (live_ != nullptr) live_->Clear();
  const std::string text = options_.json ? line : Cut(line, options_.width);
  const char* color = options_.color ? ColorOf(verdict) : "";
  std::fprintf(options_.out, "%s%s%s\n", color, text.c_str(), *color != '\0' ? "\x1b[0m" : "");
  std::fflush(options_.out);
}

}  // namespace pawl
