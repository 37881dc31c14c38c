#include "orchestrator/http/probes.h"

#include "absl/strings/str_cat.h"
#include "orchestrator/core/errors.h"
#include "orchestrator/core/grpc_status.h"
#include "orchestrator/http/json.h"

namespace pawl {
namespace {

constexpr char kHealthPath[] = "/healthz";
constexpr char kReadyPath[] = "/readyz";

HttpReply TextLine(int status, const std::string& text) {
  HttpReply reply;
  reply.status = status;
  reply.type = "text/plain; charset=utf-8";
  reply.body = absl::StrCat(text, "\n");
  return reply;
}

HttpReply MetricsReply(const HttpProbes& probes) {
  if (!probes.metrics) return ErrorReply(ToGrpc(NoSuch(kMetricsPath, "this server has no metrics")));
  absl::StatusOr<std::string> text = probes.metrics();
  if (!text.ok()) return ErrorReply(ToGrpc(text.status()));
  HttpReply reply;
  reply.type = "text/plain; version=0.0.4; charset=utf-8";
  reply.body = *std::move(text);
  return reply;
}

}  // namespace

bool IsProbe(const std::string& path) { return path == kMetricsPath || path == kHealthPath || path == kReadyPath; }

HttpReply AnswerProbe(const HttpProbes& probes, const HttpRequest& request) {
  if (request.method == "POST") return ErrorReply(ToGrpc(BadField("method", "expected GET")));
  if (request.path == kMetricsPath) return MetricsReply(probes);
  if (request.path == kHealthPath) return TextLine(200, "ok");
  const absl::Status ready = probes.ready ? probes.ready() : absl::OkStatus();
  if (!ready.ok()) return TextLine(503, std::string(ready.message()));
  const std::string remark = probes.remark ? probes.remark() : "";
  return TextLine(200, remark.empty() ? "ready" : absl::StrCat("ready: ", remark));
}

}  // namespace pawl
