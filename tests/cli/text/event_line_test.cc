#include "cli/text/event_line.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "cli/follow/event_printer.h"
#include "cli/text/campaign_text.h"
#include "cli/text/iteration_line.h"
#include "cli/text/layout.h"
#include "tests/cli/some_iterations.h"

namespace pawl {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(EventLineTest, SaysWhatWasSubmitted) {
  v1::Event event;
  event.set_campaign("campaigns/7");
  event.mutable_submitted()->set_bundle("attention");
  v1::CampaignSpec* spec = event.mutable_submitted()->mutable_spec();
  spec->mutable_goal()->set_size("main");
  EXPECT_EQ(EventLine(event), "campaigns/7: attention at main");
  spec->mutable_goal()->set_speedup(1.5);
  spec->mutable_budget()->set_iterations(10);
  spec->mutable_budget()->set_minutes(2.5);
  spec->mutable_budget()->set_dollars(3);
  EXPECT_EQ(EventLine(event),
            "campaigns/7: attention at main; goal 1.50x over the baseline, 10 iterations, 2.5 minutes, 3.00 dollars");
}

TEST(EventLineTest, SaysWhatIsTriedAndWhy) {
  v1::Event event;
  v1::TrialPlanned* planned = event.mutable_planned();
  planned->set_iteration(5);
  planned->set_parent(3);
  planned->mutable_change()->set_variable("TILE_M");
  planned->mutable_change()->set_from(64);
  planned->mutable_change()->set_to(0);
  planned->mutable_finding()->set_text("The grid fills 0.02 of a wave");
  EXPECT_EQ(EventLine(event), "   5  trying    TILE_M 64→0 from 3: The grid fills 0.02 of a wave");
  planned->set_why("the next untried neighbour");
  EXPECT_EQ(EventLine(event), "   5  trying    TILE_M 64→0 from 3: the next untried neighbour");
}

TEST(EventLineTest, SaysVerdictsInColumns) {
  std::string lines;
  for (const v1::Iteration& iteration : SomeIterations()) {
    v1::Event event;
    *event.mutable_finished()->mutable_iteration() = iteration;
    lines += EventLine(event) + "\n";
  }
  EXPECT_EQ(lines,
            "   0  kept       20.12 us    0.300x        -   1.000x  start                     the start\n"
            "   1  kept       13.41 us    0.450x   1.500x   1.500x  TILE_M 64→32              faster: 1.45 to 1.55\n"
            "   2  reverted   13.69 us    0.441x   0.980x   1.470x  TILE_M 64→16              slower\n"
            "   3  rejected          -         -        -        -  TILE_M 64→8 (from 1)      "
            "compile: error: undefined identifier\n"
            "   4  kept       11.18 us    0.540x   1.200x   1.800x  TILE_M 64→128 (from 1)    faster: 1.15 to 1.25\n");
}

TEST(EventLineTest, SaysWhatWasGainedInAll) {
  v1::Event event;
  event.mutable_planned()->set_iteration(4);
  event.mutable_planned()->set_purpose(v1::TRIAL_PURPOSE_TOTAL);
  EXPECT_EQ(EventLine(event), "   4  measuring the total gain against the start");
  v1::TotalGain* gain = event.mutable_finished()->mutable_total_gain();
  gain->set_iteration(4);
  gain->set_speedup_over_start(1.8);
  EXPECT_EQ(EventLine(event), "iteration 4 against the start: 1.800x");
  gain->set_multiplied(1.83);
  gain->mutable_interval()->set_lower(0.5596158);
  gain->mutable_interval()->set_upper(0.6151856);
  gain->mutable_interval()->set_pairs(15);
  EXPECT_EQ(EventLine(event),
            "iteration 4 against the start: 1.800x (1.750x to 1.850x in 15 pairs); estimated from the steps: 1.830x");
  gain->clear_multiplied();
  gain->clear_interval();
  v1::Comparison* beside = gain->mutable_beside_baseline()->mutable_interval();
  beside->set_mean_log_ratio(0.9122827);
  beside->set_lower(0.9042182);
  beside->set_upper(0.9202828);
  beside->set_pairs(24);
  EXPECT_EQ(EventLine(event),
            "iteration 4 against the start: 1.800x; interleaved with the baseline: 2.490x (2.470x to 2.510x in 24 "
            "placements)");
  gain->clear_beside_baseline();
  gain->mutable_beside_baseline()->set_error("no torch");
  EXPECT_EQ(EventLine(event), "iteration 4 against the start: 1.800x; not timed beside the baseline: no torch");
}

TEST(EventLineTest, SaysWhoChooses) {
  v1::Event event;
  event.set_campaign("campaigns/7");
  event.mutable_submitted()->set_bundle("attention");
  event.mutable_submitted()->mutable_spec()->mutable_goal()->set_size("main");
  v1::ChooserSettings* chooser = event.mutable_submitted()->mutable_spec()->mutable_chooser();
  chooser->set_kind(v1::CHOOSER_KIND_BOTH);
  EXPECT_EQ(EventLine(event), "campaigns/7: attention at main");
  chooser->set_kind(v1::CHOOSER_KIND_TREE);
  EXPECT_EQ(EventLine(event), "campaigns/7: attention at main; without proposals");
  chooser->set_kind(v1::CHOOSER_KIND_OUTSIDE);
  chooser->set_wait_seconds(90);
  chooser->set_no_proposal(v1::NO_PROPOSAL_PAUSE);
  EXPECT_EQ(EventLine(event),
            "campaigns/7: attention at main; changes are proposed within 1 min 30 s, otherwise it pauses");
}

TEST(EventLineTest, KeepsItsColumnsInNarrowTerminals) {
  v1::Iteration iteration = SomeIterations()[4];
  iteration.mutable_finding()->set_rule("grid-too-small");
  v1::Iteration other = iteration;
  other.set_number(12);
  other.mutable_change()->set_variable("BLOCKS_PER_MULTIPROCESSOR_AT_MOST");
  EXPECT_EQ(IterationLine(iteration, 120),
            "   4  kept       11.18 us    0.540x   1.200x   1.800x  TILE_M 64→128 (from 1)    grid-too-small: faster: "
            "1.15 to 1.25");
  EXPECT_EQ(IterationLine(other, 120).substr(0, 74),
            "  12  kept       11.18 us    0.540x   1.200x   1.800x  BLOCKS_… 64→128");
  EXPECT_EQ(IterationLineTitle(80), "   #  verdict        time  baseline   parent  change");
  EXPECT_EQ(IterationLine(iteration, 80), "   4  kept       11.18 us    0.540x   1.200x  TILE_M 64→128 (from 1)");
  EXPECT_EQ(IterationLine(other, 80), "  12  kept       11.18 us    0.540x   1.200x  BLOCKS_… 64→128 (from 1)");
  EXPECT_EQ(IterationLine(other, 62), "  12  kept       11.18 us    0.540x  BLOCKS_… 64→128 (from 1)");
  EXPECT_EQ(IterationLine(other, 40), "  12  kept       11.18 us    0.540x  BL…");
  for (int width = 1; width < 200; ++width) EXPECT_LE(DisplayWidth(IterationLine(other, width)), width);
}

TEST(EventLineTest, SaysWhatWasFoundAndPredictedBeforeTheReason) {
  v1::Iteration iteration = SomeIterations()[1];
  iteration.mutable_finding()->set_rule("grid-too-small");
  iteration.mutable_prediction()->set_low(1.2);
  iteration.mutable_prediction()->set_high(2);
  EXPECT_THAT(IterationLine(iteration),
              HasSubstr("TILE_M 64→32              grid-too-small, predicted 1.200x to 2.000x: faster: 1.45 to 1.55"));
}

TEST(EventLineTest, MarksGatesThatWereNotPassed) {
  v1::Event event;
  v1::Iteration* iteration = event.mutable_finished()->mutable_iteration();
  *iteration = SomeIterations()[1];
  v1::FailedGate* gate = iteration->add_failed_gates();
  gate->set_gate("prediction");
  gate->set_action(v1::GATE_ACTION_MARK);
  EXPECT_EQ(EventLine(event),
            "   1  kept       13.41 us    0.450x   1.500x   1.500x  TILE_M 64→32              "
            "faster: 1.45 to 1.55 [prediction: mark]");
}

TEST(EventLineTest, SaysWhatAWorkerDidWrong) {
  v1::Event event;
  event.mutable_lost()->set_trial(4);
  event.mutable_lost()->set_worker("workers/h200-0");
  event.mutable_lost()->set_reason(v1::LeaseLost::EXPIRED);
  EXPECT_EQ(EventLine(event), "trial 4 is leased again: workers/h200-0 stopped answering");
  event.mutable_lost()->set_reason(v1::LeaseLost::HOST_FAULT);
  event.mutable_lost()->set_message("no NVRTC");
  EXPECT_EQ(EventLine(event), "trial 4 is leased again: workers/h200-0 could not run it: no NVRTC");
}

TEST(EventLineTest, SaysHowItEnded) {
  v1::Event event;
  event.mutable_ended()->set_state(v1::FINISHED);
  event.mutable_ended()->set_reason(v1::STOP_REASON_GOAL);
  EXPECT_EQ(EventLine(event), "finished: the goal is reached");
  event.mutable_ended()->set_state(v1::CANCELLED);
  event.mutable_ended()->set_author("ada");
  event.mutable_ended()->set_message("wrong\nsize");
  EXPECT_EQ(EventLine(event), "cancelled by ada: wrong size");
  event.mutable_ended()->clear_message();
  event.mutable_ended()->set_reason(v1::STOP_REASON_CANCELLED);
  EXPECT_EQ(EventLine(event), "cancelled by ada");
}

TEST(EventLineTest, SaysWhoSteered) {
  v1::Event paused, resumed, proposed;
  paused.mutable_paused()->set_author("ada");
  paused.mutable_paused()->set_reason("the GPU is needed");
  EXPECT_EQ(EventLine(paused), "paused by ada: the GPU is needed");
  resumed.mutable_resumed();
  EXPECT_EQ(EventLine(resumed), "resumed");
  proposed.mutable_proposed()->set_author("agent");
  proposed.mutable_proposed()->mutable_change()->set_variable("WARPS");
  proposed.mutable_proposed()->mutable_change()->set_to(8);
  proposed.mutable_proposed()->set_why("more warps");
  EXPECT_EQ(EventLine(proposed), "proposed by agent: WARPS=8 from the best variant (more warps)");
}

TEST(EventLineTest, KnowsThatItDoesNotKnowEverything) {
  v1::Event event;
  event.set_sequence(9);
  EXPECT_EQ(EventLine(event), "event 9 has a type that this version of pawl does not know");
}

TEST(ProgressLineTest, SaysStepAndEstimate) {
  v1::Progress progress;
  progress.set_iteration("campaigns/7/iterations/12");
  progress.set_text("validate at large (4 of 7)");
  progress.set_step(3);
  progress.set_steps(9);
  progress.set_seconds(4);
  progress.set_seconds_left(125);
  EXPECT_EQ(ProgressLine(progress),
            "  12  validate at large (4 of 7), step 3 of 9, 4.00 s so far, about 2 min 05 s left");
}

// Seconds after some beginning.
SteadyTime At(double second) { return SteadyTime() + absl::Seconds(second); }

class EventPrinterTest : public testing::Test {
 protected:
  EventPrinterTest() : printer_({.out = file_}) {}
  ~EventPrinterTest() override { std::fclose(file_); }

  void Plan(int iteration, double second) {
    v1::WatchCampaignResponse message;
    message.mutable_event()->mutable_planned()->set_iteration(iteration);
    printer_.See(message, At(second));
  }
  void Finish(int iteration, double second) {
    v1::WatchCampaignResponse message;
    *message.mutable_event()->mutable_finished()->mutable_iteration() = SomeIterations()[iteration];
    printer_.See(message, At(second));
  }
  void Progress(const std::string& text, double second) {
    v1::WatchCampaignResponse message;
    message.mutable_progress()->set_text(text);
    printer_.See(message, At(second));
  }
  void Tick(double second) { printer_.Tick(At(second)); }
  std::string Text() {
    std::rewind(file_);
    std::string text;
    for (int c = std::fgetc(file_); c != EOF; c = std::fgetc(file_)) text += static_cast<char>(c);
    return text;
  }
  long Lines() {
    const std::string text = Text();
    return std::count(text.begin(), text.end(), '\n');
  }

  std::FILE* file_ = std::tmpfile();
  EventPrinter printer_;
};

TEST_F(EventPrinterTest, ShowsOnlyVerdictsOfAFastReplay) {
  Plan(0, 0);
  Tick(0.1);
  Finish(0, 0.2);
  Plan(1, 0.3);
  Finish(1, 0.4);
  Tick(5);
  EXPECT_EQ(Lines(), 2);
}

TEST_F(EventPrinterTest, ShowsWhatIsTriedOnceItTakesLonger) {
  Plan(0, 0);
  Tick(1.1);
  EXPECT_EQ(Lines(), 1);
  Tick(2);
  EXPECT_EQ(Lines(), 1);
}

TEST_F(EventPrinterTest, SaysWhatHoldsACampaignUp) {
  v1::Campaign campaign;
  campaign.set_state(v1::RUNNING);
  campaign.set_waiting_for(v1::WAITING_FOR_MAINTENANCE);
  campaign.set_message("maintenance since 10:00: no trial is leased");
  Plan(0, 0);
  printer_.See(campaign, At(1));
  Tick(1.1);
  EXPECT_EQ(Text(), "maintenance since 10:00: no trial is leased\n");
  Tick(30);
  EXPECT_EQ(Lines(), 2) << "and again, as nobody may take silence for the end";
  EXPECT_THAT(Text(), EndsWith("maintenance since 10:00: no trial is leased\n"));
}

TEST_F(EventPrinterTest, SaysThatNobodyTriesItAndWhatToDo) {
  printer_.set_without_worker("no worker is registered; to start one: pawl-worker --orchestrator here");
  v1::Campaign campaign;
  campaign.set_state(v1::WAITING);
  campaign.set_waiting_for(v1::WAITING_FOR_WORKER);
  campaign.set_message("no worker is registered: start pawl-worker");
  Plan(0, 0);
  ASSERT_TRUE(printer_.wants_campaign(At(1)));
  printer_.See(campaign, At(1));
  Tick(1.1);
  EXPECT_EQ(Text(), "no worker is registered; to start one: pawl-worker --orchestrator here\n");
  for (int second = 2; second < 20; ++second) Tick(second);
  EXPECT_EQ(Lines(), 1);
  v1::WatchCampaignResponse leased;
  leased.mutable_event()->mutable_leased()->set_device("a GPU");
  printer_.See(leased, At(20));
  Plan(1, 21);
  Tick(23);
  EXPECT_THAT(Text(), EndsWith("on a GPU\n   1  trying    start\n"));
}

TEST_F(EventPrinterTest, ShowsProgressEveryTenSeconds) {
  Plan(0, 0);
  Tick(1.1);
  for (int second = 2; second < 35; ++second) Progress("measure", second);
  EXPECT_EQ(Lines(), 1 + 3);
}

TEST_F(EventPrinterTest, IsNeverSilentForHalfAMinute) {
  v1::Campaign campaign;
  campaign.set_bundle("attention");
  campaign.set_state(v1::WAITING);
  campaign.set_message("no worker has asked for a trial");
  Tick(1);
  for (int second = 2; second < 92; ++second) {
    const SteadyTime now = At(second);
    if (printer_.wants_campaign(now)) printer_.See(campaign, now);
    printer_.Tick(now);
  }
  EXPECT_EQ(Lines(), 3);
}

// A terminal of 40 columns.
class LivePrinterTest : public testing::Test {
 protected:
  LivePrinterTest() {
    campaign_.set_bundle("attention");
    campaign_.mutable_counts()->set_tried(2);
    campaign_.mutable_spec()->mutable_budget()->set_iterations(50);
  }
  ~LivePrinterTest() override { std::fclose(file_); }

  std::string Text() {
    std::rewind(file_);
    std::string text;
    for (int c = std::fgetc(file_); c != EOF; c = std::fgetc(file_)) text += static_cast<char>(c);
    return text;
  }

  std::FILE* file_ = std::tmpfile();
  v1::Campaign campaign_;
};

TEST_F(LivePrinterTest, TakesTheChangingLinesBackBeforeAVerdictAndAtTheEnd) {
  EventPrinter printer({.out = file_, .width = 40, .live = true});
  printer.See(campaign_, At(1));
  EXPECT_EQ(Text(), "attention at : iteration 2 of 50\n");
  v1::WatchCampaignResponse finished;
  *finished.mutable_event()->mutable_finished()->mutable_iteration() = SomeIterations()[1];
  printer.See(finished, At(2));
  EXPECT_THAT(Text(), HasSubstr("iteration 2 of 50\n\x1b[1A\r\x1b[J   #  verdict        time"));
  EXPECT_THAT(Text(), HasSubstr("\n   1  kept"));
  EXPECT_THAT(Text(), EndsWith("attention at : iteration 2 of 50, best\n0.450x over the start\n"));
  printer.End();
  EXPECT_THAT(Text(), EndsWith("\x1b[2A\r\x1b[J"));
  EXPECT_THAT(Text(), Not(HasSubstr("\x1b[32m")));
}

TEST_F(LivePrinterTest, ColoursVerdictsWhereItMay) {
  EventPrinter printer({.out = file_, .width = 40, .live = true, .color = true});
  v1::WatchCampaignResponse finished;
  *finished.mutable_event()->mutable_finished()->mutable_iteration() = SomeIterations()[1];
  printer.See(finished, At(2));
  EXPECT_THAT(Text(), StartsWith("\x1b[90m   #  verdict"));
  EXPECT_THAT(Text(), HasSubstr("\n\x1b[32m   1  kept"));
  EXPECT_THAT(Text(), HasSubstr("\x1b[0m\n"));
}

TEST_F(LivePrinterTest, GoesOnBelowWhereALineIsTooLong) {
  EventPrinter printer({.out = file_, .width = 24, .live = true});
  campaign_.mutable_spec()->mutable_goal()->set_speedup(2.5);
  printer.See(campaign_, At(1));
  EXPECT_EQ(Text(), "attention at : iteration\n2 of 50, goal 2.500x\n");
  printer.End();
  EXPECT_THAT(Text(), EndsWith("\x1b[2A\r\x1b[J"));
}

TEST_F(LivePrinterTest, ShowsTheCampaignsOwnCountsAndAsksForThemSoonAfterAnEvent) {
  EventPrinter printer({.out = file_, .width = 80, .live = true});
  printer.See(campaign_, At(1));
  EXPECT_FALSE(printer.wants_campaign(At(1) + absl::Milliseconds(300))) << "nothing happened";
  v1::WatchCampaignResponse lacking;
  lacking.mutable_event()->mutable_finished()->mutable_iteration()->set_verdict(v1::REJECTED);
  lacking.mutable_event()->mutable_finished()->mutable_iteration()->set_untried(true);
  printer.See(lacking, At(1) + absl::Milliseconds(100));
  EXPECT_TRUE(printer.wants_campaign(At(1) + absl::Milliseconds(300)));
  campaign_.mutable_counts()->set_tried(3);
  campaign_.mutable_counts()->set_untried(1);
  printer.See(campaign_, At(1) + absl::Milliseconds(300));
  EXPECT_THAT(Text(), EndsWith("attention at : iteration 3 of 50\n"));
  v1::WatchCampaignResponse finished;
  *finished.mutable_event()->mutable_finished()->mutable_iteration() = SomeIterations()[4];
  finished.mutable_event()->mutable_finished()->mutable_iteration()->set_number(7);
  printer.See(finished, At(1) + absl::Milliseconds(301));
  EXPECT_THAT(Text(), EndsWith("attention at : iteration 3 of 50, best 0.540x over the start\n"))
      << "before the campaign was asked for again";
}

// A real one, of a width that can be changed.
TEST_F(LivePrinterTest, FollowsATerminalThatBecomesNarrower) {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
  ASSERT_GE(terminal, 0);
  ASSERT_EQ(grantpt(terminal), 0);
  ASSERT_EQ(unlockpt(terminal), 0);
  std::FILE* out = std::fopen(ptsname(terminal), "w");
  ASSERT_NE(out, nullptr);
  const auto resize = [&](unsigned short columns) {
    winsize size = {};
    size.ws_row = 24;
    size.ws_col = columns;
    ASSERT_EQ(ioctl(terminal, TIOCSWINSZ, &size), 0);
  };
  const auto read_all = [&] {
    // A terminal hands on what was written in pieces, when it gets to it.
    std::string all;
    char text[4096];
    pollfd ready = {terminal, POLLIN, 0};
    while (poll(&ready, 1, 200) == 1) {
      const ssize_t got = read(terminal, text, sizeof(text));
      if (got <= 0) break;
      all.append(text, static_cast<size_t>(got));
    }
    return all;
  };
  resize(80);
  EventPrinter::Options options = EventPrinter::For(out);
  EXPECT_EQ(options.width, 80);
  options.live = true;  // whatever TERM and NO_COLOR say where this runs
  options.color = true;
  {
    EventPrinter printer(options);
    campaign_.mutable_spec()->mutable_goal()->set_speedup(2.5);
    printer.See(campaign_, At(1));
    EXPECT_EQ(read_all(), "\x1b[34mattention at : iteration 2 of 50, goal 2.500x\x1b[0m\r\n");
    resize(30);
    printer.See(campaign_, At(2));
    EXPECT_EQ(read_all(),
              "\x1b[2A\r\x1b[J\x1b[34mattention at : iteration 2 of\x1b[0m\r\n\x1b[34m50, goal 2.500x\x1b[0m\r\n")
        << "the terminal has wrapped the line into two";
    v1::WatchCampaignResponse finished;
    *finished.mutable_event()->mutable_finished()->mutable_iteration() = SomeIterations()[1];
    printer.See(finished, At(3));
    EXPECT_THAT(read_all(), HasSubstr("   1  kept       13.41 us    …\x1b"));
  }
  std::fclose(out);
  close(terminal);
}

TEST_F(LivePrinterTest, LetsTheClockGoOnBetweenReports) {
  EventPrinter printer({.out = file_, .width = 80, .live = true});
  v1::WatchCampaignResponse message;
  message.mutable_progress()->set_text("measure");
  message.mutable_progress()->set_seconds(4);
  message.mutable_progress()->set_seconds_left(9);
  printer.See(message, At(10));
  printer.Tick(At(13));
  EXPECT_THAT(Text(), EndsWith("measure, 7.00 s so far, about 6.00 s left\n"));
}

TEST_F(LivePrinterTest, SaysHowMuchOfTheBudgetIsLeft) {
  campaign_.mutable_spec()->mutable_goal()->set_speedup(2.5);
  campaign_.mutable_spec()->mutable_goal()->set_size("main");
  campaign_.mutable_spec()->mutable_budget()->set_minutes(60);
  campaign_.mutable_spec()->mutable_budget()->set_dollars(1);
  campaign_.set_minutes(58);
  campaign_.set_dollars(0.25);
  campaign_.set_baseline_us(6);
  campaign_.set_speedup_over_baseline(1.5);
  EXPECT_EQ(
      CampaignLine(campaign_),
      "attention at main: iteration 2 of 50, best 1.500x over the baseline, goal 2.500x, 2 min 00 s and $0.75 left");
}

}  // namespace
}  // namespace pawl
