#include "worker/runner/unseen_time.h"

#include <gtest/gtest.h>
#include <math.h>

#include <functional>
#include <random>
#include <string>

namespace pawl {
namespace {

// A process's blocks. What a side's events leave out of a replay is given; the way to the GPU and back takes 15 us, of
// which each replay's share varies, and sometimes the host does something else for a while.
struct Host {
  double replay_us = 100;
  double noise_us = 2;
  double pause_share = 0.01, pause_us = 2000;
};

UnseenTime Measured(const Host& host, int blocks, uint32_t seed, const std::function<double()>& candidate_hides,
                    double parent_hides = 0) {
  std::mt19937 random(seed);
  std::normal_distribution<double> noise(0, host.noise_us);
  std::uniform_real_distribution<double> unit(0, 1);
  UnseenTime unseen;
  const auto add = [&](UnseenTime::Source source, double us, double hidden) {
    const double pause = unit(random) < host.pause_share ? host.pause_us * unit(random) : 0;
    unseen.Add(source, us - hidden, us + 15 + fabs(noise(random)) + pause);
  };
  for (int block = 0; block < blocks; ++block) {
    unseen.BeginBlock();
    add(UnseenTime::kOwn, 107, 0);
    for (int replay = 0; replay < 12; ++replay) {
      add(UnseenTime::kCandidate, host.replay_us, candidate_hides());
      add(UnseenTime::kParent, host.replay_us, parent_hides);
    }
    add(UnseenTime::kOwn, 107, 0);
    unseen.EndBlock();
  }
  return unseen;
}

const auto kNothing = [] { return 0.0; };

TEST(UnseenTimeTest, BelievesHonestEventsAlsoOnABusyHost) {
  int wrong = 0;
  for (uint32_t seed = 0; seed < 1000; ++seed) {
    Host host;
    host.replay_us = seed % 2 == 0 ? 26 : 400;
    host.noise_us = seed % 3 == 0 ? 10 : 2;
    host.pause_share = seed % 5 == 0 ? 0.05 : 0.002;
    wrong += !Measured(host, seed % 4 == 0 ? 36 : 12, seed, kNothing).Judge().empty();
  }
  EXPECT_LE(wrong, 1);
}

TEST(UnseenTimeTest, BelievesTimesThatDependOnTheData) {
  int wrong = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    UnseenTime unseen;
    for (int block = 0; block < 12; ++block) {
      unseen.BeginBlock();
      unseen.Add(UnseenTime::kOwn, 107, 122);
      for (int replay = 0; replay < 24; ++replay) {
        const double us = random() % 3 == 0 ? 500 : 70;
        unseen.Add(replay % 2 == 0 ? UnseenTime::kCandidate : UnseenTime::kParent, us, us + 15);
      }
      unseen.EndBlock();
    }
    wrong += !unseen.Judge().empty();
  }
  EXPECT_EQ(wrong, 0);
}

TEST(UnseenTimeTest, FindsEventsThatWereMovedByATwentiethOfAReplay) {
  int found = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    found += !Measured({}, 36, seed, [] { return 5.0; }).Judge().empty();
  }
  EXPECT_GE(found, 198);
}

TEST(UnseenTimeTest, FindsACandidateThatHidesHowMuchSlowerItIs) {
  UnseenTime unseen;
  for (int block = 0; block < 12; ++block) {
    unseen.BeginBlock();
    unseen.Add(UnseenTime::kOwn, 20, 35 + block % 3);  // too short to be held against it
    unseen.Add(UnseenTime::kCandidate, 110, 315 + block % 3);
    unseen.Add(UnseenTime::kParent, 100, 115 + block % 3);
    unseen.EndBlock();
  }
  EXPECT_NE(unseen.Judge(), "") << "it takes 300 us, which counts at one of several sizes";
}

TEST(UnseenTimeTest, FindsEventsThatWereMovedInAFewReplaysOnly) {
  std::mt19937 random(7);
  const auto sometimes = [&] { return random() % 8 == 0 ? 90.0 : 0.0; };
  EXPECT_NE(Measured({}, 36, 1, sometimes).Judge(), "");
}

TEST(UnseenTimeTest, FindsACandidateThatMovesItsEventsAsItsParentDoes) {
  const std::string judged = Measured(
                                 {}, 12, 1, [] { return 40.0; }, 40)
                                 .Judge();
  EXPECT_NE(judged.find("beyond what Pawl's own kernel takes"), std::string::npos) << judged;
}

TEST(UnseenTimeTest, FindsAParentWhoseEventsWereMovedTheOtherWay) {
  const std::string judged = Measured({}, 12, 1, kNothing, -20).Judge();
  EXPECT_NE(judged.find("beyond what one of its parent takes"), std::string::npos) << judged;
}

// A thread that waits for long loses its core in the meantime, and hears of the end late.
TEST(UnseenTimeTest, BelievesLongReplaysThatABusyHostNoticesLate) {
  int wrong = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    std::exponential_distribution<double> late(1.0 / 1000);
    UnseenTime unseen;
    const double candidate_us = seed % 2 == 0 ? 4000 : 150, parent_us = 5000;
    for (int block = 0; block < 12; ++block) {
      unseen.BeginBlock();
      for (int replay = 0; replay < 2; ++replay) unseen.Add(UnseenTime::kOwn, 107, 122 + random() % 3);
      for (int replay = 0; replay < 4; ++replay) {
        const double here = candidate_us > 1000 ? late(random) : 0;
        unseen.Add(UnseenTime::kCandidate, candidate_us, candidate_us + 15 + here + random() % 3);
        unseen.Add(UnseenTime::kParent, parent_us, parent_us + 15 + late(random));
      }
      unseen.EndBlock();
    }
    wrong += !unseen.Judge().empty();
  }
  EXPECT_LE(wrong, 1);
}

TEST(UnseenTimeTest, SaysNothingOfBlocksThatWereThrownAway) {
  UnseenTime unseen;
  for (int block = 0; block < 20; ++block) {
    unseen.BeginBlock();
    unseen.Add(UnseenTime::kOwn, 100, 115);
    unseen.Add(UnseenTime::kCandidate, 10, 115);
    unseen.Add(UnseenTime::kParent, 100, 115);
  }
  EXPECT_EQ(unseen.Judge(), "");
  EXPECT_EQ(unseen.over_parent_us(), 0);
}

TEST(UnseenTimeTest, SaysHowMuchIsUnseen) {
  const UnseenTime unseen = Measured({.pause_share = 0}, 36, 1, [] { return 10.0; });
  EXPECT_NEAR(unseen.over_parent_us(), 10, 0.5);
  EXPECT_NEAR(unseen.over_own_us(), 10, 1);
  EXPECT_LT(unseen.error_us(), 0.2);
}

}  // namespace
}  // namespace pawl
