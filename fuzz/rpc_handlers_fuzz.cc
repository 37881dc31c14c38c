// What strangers may send: the input is a row of requests, each a byte that names the rpc, two bytes with the length
// (low byte first) and the message as gRPC would hand it over. They meet an orchestrator with a campaign that runs and
// a worker; a lease "L" in a request becomes the worker's real one. Whatever was taken must be readable after a
// restart.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <string>

#include "absl/time/clock.h"
#include "db/store.h"
#include "fuzz/fuzz_target.h"
#include "google/protobuf/stubs/logging.h"
#include "orchestrator/core/history.h"
#include "orchestrator/core/orchestrator.h"
#include "orchestrator/core/report.h"
#include "orchestrator/core/watch_hub.h"
#include "orchestrator/engine/search/tree_chooser.h"
#include "spdlog/spdlog.h"
#include "tests/orchestrator/engine/tiny_bundle.h"
#include "tests/orchestrator/in_memory.h"
#include "worker/process/temporary_folder.h"

namespace pawl {
namespace {

[[noreturn]] void Broken(const char* what, const absl::Status& status) {
  std::fprintf(stderr, "%s: %s\n", what, status.ToString().c_str());
  std::abort();
}

// An orchestrator on a database file, and a clock that moves when told.
class Handlers {
 public:
  explicit Handlers(const std::filesystem::path& file) : store_(OpenStore(file)), history_(*store_) { Load(); }

  std::string lease() const { return lease_; }

  // A campaign with a kept start, and a worker that has its next trial.
  void Prepare() {
    v1::RegisterWorkerRequest worker;
    worker.set_name("workers/a");
    worker.set_instance("one");
    worker.mutable_device()->set_kind(v1::DEVICE_KIND_CUDA);
    worker.mutable_device()->set_label("NVIDIA H200");
    worker.set_protocol(v1::WorkerProtocol_MAX);
    (void)orchestrator_->Register(worker);
    v1::SubmitCampaignRequest submit;
    *submit.mutable_bundle() = TinyBundle();
    (void)orchestrator_->Submit(submit);
    v1::LeaseTrialRequest lease;
    lease.set_worker("workers/a");
    lease.set_instance("one");
    Lease(lease);
    v1::CompleteTrialRequest complete;
    complete.set_worker("workers/a");
    complete.set_instance("one");
    complete.set_lease(lease_);
    *complete.mutable_result() = MeasuredStart(100);
    SayWhatItIsOf(trial_, &complete);
    Complete(complete);
    const std::string start = lease_;
    Lease(lease);
    if (lease_ == start) Broken("no trial after the start", absl::InternalError("its result was refused"));
  }
  void set_lease(const std::string& lease) { lease_ = lease; }

  void Answer(uint8_t rpc, const std::string& bytes) {
    switch (rpc % 26) {
      case 0:
        return With<v1::SubmitCampaignRequest>(bytes, [&](auto& r) { (void)orchestrator_->Submit(r); });
      case 1:
        return With<v1::GetCampaignRequest>(bytes, [&](auto& r) { (void)orchestrator_->Get(r); });
      case 2:
        return With<v1::PauseCampaignRequest>(bytes, [&](auto& r) { (void)orchestrator_->Pause(r); });
      case 3:
        return With<v1::ResumeCampaignRequest>(bytes, [&](auto& r) { (void)orchestrator_->Resume(r); });
      case 4:
        return With<v1::CancelCampaignRequest>(bytes, [&](auto& r) { (void)orchestrator_->Cancel(r); });
      case 5:
        return With<v1::VerifyIterationRequest>(bytes, [&](auto& r) { (void)orchestrator_->Verify(r); });
      case 6:
        return With<v1::ProposeChangeRequest>(bytes, [&](auto& r) { (void)orchestrator_->Propose(r); });
      case 7:
        return With<v1::GetSituationRequest>(bytes, [&](auto& r) { (void)orchestrator_->Situation(r); });
      case 8:
        return With<v1::ListPatternsRequest>(bytes, [&](auto& r) { (void)orchestrator_->Patterns(r); });
      case 9:
        return With<v1::ImportPatternsRequest>(bytes, [&](auto& r) { (void)orchestrator_->ImportPatterns(r); });
      case 10:
        return With<v1::ListWorkersRequest>(bytes, [&](auto& r) { (void)orchestrator_->Workers(r); });
      case 11:
        return With<v1::RegisterWorkerRequest>(bytes, [&](auto& r) { (void)orchestrator_->Register(r); });
      case 12:
        return With<v1::LeaseTrialRequest>(bytes, [&](auto& r) { Lease(r); });
      case 13:
        return With<v1::RenewLeaseRequest>(bytes, [&](auto& r) {
          if (r.lease() == "L") r.set_lease(lease_);
          (void)orchestrator_->Renew(r);
        });
      case 14:
        return With<v1::CompleteTrialRequest>(bytes, [&](auto& r) {
          if (r.lease() == "L") r.set_lease(lease_);
          Complete(r);
        });
      case 15:
        return With<v1::PutBlobRequest>(bytes, [&](auto& r) { (void)orchestrator_->PutBlob(r); });
      case 16:
        return With<v1::DrainWorkerRequest>(bytes, [&](auto& r) { (void)orchestrator_->Drain(r); });
      case 17:
        return With<v1::ListCampaignsRequest>(bytes, [&](auto& r) { (void)history_.ListCampaigns(r); });
      case 18:
        return With<v1::ListIterationsRequest>(bytes, [&](auto& r) { (void)history_.ListIterations(r); });
      case 19:
        return With<v1::GetIterationRequest>(bytes, [&](auto& r) { (void)history_.GetIteration(r); });
      case 20:
        return With<v1::GetBestVariantRequest>(bytes, [&](auto& r) { (void)history_.GetBestVariant(r); });
      case 21:
        return With<v1::GetBlobRequest>(bytes, [&](auto& r) { (void)history_.GetBlob(r); });
      case 22:
        return With<v1::GetBundleRequest>(bytes, [&](auto& r) { (void)history_.GetBundle(r); });
      case 23:
        return With<v1::GetReportRequest>(bytes, [&](auto& r) { (void)reports_.Get(r); });
      case 25:
        return With<v1::SetMaintenanceRequest>(bytes, [&](auto& r) { (void)orchestrator_->SetMaintenance(r); });
      default:  // time passes
        now_ += absl::Seconds(bytes.empty() ? 1 : static_cast<uint8_t>(bytes[0]));
        orchestrator_->Tick();
    }
  }

  // As after kill -9.
  void Restart() {
    orchestrator_.reset();
    Load();
    orchestrator_->Tick();
  }

 private:
  static std::unique_ptr<Store> OpenStore(const std::filesystem::path& file) {
    absl::StatusOr<std::unique_ptr<Store>> store = Store::Open({.file = file, .check = false});
    if (!store.ok()) Broken("the store does not open", store.status());
    return *std::move(store);
  }

  void Load() {
    orchestrator_ = std::make_unique<Orchestrator>(
        *store_, chooser_, hub_, [this] { return now_; }, OrchestratorOptions());
    if (absl::Status status = orchestrator_->Load(); !status.ok()) Broken("what was taken can't be read", status);
    if (!orchestrator_->serving()) Broken("it does not serve", absl::OkStatus());
  }

  template <typename Request, typename Body>
  static void With(const std::string& bytes, const Body& body) {
    Request request;
    if (request.ParseFromString(bytes)) body(request);  // gRPC refuses the others
  }

  void Lease(const v1::LeaseTrialRequest& request) {
    const uint64_t waiting = orchestrator_->Lease(request, [this](absl::StatusOr<v1::LeaseTrialResponse> answer) {
      if (!answer.ok() || !answer->has_trial()) return;
      lease_ = answer->lease();
      trial_ = answer->trial();
    });
    orchestrator_->Forget(waiting);
  }

  void Complete(const v1::CompleteTrialRequest& request) {
    std::promise<std::string> next;
    orchestrator_->Complete(request, [&](absl::StatusOr<v1::CompleteTrialResponse> answer) {
      next.set_value(answer.ok() ? answer->next().lease() : "");
    });
    const std::string lease = next.get_future().get();
    if (!lease.empty()) lease_ = lease;
  }

  absl::Time now_ = absl::FromUnixSeconds(1'790'000'000);
  const TreeChooser chooser_;
  WatchHub hub_;
  std::unique_ptr<Store> store_;
  const History history_;
  const Reports reports_{*store_, chooser_, ProfileSet::Default(), [this] { return now_; }};
  std::string lease_;
  v1::Trial trial_;  // of the lease, where LeaseTrial gave it
  std::unique_ptr<Orchestrator> orchestrator_;
};

void Try(const uint8_t* data, size_t size) {
  static const auto& folder = *new TemporaryFolder(InMemory("pawl-fuzz-"));
  static const std::filesystem::path prepared = folder.path() / "prepared.db";
  static const std::string lease = [] {
    spdlog::set_level(spdlog::level::off);
    google::protobuf::SetLogHandler(nullptr);  // it complains about every text that is no UTF-8
    Handlers first(prepared);
    first.Prepare();
    return first.lease();
  }();
  const std::filesystem::path file = folder.path() / "pawl.db";
  for (const char* suffix : {"-wal", "-shm"}) std::filesystem::remove(file.native() + suffix);
  std::filesystem::copy_file(prepared, file, std::filesystem::copy_options::overwrite_existing);
  Handlers handlers(file);
  handlers.set_lease(lease);
  for (size_t at = 0; at + 3 <= size;) {
    const size_t length = std::min<size_t>(data[at + 1] | data[at + 2] << 8, size - at - 3);
    handlers.Answer(data[at], std::string(reinterpret_cast<const char*>(data) + at + 3, length));
    at += 3 + length;
  }
  handlers.Restart();
}

}  // namespace
}  // namespace pawl

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  pawl::Try(data, size);
  return 0;
}
