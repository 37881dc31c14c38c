#include "cli/event_printer.h"

#include "absl/strings/str_cat.h"
#include "cli/event_line.h"
#include "cli/json_line.h"
#include "cli/table.h"

namespace pawl {
namespace {

constexpr absl::Duration kBrief = absl::Seconds(1);
constexpr absl::Duration kSilence = absl::Seconds(10);

}  // namespace

void EventPrinter::See(const v1::WatchCampaignResponse& message, absl::Time now) {
  if (options_.quiet) return;
  if (options_.json) {
    Print(JsonLine(message));
    return;
  }
  if (message.has_progress()) {
    progress_ = ProgressLine(message.progress());
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
    Print(EventLine(event));
  }
  last_ = now;
}

void EventPrinter::Tick(absl::Time now) {
  if (trying_ && now - last_ >= kBrief) {
    Print(*trying_);
    trying_.reset();
    last_ = now;
  } else if (progress_ && now - last_ >= kSilence) {
    Print(*progress_);
    progress_.reset();
    last_ = now;
  }
}

void EventPrinter::Say(const std::string& line) {
  if (!options_.quiet) std::fprintf(stderr, "%s\n", line.c_str());
}

void EventPrinter::Print(const std::string& line) {
  std::fprintf(options_.out, "%s\n", (options_.json ? line : Cut(line, options_.width)).c_str());
  std::fflush(options_.out);
}

}  // namespace pawl
