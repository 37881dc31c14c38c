#pragma once

#include "grpcpp/support/server_interceptor.h"
#include "orchestrator/meters/meters.h"

namespace pawl {

// Measures how long each call of ours takes until its status is sent. Streams are not measured: they last for as long
// as someone watches. The meters must outlive the server.
class CallTimers final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit CallTimers(Meters& meters) : meters_(meters) {}
  grpc::experimental::Interceptor* CreateServerInterceptor(grpc::experimental::ServerRpcInfo* info) override;

 private:
  Meters& meters_;
};

}  // namespace pawl
