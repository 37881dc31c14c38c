// What people wait for where a database has many campaigns. pawl-size-bench TEMPLATE CAMPAIGNS [FOLDER] copies the
// database TEMPLATE into the folder (the current one), adds copies of its first campaign, which must have ended, until
// it has so many, starts pawl-orchestrator on it with cold caches, prints what each call takes, and removes it. Fails
// where one takes longer than is stated here.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/names/resource_name.h"
#include "db/backup.h"
#include "db/store.h"
#include "grpcpp/grpcpp.h"
#include "pawl/v1/campaign_service.grpc.pb.h"
#include "worker/process/spawn.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr size_t kEventsAtOnce = 5000;  // in one commit

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

// The same campaign under another number.
v1::Event Renumbered(v1::Event event, int64_t number) {
  event.clear_sequence();
  event.set_campaign(CampaignName(number));
  if (event.has_submitted()) event.mutable_submitted()->set_request_id(absl::StrCat("copy ", number));
  if (event.finished().has_iteration()) {
    v1::Iteration& iteration = *event.mutable_finished()->mutable_iteration();
    iteration.set_name(IterationName(number, iteration.number()));
  }
  return event;
}

// How many iterations it has then.
int64_t Fill(const fs::path& file, int64_t campaigns) {
  const std::unique_ptr<Store> store = OrDie(Store::Open({.file = file}));
  const std::optional<v1::Campaign> first = OrDie(store->GetCampaign(1));
  if (!first || !first->has_end_time()) OrDie(absl::FailedPreconditionError("its first campaign has not ended"));
  const std::vector<v1::Event> events = OrDie(store->Events(1, 0, 1 << 20));
  const auto iterations = std::count_if(events.begin(), events.end(),
                                        [](const v1::Event& event) { return event.finished().has_iteration(); });
  const int64_t last = OrDie(store->LastCampaign());
  Writes writes;
  for (int64_t number = last + 1; number <= campaigns; ++number) {
    for (const v1::Event& event : events) writes.events.push_back(Renumbered(event, number));
    v1::Campaign campaign = *first;
    campaign.set_name(CampaignName(number));
    writes.campaigns.push_back(std::move(campaign));
    if (writes.events.size() < kEventsAtOnce && number < campaigns) continue;
    OrDie(store->Commit(&writes));
    writes = {};
  }
  return iterations * campaigns;
}

void DropCaches() {
  sync();
  std::ofstream machine("/proc/sys/vm/drop_caches");
  if (!(machine << "3" << std::flush)) printf("caches are warm: this user can't drop them\n");
}

class Service {
 public:
  explicit Service(const fs::path& file) : address_("unix:" + file.native() + ".socket"), begin_(Clock::now()) {
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
    pid_ = OrDie(Spawn(options));
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    channel_ = grpc::CreateCustomChannel(address_, grpc::InsecureChannelCredentials(), arguments);
    stub_ = v1::CampaignService::NewStub(channel_);
  }
  ~Service() {
    kill(pid_, SIGTERM);
    Reap(pid_);
  }

  v1::CampaignService::Stub& stub() { return *stub_; }
  double SinceStart() const { return SecondsSince(begin_); }
  // Of its memory that is in use, in MB.
  double Megabytes() const {
    std::ifstream status(absl::StrCat("/proc/", pid_, "/status"));
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("VmRSS:")) return atof(line.c_str() + 6) / 1024;
    }
    return 0;
  }

 private:
  const std::string address_;
  const Clock::time_point begin_;
  pid_t pid_ = 0;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::CampaignService::Stub> stub_;
};

using Stub = v1::CampaignService::Stub;

template <typename Request, typename Reply>
using Rpc = grpc::Status (Stub::*)(grpc::ClientContext*, const Request&, Reply*);

template <typename Request, typename Reply>
Reply Ask(Service& service, Rpc<Request, Reply> rpc, const Request& request) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(600));
  context.set_wait_for_ready(true);
  Reply reply;
  const grpc::Status status = (service.stub().*rpc)(&context, request, &reply);
  if (!status.ok()) OrDie(absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message()));
  return reply;
}

class Figures {
 public:
  // False so far: something took too long.
  bool kept() const { return kept_; }
  void Print(const char* what, std::vector<double> seconds, double limit) {
    std::sort(seconds.begin(), seconds.end());
    const double median = seconds[seconds.size() / 2];
    const bool kept = median <= limit;
    kept_ = kept_ && kept;
    printf("%-46s %8.1f ms, worst of %2zu %8.1f ms, limit %5.0f ms%s\n", what, 1e3 * median, seconds.size(),
           1e3 * seconds.back(), 1e3 * limit, kept ? "" : "  TOO SLOW");
    fflush(stdout);
  }
  void Time(const char* what, int times, double limit, const std::function<void(int)>& call) {
    std::vector<double> seconds;
    for (int i = 0; i < times; ++i) {
      const Clock::time_point begin = Clock::now();
      call(i);
      seconds.push_back(SecondsSince(begin));
    }
    Print(what, std::move(seconds), limit);
  }

 private:
  bool kept_ = true;
};

bool Measure(const fs::path& file, int64_t campaigns) {
  Figures figures;
  Service service(file);
  v1::ListCampaignsRequest page;
  v1::ListCampaignsResponse list = Ask(service, &Stub::ListCampaigns, page);
  figures.Print("start to the first answer, after a clean stop", {service.SinceStart()}, 5);
  printf("memory of the orchestrator then %.0f MB\n", service.Megabytes());
  const auto spread = [&](int i) { return 1 + (campaigns - 1) * i / 21; };  // over all of them
  figures.Time("campaigns, the newest 100", 21, 0.1, [&](int) { list = Ask(service, &Stub::ListCampaigns, page); });
  figures.Time("campaigns, the next 100, 21 pages deep", 21, 0.1, [&](int) {
    if (list.next_page_token().empty()) return;
    page.set_page_token(list.next_page_token());
    list = Ask(service, &Stub::ListCampaigns, page);
  });
  figures.Time("show of a campaign", 21, 0.1, [&](int i) {
    v1::GetCampaignRequest request;
    request.set_name(CampaignName(spread(i)));
    Ask(service, &Stub::GetCampaign, request);
  });
  figures.Time("history of a campaign, first page", 21, 0.1, [&](int i) {
    v1::ListIterationsRequest request;
    request.set_campaign(CampaignName(spread(i)));
    Ask(service, &Stub::ListIterations, request);
  });
  figures.Time("report of a campaign as a page", 11, 2, [&](int i) {
    v1::GetReportRequest request;
    request.set_campaign(CampaignName(spread(i)));
    request.set_format(v1::REPORT_FORMAT_HTML);
    Ask(service, &Stub::GetReport, request);
  });
  figures.Time("watch of a campaign from its beginning", 11, 2, [&](int i) {
    grpc::ClientContext context;
    v1::WatchCampaignRequest request;
    request.set_campaign(CampaignName(spread(i)));
    const auto stream = service.stub().WatchCampaign(&context, request);
    v1::WatchCampaignResponse event;
    while (stream->Read(&event)) continue;
    const grpc::Status status = stream->Finish();
    if (!status.ok()) OrDie(absl::UnavailableError(status.error_message()));
  });
  v1::GetBlobRequest blob;
  blob.set_hash(list.campaigns(0).bundle_hash());
  v1::SubmitCampaignRequest submission;
  submission.mutable_bundle()->ParseFromString(Ask(service, &Stub::GetBlob, blob).content());
  figures.Time("submit", 21, 0.2, [&](int i) {
    submission.set_request_id(absl::StrCat("new ", i));
    Ask(service, &Stub::SubmitCampaign, submission);
  });
  printf("memory of the orchestrator at the end %.0f MB\n", service.Megabytes());
  return figures.kept();
}

int Run(const fs::path& from, int64_t campaigns, const fs::path& folder) {
  fs::create_directories(folder);
  const fs::path file = folder / "size-bench.db";
  OrDie(BackUp(from, file));
  const Clock::time_point begin = Clock::now();
  const int64_t iterations = Fill(file, campaigns);
  printf("%lld campaigns, %lld iterations, database of %.2f GB, made in %.0f s\n", static_cast<long long>(campaigns),
         static_cast<long long>(iterations), static_cast<double>(fs::file_size(file)) / 1e9, SecondsSince(begin));
  fflush(stdout);
  DropCaches();
  const bool kept = Measure(file, campaigns);
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename().native().starts_with("size-bench.db")) fs::remove(entry.path());
  }
  return kept ? 0 : 1;
}

}  // namespace
}  // namespace pawl

int main(int argc, char** argv) {
  const long long campaigns = argc > 2 ? atoll(argv[2]) : 0;
  if (campaigns < 1) {
    fprintf(stderr, "usage: pawl-size-bench TEMPLATE CAMPAIGNS [FOLDER]\n");
    return 2;
  }
  return pawl::Run(argv[1], campaigns, argc > 3 ? argv[3] : ".");
}
