#include "base/messages/valid_texts.h"

#include <gtest/gtest.h>

#include <string>

#include "pawl/v1/event.pb.h"
#include "pawl/v1/worker_service.pb.h"

namespace pawl {
namespace {

const std::string kHalf = "no line is \"\xe5\xa4";  // a text that was cut inside a character

TEST(ValidTextsTest, MakesWhatWasCutInsideACharacterReadableAgain) {
  v1::Event event;
  event.mutable_dropped()->set_reason(kHalf);
  EXPECT_FALSE(v1::Event().ParseFromString(event.SerializeAsString()));
  MakeTextsValid(&event);
  EXPECT_EQ(event.dropped().reason(), "no line is \"??");
  EXPECT_TRUE(v1::Event().ParseFromString(event.SerializeAsString()));
}

TEST(ValidTextsTest, ReachesMessagesAndListsAtAnyDepth) {
  v1::CompleteTrialRequest request;
  request.mutable_result()->mutable_failure()->set_message(kHalf);
  request.mutable_result()->add_disturbances(kHalf);
  request.mutable_result()->mutable_evidence()->add_launches()->set_entry(kHalf);
  MakeTextsValid(&request);
  EXPECT_EQ(request.result().failure().message(), "no line is \"??");
  EXPECT_TRUE(v1::CompleteTrialRequest().ParseFromString(request.SerializeAsString()));
}

TEST(ValidTextsTest, LeavesTheRestAsItIs) {
  v1::CompleteTrialRequest request;
  request.set_worker("grüße 你好");
  request.mutable_result()->set_warm_us(2);
  (*request.mutable_variant()->mutable_values())["TILE"] = 3;
  request.mutable_result()->add_blobs()->set_hash("abc");
  const std::string before = request.SerializeAsString();
  MakeTextsValid(&request);
  EXPECT_EQ(request.SerializeAsString(), before);
}

}  // namespace
}  // namespace pawl
