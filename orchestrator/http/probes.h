#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "orchestrator/http/exchange.h"

namespace pawl {

inline constexpr char kMetricsPath[] = "/metrics";

// What programs that watch a service ask for; both may be called from any thread.
struct HttpProbes {
  std::function<absl::StatusOr<std::string>()> metrics = nullptr;  // Prometheus' text format; null: no such path
  std::function<absl::Status()> ready = nullptr;                   // whether requests are served; null: they are
  std::function<std::string()> remark = nullptr;                   // what /readyz adds where they are; empty: nothing
};

// /metrics, and without a token: /healthz (the process answers) and /readyz (it serves requests, 503 otherwise).
bool IsProbe(const std::string& path);
HttpReply AnswerProbe(const HttpProbes& probes, const HttpRequest& request);

}  // namespace pawl
