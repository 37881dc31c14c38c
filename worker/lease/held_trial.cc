#include "worker/lease/held_trial.h"

namespace pawl {
namespace {

double Since(HeldTrial::Clock::time_point begin) {
  return std::chrono::duration<double>(HeldTrial::Clock::now() - begin).count();
}

}  // namespace

HeldTrial::HeldTrial(v1::LeaseTrialResponse leased, const StageTimes& times)
    : leased_(std::move(leased)),
      campaign_(CampaignOf(leased_.trial().name())),
      times_(times),
      foreseen_(leased_.foreseen().begin(), leased_.foreseen().end()) {
  progress_.set_trial(leased_.trial().name());
  progress_.set_iteration(leased_.trial().iteration());
  progress_.set_text("waits for the builder");
}

std::vector<v1::ForeseenVariant> HeldTrial::foreseen() const {
  absl::MutexLock lock(&mutex_);
  return foreseen_;
}

void HeldTrial::Foresee(std::vector<v1::ForeseenVariant> foreseen) {
  absl::MutexLock lock(&mutex_);
  foreseen_ = std::move(foreseen);
}

void HeldTrial::Report(v1::Stage stage, int step, int steps, const std::string& text) {
  absl::MutexLock lock(&mutex_);
  if (stage != progress_.stage()) stage_begin_ = Clock::now();
  progress_.set_stage(stage);
  progress_.set_step(step);
  progress_.set_steps(steps);
  progress_.set_text(text);
}

v1::Progress HeldTrial::Latest() const {
  absl::MutexLock lock(&mutex_);
  v1::Progress progress = progress_;
  progress.set_seconds(seconds());
  progress.set_seconds_left(times_.SecondsLeft(campaign_, progress.stage(), Since(stage_begin_)));
  return progress;
}

}  // namespace pawl
