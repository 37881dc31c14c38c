// The only file of the command line that knows gRPC.
#include "cli/connect/campaign_client.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include <chrono>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/campaigns/grpc_watch.h"
#include "base/channel/address.h"
#include "cli/text/failure.h"
#include "pawl/v1/campaign_service.grpc.pb.h"

namespace pawl {
namespace {

using Service = v1::CampaignService;

constexpr absl::Duration kDeadline = absl::Seconds(30);
constexpr int kMaxReply = 256 << 20;  // an iteration comes with its samples and counters

struct TlsFailure {
  const char* what;
  const char* fix;
};

// What OpenSSL's or gRPC's message means, in lower case.
TlsFailure ReadTlsFailure(const std::string& message) {
  if (absl::StrContains(message, "wrong version number") || absl::StrContains(message, "wrong_version_number")) {
    return {"it does not use TLS",
            "omit --tls-ca, --tls-cert and --tls-key, or start it with --tls-cert and --tls-key"};
  }
  if (absl::StrContains(message, "is not in peer certificate") || absl::StrContains(message, "hostname verif")) {
    return {"its certificate is for another address", "use the host name that the certificate contains"};
  }
  if (absl::StrContains(message, "verify failed") || absl::StrContains(message, "verify_failed")) {
    return {"its certificate is not signed by the authority of --tls-ca, or has expired",
            "name the authority that signed it with --tls-ca"};
  }
  return {"it did not accept this client's certificate, or has none of its own",
          "use a certificate signed by the authority of the orchestrator's --tls-ca (--tls-cert, --tls-key)"};
}

absl::Status ToStatus(const grpc::Status& status, const std::string& address) {
  if (status.ok()) return absl::OkStatus();
  auto code = static_cast<absl::StatusCode>(status.error_code());
  // Nobody cancels calls here: an orchestrator that ends does it to those that it is at.
  if (code == absl::StatusCode::kCancelled) code = absl::StatusCode::kUnavailable;
  v1::ErrorDetail detail;
  if (!status.error_details().empty() && detail.ParseFromString(status.error_details())) {
    return WithDetail(absl::Status(code, status.error_message()), detail);
  }
  // Nobody has written a message for these; gRPC's own speaks of its insides.
  std::string message = status.error_message();
  switch (code) {
    case absl::StatusCode::kUnavailable:
      if (const std::string lower = absl::AsciiStrToLower(message);
          absl::StrContains(lower, "handshake") || absl::StrContains(lower, "ssl")) {
        const TlsFailure failure = ReadTlsFailure(lower);
        message = absl::StrCat("TLS with the orchestrator at ", address, " failed: ", failure.what);
        detail.set_fix(failure.fix);
        break;
      }
      message = absl::StrCat("no orchestrator answers at ", address);
      detail.set_fix(absl::StrCat(
          "start one with `pawl-orchestrator --listen ", address,
          " --database FILE`, or correct the address (--orchestrator, PAWL_ORCHESTRATOR, "
          "the config file)",
          // One that needs another certificate closes the connection without a message.
          IsUnixSocket(address) ? "" : "; an orchestrator with TLS needs --tls-ca, --tls-cert and --tls-key"));
      break;
    case absl::StatusCode::kDeadlineExceeded:
      message =
          absl::StrCat("the orchestrator at ", address, " did not answer within ", absl::FormatDuration(kDeadline));
      detail.set_fix("see its log; the machine or its disk may be overloaded");
      break;
    case absl::StatusCode::kUnimplemented:
      message = absl::StrCat("the server at ", address, " does not know this call");
      detail.set_fix("start a pawl-orchestrator of the same version as `pawl --version`");
      break;
    case absl::StatusCode::kResourceExhausted:
      if (!absl::StrContains(message, "larger than max")) break;
      message = "the message is too large for the orchestrator";
      detail.set_fix(absl::StrCat("a bundle with all its files may have at most ", kMaxRpcBytes >> 20, " MB"));
      break;
    default:
      if (message.empty()) message = absl::StrCat("the orchestrator at ", address, " failed without a message");
  }
  return WithDetail(absl::Status(code, message), detail);
}

grpc::ChannelArguments MakeArguments() {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxReply);
  arguments.SetMaxSendMessageSize(-1);
  // An orchestrator is a neighbour, and what http_proxy names does not know it.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // A restarted orchestrator is found again in a second, not in the two minutes that gRPC backs off to.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 10'000);  // for one that is slow to answer on a busy machine
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  return arguments;
}

}  // namespace

class CampaignClient::Stub {
 public:
  Stub(const std::string& address, const std::shared_ptr<grpc::Channel>& channel)
      : address_(address), stub_(Service::NewStub(channel)) {}

  template <typename Reply, typename Request>
  absl::StatusOr<Reply> Call(grpc::Status (Service::Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
                             const Request& request) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + kDeadline));
    Reply reply;
    const grpc::Status status = (stub_.get()->*method)(&context, request, &reply);
    if (!status.ok()) return ToStatus(status, address_);
    return reply;
  }

  const std::shared_ptr<Service::Stub>& shared() { return stub_; }

 private:
  const std::string address_;
  const std::shared_ptr<Service::Stub> stub_;
};

absl::StatusOr<std::unique_ptr<CampaignClient>> CampaignClient::Open(const std::string& address,
                                                                     const Credentials& credentials) {
  absl::StatusOr<std::shared_ptr<grpc::Channel>> channel = OpenChannel(address, credentials, MakeArguments());
  if (!channel.ok()) return channel.status();
  return std::unique_ptr<CampaignClient>(new CampaignClient(address, *channel));
}

CampaignClient::CampaignClient(std::string address)
    : CampaignClient(address, grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), MakeArguments())) {
}

CampaignClient::CampaignClient(const std::string& address, const std::shared_ptr<grpc::Channel>& channel)
    : address_(address), channel_(channel), stub_(std::make_unique<Stub>(address_, channel)) {}

CampaignClient::~CampaignClient() = default;

absl::Status CampaignClient::Read(const grpc::Status& status, const std::string& address) {
  return ToStatus(status, address);
}

absl::StatusOr<v1::Campaign> CampaignClient::Submit(const v1::SubmitCampaignRequest& request) {
  return stub_->Call(&Service::Stub::SubmitCampaign, request);
}

absl::StatusOr<v1::Campaign> CampaignClient::GetCampaign(const std::string& name) {
  v1::GetCampaignRequest request;
  request.set_name(name);
  return stub_->Call(&Service::Stub::GetCampaign, request);
}

absl::StatusOr<v1::ListCampaignsResponse> CampaignClient::ListCampaigns(const v1::ListCampaignsRequest& request) {
  return stub_->Call(&Service::Stub::ListCampaigns, request);
}

absl::StatusOr<v1::ListIterationsResponse> CampaignClient::ListIterations(const v1::ListIterationsRequest& request) {
  return stub_->Call(&Service::Stub::ListIterations, request);
}

absl::StatusOr<v1::Iteration> CampaignClient::GetIteration(const std::string& name) {
  v1::GetIterationRequest request;
  request.set_name(name);
  return stub_->Call(&Service::Stub::GetIteration, request);
}

std::unique_ptr<CampaignWatch> CampaignClient::Watch(const std::string& campaign, int64_t after_sequence) {
  v1::WatchCampaignRequest request;
  request.set_campaign(campaign);
  request.set_after_sequence(after_sequence);
  return StartGrpcWatch(stub_->shared(), request,
                        [address = address_](const grpc::Status& status) { return ToStatus(status, address); });
}

absl::StatusOr<v1::Campaign> CampaignClient::Pause(const v1::PauseCampaignRequest& request) {
  return stub_->Call(&Service::Stub::PauseCampaign, request);
}

absl::StatusOr<v1::Campaign> CampaignClient::Resume(const v1::ResumeCampaignRequest& request) {
  return stub_->Call(&Service::Stub::ResumeCampaign, request);
}

absl::StatusOr<v1::Campaign> CampaignClient::Cancel(const v1::CancelCampaignRequest& request) {
  return stub_->Call(&Service::Stub::CancelCampaign, request);
}

absl::StatusOr<v1::GetBlobResponse> CampaignClient::GetBlob(const std::string& hash) {
  v1::GetBlobRequest request;
  request.set_hash(hash);
  return stub_->Call(&Service::Stub::GetBlob, request);
}

absl::StatusOr<v1::BestVariant> CampaignClient::GetBestVariant(const std::string& campaign) {
  v1::GetBestVariantRequest request;
  request.set_campaign(campaign);
  return stub_->Call(&Service::Stub::GetBestVariant, request);
}

absl::StatusOr<v1::VerifyIterationResponse> CampaignClient::Verify(const v1::VerifyIterationRequest& request) {
  return stub_->Call(&Service::Stub::VerifyIteration, request);
}

absl::StatusOr<v1::ProposeChangeResponse> CampaignClient::Propose(const v1::ProposeChangeRequest& request) {
  return stub_->Call(&Service::Stub::ProposeChange, request);
}

absl::StatusOr<v1::Situation> CampaignClient::GetSituation(const std::string& campaign) {
  v1::GetSituationRequest request;
  request.set_campaign(campaign);
  return stub_->Call(&Service::Stub::GetSituation, request);
}

absl::StatusOr<v1::GetReportResponse> CampaignClient::GetReport(const v1::GetReportRequest& request) {
  return stub_->Call(&Service::Stub::GetReport, request);
}

absl::StatusOr<v1::ListPatternsResponse> CampaignClient::ListPatterns(const v1::ListPatternsRequest& request) {
  return stub_->Call(&Service::Stub::ListPatterns, request);
}

absl::StatusOr<v1::ImportPatternsResponse> CampaignClient::ImportPatterns(const v1::ImportPatternsRequest& request) {
  return stub_->Call(&Service::Stub::ImportPatterns, request);
}

absl::StatusOr<v1::ListWorkersResponse> CampaignClient::ListWorkers(bool gone_too) {
  v1::ListWorkersRequest request;
  request.set_gone_too(gone_too);
  return stub_->Call(&Service::Stub::ListWorkers, request);
}

absl::StatusOr<v1::Maintenance> CampaignClient::GetMaintenance() {
  return stub_->Call(&Service::Stub::GetMaintenance, v1::GetMaintenanceRequest());
}

absl::StatusOr<v1::Maintenance> CampaignClient::SetMaintenance(const v1::SetMaintenanceRequest& request) {
  return stub_->Call(&Service::Stub::SetMaintenance, request);
}

}  // namespace pawl
