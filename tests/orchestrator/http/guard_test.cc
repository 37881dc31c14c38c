#include "orchestrator/http/guard.h"

#include <gtest/gtest.h>

#include "orchestrator/http/address.h"
#include "orchestrator/http/json.h"
#include "pawl/v1/campaign_service.pb.h"

namespace pawl {
namespace {

HttpRequest Post(std::map<std::string, std::string> more = {}) {
  HttpRequest request;
  request.method = "POST";
  request.path = "/api/campaigns/1/cancel";
  request.headers = {
      {"host", "localhost:7466"}, {"x-pawl", "1"}, {"content-type", "application/json"}, {"content-length", "2"}};
  for (const auto& [name, value] : more) request.headers[name] = value;
  return request;
}

HttpRequest Get(const std::string& path, const std::string& host) {
  HttpRequest request;
  request.method = "GET";
  request.path = path;
  request.headers["host"] = host;
  return request;
}

TEST(HttpAddress, ReadsHostAndPortAndTakesLoopbackForAPortAlone) {
  EXPECT_EQ(ParseHttpAddress("7466")->host, "127.0.0.1");
  EXPECT_EQ(ParseHttpAddress("7466")->port, 7466);
  EXPECT_TRUE(ParseHttpAddress("localhost:0")->loopback);
  EXPECT_EQ(ParseHttpAddress("[::1]:80")->Url(false), "http://[::1]:80/");
  EXPECT_FALSE(ParseHttpAddress("0.0.0.0:80")->loopback);
  EXPECT_FALSE(ParseHttpAddress("127.evil.example:80")->loopback);
  for (const char* bad :
       {"", ":80", "host", "host:", "host:x", "host:65536", "host:-1", "unix:/a", "::1:80", "[x]:80"}) {
    EXPECT_FALSE(ParseHttpAddress(bad).ok()) << bad;
  }
}

TEST(HttpAddress, KnowsTheNamesOfLoopbackAndNoOthers) {
  for (const char* good : {"localhost", "LOCALHOST:8080", "127.0.0.1:1", "127.1.2.3", "[::1]", "[::1]:7466"}) {
    EXPECT_TRUE(IsLoopbackHost(good)) << good;
  }
  for (const char* bad : {"", "evil.example", "evil.example:7466", "localhost.evil.example", "127.0.0.1.evil.example",
                          "::1", "[::2]:80", "10.0.0.1", "localhost:80@evil.example"}) {
    EXPECT_FALSE(IsLoopbackHost(bad)) << bad;
  }
}

TEST(HttpGuard, RefusesForeignHostNamesOnLoopback) {
  const HttpGuard guard(true, Access::Open());
  EXPECT_TRUE(guard.Check(Get("/api/campaigns", "localhost:9")).ok());
  EXPECT_TRUE(absl::IsPermissionDenied(guard.Check(Get("/api/campaigns", "rebound.example"))));
  EXPECT_TRUE(absl::IsPermissionDenied(guard.Check(Get("/", "rebound.example"))));
  EXPECT_TRUE(absl::IsPermissionDenied(guard.Check(Get("/", ""))));
  EXPECT_TRUE(HttpGuard(false, Access::Open()).Check(Get("/", "pawl.example")).ok());
}

TEST(HttpGuard, TakesWhatChangesSomethingFromItsOwnPageOnly) {
  const HttpGuard guard(true, Access::Open());
  EXPECT_TRUE(guard.Check(Post()).ok());
  EXPECT_TRUE(guard.Check(Post({{"origin", "http://localhost:7466"}, {"sec-fetch-site", "same-origin"}})).ok());
  EXPECT_TRUE(guard.Check(Post({{"content-type", "application/json; charset=utf-8"}})).ok());
  EXPECT_FALSE(guard.Check(Post({{"x-pawl", ""}})).ok());
  EXPECT_FALSE(guard.Check(Post({{"origin", "http://evil.example"}})).ok());
  EXPECT_FALSE(guard.Check(Post({{"origin", "http://localhost:1"}})).ok());
  EXPECT_FALSE(guard.Check(Post({{"origin", "null"}})).ok());
  EXPECT_FALSE(guard.Check(Post({{"sec-fetch-site", "cross-site"}})).ok());
  EXPECT_FALSE(guard.Check(Post({{"content-type", "text/plain"}})).ok());
  EXPECT_FALSE(guard.Check(Post({{"content-type", "multipart/form-data; boundary=x"}})).ok());
  EXPECT_FALSE(guard.Check(Post({{"content-encoding", "gzip"}})).ok()) << "the library would unpack it without a limit";
  EXPECT_TRUE(guard.Check(Post({{"content-length", ""}, {"transfer-encoding", "chunked"}})).ok());
  EXPECT_FALSE(guard.Check(Post({{"content-length", ""}, {"transfer-encoding", "gzip"}})).ok());
  EXPECT_FALSE(guard.Check(Post({{"transfer-encoding", "chunked"}})).ok()) << "two lengths";
  EXPECT_FALSE(guard.Check(Post({{"content-length", ""}})).ok()) << "the library would read it without a limit";
  HttpRequest put = Post();
  put.method = "PUT";
  EXPECT_FALSE(guard.Check(put).ok());
}

TEST(HttpGuard, AsksForTheRolesOfTheApi) {
  const HttpGuard guard(true, Access::ByRole("read readers-token-0123\nsubmit submit-token-0123\n", "tokens").value());
  const auto with = [](HttpRequest request, const std::string& token) {
    request.headers["authorization"] = "Bearer " + token;
    return request;
  };
  const HttpRequest get = Get("/api/campaigns", "localhost");
  EXPECT_TRUE(guard.Check(Get("/", "localhost")).ok()) << "the page asks for the token";
  EXPECT_TRUE(guard.Check(Get("/healthz", "localhost")).ok()) << "says nothing of campaigns";
  EXPECT_TRUE(absl::IsUnauthenticated(guard.Check(Get("/metrics", "localhost"))));
  EXPECT_TRUE(guard.Check(with(Get("/metrics", "localhost"), "readers-token-0123")).ok());
  EXPECT_TRUE(absl::IsUnauthenticated(guard.Check(get)));
  EXPECT_TRUE(absl::IsUnauthenticated(guard.Check(with(get, "guessed"))));
  EXPECT_TRUE(guard.Check(with(get, "readers-token-0123")).ok());
  EXPECT_TRUE(guard.Check(with(get, "submit-token-0123")).ok());
  EXPECT_TRUE(absl::IsPermissionDenied(guard.Check(with(Post(), "readers-token-0123"))));
  EXPECT_TRUE(guard.Check(with(Post(), "submit-token-0123")).ok());
}

TEST(HttpParameters, SetFieldsByTheirNamesAndRefuseTheRest) {
  v1::ListIterationsRequest request;
  ASSERT_TRUE(FillFromParameters(
                  {{"page_size", "7"}, {"verdict", "KEPT"}, {"metrics", "a"}, {"metrics", "b"}, {"variable", "TILE_M"}},
                  &request)
                  .ok());
  EXPECT_EQ(request.page_size(), 7);
  EXPECT_EQ(request.verdict(), v1::KEPT);
  EXPECT_EQ(request.metrics_size(), 2);
  for (const auto& [name, value] : std::multimap<std::string, std::string>{{"page_size", "many"},
                                                                           {"page_size", "99999999999"},
                                                                           {"verdict", "NICE"},
                                                                           {"verdict", "1"},
                                                                           {"nothing", "1"}}) {
    v1::ListIterationsRequest other;
    EXPECT_FALSE(FillFromParameters({{name, value}}, &other).ok()) << name << "=" << value;
  }
  v1::SubmitCampaignRequest submit;
  EXPECT_FALSE(FillFromParameters({{"bundle", "x"}}, &submit).ok());
  v1::ListWorkersRequest workers;
  EXPECT_FALSE(FillFromParameters({{"gone_too", "yes"}}, &workers).ok());
}

TEST(HttpParameters, KeepTheFieldsThatAreNamed) {
  v1::Iteration iteration;
  iteration.set_number(3);
  iteration.set_time_us(2);
  iteration.set_reason("long");
  v1::Iteration all = iteration;
  KeepFields("", &all);
  EXPECT_EQ(all.reason(), "long");
  KeepFields("number,timeUs,unknown", &iteration);
  EXPECT_EQ(iteration.number(), 3);
  EXPECT_EQ(iteration.time_us(), 2);
  EXPECT_EQ(iteration.reason(), "");
}

}  // namespace
}  // namespace pawl
