#pragma once

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "orchestrator/http/exchange.h"
#include "orchestrator/http/guard.h"
#include "pawl/v1/campaign_service.grpc.pb.h"
#include "profiles/metrics.h"

namespace pawl {

struct HttpApiOptions {
  std::string orchestrator = {};  // address of the gRPC services, for the commands that the page suggests
  bool tls = false;               // whether clients of that address need TLS
  bool tokens = false;            // and a token
  const Metrics* metrics = &Metrics::Default();  // must outlive the API
  absl::Duration deadline = absl::Seconds(20);   // of a call
  absl::Duration patience = absl::Seconds(5);    // without news in a stream
};

// CampaignService as JSON over HTTP: each path is a call of the service, with its messages, its errors and its limits,
// so that the dashboard shows what `pawl --json` prints. docs/dashboard.md lists the paths. Thread-safe; the guard must
// outlive it.
class HttpApi {
 public:
  HttpApi(const std::shared_ptr<grpc::Channel>& channel, const HttpGuard& guard, HttpApiOptions options = {})
      : stub_(v1::CampaignService::NewStub(channel)), guard_(guard), options_(options) {}

  // To a request for /api/..., which the guard let pass.
  HttpReply Answer(const HttpRequest& request) const;

 private:
  HttpReply Get(const HttpRequest& request, const std::vector<std::string>& path) const;
  HttpReply GetOfCampaign(const HttpRequest& request, const std::string& campaign,
                          const std::vector<std::string>& rest) const;
  HttpReply Post(const HttpRequest& request, const std::vector<std::string>& path) const;
  HttpReply Report(const HttpRequest& request, const std::string& campaign) const;
  HttpReply Bundle(const HttpRequest& request, const std::string& campaign) const;
  HttpReply Blob(const std::string& hash) const;
  HttpReply Events(const HttpRequest& request, const std::string& campaign) const;
  HttpReply MetricNames() const;
  HttpReply About(const HttpRequest& request) const;

  using Stub = v1::CampaignService::Stub;
  template <typename Request, typename Reply>
  using Rpc = grpc::Status (Stub::*)(grpc::ClientContext*, const Request&, Reply*);
  template <typename Request, typename Reply>
  grpc::Status Call(Rpc<Request, Reply> rpc, const Request& request, Reply* reply) const;
  template <typename Request, typename Reply>
  HttpReply Ask(Rpc<Request, Reply> rpc, const HttpRequest& from, Request request) const;
  template <typename Request>
  HttpReply Do(Rpc<Request, v1::Campaign> rpc, const HttpRequest& from, const std::string& campaign) const;

  const std::unique_ptr<Stub> stub_;
  const HttpGuard& guard_;
  const HttpApiOptions options_;
};

// WatchCampaign as server-sent events: `message` with the JSON of each WatchCampaignResponse and the event's sequence
// as its id, `end` when the campaign has ended and all was sent, `failed` with the error that the stream ended with.
// Says that it is still there after `patience` without news.
std::unique_ptr<HttpEvents> WatchAsEvents(v1::CampaignService::Stub& stub, const v1::WatchCampaignRequest& request,
                                          absl::Duration patience);

}  // namespace pawl
