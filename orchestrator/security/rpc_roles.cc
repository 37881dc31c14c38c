#include "orchestrator/security/rpc_roles.h"

namespace pawl {
namespace {

struct Entry {
  std::string_view path;
  RpcRule rule;
};

// A call that is not here is refused, whatever the service says.
constexpr Entry kRules[] = {
    {"/pawl.v1.CampaignService/SubmitCampaign", {Role::kSubmit}},
    {"/pawl.v1.CampaignService/GetCampaign", {Role::kRead}},
    {"/pawl.v1.CampaignService/ListCampaigns", {Role::kRead}},
    {"/pawl.v1.CampaignService/ListIterations", {Role::kRead}},
    {"/pawl.v1.CampaignService/GetIteration", {Role::kRead}},
    {"/pawl.v1.CampaignService/WatchCampaign", {Role::kRead, /*needs_deadline=*/false}},
    {"/pawl.v1.CampaignService/PauseCampaign", {Role::kSubmit}},
    {"/pawl.v1.CampaignService/ResumeCampaign", {Role::kSubmit}},
    {"/pawl.v1.CampaignService/CancelCampaign", {Role::kSubmit}},
    {"/pawl.v1.CampaignService/GetBestVariant", {Role::kRead}},
    {"/pawl.v1.CampaignService/VerifyIteration", {Role::kSubmit}},
    {"/pawl.v1.CampaignService/ProposeChange", {Role::kSubmit}},
    {"/pawl.v1.CampaignService/GetSituation", {Role::kRead}},
    {"/pawl.v1.CampaignService/ListPatterns", {Role::kRead}},
    {"/pawl.v1.CampaignService/ImportPatterns", {Role::kSubmit}},
    {"/pawl.v1.CampaignService/GetReport", {Role::kRead}},
    {"/pawl.v1.CampaignService/GetBlob", {Role::kRead}},
    {"/pawl.v1.CampaignService/ListWorkers", {Role::kRead}},
    {"/pawl.v1.CampaignService/GetMaintenance", {Role::kRead}},
    {"/pawl.v1.CampaignService/SetMaintenance", {Role::kAdmin}},
    {"/pawl.v1.WorkerService/RegisterWorker", {Role::kWork}},
    {"/pawl.v1.WorkerService/LeaseTrial", {Role::kWork}},
    {"/pawl.v1.WorkerService/RenewLease", {Role::kWork}},
    {"/pawl.v1.WorkerService/CompleteTrial", {Role::kWork}},
    {"/pawl.v1.WorkerService/PutBlob", {Role::kWork}},
    {"/pawl.v1.WorkerService/GetBundle", {Role::kWork}},
    {"/pawl.v1.WorkerService/DrainWorker", {Role::kWork}},
    {"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", {Role::kRead, /*needs_deadline=*/false}},
};

}  // namespace

std::optional<RpcRule> RuleOfRpc(std::string_view path) {
  for (const Entry& entry : kRules) {
    if (entry.path == path) return entry.rule;
  }
  return std::nullopt;
}

}  // namespace pawl
