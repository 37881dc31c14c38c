#include "tests/cli/fake_orchestrator.h"

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <stdlib.h>

#include <filesystem>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/sync/steady_time.h"
#include "pawl/v1/campaign_service.grpc.pb.h"

namespace pawl {

class FakeOrchestrator::Service : public v1::CampaignService::Service {
 public:
  explicit Service(FakeOrchestrator* fake) : fake_(*fake) {}

  void FailNext(absl::Status status, const v1::ErrorDetail& detail) {
    const std::lock_guard<std::mutex> lock(mutex_);
    failure_ = grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()),
                            detail.ByteSizeLong() > 0 ? detail.SerializeAsString() : "");
  }
  void BreakWatchAfter(int messages) {
    const std::lock_guard<std::mutex> lock(mutex_);
    break_after_ = messages;
  }
  Asked asked() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return asked_;
  }

  grpc::Status SubmitCampaign(grpc::ServerContext*, const v1::SubmitCampaignRequest* request,
                              v1::Campaign* reply) override {
    Note([&] { asked_.submits.push_back(*request); });
    return Answer(fake_.campaign, reply);
  }
  grpc::Status GetCampaign(grpc::ServerContext*, const v1::GetCampaignRequest* request, v1::Campaign* reply) override {
    if (request->name() != fake_.campaign.name()) return Missing(request->name());
    return Answer(fake_.campaign, reply);
  }
  grpc::Status ListCampaigns(grpc::ServerContext*, const v1::ListCampaignsRequest*,
                             v1::ListCampaignsResponse* reply) override {
    *reply->add_campaigns() = fake_.campaign;
    return Fails();
  }
  grpc::Status ListIterations(grpc::ServerContext*, const v1::ListIterationsRequest* request,
                              v1::ListIterationsResponse* reply) override {
    Note([&] { asked_.lists.push_back(*request); });
    if (request->campaign() != fake_.campaign.name()) return Missing(request->campaign());
    size_t next = 0;
    if (!request->page_token().empty() && !absl::SimpleAtoi(request->page_token(), &next)) {
      return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "the page token is not from this call");
    }
    for (const std::string& metric : request->metrics()) {
      if (fake_.known_metrics.empty() || fake_.known_metrics.contains(metric)) continue;
      return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, absl::StrCat("there is no metric ", metric));
    }
    const int size = request->page_size() == 0 ? 100 : request->page_size();
    for (; next < fake_.iterations.size() && reply->iterations_size() < size; ++next) {
      const v1::Iteration& iteration = fake_.iterations[next];
      if (!request->finding().empty() && request->finding() != iteration.finding().rule()) continue;
      if (request->verdict() == v1::VERDICT_UNSPECIFIED || request->verdict() == iteration.verdict()) {
        *reply->add_iterations() = iteration;
      }
    }
    if (next < fake_.iterations.size()) reply->set_next_page_token(absl::StrCat(next));
    return Fails();
  }
  grpc::Status GetIteration(grpc::ServerContext*, const v1::GetIterationRequest* request,
                            v1::Iteration* reply) override {
    for (const v1::Iteration& iteration : fake_.iterations) {
      if (iteration.name() == request->name()) return Answer(iteration, reply);
    }
    return Missing(request->name());
  }
  grpc::Status WatchCampaign(grpc::ServerContext* context, const v1::WatchCampaignRequest* request,
                             grpc::ServerWriter<v1::WatchCampaignResponse>* writer) override {
    Note([&] { asked_.watches.push_back(request->after_sequence()); });
    if (request->campaign() != fake_.campaign.name()) return Missing(request->campaign());
    int sent = 0;
    for (const v1::WatchCampaignResponse& message : fake_.events) {
      if (message.has_event() && message.event().sequence() <= request->after_sequence()) continue;
      if (Breaks(sent)) return grpc::Status(grpc::StatusCode::UNAVAILABLE, "broken off");
      writer->Write(message);
      ++sent;
    }
    const SteadyTime end = SteadyNow() + absl::Seconds(20);
    while (fake_.watch_stays_open && !context->IsCancelled() && SteadyNow() < end)
      absl::SleepFor(absl::Milliseconds(5));
    return Fails();
  }
  grpc::Status PauseCampaign(grpc::ServerContext*, const v1::PauseCampaignRequest*, v1::Campaign* reply) override {
    return Answer(fake_.campaign, reply);
  }
  grpc::Status ResumeCampaign(grpc::ServerContext*, const v1::ResumeCampaignRequest*, v1::Campaign* reply) override {
    return Answer(fake_.campaign, reply);
  }
  grpc::Status CancelCampaign(grpc::ServerContext*, const v1::CancelCampaignRequest* request,
                              v1::Campaign* reply) override {
    Note([&] { asked_.cancels.push_back(*request); });
    return Answer(fake_.campaign, reply);
  }
  grpc::Status GetBestVariant(grpc::ServerContext*, const v1::GetBestVariantRequest*, v1::BestVariant* reply) override {
    for (const v1::Iteration& iteration : fake_.iterations) {
      if (iteration.number() == fake_.campaign.best()) *reply->mutable_iteration() = iteration;
    }
    *reply->mutable_bundle() = fake_.bundle;
    reply->mutable_bundle()->set_name(fake_.campaign.bundle());
    return Fails();
  }
  grpc::Status VerifyIteration(grpc::ServerContext*, const v1::VerifyIterationRequest* request,
                               v1::VerifyIterationResponse* reply) override {
    Note([&] {
      asked_.verifications.push_back(request->name());
      for (const v1::SourceFile& file : request->hand_off()) asked_.handed_off.push_back(file.path());
    });
    reply->set_trial(absl::StrCat(fake_.campaign.name(), "/trials/99"));
    reply->set_after_sequence(1000);
    v1::WatchCampaignResponse leased;
    leased.mutable_event()->set_sequence(1001);
    leased.mutable_event()->mutable_leased()->set_trial(99);
    leased.mutable_event()->mutable_leased()->set_device(fake_.campaign.device());
    leased.mutable_event()->mutable_leased()->set_replay(fake_.campaign.replay());
    fake_.events.push_back(leased);
    v1::WatchCampaignResponse end;
    end.mutable_event()->set_sequence(1002);
    end.mutable_event()->mutable_finished()->set_trial(99);
    *end.mutable_event()->mutable_finished()->mutable_verification() = fake_.verification;
    fake_.events.push_back(end);
    return Fails();
  }
  grpc::Status ProposeChange(grpc::ServerContext*, const v1::ProposeChangeRequest* request,
                             v1::ProposeChangeResponse*) override {
    Note([&] { asked_.proposals.push_back(*request); });
    return Fails();
  }
  grpc::Status GetSituation(grpc::ServerContext*, const v1::GetSituationRequest* request,
                            v1::Situation* reply) override {
    if (request->campaign() != fake_.campaign.name()) return Missing(request->campaign());
    return Answer(fake_.situation, reply);
  }
  grpc::Status GetReport(grpc::ServerContext*, const v1::GetReportRequest* request,
                         v1::GetReportResponse* reply) override {
    if (request->campaign() != fake_.campaign.name()) return Missing(request->campaign());
    *reply->mutable_report()->mutable_campaign() = fake_.campaign;
    if (request->format() == v1::REPORT_FORMAT_HTML) reply->set_page("<!DOCTYPE html>\n");
    if (request->format() == v1::REPORT_FORMAT_MARKDOWN) reply->set_page("# attention\n");
    return Fails();
  }
  grpc::Status GetBlob(grpc::ServerContext*, const v1::GetBlobRequest* request, v1::GetBlobResponse* reply) override {
    if (const auto blob = fake_.blobs.find(request->hash()); blob != fake_.blobs.end()) {
      reply->set_content(blob->second);
      return Fails();
    }
    if (request->hash() != fake_.campaign.bundle_hash()) return Missing(request->hash());
    reply->set_content(fake_.bundle.SerializeAsString());
    return Fails();
  }
  grpc::Status ListPatterns(grpc::ServerContext*, const v1::ListPatternsRequest* request,
                            v1::ListPatternsResponse* reply) override {
    Note([&] { asked_.pattern_lists.push_back(*request); });
    reply->mutable_patterns()->Assign(fake_.patterns.begin(), fake_.patterns.end());
    return Fails();
  }
  grpc::Status ImportPatterns(grpc::ServerContext*, const v1::ImportPatternsRequest* request,
                              v1::ImportPatternsResponse* reply) override {
    Note([&] { asked_.imports.push_back(request->file()); });
    reply->set_imported(request->file().patterns_size());
    return Fails();
  }
  grpc::Status ListWorkers(grpc::ServerContext*, const v1::ListWorkersRequest*,
                           v1::ListWorkersResponse* reply) override {
    reply->mutable_workers()->Assign(fake_.workers.begin(), fake_.workers.end());
    return Fails();
  }
  grpc::Status GetMaintenance(grpc::ServerContext*, const v1::GetMaintenanceRequest*, v1::Maintenance* reply) override {
    return Answer(fake_.maintenance, reply);
  }
  grpc::Status SetMaintenance(grpc::ServerContext*, const v1::SetMaintenanceRequest* request,
                              v1::Maintenance* reply) override {
    Note([&] { asked_.maintenance.push_back(*request); });
    return Answer(fake_.maintenance, reply);
  }

 private:
  template <typename Message>
  grpc::Status Answer(const Message& message, Message* reply) {
    *reply = message;
    return Fails();
  }
  template <typename Change>
  void Note(const Change& change) {
    const std::lock_guard<std::mutex> lock(mutex_);
    change();
  }
  grpc::Status Fails() {
    const std::lock_guard<std::mutex> lock(mutex_);
    const grpc::Status status = failure_.value_or(grpc::Status::OK);
    failure_.reset();
    return status;
  }
  bool Breaks(int sent) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (break_after_ != sent) return false;
    break_after_.reset();
    return true;
  }
  static grpc::Status Missing(const std::string& name) {
    v1::ErrorDetail detail;
    detail.set_resource(name);
    detail.set_fix("pawl campaigns lists all campaigns");
    return grpc::Status(grpc::StatusCode::NOT_FOUND, absl::StrCat("there is no ", name), detail.SerializeAsString());
  }

  FakeOrchestrator& fake_;
  mutable std::mutex mutex_;
  std::optional<grpc::Status> failure_;
  std::optional<int> break_after_;
  Asked asked_;
};

class FakeOrchestrator::Server {
 public:
  Server(const std::string& address, Service* service) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials());
    builder.RegisterService(service);
    server_ = builder.BuildAndStart();
  }
  ~Server() {
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
  }

 private:
  std::unique_ptr<grpc::Server> server_;
};

FakeOrchestrator::FakeOrchestrator() : service_(std::make_unique<Service>(this)) {
  std::string pattern = (std::filesystem::temp_directory_path() / "pawl-fake-XXXXXX").string();
  folder_ = mkdtemp(pattern.data());
  address_ = absl::StrCat("unix:", folder_, "/socket");
  campaign.set_name("campaigns/7");
  campaign.set_bundle("attention");
  Start();
}

FakeOrchestrator::~FakeOrchestrator() {
  Stop();
  std::filesystem::remove_all(folder_);
}

void FakeOrchestrator::Start() { server_ = std::make_unique<Server>(address_, service_.get()); }
void FakeOrchestrator::Stop() { server_ = nullptr; }
void FakeOrchestrator::FailNext(absl::Status status, const v1::ErrorDetail& detail) {
  service_->FailNext(std::move(status), detail);
}
void FakeOrchestrator::BreakWatchAfter(int messages) { service_->BreakWatchAfter(messages); }
FakeOrchestrator::Asked FakeOrchestrator::asked() const { return service_->asked(); }

}  // namespace pawl
