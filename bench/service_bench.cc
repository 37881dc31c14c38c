// pawl-service-bench: what the service costs on this machine, apart from GPUs.
//   pawl-service-bench replay [SECONDS [WORKERS...]]   iterations a second with 1, 4 and 200 replay workers (or others,
//                                                      in turns: 4 200 4 200), and where the time goes
//   pawl-service-bench crowd [SECONDS [WORKERS [CAMPAIGNS]]]  how long people and workers wait for an orchestrator with
//                                                      1,000 workers and 10,000 unfinished campaigns, and its memory
//   pawl-service-bench idle [WORKERS]                  CPU and memory of an orchestrator on which workers wait
//   pawl-service-bench history                         `pawl history` of a campaign with 10,000 iterations
//   pawl-service-bench day [SECONDS [TRIALS]]          memory of an orchestrator over so many trials, spread over that
//                                                      time, beside people who look; fails where it grows
#include <grpcpp/grpcpp.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/names/resource_name.h"
#include "db/store.h"
#include "kernels/read/bundle_reader.h"
#include "kernels/space.h"
#include "orchestrator/engine/search/next_event.h"
#include "orchestrator/engine/search/tree_chooser.h"
#include "orchestrator/engine/verdict/verdict.h"
#include "orchestrator/rpc/server.h"
#include "pawl/v1/campaign_service.grpc.pb.h"
#include "spdlog/spdlog.h"
#include "worker/lease/lease_loop.h"
#include "worker/lease/worker_client.h"
#include "worker/process/child_process.h"
#include "worker/process/spawn.h"
#include "worker/process/subprocess.h"
#include "worker/process/temporary_folder.h"
#include "worker/replay/replay_device.h"

namespace pawl {
namespace {

using Seconds = std::chrono::duration<double>;
double Now() { return Seconds(std::chrono::steady_clock::now().time_since_epoch()).count(); }

[[noreturn]] void Die(const absl::Status& status) {
  fprintf(stderr, "pawl-service-bench: %s\n", std::string(status.message()).c_str());
  exit(1);
}
template <typename T>
T Must(absl::StatusOr<T> value) {
  if (!value.ok()) Die(value.status());
  return *std::move(value);
}

std::filesystem::path SourceDir() {
  const char* source = getenv("PAWL_SOURCE_DIR");
  return source == nullptr ? "." : source;
}

v1::Bundle Attention() {
  BundleReading reading = ReadBundle(SourceDir() / "kernels/attention");
  if (!reading.problems.empty()) Die(absl::InternalError(FormatProblem(reading.problems[0])));
  return reading.bundle;
}

std::unique_ptr<ReplayDevice> Replay() {
  return Must(ReplayDevice::Open({.recordings = {SourceDir() / "profiles/recordings"}}));
}

// Counts the time a worker spends in calls.
class TimedClient : public WorkerClient {
 public:
  TimedClient(std::unique_ptr<WorkerClient> inner, std::atomic<int64_t>* nanos, std::atomic<int64_t>* calls)
      : inner_(std::move(inner)), nanos_(nanos), calls_(calls) {}
  absl::StatusOr<v1::RegisterWorkerResponse> Register(const v1::RegisterWorkerRequest& request) override {
    return inner_->Register(request);
  }
  absl::StatusOr<v1::LeaseTrialResponse> Lease(const v1::LeaseTrialRequest& request) override {
    return inner_->Lease(request);
  }
  absl::StatusOr<v1::RenewLeaseResponse> Renew(const v1::RenewLeaseRequest& request) override {
    return inner_->Renew(request);
  }
  absl::StatusOr<v1::CompleteTrialResponse> Complete(const v1::CompleteTrialRequest& request) override {
    const double begin = Now();
    auto reply = inner_->Complete(request);
    *nanos_ += static_cast<int64_t>((Now() - begin) * 1e9);
    ++*calls_;
    return reply;
  }
  absl::Status PutBlob(const v1::PutBlobRequest& request) override { return inner_->PutBlob(request); }
  absl::StatusOr<v1::Bundle> GetBundle(const std::string& hash) override { return inner_->GetBundle(hash); }
  absl::Status Drain(const v1::DrainWorkerRequest& request) override { return inner_->Drain(request); }
  void StopLeasing() override { inner_->StopLeasing(); }

 private:
  std::unique_ptr<WorkerClient> inner_;
  std::atomic<int64_t>*nanos_, *calls_;
};

// Counts the time the replay itself takes.
class TimedDevice : public TrialDevice {
 public:
  TimedDevice(TrialDevice& inner, std::atomic<int64_t>* nanos) : inner_(inner), nanos_(nanos) {}
  const v1::Device& device() const override { return inner_.device(); }
  absl::StatusOr<std::unique_ptr<PreparedTrial>> Prepare(const v1::Trial& trial,
                                                         std::shared_ptr<const v1::Bundle> bundle,
                                                         TrialObserver& observer) override {
    const double begin = Now();
    auto prepared = inner_.Prepare(trial, std::move(bundle), observer);
    *nanos_ += static_cast<int64_t>((Now() - begin) * 1e9);
    return prepared;
  }
  absl::StatusOr<TrialOutcome> Run(PreparedTrial& prepared, TrialObserver& observer) override {
    const double begin = Now();
    auto outcome = inner_.Run(prepared, observer);
    *nanos_ += static_cast<int64_t>((Now() - begin) * 1e9);
    return outcome;
  }

 private:
  TrialDevice& inner_;
  std::atomic<int64_t>* nanos_;
};

// Replay workers in this process.
class ReplayFleet {
 public:
  ReplayFleet(const std::string& address, int workers) {
    for (int i = 0; i < workers; ++i) {
      devices_.push_back(std::make_unique<TimedDevice>(*replay_device_, &replay));
      clients_.push_back(std::make_unique<TimedClient>(ConnectToOrchestrator(address).value(), &rpc, &calls));
      LeaseLoopOptions options;
      options.session.name = absl::StrCat("workers/bench-", i);
      options.session.instance = absl::StrCat(i, "-", getpid());
      loops_.push_back(std::make_unique<LeaseLoop>(*devices_.back(), *clients_.back(), options));
    }
    for (auto& loop : loops_) threads_.emplace_back([&loop] { (void)loop->Run(); });
  }
  void Stop() {
    for (auto& loop : loops_) loop->Drain();
    for (auto& thread : threads_) thread.join();
    threads_.clear();
  }

  std::atomic<int64_t> replay{0}, rpc{0};  // nanoseconds
  std::atomic<int64_t> calls{0};           // results that were delivered

 private:
  const std::unique_ptr<ReplayDevice> replay_device_ = Replay();
  std::vector<std::unique_ptr<TimedDevice>> devices_;
  std::vector<std::unique_ptr<TimedClient>> clients_;
  std::vector<std::unique_ptr<LeaseLoop>> loops_;
  std::vector<std::thread> threads_;
};

// How long calls take, in ms.
class Latencies {
 public:
  void Add(double seconds) { ms_.push_back(1e3 * seconds); }
  // Of the sorted ones: 0.5 is the median.
  double At(double share) {
    if (ms_.empty()) return 0;
    std::sort(ms_.begin(), ms_.end());
    return ms_[std::min(ms_.size() - 1, static_cast<size_t>(share * static_cast<double>(ms_.size())))];
  }
  size_t count() const { return ms_.size(); }

 private:
  std::vector<double> ms_;
};

// Lists the workers every 50 ms until it is told to stop.
void ListWorkersUntil(const std::atomic<bool>& stop, v1::CampaignService::Stub& stub, Latencies* latencies) {
  while (!stop) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    v1::ListWorkersResponse response;
    const double begin = Now();
    if (grpc::Status status = stub.ListWorkers(&context, {}, &response); !status.ok()) {
      Die(absl::InternalError(status.error_message()));
    }
    latencies->Add(Now() - begin);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

struct Throughput {
  int workers = 0;
  double seconds = 0;
  int64_t iterations = 0;
  double cpu_us = 0;    // of this process, in which all of them are
  double together = 0;  // iterations a commit
  double replay_us = 0, complete_us = 0, commit_us = 0, engine_us = 0, bare_rpc_us = 0, bare_commit_us = 0;
  Latencies list_workers;  // while it runs
  int lost = 0;
};

double CpuSeconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

std::unique_ptr<v1::CampaignService::Stub> StubFor(const std::string& address) {
  return v1::CampaignService::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
}

// The engine takes longer the more has been tried: with budgets from 10 to 49 iterations, campaigns of all ages are
// under way at any time once the first have ended, with however many workers.
constexpr int kShortest = 10, kLongest = 49;

void Submit(v1::CampaignService::Stub& stub, const v1::Bundle& bundle, int count) {
  static std::atomic<int> next{0};
  for (int i = 0; i < count; ++i) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    v1::SubmitCampaignRequest request;
    *request.mutable_bundle() = bundle;
    request.mutable_spec()->mutable_goal()->set_speedup(1000);  // never reached
    request.mutable_spec()->mutable_budget()->set_iterations(kShortest + next++ * 17 % (kLongest - kShortest + 1));
    v1::Campaign campaign;
    if (grpc::Status status = stub.SubmitCampaign(&context, request, &campaign); !status.ok()) {
      Die(absl::InternalError(status.error_message()));
    }
  }
}

// Many where it is not known.
int64_t Unfinished(v1::CampaignService::Stub& stub) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  v1::ListCampaignsRequest request;
  request.set_page_size(1000);
  v1::ListCampaignsResponse response;
  if (!stub.ListCampaigns(&context, request, &response).ok()) return INT32_MAX;
  return std::count_if(response.campaigns().begin(), response.campaigns().end(), [](const v1::Campaign& campaign) {
    return campaign.state() == v1::RUNNING || campaign.state() == v1::WAITING;
  });
}

// Judging and deciding alone, over the events of the campaigns that were just run.
double EngineUs(Store& store, const v1::Bundle& bundle) {
  const TreeChooser chooser;  // as the server has it
  double spent = 0;
  int judged = 0;
  for (int64_t number = 1; number <= 20; ++number) {
    CampaignState state(CampaignName(number), bundle);
    for (const v1::Event& event : Must(store.Events(number, 0, 100000))) {
      const double begin = Now();
      if (event.has_finished()) {
        const auto open = state.open_trials().find(event.finished().trial());
        if (open != state.open_trials().end()) Judge(state, open->second.planned, event.finished().result());
      }
      state.Apply(event);
      if (event.has_finished()) Decide(state, chooser, absl::Now());
      spent += Now() - begin;
      judged += event.has_finished();
    }
  }
  return judged > 0 ? spent / judged * 1e6 : 0;
}

Throughput MeasureReplay(int workers, int campaigns, double seconds) {
  Throughput result;
  result.workers = workers;
  TemporaryFolder folder("pawl-bench-");
  const std::filesystem::path root = folder.path();
  std::unique_ptr<Store> store = Must(Store::Open({.file = root / "pawl.db"}));
  ServerOptions server_options;
  server_options.listen = absl::StrCat("unix:", (root / "s").string());
  std::unique_ptr<Server> server = Must(Server::Start(*store, server_options));
  const v1::Bundle bundle = Attention();
  auto stub = StubFor(server->address());
  Submit(*stub, bundle, campaigns);

  ReplayFleet fleet(server->address(), workers);
  // Keeps enough of them going.
  std::atomic<bool> stop{false};
  std::thread submitter([&] {
    while (!stop) {
      const auto going = static_cast<int>(Must(store->UnfinishedCampaigns()).size());  // a list of them all takes long
      if (going < campaigns) Submit(*stub, bundle, campaigns - going);
      std::this_thread::sleep_for(std::chrono::milliseconds(100));  // in which no more than a few campaigns end
    }
  });
  // Until campaigns are of all ages.
  const int warm = campaigns * (kShortest + kLongest) / 2;
  while (fleet.calls < warm) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const double begin = Now(), cpu = CpuSeconds();
  const int64_t before = fleet.calls, replay_before = fleet.replay, rpc_before = fleet.rpc;
  const double commits_before = store->commit_seconds();
  const int64_t transactions = store->commits();
  std::thread looker([&] { ListWorkersUntil(stop, *stub, &result.list_workers); });
  std::this_thread::sleep_for(Seconds(seconds));
  result.seconds = Now() - begin;
  result.iterations = fleet.calls - before;
  result.cpu_us = (CpuSeconds() - cpu) * 1e6 / result.iterations;
  result.replay_us = (fleet.replay - replay_before) / 1e3 / result.iterations;
  result.complete_us = (fleet.rpc - rpc_before) / 1e3 / result.iterations;
  result.commit_us = (store->commit_seconds() - commits_before) * 1e6 / result.iterations;
  result.together = static_cast<double>(result.iterations) / static_cast<double>(store->commits() - transactions);
  stop = true;
  submitter.join();
  looker.join();
  fleet.Stop();

  for (const v1::Campaign& campaign : Must(store->ListCampaigns(INT64_MAX, 100000))) {
    for (const v1::Event& event : Must(store->Events(*ParseCampaignName(campaign.name()), 0, 100000))) {
      result.lost += event.has_lost() && event.lost().reason() == v1::LeaseLost::EXPIRED;
    }
  }
  result.engine_us = EngineUs(*store, bundle);
  const int kBare = 500;
  double bare = Now();
  for (int i = 0; i < kBare; ++i) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    v1::GetBlobRequest request;
    v1::GetBlobResponse response;
    (void)stub->GetBlob(&context, request, &response);
  }
  result.bare_rpc_us = (Now() - bare) / kBare * 1e6;
  bare = Now();
  for (int i = 0; i < kBare; ++i) (void)store->Probe();
  result.bare_commit_us = (Now() - bare) / kBare * 1e6;
  return result;
}

void BenchReplay(double seconds, const std::vector<int>& counts) {
  printf(
      "| replay workers | iterations/s | us an iteration | CPU | replay | complete + next lease | commit | engine "
      "alone | bare rpc | bare commit | iterations a commit | leases lost | ListWorkers, ms: median | 95 %% | most |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  // As many for few workers as for many, so that only the workers differ; enough that each always finds a trial.
  const int campaigns = std::max(20, 2 * *std::max_element(counts.begin(), counts.end()));
  for (const int workers : counts) {
    Throughput t = MeasureReplay(workers, campaigns, seconds);
    printf("| %d | %.0f | %.0f | %.0f | %.0f | %.0f | %.0f | %.0f | %.0f | %.0f | %.1f | %d | %.1f | %.1f | %.1f |\n",
           t.workers, t.iterations / t.seconds, t.seconds / t.iterations * 1e6, t.cpu_us, t.replay_us, t.complete_us,
           t.commit_us, t.engine_us, t.bare_rpc_us, t.bare_commit_us, t.together, t.lost, t.list_workers.At(0.5),
           t.list_workers.At(0.95), t.list_workers.At(1));
    fflush(stdout);
  }
}

double ResidentMb(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/status"));
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("VmRSS:", 0) == 0) return std::stod(line.substr(6)) / 1024;
  }
  return 0;
}

// A pawl-orchestrator of its own, for what is measured from outside.
struct Daemon {
  explicit Daemon(const std::filesystem::path& root) : socket(absl::StrCat("unix:", (root / "s").string())) {
    pid = fork();
    if (pid == 0) {
      const std::string program = Must(FindPawlProgram("pawl-orchestrator"));
      const std::string database = (root / "pawl.db").string();
      freopen("/dev/null", "w", stdout);
      execl(program.c_str(), program.c_str(), "--listen", socket.c_str(), "--database", database.c_str(), "--log-level",
            "warn", nullptr);
      _exit(1);
    }
    auto channel = grpc::CreateChannel(socket, grpc::InsecureChannelCredentials());
    if (!channel->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(10))) {
      Die(absl::UnavailableError("pawl-orchestrator did not start"));
    }
  }
  ~Daemon() {
    kill(pid, SIGTERM);
    waitpid(pid, nullptr, 0);
  }
  double CpuSeconds() const {
    std::ifstream file(absl::StrCat("/proc/", pid, "/stat"));
    std::string text((std::istreambuf_iterator<char>(file)), {});
    std::istringstream fields(text.substr(text.rfind(')') + 2));
    std::string skip;
    for (int i = 0; i < 11; ++i) fields >> skip;
    double user = 0, system = 0;
    fields >> user >> system;
    return (user + system) / sysconf(_SC_CLK_TCK);
  }
  double ResidentMb() const { return pawl::ResidentMb(pid); }
  std::string socket;
  pid_t pid;
};

void BenchIdle(int workers) {
  TemporaryFolder folder("pawl-bench-");
  Daemon daemon(folder.path());
  std::vector<std::unique_ptr<WorkerClient>> clients;
  std::vector<std::thread> threads;
  std::atomic<bool> stop{false};
  const std::unique_ptr<ReplayDevice> device = Replay();
  for (int i = 0; i < workers; ++i) {
    clients.push_back(ConnectToOrchestrator(daemon.socket).value());
    threads.emplace_back([&, i] {
      v1::RegisterWorkerRequest hello;
      hello.set_name(absl::StrCat("workers/idle-", i));
      hello.set_instance(absl::StrCat(i));
      hello.set_version("bench");
      hello.set_protocol(v1::WorkerProtocol_MAX);
      *hello.mutable_device() = device->device();
      if (absl::Status status = clients[i]->Register(hello).status(); !status.ok()) Die(status);
      v1::LeaseTrialRequest lease;
      lease.set_worker(hello.name());
      lease.set_instance(hello.instance());
      lease.set_wait_seconds(20);
      while (!stop) (void)clients[i]->Lease(lease);
    });
  }
  std::this_thread::sleep_for(std::chrono::seconds(3));
  const double cpu = daemon.CpuSeconds(), begin = Now();
  std::this_thread::sleep_for(std::chrono::seconds(45));
  printf("%d idle workers on long poll: %.2f %% of one core, %.0f MB\n", workers,
         100 * (daemon.CpuSeconds() - cpu) / (Now() - begin), daemon.ResidentMb());
  stop = true;
  for (auto& client : clients) client->StopLeasing();
  for (std::thread& thread : threads) thread.join();
}

void BenchCrowd(double seconds, int workers, int campaigns) {
  TemporaryFolder folder("pawl-bench-");
  const std::filesystem::path root = folder.path();
  std::unique_ptr<Store> store = Must(Store::Open({.file = root / "pawl.db"}));
  ServerOptions options;
  options.listen = absl::StrCat("unix:", (root / "s").string());
  options.orchestrator.max_unfinished = campaigns;
  std::unique_ptr<Server> server = Must(Server::Start(*store, options));
  const v1::Bundle bundle = Attention();
  auto stub = StubFor(server->address());
  const double before = ResidentMb(getpid());
  Latencies submits;
  for (int i = 0; i < campaigns; ++i) {
    const double begin = Now();
    Submit(*stub, bundle, 1);
    submits.Add(Now() - begin);
  }
  const double held = ResidentMb(getpid());
  ReplayFleet fleet(server->address(), workers);
  while (fleet.calls < workers) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  std::atomic<bool> stop{false};
  Latencies lists, pauses;
  std::thread looker([&] { ListWorkersUntil(stop, *stub, &lists); });
  const double begin = Now();
  const int64_t calls = fleet.calls, rpc = fleet.rpc;
  for (int i = 0; Now() - begin < seconds; ++i) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    v1::PauseCampaignRequest request;
    request.set_name(CampaignName(campaigns - i % campaigns));
    v1::Campaign paused;
    const double asked = Now();
    (void)stub->PauseCampaign(&context, request, &paused);
    pauses.Add(Now() - asked);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  const double spent = Now() - begin;
  const auto iterations = static_cast<double>(fleet.calls - calls);
  stop = true;
  looker.join();
  printf("%d workers, %d unfinished campaigns: %.0f iterations/s, %.0f ms from a result to its answer on average\n",
         workers, campaigns, iterations / spent, static_cast<double>(fleet.rpc - rpc) / 1e6 / iterations);
  printf(
      "memory: %.0f MB with the campaigns, %.1f kB a campaign; %.0f MB with the workers, which are in this process\n",
      held, 1e3 * (held - before) / campaigns, ResidentMb(getpid()));
  printf(
      "| call | calls | ms: least | a quarter | median | three quarters | most |\n"
      "| --- | --- | --- | --- | --- | --- | --- |\n");
  const auto row = [](const char* name, Latencies& of) {
    printf("| %s | %zu | %.1f | %.1f | %.1f | %.1f | %.1f |\n", name, of.count(), of.At(0), of.At(0.25), of.At(0.5),
           of.At(0.75), of.At(1));
  };
  row("SubmitCampaign, before the workers", submits);
  row("ListWorkers", lists);
  row("PauseCampaign", pauses);
  fleet.Stop();
}

void BenchHistory() {
  constexpr int kIterations = 10000;
  TemporaryFolder folder("pawl-bench-");
  const std::filesystem::path root = folder.path();
  {
    std::unique_ptr<Store> store = Must(Store::Open({.file = root / "pawl.db"}));
    Writes first;
    v1::Campaign& campaign = first.campaigns.emplace_back();
    campaign.set_name(CampaignName(1));
    campaign.set_state(v1::FINISHED);
    campaign.set_bundle("attention");
    first.events.emplace_back().mutable_submitted()->set_bundle("attention");
    first.events.back().set_campaign(CampaignName(1));
    if (absl::Status status = store->Commit(&first); !status.ok()) Die(status);
    for (int number = 0; number < kIterations;) {
      Writes writes;
      for (int i = 0; i < 500; ++i, ++number) {
        v1::Event& event = writes.events.emplace_back();
        event.set_campaign(CampaignName(1));
        v1::Iteration& iteration = *event.mutable_finished()->mutable_iteration();
        iteration.set_name(IterationName(1, number));
        iteration.set_number(number);
        if (number > 0) {
          iteration.set_parent(number - 1);
          iteration.mutable_change()->set_variable("TILE_M");
          iteration.mutable_change()->set_from(16);
          iteration.mutable_change()->set_to(32);
        }
        for (const char* name : {"TILE_M", "TILE_N", "WARPS", "PAD", "STAGES", "MMA", "VECTOR", "KV_SPLITS"}) {
          (*iteration.mutable_variant())[name] = number % 7;
        }
        iteration.set_verdict(number % 5 == 0 ? v1::KEPT : v1::REVERTED);
        iteration.set_comparison(number % 5 == 0 ? v1::FASTER : v1::SAME);
        iteration.set_reason(
            "The same: speed +0.12 % (99 % bounds -0.20 % to +0.31 %, 7 pairs); both bounds lie within 1 %");
        iteration.set_time_us(20.0 - number * 1e-3);
        iteration.set_speedup_over_start(1 + number * 1e-4);
      }
      writes.campaigns.push_back(first.campaigns[0]);
      if (absl::Status status = store->Commit(&writes); !status.ok()) Die(status);
    }
  }
  Daemon daemon(root);
  const std::string pawl = Must(FindPawlProgram("pawl"));
  std::vector<double> seconds;
  size_t printed = 0;
  for (int i = 0; i < 11; ++i) {
    ProcessOptions history;
    history.argv = {pawl, "history", "1", "--orchestrator", daemon.socket};
    const ProcessResult run = Must(RunProcess(history));
    if (!run.ok()) Die(absl::InternalError(run.err));
    seconds.push_back(run.seconds);
    printed = run.out.size();
  }
  std::sort(seconds.begin(), seconds.end());
  printf("pawl history, first page of %d iterations: %.0f ms, median of 11 (%zu bytes)\n", kIterations,
         1e3 * seconds[5], printed);
}

// What somebody looks at every second: the list, and a campaign of those that there are with all of its pages.
void Look(v1::CampaignService::Stub& stub, int64_t second) {
  const auto deadline = [](grpc::ClientContext& context) {
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  };
  grpc::ClientContext list, history, report;
  for (grpc::ClientContext* context : {&list, &history, &report}) deadline(*context);
  v1::ListCampaignsResponse campaigns;
  (void)stub.ListCampaigns(&list, v1::ListCampaignsRequest(), &campaigns);
  if (campaigns.campaigns().empty()) return;
  const int64_t newest = *ParseCampaignName(campaigns.campaigns(0).name());
  const std::string name = CampaignName(1 + second * 7919 % newest);
  v1::ListIterationsRequest iterations;
  iterations.set_campaign(name);
  v1::ListIterationsResponse page;
  (void)stub.ListIterations(&history, iterations, &page);
  v1::GetReportRequest request;
  request.set_campaign(name);
  v1::GetReportResponse text;
  (void)stub.GetReport(&report, request, &text);
}

// The memory in use may vary by so much between the second sixth of the time, when all caches are full, and the last.
constexpr double kMayGrow = 0.1;

bool BenchDay(double seconds, int64_t trials) {
  constexpr int kWorkers = 8, kSixths = 6, kSamples = 10;  // in each sixth
  constexpr int kTrialsOfACampaign = 90;                   // about: with those that the recording lacks
  TemporaryFolder folder("pawl-bench-");
  Daemon daemon(folder.path());
  const v1::Bundle bundle = Attention();
  auto stub = StubFor(daemon.socket);
  ReplayFleet fleet(daemon.socket, kWorkers);
  printf(
      "| s | campaigns | trials | orchestrator, MB | its CPU, s | database, MB |\n| --- | --- | --- | --- | --- | --- "
      "|\n");
  const double begin = Now();
  int64_t submitted = 0;
  std::vector<double> largest(kSixths);  // memory in use
  for (int64_t second = 0, sample = 1; sample <= kSixths * kSamples; ++second) {
    const double now = Now() - begin;
    const auto due = static_cast<int64_t>(static_cast<double>(trials) * std::min(1.0, now / seconds));
    // Of what is under way about half is still to come.
    const int64_t coming = Unfinished(*stub) * kTrialsOfACampaign / 2;
    if (const int64_t behind = due - fleet.calls - coming; behind > 0) {
      const auto more = static_cast<int>(1 + behind / kTrialsOfACampaign);
      Submit(*stub, bundle, more);
      submitted += more;
    }
    Look(*stub, second);
    if (now >= seconds * static_cast<double>(sample) / (kSixths * kSamples)) {
      const double megabytes = daemon.ResidentMb();
      double& most = largest[(sample - 1) / kSamples];
      most = std::max(most, megabytes);
      if (++sample % kSamples == 1) {
        printf("| %.0f | %lld | %lld | %.0f | %.0f | %.0f |\n", now, static_cast<long long>(submitted),
               static_cast<long long>(fleet.calls), most, daemon.CpuSeconds(),
               static_cast<double>(std::filesystem::file_size(folder.path() / "pawl.db")) / 1e6);
        fflush(stdout);
      }
    }
    std::this_thread::sleep_for(Seconds(std::max(0.0, begin + static_cast<double>(second + 1) - Now())));
  }
  fleet.Stop();
  const bool flat = largest.back() <= largest[1] * (1 + kMayGrow);
  const bool all = static_cast<double>(fleet.calls) >= 0.95 * static_cast<double>(trials);
  printf("most memory in use in the last sixth: %+.1f %% of that in the second (limit %+.0f %%)%s\n",
         100 * (largest.back() / largest[1] - 1), 100 * kMayGrow, flat ? "" : "  GROWS");
  if (!all)
    printf("no more than %lld of %lld trials\n", static_cast<long long>(fleet.calls), static_cast<long long>(trials));
  return flat && all;
}

}  // namespace
}  // namespace pawl

int main(int argc, char** argv) {
  spdlog::set_level(spdlog::level::warn);
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "replay") {
    std::vector<int> counts = {1, 4, 200};
    if (argc > 3) counts.clear();
    for (int i = 3; i < argc; ++i) counts.push_back(std::max(1, atoi(argv[i])));
    pawl::BenchReplay(argc > 2 ? atof(argv[2]) : 10, counts);
  } else if (what == "crowd") {
    pawl::BenchCrowd(argc > 2 ? atof(argv[2]) : 20, argc > 3 ? atoi(argv[3]) : 1000, argc > 4 ? atoi(argv[4]) : 10'000);
  } else if (what == "idle") {
    pawl::BenchIdle(argc > 2 ? atoi(argv[2]) : 200);
  } else if (what == "history") {
    pawl::BenchHistory();
  } else if (what == "day") {
    // What four GPUs judge in a day, at 3,000 an hour.
    return pawl::BenchDay(argc > 2 ? atof(argv[2]) : 3600, argc > 3 ? atoll(argv[3]) : 288'000) ? 0 : 1;
  } else {
    fprintf(stderr,
            "usage: pawl-service-bench replay [SECONDS [WORKERS...]] | crowd [SECONDS [WORKERS [CAMPAIGNS]]] | idle "
            "[WORKERS] | history | day [SECONDS "
            "[TRIALS]]\n");
    return 2;
  }
  return 0;
}
