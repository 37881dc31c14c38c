#include "cli/follow/event_printer.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/text/campaign_text.h"
#include "cli/text/event_line.h"
#include "cli/text/iteration_line.h"
#include "cli/text/json_line.h"
#include "cli/text/layout.h"
#include "cli/text/words.h"

namespace pawl {
namespace {

constexpr absl::Duration kBrief = absl::Seconds(1);
constexpr absl::Duration kProgress = absl::Seconds(10);
constexpr absl::Duration kPrinterSilence = absl::Seconds(25);
constexpr absl::Duration kPrinterLook = absl::Seconds(1);
constexpr absl::Duration kSoon = absl::Milliseconds(200);  // where something happened since

}  // namespace

// A few lines at the end of a terminal that change in place, below lines that stay.
class EventPrinter::LiveLines {
 public:
  // `color` is an escape sequence for all of them; empty: none.
  explicit LiveLines(std::FILE* out, const char* color = "") : out_(out), color_(color) {}
  ~LiveLines() { Clear(width_); }
  LiveLines(const LiveLines&) = delete;

  // In a terminal of `width` cells, where a longer line would wrap: it is cut.
  void Set(const std::vector<std::string>& lines, int width);
  // Takes them away, so that something else can be printed in their place. A terminal that became narrower has wrapped
  // them.
  void Clear(int width);

 private:
  std::FILE* const out_;
  const char* const color_;
  int width_ = 0;
  std::vector<std::string> shown_;
};

void EventPrinter::LiveLines::Set(const std::vector<std::string>& lines, int width) {
  std::vector<std::string> cut;
  for (const std::string& line : lines) cut.push_back(Cut(OneLine(line), width));
  if (cut == shown_ && width == width_) return;
  width_ = width;
  Clear(width);
  for (const std::string& line : cut) std::fprintf(out_, "%s%s%s\n", color_, line.c_str(), *color_ ? kNoColor : "");
  std::fflush(out_);
  shown_ = std::move(cut);
}

void EventPrinter::LiveLines::Clear(int width) {
  // Up by as many lines, then everything below is erased.
  int rows = 0;
  for (const std::string& line : shown_) rows += width > 0 ? std::max(1, (DisplayWidth(line) + width - 1) / width) : 1;
  if (rows > 0) std::fprintf(out_, "\x1b[%dA\r\x1b[J", rows);
  std::fflush(out_);
  shown_.clear();
}

EventPrinter::~EventPrinter() = default;

EventPrinter::Options EventPrinter::For(std::FILE* out) {
  Options options;
  options.out = out;
  options.width = TerminalWidth(fileno(out));
  const char* kind = std::getenv("TERM");
  options.live = options.width > 0 && kind != nullptr && std::strcmp(kind, "dumb") != 0;
  options.color = TakesColor(fileno(out));
  return options;
}

EventPrinter::EventPrinter(Options options) : options_(options) {
  if (options.live && !options.json && !options.quiet) {
    live_ = std::make_unique<LiveLines>(options.out, options.color ? ColorOf(StateWord(v1::RUNNING)) : "");
  }
}

void EventPrinter::See(const v1::WatchCampaignResponse& message, SteadyTime now) {
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
  changed_ = true;
  if (event.has_planned()) {
    trying_ = EventLine(event);
  } else if (event.has_leased()) {
    nobody_.clear();
    if (event.leased().device() != device_) Print(absl::StrCat("on ", event.leased().device()));
    device_ = event.leased().device();
  } else {
    if (event.has_finished()) {
      trying_.reset();
      progress_.reset();
    }
    const bool judged = event.has_finished() && event.finished().has_iteration();
    const bool end =
        event.has_finished() && !judged && !event.finished().has_total_gain() && event.finished().revised_size() == 1;
    if (judged) Note(event.finished().iteration());
    if (judged && event.finished().iteration().untried()) return;
    if (judged && live_ != nullptr && !titled_) Print(IterationLineTitle(Width()), v1::REVERTED);
    titled_ = titled_ || judged;
    Print(EventLine(event, Width()), judged ? event.finished().iteration().verdict()
                                     : end  ? event.finished().revised(0).verdict()
                                            : v1::VERDICT_UNSPECIFIED);
  }
  last_ = now;
  ShowLive(now);
}

void EventPrinter::See(const v1::Campaign& campaign, SteadyTime now) {
  asked_ = now;
  changed_ = false;
  campaign_ = campaign;
  const bool no_worker = campaign.waiting_for() == v1::WAITING_FOR_WORKER;
  nobody_ = no_worker || campaign.waiting_for() == v1::WAITING_FOR_DEVICE || IsHeld(campaign) ? campaign.message() : "";
  if (no_worker && !without_worker_.empty()) nobody_ = without_worker_;
  ShowLive(now);
}

// A fast replay is over before the campaign could be asked for again.
void EventPrinter::Note(const v1::Iteration& judged) {
  if (!campaign_) return;
  if (judged.number() == 0 && judged.speedup_over_baseline() != 1) {
    campaign_->set_baseline_us(judged.time_us() * judged.speedup_over_baseline());
  }
  if (judged.verdict() == v1::KEPT && judged.speedup_over_baseline() > campaign_->speedup_over_baseline()) {
    campaign_->set_speedup_over_baseline(judged.speedup_over_baseline());
  }
}

bool EventPrinter::wants_campaign(SteadyTime now) const {
  if (options_.quiet || options_.json) return false;
  if (live_ != nullptr) return now - asked_ >= (changed_ ? kSoon : kPrinterLook);
  // Before it says that something is tried, which nobody may do.
  if (trying_ && changed_) return now - asked_ >= kPrinterLook;
  return now - asked_ >= kPrinterSilence;
}

void EventPrinter::Tick(SteadyTime now) {
  if (live_ != nullptr) {
    ShowLive(now);
    return;
  }
  if (options_.quiet || options_.json) return;
  if (last_ == SteadyTime::InfinitePast()) last_ = now;  // silence begins with the first look
  if (trying_ && now - last_ >= kBrief) {
    Print(nobody_.empty() ? *trying_ : nobody_);
    trying_.reset();
    last_ = now;
  } else if (progress_ && now - last_ >= kProgress) {
    Print(ProgressLine(*progress_));
    progress_.reset();
    last_ = now;
  } else if (campaign_ && now - last_ >= kPrinterSilence) {
    Print(IsHeld(*campaign_) ? campaign_->message() : CampaignLine(*campaign_));
    last_ = now;
  }
}

void EventPrinter::ShowLive(SteadyTime now) {
  if (live_ == nullptr) return;
  const int width = Width();
  std::vector<std::string> lines;
  // What is too long goes on below; only what is tried, and why, is cut.
  const auto add = [&](const std::string& text) {
    if (DisplayWidth(text) <= width) return lines.push_back(text);
    for (const auto line : absl::StrSplit(Paragraph("", OneLine(text), width), '\n', absl::SkipEmpty())) {
      lines.emplace_back(line);
    }
  };
  if (campaign_) add(CampaignLine(*campaign_));
  if (!nobody_.empty()) {
    add(nobody_);
  } else if (trying_ && now - last_ >= kBrief) {
    lines.push_back(*trying_);
  }
  if (progress_) {
    // Reports come every few seconds; the clock goes on between them.
    v1::Progress progress = *progress_;
    const double since = absl::ToInt64Seconds(now - progress_time_);
    progress.set_seconds(progress.seconds() + since);
    if (progress.seconds_left() > 0) progress.set_seconds_left(std::max(1.0, progress.seconds_left() - since));
    add(ProgressLine(progress));
  }
  live_->Set(lines, width);
}

void EventPrinter::Say(const std::string& line) {
  if (options_.quiet) return;
  if (live_ != nullptr) live_->Clear(Width());
  std::fprintf(stderr, "%s\n", line.c_str());
}

void EventPrinter::End() {
  if (live_ != nullptr) live_->Clear(Width());
}

int EventPrinter::Width() const {
  const int now = TerminalWidth(fileno(options_.out));
  return now > 0 ? now : options_.width;
}

void EventPrinter::Print(const std::string& line, v1::Verdict verdict) {
  if (live_ != nullptr) live_->Clear(Width());
  const int width = Width();
  std::string text = options_.json ? line : Cut(line, width);
  // Columns are cut; sentences of which there are few go on below.
  if (live_ != nullptr && verdict == v1::VERDICT_UNSPECIFIED && DisplayWidth(line) > width) {
    text = Paragraph("", line, width);
    text.pop_back();
  }
  std::fprintf(options_.out, "%s\n", Colored(text, VerdictWord(verdict), options_.color).c_str());
  std::fflush(options_.out);
}

}  // namespace pawl
