#include <stdlib.h>

#include <cstdio>
#include <exception>

#include "cli/commands/commands.h"

int main(int argc, char** argv) {
  // gRPC's own log would stand between what a command prints; errors come back as statuses.
  setenv("GRPC_VERBOSITY", "NONE", /*replace=*/0);
  try {
    return pawl::RunPawl({argv + 1, argv + argc}, PAWL_VERSION);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "pawl: %s\n", error.what());
    return pawl::kFailed;
  }
}
