#include "worker/process/message_pipe.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "base/sync/steady_time.h"
#include "pawl/v1/builder.pb.h"
#include "worker/process/process.h"

namespace pawl {
namespace {

SteadyTime Soon() { return SteadyNow() + absl::Milliseconds(50); }
SteadyTime Late() { return SteadyNow() + absl::Seconds(60); }

class MessagePipe : public testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<Pipe> pipe = MakePipe();
    ASSERT_TRUE(pipe.ok());
    pipe_ = *std::move(pipe);
  }
  void WriteBytes(const std::string& bytes) {
    ASSERT_EQ(write(pipe_.write.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }
  absl::Status Read(SteadyTime deadline = Late()) { return ReadMessage(pipe_.read.get(), &got_, deadline); }

  Pipe pipe_;
  v1::BuildReply got_;
};

TEST_F(MessagePipe, CarriesMessagesInOrder) {
  v1::BuildReply message;
  for (const char* log : {"one", "", "three"}) {
    message.set_log(log);
    ASSERT_TRUE(WriteMessage(pipe_.write.get(), message, Late()).ok());
  }
  for (const char* log : {"one", "", "three"}) {
    ASSERT_TRUE(Read().ok());
    EXPECT_EQ(got_.log(), log);
  }
}

TEST_F(MessagePipe, CarriesAMessageThatIsLargerThanThePipe) {
  v1::BuildReply message;
  message.set_cubin(std::string(5'000'000, '\x7f'));
  std::thread writer([&] { EXPECT_TRUE(WriteMessage(pipe_.write.get(), message, Late()).ok()); });
  EXPECT_TRUE(Read().ok());
  writer.join();
  EXPECT_EQ(got_.cubin(), message.cubin());
}

TEST_F(MessagePipe, PutsTogetherAMessageThatArrivesByteByByte) {
  v1::BuildReply message;
  message.set_log("hello");
  std::string bytes = {static_cast<char>(message.ByteSizeLong()), 0, 0, 0};
  message.AppendToString(&bytes);
  std::thread reader([&] { EXPECT_TRUE(Read().ok()); });
  for (char byte : bytes) WriteBytes(std::string(1, byte));
  reader.join();
  EXPECT_EQ(got_.log(), "hello");
}

TEST_F(MessagePipe, StopsWaitingAtTheDeadline) {
  EXPECT_TRUE(absl::IsDeadlineExceeded(Read(Soon())));
  WriteBytes(std::string("\x05\0\0\0ab", 6));
  EXPECT_TRUE(absl::IsDeadlineExceeded(Read(Soon())));
}

TEST_F(MessagePipe, StopsWritingAtTheDeadlineWhenNobodyReads) {
  v1::BuildReply message;
  message.set_cubin(std::string(5'000'000, 'x'));
  EXPECT_TRUE(absl::IsDeadlineExceeded(WriteMessage(pipe_.write.get(), message, Soon())));
}

TEST_F(MessagePipe, ReportsAWriterThatIsGone) {
  pipe_.write.Reset();
  EXPECT_TRUE(absl::IsUnavailable(Read()));
}

TEST_F(MessagePipe, ReportsAWriterThatIsGoneInTheMiddleOfAMessage) {
  WriteBytes(std::string("\x05\0\0\0ab", 6));
  pipe_.write.Reset();
  const absl::Status status = Read();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_NE(status.message().find("middle"), absl::string_view::npos);
}

TEST_F(MessagePipe, ReportsAReaderThatIsGoneWithoutRaisingASignal) {
  pipe_.read.Reset();
  EXPECT_TRUE(absl::IsUnavailable(WriteMessage(pipe_.write.get(), v1::BuildReply(), Late())));
}

TEST_F(MessagePipe, RefusesALengthThatNoMessageHas) {
  WriteBytes("printed text\n");
  EXPECT_EQ(Read().code(), absl::StatusCode::kDataLoss);
}

TEST_F(MessagePipe, RefusesBytesThatAreNoMessage) {
  WriteBytes(std::string("\x04\0\0\0\xff\xff\xff\xff", 8));
  EXPECT_EQ(Read().code(), absl::StatusCode::kDataLoss);
}

TEST_F(MessagePipe, TakesNoMemoryForBytesThatDoNotCome) {
  WriteBytes(std::string("\0\0\0\x40", 4));  // announces the largest message there may be
  pipe_.write.Reset();
  EXPECT_TRUE(absl::IsUnavailable(Read()));
}

}  // namespace
}  // namespace pawl
