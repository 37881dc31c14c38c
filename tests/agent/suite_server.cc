// Serves what the official conformance suite wants to see, through the server that the dashboard and /mcp have, on a
// free port of 127.0.0.1. Prints its address, and ends with its standard input.
#include <unistd.h>

#include <cstdio>

#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "orchestrator/http/server.h"
#include "spdlog/spdlog.h"
#include "tests/agent/suite_features.h"

int main() {
  spdlog::set_level(spdlog::level::off);
  pawl::HttpServerOptions options;
  options.address = "0";
  options.mcp = std::make_shared<pawl::SuiteFeatures>();
  const auto nobody = grpc::CreateChannel("unix:/nonexistent", grpc::InsecureChannelCredentials());
  const auto server = pawl::HttpServer::Start(nobody, options);
  if (!server.ok()) {
    std::fprintf(stderr, "%s\n", server.status().ToString().c_str());
    return 1;
  }
  std::printf("%s\n", (*server)->url().c_str());
  std::fflush(stdout);
  char byte;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
  return 0;
}
