// A pause of the whole service.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "orchestrator/core/errors.h"
#include "orchestrator/core/orchestrator.h"
#include "spdlog/spdlog.h"

namespace pawl {
namespace {

v1::Maintenance Said(const v1::MaintenanceNote& note, size_t leased) {
  v1::Maintenance said;
  said.set_on(note.on());
  said.set_reason(note.reason());
  said.set_author(note.author());
  if (note.has_since()) *said.mutable_since() = note.since();
  said.set_leased(static_cast<int>(leased));
  return said;
}

}  // namespace

absl::StatusOr<v1::Maintenance> Orchestrator::SetMaintenance(const v1::SetMaintenanceRequest& request) {
  if (absl::Status status = CheckText("reason", request.reason()); !status.ok()) return status;
  if (absl::Status status = CheckText("author", request.author()); !status.ok()) return status;
  Turn turn(&mutex_);
  if (absl::Status status = Serving(); !status.ok()) return status;
  v1::MaintenanceNote note = state_.maintenance;
  if (!request.on() && !note.on()) return Said(note, state_.leases.size());
  Step step = Begin();
  if (request.on() != note.on()) {
    const int64_t now_us = absl::ToInt64Microseconds(state_.served.Now());
    if (note.on()) note.set_earlier_us(note.earlier_us() + std::max<int64_t>(now_us - note.since_us(), 0));
    note.set_on(request.on());
    note.set_since_us(now_us);
    SetTime(step.now, note.mutable_since());
  }
  note.set_author(request.author());
  note.set_reason(request.reason());
  step.writes.maintenance = note;
  step.lines.push_back(absl::StrCat("maintenance ", note.on() ? "begun" : "ended", " by ", note.author(),
                                    note.reason().empty() ? "" : ": ", note.reason()));
  // Trials are offered by the commit where it ends. Its events are of the same campaign time either way.
  state_.maintenance = std::move(note);
  if (absl::Status status = Commit(&step, turn.deferred()); !status.ok()) return status;
  return Said(state_.maintenance, state_.leases.size());
}

v1::Maintenance Orchestrator::GetMaintenance() {
  absl::MutexLock lock(&mutex_);
  return Said(state_.maintenance, state_.leases.size());
}

}  // namespace pawl
