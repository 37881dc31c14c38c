#include "orchestrator/security/access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/hash/hash.h"
#include "google/protobuf/descriptor.h"
#include "orchestrator/security/rpc_roles.h"
#include "pawl/v1/campaign_service.pb.h"
#include "pawl/v1/worker_service.pb.h"

namespace pawl {
namespace {

using ::testing::HasSubstr;

constexpr char kReader[] = "reader-token-0123456789", kSubmitter[] = "submitter-token-0123456789",
               kBoth[] = "token-of-two-roles-0123456789";

absl::StatusCode Try(const Access& access, const Caller& caller, Role role) {
  return access.Check(caller, role).code();
}

TEST(RpcRolesTest, KnowsARoleForEveryCall) {
  for (const google::protobuf::FileDescriptor* file :
       {v1::SubmitCampaignRequest::descriptor()->file(), v1::RegisterWorkerRequest::descriptor()->file()}) {
    ASSERT_EQ(file->service_count(), 1);
    const google::protobuf::ServiceDescriptor* service = file->service(0);
    EXPECT_GT(service->method_count(), 5);
    for (int i = 0; i < service->method_count(); ++i) {
      const google::protobuf::MethodDescriptor* method = service->method(i);
      const std::string path = "/" + service->full_name() + "/" + method->name();
      const std::optional<RpcRule> rule = RuleOfRpc(path);
      ASSERT_TRUE(rule.has_value()) << path << " has no role: give it one in orchestrator/rpc_roles.cc";
      EXPECT_EQ(rule->needs_deadline, !method->server_streaming()) << path;
      EXPECT_EQ(rule->role == Role::kWork, service->name() == "WorkerService") << path;
    }
  }
}

TEST(RpcRolesTest, KnowsNothingElse) {
  for (const char* path : {"", "/", "/pawl.v1.CampaignService/", "/pawl.v1.CampaignService/NoSuchCall",
                           "pawl.v1.CampaignService/GetCampaign", "/pawl.v1.CampaignService/GetCampaign/"}) {
    EXPECT_FALSE(RuleOfRpc(path).has_value()) << path;
  }
}

TEST(AccessTest, LetsEverybodyInWhereOnlyThisMachineReachesIt) {
  for (const Role role : {Role::kRead, Role::kSubmit, Role::kWork, Role::kAdmin})
    EXPECT_TRUE(Access::Open().Check({}, role).ok());
}

class TokenTest : public testing::Test {
 protected:
  const Access access_ =
      Access::ByRole(std::string("# who may what\n\nread   ") + kReader +
                         "  # the dashboard\nsubmit\tsha256:" + Sha256(kSubmitter) + "\nread,work " + kBoth,
                     "tokens")
          .value();
};

TEST_F(TokenTest, GivesATokenItsRoles) {
  EXPECT_EQ(Try(access_, {.token = kReader}, Role::kRead), absl::StatusCode::kOk);
  EXPECT_EQ(Try(access_, {.token = kReader}, Role::kSubmit), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(Try(access_, {.token = kReader}, Role::kWork), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(Try(access_, {.token = kSubmitter}, Role::kSubmit), absl::StatusCode::kOk);
  EXPECT_EQ(Try(access_, {.token = kSubmitter}, Role::kRead), absl::StatusCode::kOk) << "who submits may look";
  EXPECT_EQ(Try(access_, {.token = kSubmitter}, Role::kWork), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(Try(access_, {.token = kBoth}, Role::kWork), absl::StatusCode::kOk);
  EXPECT_EQ(Try(access_, {.token = kBoth}, Role::kSubmit), absl::StatusCode::kPermissionDenied);
}

TEST_F(TokenTest, AnAdministratorMayDoWhatSubmittersMayAndMore) {
  EXPECT_EQ(RuleOfRpc("/pawl.v1.CampaignService/SetMaintenance")->role, Role::kAdmin);
  EXPECT_EQ(Try(access_, {.token = kSubmitter}, Role::kAdmin), absl::StatusCode::kPermissionDenied);
  const std::string token = "an-administrators-token";
  const Access admin = Access::ByRole("admin " + token, "tokens").value();
  for (const Role role : {Role::kRead, Role::kSubmit, Role::kAdmin}) {
    EXPECT_EQ(Try(admin, {.token = token}, role), absl::StatusCode::kOk);
  }
  EXPECT_EQ(Try(admin, {.token = token}, Role::kWork), absl::StatusCode::kPermissionDenied);
}

TEST_F(TokenTest, KnowsNoOtherToken) {
  const std::string reader = kReader;
  for (const std::string& token : {std::string(), reader.substr(1), reader + "x", reader + '\0', Sha256(kSubmitter),
                                   "sha256:" + Sha256(kSubmitter), std::string("read")}) {
    EXPECT_EQ(Try(access_, {.token = token}, Role::kRead), absl::StatusCode::kUnauthenticated) << token;
  }
  EXPECT_THAT(std::string(access_.Check({}, Role::kSubmit).message()), HasSubstr("pawl:role/submit"));
}

TEST_F(TokenTest, TakesRolesFromCertificates) {
  const auto shown = [](std::vector<std::string> uris) { return Caller{.certificate_uris = std::move(uris)}; };
  EXPECT_EQ(Try(access_, shown({"pawl:role/work"}), Role::kWork), absl::StatusCode::kOk);
  EXPECT_EQ(Try(access_, shown({"pawl:role/work"}), Role::kRead), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(Try(access_, shown({"spiffe://other", "pawl:role/submit"}), Role::kRead), absl::StatusCode::kOk);
  EXPECT_EQ(Try(access_, shown({"pawl:role/", "pawl:role/root", "pawl:role/works", "work"}), Role::kWork),
            absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(Try(access_, {.certificate_uris = {"pawl:role/read"}, .token = kBoth}, Role::kWork), absl::StatusCode::kOk)
      << "a certificate and a token add up";
}

TEST(AccessTest, SaysWhichLineOfTheTokensIsWrong) {
  const auto said = [](const std::string& text) {
    return std::string(Access::ByRole(text, "tokens").status().message());
  };
  EXPECT_THAT(said("read 0123456789abcdef\nwrite 0123456789abcdef\n"), HasSubstr("tokens:2: \"write\" is not a role"));
  EXPECT_THAT(said("read\n"), HasSubstr("tokens:1: expected a role and a token"));
  EXPECT_THAT(said("read 0123456789abcdef and more\n"), HasSubstr("tokens:1: expected"));
  EXPECT_THAT(said("read short\n"), HasSubstr("too short"));
  EXPECT_THAT(said("read sha256:0123\n"), HasSubstr("64 hex digits"));
}

}  // namespace
}  // namespace pawl
