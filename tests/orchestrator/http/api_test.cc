#include "orchestrator/http/api.h"

#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "nlohmann/json.hpp"
#include "orchestrator/http/json.h"
#include "tests/orchestrator/running_service.h"

namespace pawl {
namespace {

using nlohmann::json;
using Campaigns = v1::CampaignService::Stub;

class HttpApiTest : public testing::Test {
 protected:
  HttpApiTest() : guard_(true, Access::Open()), api_(service_.channel(), guard_, {.orchestrator = "127.0.0.1:7465"}) {}

  HttpReply Get(const std::string& path, const std::multimap<std::string, std::string>& parameters = {}) {
    HttpRequest request;
    request.method = "GET";
    request.path = path;
    request.parameters = parameters;
    return api_.Answer(request);
  }
  HttpReply Post(const std::string& path, const std::string& body) {
    HttpRequest request;
    request.method = "POST";
    request.path = path;
    request.body = body;
    return api_.Answer(request);
  }
  template <typename Message>
  Message Read(const HttpReply& reply) {
    EXPECT_EQ(reply.status, 200) << reply.body;
    Message message;
    EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(reply.body, &message).ok()) << reply.body;
    return message;
  }
  // A refusal with its status, a message, and an advice.
  void ExpectError(const HttpReply& reply, int status, const std::string& code) {
    EXPECT_EQ(reply.status, status) << reply.body;
    const json error = json::parse(reply.body);
    EXPECT_EQ(error.at("code"), code);
    EXPECT_NE(error.at("message"), "");
    EXPECT_NE(error.at("detail").at("fix"), "") << reply.body;
  }
  void Finish() {
    service_.Submit();
    service_.Register("workers/one");
    service_.RunAll("workers/one");
  }

  RunningService service_;
  HttpGuard guard_;
  HttpApi api_;
};

TEST(HttpJsonTest, LeavesOutNumbersThatAreNotFinite) {
  v1::Iteration iteration;
  iteration.set_time_us(7);
  iteration.set_speedup_over_start(std::nan(""));
  iteration.add_errors()->set_relative(std::numeric_limits<double>::infinity());
  (*iteration.mutable_metrics())["waves"] = -std::numeric_limits<double>::infinity();
  (*iteration.mutable_metrics())["occupancy"] = 50;
  EXPECT_EQ(json::parse(MessageJson(iteration)),
            json::parse(R"({"timeUs": 7, "errors": [{}], "metrics": {"occupancy": 50}})"));
}

TEST_F(HttpApiTest, AnswersWithTheMessagesOfTheService) {
  Finish();
  EXPECT_EQ(Read<v1::ListCampaignsResponse>(Get("/api/campaigns")).campaigns(0).name(), "campaigns/1");
  const auto campaign = Read<v1::Campaign>(Get("/api/campaigns/1"));
  v1::GetCampaignRequest ask;
  ask.set_name("campaigns/1");
  EXPECT_EQ(campaign.SerializeAsString(),
            service_.Ask(service_.campaigns(), &Campaigns::GetCampaign, ask).SerializeAsString());
  const auto list = Read<v1::ListIterationsResponse>(Get("/api/campaigns/1/iterations", {{"page_size", "2"}}));
  ASSERT_EQ(list.iterations_size(), 2);
  EXPECT_GT(list.iterations(1).time_us(), 0);
  const auto next = Read<v1::ListIterationsResponse>(
      Get("/api/campaigns/1/iterations", {{"page_size", "2"}, {"page_token", list.next_page_token()}}));
  EXPECT_EQ(next.iterations(0).number(), 2);
  EXPECT_EQ(Read<v1::Iteration>(Get("/api/campaigns/1/iterations/1")).number(), 1);
  EXPECT_EQ(Read<v1::Report>(Get("/api/campaigns/1/report")).campaign().name(), "campaigns/1");
  EXPECT_EQ(Read<v1::Bundle>(Get("/api/campaigns/1/bundle")).name(), campaign.bundle());
  EXPECT_EQ(Read<v1::ListWorkersResponse>(Get("/api/workers")).workers(0).name(), "workers/one");
  EXPECT_FALSE(Read<v1::Maintenance>(Get("/api/maintenance")).on());
  Read<v1::ListPatternsResponse>(Get("/api/patterns", {{"by_bundle", "true"}}));
  EXPECT_GT(json::parse(Get("/api/metrics").body).at("metrics").size(), 20u);
  const json about = json::parse(Get("/api/about").body);
  EXPECT_EQ(about.at("maySubmit"), true);
  EXPECT_EQ(about.at("orchestrator"), "127.0.0.1:7465") << "as clients reach it";
  EXPECT_EQ(about.at("tls"), false);
}

TEST_F(HttpApiTest, SendsTheFieldsThatAreAskedFor) {
  Finish();
  const auto list = Read<v1::ListIterationsResponse>(
      Get("/api/campaigns/1/iterations", {{"fields", "number,verdict"}, {"order", "ITERATION_ORDER_NUMBER"}}));
  ASSERT_GT(list.iterations_size(), 1);
  EXPECT_EQ(list.iterations(1).number(), 1);
  EXPECT_NE(list.iterations(1).verdict(), v1::VERDICT_UNSPECIFIED);
  EXPECT_EQ(list.iterations(1).time_us(), 0);
  EXPECT_EQ(list.iterations(1).reason(), "");
  EXPECT_EQ(Read<v1::Report>(Get("/api/campaigns/1/report", {{"fields", "version"}})).iterations_size(), 0);
}

TEST_F(HttpApiTest, GivesTheReportAsAFileToKeep) {
  Finish();
  const HttpReply reply = Get("/api/campaigns/1/report", {{"format", "REPORT_FORMAT_HTML"}});
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(reply.type, "text/html; charset=utf-8");
  ASSERT_EQ(reply.headers.size(), 1u);
  EXPECT_EQ(reply.headers[0].second, "attachment; filename=\"campaigns-1.html\"");
}

TEST_F(HttpApiTest, RefusesWhatIsWrong) {
  Finish();
  ExpectError(Get("/api/campaigns/99"), 404, "NOT_FOUND");
  ExpectError(Get("/api/campaigns/x"), 400, "INVALID_ARGUMENT");
  ExpectError(Get("/api/campaigns/\xff"), 400, "INVALID_ARGUMENT");
  ExpectError(Get("/api/campaigns/1/iterations", {{"page_token", "\xff\xfe"}}), 400, "INVALID_ARGUMENT");
  ExpectError(Get("/api/campaigns/1/iterations/99"), 404, "NOT_FOUND");
  ExpectError(Get("/api/campaigns/1/iterations/-1"), 400, "INVALID_ARGUMENT");
  ExpectError(Get("/api/campaigns/1/iterations", {{"page_size", "5000"}}), 400, "INVALID_ARGUMENT");
  ExpectError(Get("/api/campaigns/1/iterations", {{"page_token", "made up"}}), 400, "INVALID_ARGUMENT");
  ExpectError(Get("/api/campaigns/1/iterations", {{"sort", "up"}}), 400, "INVALID_ARGUMENT");
  ExpectError(Get("/api/campaigns/1/events", {{"after_sequence", "-3"}}), 400, "INVALID_ARGUMENT");
  ExpectError(Get("/api/campaigns/99/events"), 404, "NOT_FOUND");
  ExpectError(Get("/api/blobs/0123"), 404, "NOT_FOUND");
  ExpectError(Get("/api/blobs/" + std::string(63, 'a') + "\u00e9"), 404, "NOT_FOUND");  // shortened in the middle of it
  ExpectError(Get("/api/"), 404, "NOT_FOUND");
  ExpectError(Get("/api/nothing"), 404, "NOT_FOUND");
  ExpectError(Get("/api/campaigns/1/nothing"), 404, "NOT_FOUND");
  ExpectError(Get("/api/workers/one"), 404, "NOT_FOUND");
  ExpectError(Post("/api/campaigns/1/cancel", "{}"), 409, "FAILED_PRECONDITION");
  ExpectError(Post("/api/campaigns/1/cancel", "no JSON"), 400, "INVALID_ARGUMENT");
  ExpectError(Post("/api/campaigns/1/cancel", "{\"nothing\":1}"), 400, "INVALID_ARGUMENT");
  ExpectError(Post("/api/campaigns/1/explode", "{}"), 404, "NOT_FOUND");
  ExpectError(Post("/api/campaigns", "{}"), 400, "INVALID_ARGUMENT");
  ExpectError(Post("/api/workers", "{}"), 404, "NOT_FOUND");
}

TEST_F(HttpApiTest, SubmitsAndSteersWithAnAuthor) {
  v1::SubmitCampaignRequest submit;
  *submit.mutable_bundle() = TinyBundle();
  std::string body;
  ASSERT_TRUE(google::protobuf::util::MessageToJsonString(submit, &body).ok());
  EXPECT_EQ(Read<v1::Campaign>(Post("/api/campaigns", body)).name(), "campaigns/1");
  EXPECT_EQ(Read<v1::Campaign>(Post("/api/campaigns/1/pause", "{\"reason\":\"lunch\"}")).state(), v1::PAUSED);
  EXPECT_EQ(Read<v1::Campaign>(Post("/api/campaigns/1/resume", "")).state(), v1::WAITING);
  // The path says which, whatever the body says.
  EXPECT_EQ(Read<v1::Campaign>(Post("/api/campaigns/1/cancel", "{\"name\":\"campaigns/2\"}")).state(), v1::CANCELLED);
}

TEST_F(HttpApiTest, StreamsEventsAndEndsWithTheCampaign) {
  Finish();
  const HttpReply reply = Get("/api/campaigns/1/events", {{"after_sequence", "0"}});
  ASSERT_NE(reply.events, nullptr) << reply.body;
  EXPECT_EQ(reply.type, "text/event-stream");
  std::string all, piece;
  while (reply.events->Next(&piece)) all += piece;
  all += piece;
  EXPECT_EQ(all.rfind("id: ", 0), 0u) << all.substr(0, 100);
  EXPECT_NE(all.find("data: {\"event\":{"), std::string::npos);
  EXPECT_NE(all.find("\"finished\""), std::string::npos);
  EXPECT_TRUE(all.ends_with("event: end\ndata: {}\n\n")) << all.substr(all.size() - 100);
}

TEST_F(HttpApiTest, FollowsARunningCampaignAndLeavesIt) {
  const std::string name = service_.Submit();
  HttpReply reply = Get("/api/campaigns/1/events", {{"after_sequence", "0"}});
  ASSERT_NE(reply.events, nullptr);
  std::string piece;
  ASSERT_TRUE(reply.events->Next(&piece));
  EXPECT_NE(piece.find("submitted"), std::string::npos) << piece;
  std::string seen;
  v1::PauseCampaignRequest pause;
  pause.set_name(name);
  service_.Ask(service_.campaigns(), &Campaigns::PauseCampaign, pause);
  while (seen.find("paused") == std::string::npos && reply.events->Next(&piece)) seen += piece;
  EXPECT_NE(seen.find("paused"), std::string::npos) << seen;
  reply.events.reset();  // the reader goes while the campaign goes on
  EXPECT_EQ(Read<v1::Campaign>(Get("/api/campaigns/1")).state(), v1::PAUSED);
}

TEST_F(HttpApiTest, SaysWhenTheOrchestratorEndsUnderAStream) {
  service_.Submit();
  HttpReply reply = Get("/api/campaigns/1/events");
  ASSERT_NE(reply.events, nullptr);
  service_.Stop();
  std::string all, piece;
  while (reply.events->Next(&piece)) all += piece;
  EXPECT_NE(piece.find("event: failed\n"), std::string::npos) << piece;
}

}  // namespace
}  // namespace pawl
