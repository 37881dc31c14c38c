// How long an orchestrator with a large database takes to serve. pawl-startup-bench GIGABYTES [FOLDER] makes a database
// of that size in the folder (the current one), starts pawl-orchestrator on it with cold caches, after a clean stop and
// after kill -9, prints when the first read and the first write were answered, and removes the database. Fails where
// the first read takes over 5 s. Caches are dropped for the whole machine where this user may, else for the files.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>

#include "base/hash/hash.h"
#include "base/names/resource_name.h"
#include "db/store.h"
#include "grpcpp/grpcpp.h"
#include "pawl/v1/campaign_service.grpc.pb.h"
#include "pawl/v1/worker_service.grpc.pb.h"
#include "worker/process/spawn.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr double kPromisedSeconds = 5;
constexpr int kIterations = 1000;  // of each campaign

double SecondsSince(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

template <typename Value>
Value OrDie(absl::StatusOr<Value> value) {
  if (value.ok()) return *std::move(value);
  fprintf(stderr, "%s\n", value.status().ToString().c_str());
  exit(1);
}

void OrDie(const absl::Status& status) {
  if (status.ok()) return;
  fprintf(stderr, "%s\n", status.ToString().c_str());
  exit(1);
}

v1::Campaign CampaignOf(int64_t number, v1::CampaignState state) {
  v1::Campaign campaign;
  campaign.set_name(CampaignName(number));
  campaign.set_state(state);
  campaign.set_bundle("attention");
  campaign.set_device("NVIDIA H200");
  return campaign;
}

// About 10 KB as docs/operating.md says, and 60 KB more for the cubin of one in twenty, which is kept.
void AddIteration(int64_t campaign, int number, std::mt19937* random, Writes* writes) {
  v1::Event event;
  event.set_campaign(CampaignName(campaign));
  event.mutable_time()->set_seconds(1700000000 + number);
  v1::TrialFinished& finished = *event.mutable_finished();
  for (int i = 0; i < 64; ++i) {
    v1::PairSample& pair = *finished.mutable_result()->add_pairs();
    pair.set_parent_us(10.25 + i);
    pair.set_candidate_us(10.5 + i);
    pair.set_log_ratio(-0.01 * i);
  }
  auto& metrics = *finished.mutable_result()->mutable_evidence()->add_launches()->mutable_metrics();
  for (int i = 0; i < 150; ++i) metrics["some_counter_of_the_profiler_" + std::to_string(i)] = i * 1.5;
  v1::Iteration& iteration = *finished.mutable_iteration();
  iteration.set_name(IterationName(campaign, number));
  iteration.set_number(number);
  iteration.set_parent(number / 2);
  iteration.set_verdict(number % 20 == 0 ? v1::KEPT : v1::REVERTED);
  iteration.mutable_change()->set_variable("TILE_M");
  iteration.set_reason("slower than its parent: 0.97 of its speed, 95 % interval 0.96 to 0.98");
  iteration.set_speedup_over_start(0.5 + (*random)() % 100000 * 1e-5);
  writes->events.push_back(std::move(event));
  if (number % 20 != 0) return;
  std::string cubin(60'000, '\0');
  for (char& byte : cubin) byte = static_cast<char>((*random)());
  const std::string hash = Sha256(cubin);
  writes->blobs.push_back({v1::Blob::CUBIN, hash, std::move(cubin)});
}

void Fill(const fs::path& file, double bytes) {
  const std::unique_ptr<Store> store = OrDie(Store::Open({.file = file}));
  std::mt19937 random(1);
  for (int64_t campaign = 1; static_cast<double>(fs::file_size(file)) < bytes; ++campaign) {
    Writes writes;
    writes.campaigns = {CampaignOf(campaign, v1::FINISHED)};
    for (int i = 0; i < kIterations; ++i) AddIteration(campaign, i, &random, &writes);
    OrDie(store->Commit(&writes));
  }
}

// True: of the whole machine.
bool DropCaches(const fs::path& file) {
  sync();
  std::ofstream machine("/proc/sys/vm/drop_caches");
  if (machine << "3" << std::flush) return true;
  for (const char* suffix : {"", "-wal"}) {
    const int fd = open((file.native() + suffix).c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) continue;
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
  }
  return false;
}

class Orchestrator {
 public:
  explicit Orchestrator(const fs::path& file) : address_("unix:" + file.native() + ".socket") {
    SpawnOptions options;
    options.argv = {OrDie(FindPawlProgram("pawl-orchestrator")),
                    "--database",
                    file.native(),
                    "--listen",
                    address_,
                    "--reports",
                    "none",
                    "--log-level",
                    "error"};
    options.fds = {{0, 0}, {2, 1}, {2, 2}};
    begin_ = Clock::now();
    pid_ = OrDie(Spawn(options));
    channel_ = grpc::CreateChannel(address_, grpc::InsecureChannelCredentials());
  }

  double UntilRead() {
    const auto stub = v1::CampaignService::NewStub(channel_);
    return UntilAnswered([&](grpc::ClientContext* context) {
      v1::GetIterationRequest request;
      request.set_name(IterationName(1, 1));
      v1::Iteration reply;
      return stub->GetIteration(context, request, &reply);
    });
  }
  double UntilWritten() {
    const auto stub = v1::WorkerService::NewStub(channel_);
    return UntilAnswered([&](grpc::ClientContext* context) {
      v1::PutBlobRequest request;
      request.set_kind(v1::Blob::LOG);
      request.set_content("a log");
      request.set_hash(Sha256(request.content()));
      v1::PutBlobResponse reply;
      return stub->PutBlob(context, request, &reply);
    });
  }
  void End(int signal) {
    kill(pid_, signal);
    Reap(pid_);
  }

 private:
  template <typename Call>
  double UntilAnswered(Call call) {
    while (SecondsSince(begin_) < 600) {
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
      context.set_wait_for_ready(true);
      const grpc::Status status = call(&context);
      if (status.ok()) return SecondsSince(begin_);
      if (status.error_code() != grpc::StatusCode::UNAVAILABLE) {
        fprintf(stderr, "%s\n", status.error_message().c_str());
        exit(1);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    fprintf(stderr, "no answer within 600 s\n");
    exit(1);
  }

  const std::string address_;
  Clock::time_point begin_;
  pid_t pid_ = 0;
  std::shared_ptr<grpc::Channel> channel_;
};

int Run(double gigabytes, const fs::path& folder) {
  fs::create_directories(folder);
  const fs::path file = folder / "pawl.db";
  if (fs::exists(file)) {
    fprintf(stderr, "%s exists: name another folder\n", file.c_str());
    return 2;
  }
  Fill(file, gigabytes * 1e9);
  printf("database of %.2f GB\n", static_cast<double>(fs::file_size(file)) / 1e9);
  bool kept = true;
  const char* after = "a clean stop:";
  for (const int end : {SIGKILL, SIGTERM}) {
    const bool whole = DropCaches(file);
    Orchestrator orchestrator(file);
    const double read = orchestrator.UntilRead();
    const double written = orchestrator.UntilWritten();
    printf("after %-14s first read %6.2f s, first write %6.2f s (caches of %s dropped)\n", after, read, written,
           whole ? "the machine" : "the files");
    fflush(stdout);
    kept = kept && read <= kPromisedSeconds;
    orchestrator.End(end);
    after = "kill -9:";
  }
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename().native().starts_with("pawl.db")) fs::remove(entry.path());
  }
  return kept ? 0 : 1;
}

}  // namespace
}  // namespace pawl

int main(int argc, char** argv) {
  const double gigabytes = argc > 1 ? atof(argv[1]) : 0;
  if (!(gigabytes > 0)) {
    fprintf(stderr, "usage: pawl-startup-bench GIGABYTES [FOLDER]\n");
    return 2;
  }
  return pawl::Run(gigabytes, argc > 2 ? argv[2] : ".");
}
