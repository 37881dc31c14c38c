#include "orchestrator/rpc/campaign_service.h"

#include "orchestrator/core/grpc_status.h"

namespace pawl {

using Reactor = grpc::ServerUnaryReactor;
using Context = grpc::CallbackServerContext;

Reactor* CampaignService::SubmitCampaign(Context* context, const v1::SubmitCampaignRequest* request,
                                         v1::Campaign* reply) {
  if (absl::Status status = CheckFinite(*request); !status.ok()) return Refuse(context, status);
  return Answer(context, orchestrator_.Submit(*request), reply);
}

Reactor* CampaignService::GetCampaign(Context* context, const v1::GetCampaignRequest* request, v1::Campaign* reply) {
  return Answer(context, orchestrator_.Get(*request), reply);
}

Reactor* CampaignService::ListCampaigns(Context* context, const v1::ListCampaignsRequest* request,
                                        v1::ListCampaignsResponse* reply) {
  absl::StatusOr<v1::ListCampaignsResponse> list = history_.ListCampaigns(*request);
  if (list.ok()) orchestrator_.AddWaits(&*list);
  return Answer(context, std::move(list), reply);
}

Reactor* CampaignService::ListIterations(Context* context, const v1::ListIterationsRequest* request,
                                         v1::ListIterationsResponse* reply) {
  return Answer(context, history_.ListIterations(*request), reply);
}

Reactor* CampaignService::GetIteration(Context* context, const v1::GetIterationRequest* request, v1::Iteration* reply) {
  return Answer(context, history_.GetIteration(*request), reply);
}

grpc::ServerWriteReactor<v1::WatchCampaignResponse>* CampaignService::WatchCampaign(
    Context*, const v1::WatchCampaignRequest* request) {
  return StartWatchStream(store_, hub_, *request);
}

Reactor* CampaignService::PauseCampaign(Context* context, const v1::PauseCampaignRequest* request,
                                        v1::Campaign* reply) {
  return Answer(context, orchestrator_.Pause(*request), reply);
}

Reactor* CampaignService::ResumeCampaign(Context* context, const v1::ResumeCampaignRequest* request,
                                         v1::Campaign* reply) {
  return Answer(context, orchestrator_.Resume(*request), reply);
}

Reactor* CampaignService::CancelCampaign(Context* context, const v1::CancelCampaignRequest* request,
                                         v1::Campaign* reply) {
  return Answer(context, orchestrator_.Cancel(*request), reply);
}

Reactor* CampaignService::GetBestVariant(Context* context, const v1::GetBestVariantRequest* request,
                                         v1::BestVariant* reply) {
  return Answer(context, history_.GetBestVariant(*request), reply);
}

Reactor* CampaignService::VerifyIteration(Context* context, const v1::VerifyIterationRequest* request,
                                          v1::VerifyIterationResponse* reply) {
  return Answer(context, orchestrator_.Verify(*request), reply);
}

Reactor* CampaignService::ProposeChange(Context* context, const v1::ProposeChangeRequest* request,
                                        v1::ProposeChangeResponse* reply) {
  if (absl::Status status = CheckFinite(*request); !status.ok()) return Refuse(context, status);
  return Answer(context, orchestrator_.Propose(*request), reply);
}

Reactor* CampaignService::GetSituation(Context* context, const v1::GetSituationRequest* request, v1::Situation* reply) {
  return Answer(context, orchestrator_.Situation(*request), reply);
}

Reactor* CampaignService::ListPatterns(Context* context, const v1::ListPatternsRequest* request,
                                       v1::ListPatternsResponse* reply) {
  return Answer(context, orchestrator_.Patterns(*request), reply);
}

Reactor* CampaignService::ImportPatterns(Context* context, const v1::ImportPatternsRequest* request,
                                         v1::ImportPatternsResponse* reply) {
  if (absl::Status status = CheckFinite(*request); !status.ok()) return Refuse(context, status);
  return Answer(context, orchestrator_.ImportPatterns(*request), reply);
}

Reactor* CampaignService::GetReport(Context* context, const v1::GetReportRequest* request,
                                    v1::GetReportResponse* reply) {
  return Answer(context, reports_.Get(*request), reply);
}

Reactor* CampaignService::GetBlob(Context* context, const v1::GetBlobRequest* request, v1::GetBlobResponse* reply) {
  return Answer(context, history_.GetBlob(*request), reply);
}

Reactor* CampaignService::ListWorkers(Context* context, const v1::ListWorkersRequest* request,
                                      v1::ListWorkersResponse* reply) {
  return Answer(context, orchestrator_.Workers(*request), reply);
}

Reactor* CampaignService::GetMaintenance(Context* context, const v1::GetMaintenanceRequest*, v1::Maintenance* reply) {
  return Answer(context, absl::StatusOr<v1::Maintenance>(orchestrator_.GetMaintenance()), reply);
}

Reactor* CampaignService::SetMaintenance(Context* context, const v1::SetMaintenanceRequest* request,
                                         v1::Maintenance* reply) {
  return Answer(context, orchestrator_.SetMaintenance(*request), reply);
}

}  // namespace pawl
