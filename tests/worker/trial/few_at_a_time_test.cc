#include "worker/trial/few_at_a_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"

namespace pawl {
namespace {

using ::testing::ElementsAre;

// Says how many it was asked to build at once.
class Groups : public Compiler {
 public:
  absl::StatusOr<v1::BuildReply> Build(const v1::BuildRequest& request, const Stopped&) override {
    v1::BuildReply reply;
    reply.set_log(request.name());
    return reply;
  }
  std::vector<absl::StatusOr<v1::BuildReply>> BuildBeside(const std::vector<v1::BuildRequest>& requests,
                                                          const Stopped& stopped) override {
    sizes.push_back(requests.size());
    if (sizes.size() == 1 && begun != nullptr) {
      begun->Notify();
      go_on.WaitForNotification();
    }
    return Compiler::BuildBeside(requests, stopped);
  }

  std::vector<size_t> sizes;
  absl::Notification* begun = nullptr;
  absl::Notification go_on;
};

std::vector<v1::BuildRequest> Requests(int count) {
  std::vector<v1::BuildRequest> requests(count);
  for (int i = 0; i < count; ++i) requests[i].set_name(std::string(1, static_cast<char>('a' + i)));
  return requests;
}

TEST(FewAtATimeTest, BuildsNoMoreAtOnceThanItMay) {
  Groups groups;
  FewAtATime few(groups, 2);
  const std::vector<absl::StatusOr<v1::BuildReply>> replies = few.BuildBeside(Requests(5), nullptr);
  EXPECT_THAT(groups.sizes, ElementsAre(2, 2, 1));
  ASSERT_EQ(replies.size(), 5u);
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(replies[i]->log(), std::string(1, static_cast<char>('a' + i)));
}

TEST(FewAtATimeTest, BuildsAllThatIsLeftOnceSomebodyWaits) {
  Groups groups;
  absl::Notification begun;
  groups.begun = &begun;
  FewAtATime few(groups, 2);
  std::vector<absl::StatusOr<v1::BuildReply>> replies;
  std::thread building([&] { replies = few.BuildBeside(Requests(9), nullptr); });
  begun.WaitForNotification();
  few.Hurry();
  groups.go_on.Notify();
  building.join();
  EXPECT_THAT(groups.sizes, ElementsAre(2, 7));
  EXPECT_EQ(replies.size(), 9u);
}

// Variants that have one source for all sizes would otherwise be built one after another.
TEST(FewAtATimeTest, BuildsForSeveralThreadsAtOnce) {
  class Meeting : public Compiler {  // nobody leaves before all three are there
   public:
    absl::StatusOr<v1::BuildReply> Build(const v1::BuildRequest&, const Stopped&) override {
      absl::MutexLock lock(&mutex_);
      ++here_;
      most = std::max(most, here_);
      const auto all = [this] { return here_ == 3; };
      const bool met = met_ || mutex_.AwaitWithTimeout(absl::Condition(&all), absl::Seconds(20));
      met_ = met;
      if (!met) return absl::DeadlineExceededError("alone");
      return v1::BuildReply();
    }
    int most = 0;

   private:
    absl::Mutex mutex_;
    int here_ = 0;
    bool met_ = false;
  };
  Meeting meeting;
  FewAtATime few(meeting, 3);
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] { EXPECT_TRUE(few.BuildBeside(Requests(1), nullptr)[0].ok()); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(meeting.most, 3);
}

TEST(FewAtATimeTest, TakesWhatOthersLeave) {
  Groups groups;
  absl::Notification begun;
  groups.begun = &begun;
  FewAtATime few(groups, 3);
  std::thread first([&] { few.BuildBeside(Requests(2), nullptr); });
  begun.WaitForNotification();
  few.BuildBeside(Requests(2), nullptr);
  EXPECT_THAT(groups.sizes, ElementsAre(2, 1, 1));
  groups.go_on.Notify();
  first.join();
}

}  // namespace
}  // namespace pawl
