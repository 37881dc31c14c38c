#include "orchestrator/http/guard.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "orchestrator/core/errors.h"
#include "orchestrator/http/address.h"
#include "orchestrator/http/probes.h"

namespace pawl {
namespace {

absl::Status Refused(const std::string& message, const std::string& fix) {
  v1::ErrorDetail detail;
  detail.set_fix(fix);
  return Error(absl::StatusCode::kPermissionDenied, message, detail);
}

// Whether it comes from a page of this very origin, or from no page.
absl::Status CheckOrigin(const HttpRequest& request) {
  const std::string origin = request.Header("origin");
  const std::string host = request.Header("host");
  const std::string site = request.Header("sec-fetch-site");
  const bool same = origin.empty() || absl::EqualsIgnoreCase(origin, absl::StrCat("http://", host)) ||
                    absl::EqualsIgnoreCase(origin, absl::StrCat("https://", host));
  if (!same || (!site.empty() && site != "same-origin" && site != "none")) {
    return Refused("the request comes from another site's page", "use the dashboard's own page, or pawl");
  }
  return absl::OkStatus();
}

absl::Status CheckContent(const HttpRequest& request) {
  if (request.Header("content-length").empty() && request.Header("transfer-encoding").empty()) {
    return BadField("Content-Length", "the length of the body is required, or Transfer-Encoding: chunked");
  }
  const std::string content = request.Header("content-type");
  const absl::string_view type = absl::StripAsciiWhitespace(absl::string_view(content).substr(0, content.find(';')));
  if (!absl::EqualsIgnoreCase(type, "application/json")) {
    return BadField("Content-Type", "expected application/json");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status HttpGuard::May(const HttpRequest& request, Role role) const {
  const std::string shown = request.Header("authorization");
  absl::string_view token = shown;
  Caller caller;
  if (absl::ConsumePrefix(&token, "Bearer ")) caller.token = std::string(absl::StripAsciiWhitespace(token));
  return access_.Check(caller, role);
}

absl::Status HttpGuard::CheckMcp(const HttpRequest& request) const {
  if (request.method != "GET" && request.method != "POST" && request.method != "DELETE") {
    return BadField("method", "expected POST or DELETE");
  }
  if (absl::Status status = CheckOrigin(request); !status.ok()) return status;
  if (request.method == "POST") {
    if (absl::Status status = CheckContent(request); !status.ok()) return status;
  }
  return May(request, Role::kRead);
}

absl::Status HttpGuard::Check(const HttpRequest& request) const {
  if (loopback_ && !IsLoopbackHost(request.Header("host"))) {
    return Refused("the Host header does not name this machine's loopback",
                   "open it as http://localhost, with the port it listens on");
  }
  // The library would unpack it without a limit; no browser sends it here.
  if (!request.Header("content-encoding").empty()) {
    return BadField("Content-Encoding", "expected a body that is not compressed");
  }
  if (const std::string& coding = request.Header("transfer-encoding"); !coding.empty()) {
    if (!absl::EqualsIgnoreCase(coding, "chunked")) return BadField("Transfer-Encoding", "expected chunked or none");
    // Two that read it differently would take another request out of the body.
    if (!request.Header("content-length").empty()) {
      return BadField("Transfer-Encoding", "expected either this header or Content-Length");
    }
  }
  const bool reads = request.method == "GET" || request.method == "HEAD";
  if (request.path == kMcpPath) return CheckMcp(request);
  if (!reads && request.method != "POST") return BadField("method", "expected GET or POST");
  if (!reads) {
    // A page of another site can send a form or a simple request here. A header of its own takes a preflight request,
    // which is never granted.
    if (request.Header("x-pawl").empty()) {
      return Refused("the header X-Pawl is missing", "send \"X-Pawl: 1\" with every POST");
    }
    if (absl::Status status = CheckOrigin(request); !status.ok()) return status;
    if (absl::Status status = CheckContent(request); !status.ok()) return status;
    return May(request, Role::kSubmit);
  }
  // The page itself holds nothing, and asks for a token where one is needed; neither do /healthz and /readyz.
  const bool tells = absl::StartsWith(request.path + "/", "/api/") || request.path == kMetricsPath;
  return tells ? May(request, Role::kRead) : absl::OkStatus();
}

}  // namespace pawl
