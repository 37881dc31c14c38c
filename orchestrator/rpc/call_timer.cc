#include "orchestrator/rpc/call_timer.h"

#include <chrono>
#include <string>

#include "absl/strings/match.h"

namespace pawl {
namespace {

class CallTimer final : public grpc::experimental::Interceptor {
 public:
  CallTimer(Meters& meters, std::string method) : meters_(meters), method_(std::move(method)) {}

  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(grpc::experimental::InterceptionHookPoints::PRE_SEND_STATUS)) {
      meters_.ObserveCall(method_, absl::FromChrono(std::chrono::steady_clock::now() - begin_));
    }
    methods->Proceed();
  }

 private:
  Meters& meters_;
  const std::string method_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace

grpc::experimental::Interceptor* CallTimers::CreateServerInterceptor(grpc::experimental::ServerRpcInfo* info) {
  const bool ours = absl::StartsWith(info->method(), "/pawl.v1.");  // no health checks, no reflection
  if (!ours || info->type() != grpc::experimental::ServerRpcInfo::Type::UNARY) return nullptr;
  return new CallTimer(meters_, info->method());
}

}  // namespace pawl
