#include "orchestrator/http/api.h"

#include <google/protobuf/util/json_util.h>

#include <chrono>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/names/utf8.h"
#include "grpcpp/grpcpp.h"
#include "nlohmann/json.hpp"
#include "orchestrator/core/errors.h"
#include "orchestrator/core/grpc_status.h"
#include "orchestrator/http/json.h"

namespace pawl {
namespace {

using Stub = v1::CampaignService::Stub;

HttpReply Refusal(const absl::Status& status) { return ErrorReply(ToGrpc(status)); }

HttpReply NoSuchPath(const HttpRequest& request) {
  return Refusal(
      NoSuch(absl::StrCat(request.method, " ", request.path.substr(0, 200)), "docs/dashboard.md lists the paths"));
}

HttpReply JsonReply(const google::protobuf::Message& message) {
  HttpReply reply;
  reply.body = MessageJson(message);
  return reply;
}

// `fields` is the reply's matter, not the service's.
std::multimap<std::string, std::string> WithoutFields(std::multimap<std::string, std::string> parameters) {
  parameters.erase("fields");
  return parameters;
}

std::string FieldsOf(const HttpRequest& request) {
  const auto found = request.parameters.find("fields");
  return found == request.parameters.end() ? "" : found->second;
}

// Of a list, each of its elements is trimmed; of anything else, the message.
template <typename Message>
void Trim(const std::string& fields, Message* message) {
  KeepFields(fields, message);
}

void Trim(const std::string& fields, v1::ListIterationsResponse* list) {
  for (v1::Iteration& iteration : *list->mutable_iterations()) KeepFields(fields, &iteration);
}

void Trim(const std::string& fields, v1::ListCampaignsResponse* list) {
  for (v1::Campaign& campaign : *list->mutable_campaigns()) KeepFields(fields, &campaign);
}

}  // namespace

template <typename Request, typename Reply>
grpc::Status HttpApi::Call(Rpc<Request, Reply> rpc, const Request& request, Reply* reply) const {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(options_.deadline));
  return ((*stub_).*rpc)(&context, request, reply);
}

template <typename Request, typename Reply>
HttpReply HttpApi::Ask(Rpc<Request, Reply> rpc, const HttpRequest& from, Request request) const {
  if (absl::Status status = FillFromParameters(WithoutFields(from.parameters), &request); !status.ok()) {
    return Refusal(status);
  }
  Reply reply;
  if (grpc::Status status = Call(rpc, request, &reply); !status.ok()) return ErrorReply(status);
  Trim(FieldsOf(from), &reply);
  return JsonReply(reply);
}

template <typename Request>
HttpReply HttpApi::Do(Rpc<Request, v1::Campaign> rpc, const HttpRequest& from, const std::string& campaign) const {
  Request request;
  const auto parsed = google::protobuf::util::JsonStringToMessage(from.body.empty() ? "{}" : from.body, &request);
  if (!parsed.ok()) {
    return Refusal(BadField("body", absl::StrCat("expected ", request.GetDescriptor()->name(),
                                                 " as JSON: ", std::string(parsed.message()).substr(0, 300))));
  }
  if constexpr (!std::is_same_v<Request, v1::SubmitCampaignRequest>) request.set_name(campaign);
  if (request.author().empty()) request.set_author("dashboard");
  v1::Campaign reply;
  if (grpc::Status status = Call(rpc, request, &reply); !status.ok()) return ErrorReply(status);
  return JsonReply(reply);
}

HttpReply HttpApi::Answer(const HttpRequest& request) const {
  if (ValidUtf8(request.path) != request.path) return Refusal(BadField("path", "it is not UTF-8"));
  for (const auto& [name, value] : request.parameters) {
    if (ValidUtf8(name) != name || ValidUtf8(value) != value) {
      return Refusal(BadField(ValidUtf8(name).substr(0, 64), "it is not UTF-8"));
    }
  }
  std::vector<std::string> path = absl::StrSplit(request.path, '/', absl::SkipEmpty());
  if (path.size() < 2 || path[0] != "api") return NoSuchPath(request);
  path.erase(path.begin());
  return request.method == "POST" ? Post(request, path) : Get(request, path);
}

HttpReply HttpApi::Get(const HttpRequest& request, const std::vector<std::string>& path) const {
  const std::string& what = path[0];
  if (what == "campaigns" && path.size() == 1) return Ask(&Stub::ListCampaigns, request, v1::ListCampaignsRequest());
  if (what == "campaigns") {
    return GetOfCampaign(request, absl::StrCat("campaigns/", path[1]), {path.begin() + 2, path.end()});
  }
  if (what == "blobs" && path.size() == 2) return Blob(path[1]);
  if (path.size() > 1) return NoSuchPath(request);
  if (what == "maintenance") return Ask(&Stub::GetMaintenance, request, v1::GetMaintenanceRequest());
  if (what == "workers") return Ask(&Stub::ListWorkers, request, v1::ListWorkersRequest());
  if (what == "patterns") return Ask(&Stub::ListPatterns, request, v1::ListPatternsRequest());
  if (what == "metrics") return MetricNames();
  if (what == "about") return About(request);
  return NoSuchPath(request);
}

HttpReply HttpApi::GetOfCampaign(const HttpRequest& request, const std::string& campaign,
                                 const std::vector<std::string>& rest) const {
  if (rest.empty()) {
    v1::GetCampaignRequest ask;
    ask.set_name(campaign);
    return Ask(&Stub::GetCampaign, request, ask);
  }
  if (rest[0] == "iterations" && rest.size() == 1) {
    v1::ListIterationsRequest ask;
    ask.set_campaign(campaign);
    return Ask(&Stub::ListIterations, request, ask);
  }
  if (rest[0] == "iterations" && rest.size() == 2) {
    v1::GetIterationRequest ask;
    ask.set_name(absl::StrCat(campaign, "/iterations/", rest[1]));
    return Ask(&Stub::GetIteration, request, ask);
  }
  if (rest.size() > 1) return NoSuchPath(request);
  if (rest[0] == "report") return Report(request, campaign);
  if (rest[0] == "bundle") return Bundle(request, campaign);
  if (rest[0] == "events") return Events(request, campaign);
  return NoSuchPath(request);
}

HttpReply HttpApi::Post(const HttpRequest& request, const std::vector<std::string>& path) const {
  if (path[0] != "campaigns" || path.size() == 2 || path.size() > 3) return NoSuchPath(request);
  if (path.size() == 1) return Do<v1::SubmitCampaignRequest>(&Stub::SubmitCampaign, request, "");
  const std::string campaign = absl::StrCat("campaigns/", path[1]);
  if (path[2] == "cancel") return Do<v1::CancelCampaignRequest>(&Stub::CancelCampaign, request, campaign);
  if (path[2] == "pause") return Do<v1::PauseCampaignRequest>(&Stub::PauseCampaign, request, campaign);
  if (path[2] == "resume") return Do<v1::ResumeCampaignRequest>(&Stub::ResumeCampaign, request, campaign);
  return NoSuchPath(request);
}

HttpReply HttpApi::Report(const HttpRequest& request, const std::string& campaign) const {
  v1::GetReportRequest ask;
  ask.set_campaign(campaign);
  if (absl::Status status = FillFromParameters(WithoutFields(request.parameters), &ask); !status.ok()) {
    return Refusal(status);
  }
  v1::GetReportResponse answer;
  if (grpc::Status status = Call(&Stub::GetReport, ask, &answer); !status.ok()) return ErrorReply(status);
  if (ask.format() == v1::REPORT_FORMAT_UNSPECIFIED) {
    KeepFields(FieldsOf(request), answer.mutable_report());
    return JsonReply(answer.report());
  }
  const bool html = ask.format() == v1::REPORT_FORMAT_HTML;
  HttpReply reply;
  reply.type = html ? "text/html; charset=utf-8" : "text/markdown; charset=utf-8";
  reply.body = std::move(*answer.mutable_page());
  // A file to keep: the page has scripts of its own, which have no business in the dashboard's origin.
  reply.headers.emplace_back(
      "Content-Disposition",
      absl::StrCat("attachment; filename=\"", absl::StrReplaceAll(campaign, {{"/", "-"}}), html ? ".html\"" : ".md\""));
  return reply;
}

HttpReply HttpApi::Bundle(const HttpRequest& request, const std::string& name) const {
  v1::GetCampaignRequest ask;
  ask.set_name(name);
  v1::Campaign campaign;
  if (grpc::Status status = Call(&Stub::GetCampaign, ask, &campaign); !status.ok()) return ErrorReply(status);
  v1::GetBlobRequest hash;
  hash.set_hash(campaign.bundle_hash());
  v1::GetBlobResponse blob;
  if (grpc::Status status = Call(&Stub::GetBlob, hash, &blob); !status.ok()) return ErrorReply(status);
  v1::Bundle bundle;
  if (!bundle.ParseFromString(blob.content())) {
    return Refusal(absl::DataLossError("a stored bundle can't be read"));
  }
  KeepFields(FieldsOf(request), &bundle);
  return JsonReply(bundle);
}

HttpReply HttpApi::Blob(const std::string& hash) const {
  v1::GetBlobRequest ask;
  ask.set_hash(hash);
  v1::GetBlobResponse blob;
  if (grpc::Status status = Call(&Stub::GetBlob, ask, &blob); !status.ok()) return ErrorReply(status);
  const bool text = blob.blob().kind() == v1::Blob::SOURCE || blob.blob().kind() == v1::Blob::LOG;
  HttpReply reply;
  reply.type = text ? "text/plain; charset=utf-8" : "application/octet-stream";
  reply.body = std::move(*blob.mutable_content());
  return reply;
}

HttpReply HttpApi::Events(const HttpRequest& request, const std::string& campaign) const {
  v1::WatchCampaignRequest ask;
  ask.set_campaign(campaign);
  if (absl::Status status = FillFromParameters(request.parameters, &ask); !status.ok()) return Refusal(status);
  // A refusal has its status only if it is known before the stream begins.
  v1::GetCampaignRequest look;
  look.set_name(campaign);
  v1::Campaign found;
  if (grpc::Status status = Call(&Stub::GetCampaign, look, &found); !status.ok()) return ErrorReply(status);
  if (ask.after_sequence() < 0) return Refusal(BadField("after_sequence", "expected 0 or more"));
  HttpReply reply;
  reply.type = "text/event-stream";
  reply.events = WatchAsEvents(*stub_, ask, options_.patience);
  return reply;
}

HttpReply HttpApi::MetricNames() const {
  HttpReply reply;
  reply.body = "{\"metrics\":[";
  for (const Metric& metric : options_.metrics->all()) {
    v1::BeforeAfter one;
    one.set_metric(metric.name);
    one.set_unit(metric.unit);
    one.set_meaning(metric.meaning);
    absl::StrAppend(&reply.body, reply.body.back() == '[' ? "" : ",", MessageJson(one));
  }
  reply.body += "]}";
  return reply;
}

HttpReply HttpApi::About(const HttpRequest& request) const {
  HttpReply reply;
  const nlohmann::json about = {{"maySubmit", guard_.May(request, Role::kSubmit).ok()},
                                {"orchestrator", options_.orchestrator},
                                {"tls", options_.tls},
                                {"tokens", options_.tokens}};
  reply.body = about.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return reply;
}

}  // namespace pawl
