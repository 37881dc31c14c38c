#pragma once

#include "db/store.h"
#include "grpcpp/support/server_callback.h"
#include "orchestrator/core/history.h"
#include "orchestrator/core/orchestrator.h"
#include "orchestrator/core/report.h"
#include "orchestrator/core/watch_hub.h"
#include "pawl/v1/campaign_service.grpc.pb.h"
#include "pawl/v1/campaign_service.pb.h"

namespace pawl {

// Forwards: what changes something to the orchestrator, what only reads to the history.
class CampaignService final : public v1::CampaignService::CallbackService {
 public:
  CampaignService(Orchestrator& orchestrator, const History& history, const Reports& reports, Store& store,
                  WatchHub& hub)
      : orchestrator_(orchestrator), history_(history), reports_(reports), store_(store), hub_(hub) {}

  using Context = grpc::CallbackServerContext;
  using Reactor = grpc::ServerUnaryReactor;
  Reactor* SubmitCampaign(Context*, const v1::SubmitCampaignRequest*, v1::Campaign*) override;
  Reactor* GetCampaign(Context*, const v1::GetCampaignRequest*, v1::Campaign*) override;
  Reactor* ListCampaigns(Context*, const v1::ListCampaignsRequest*, v1::ListCampaignsResponse*) override;
  Reactor* ListIterations(Context*, const v1::ListIterationsRequest*, v1::ListIterationsResponse*) override;
  Reactor* GetIteration(Context*, const v1::GetIterationRequest*, v1::Iteration*) override;
  grpc::ServerWriteReactor<v1::WatchCampaignResponse>* WatchCampaign(Context*,
                                                                     const v1::WatchCampaignRequest*) override;
  Reactor* PauseCampaign(Context*, const v1::PauseCampaignRequest*, v1::Campaign*) override;
  Reactor* ResumeCampaign(Context*, const v1::ResumeCampaignRequest*, v1::Campaign*) override;
  Reactor* CancelCampaign(Context*, const v1::CancelCampaignRequest*, v1::Campaign*) override;
  Reactor* GetBestVariant(Context*, const v1::GetBestVariantRequest*, v1::BestVariant*) override;
  Reactor* VerifyIteration(Context*, const v1::VerifyIterationRequest*, v1::VerifyIterationResponse*) override;
  Reactor* ProposeChange(Context*, const v1::ProposeChangeRequest*, v1::ProposeChangeResponse*) override;
  Reactor* GetSituation(Context*, const v1::GetSituationRequest*, v1::Situation*) override;
  Reactor* ListPatterns(Context*, const v1::ListPatternsRequest*, v1::ListPatternsResponse*) override;
  Reactor* ImportPatterns(Context*, const v1::ImportPatternsRequest*, v1::ImportPatternsResponse*) override;
  Reactor* GetReport(Context*, const v1::GetReportRequest*, v1::GetReportResponse*) override;
  Reactor* GetBlob(Context*, const v1::GetBlobRequest*, v1::GetBlobResponse*) override;
  Reactor* ListWorkers(Context*, const v1::ListWorkersRequest*, v1::ListWorkersResponse*) override;
  Reactor* GetMaintenance(Context*, const v1::GetMaintenanceRequest*, v1::Maintenance*) override;
  Reactor* SetMaintenance(Context*, const v1::SetMaintenanceRequest*, v1::Maintenance*) override;

 private:
  Orchestrator& orchestrator_;
  const History& history_;
  const Reports& reports_;
  Store& store_;
  WatchHub& hub_;
};

// Streams a campaign's events from the store, then follows it until it has ended or the client leaves. Owns itself.
grpc::ServerWriteReactor<v1::WatchCampaignResponse>* StartWatchStream(Store& store, WatchHub& hub,
                                                                      const v1::WatchCampaignRequest& request);

}  // namespace pawl
