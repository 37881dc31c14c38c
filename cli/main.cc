#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <exception>

#include "base/streams/standard_streams.h"
#include "cli/commands/commands.h"

int main(int argc, char** argv) {
  // gRPC's own log would stand between what a command prints; errors come back as statuses.
  setenv("GRPC_VERBOSITY", "NONE", /*replace=*/0);
  pawl::PrepareStreams();
  try {
    const int code = pawl::RunPawl({argv + 1, argv + argc}, PAWL_VERSION);
    const bool failed = std::fflush(stdout) != 0 || std::ferror(stdout) != 0;
    struct stat out;
    // Who stops reading a pipe knows what is missing.
    const bool file = fstat(STDOUT_FILENO, &out) == 0 && !S_ISFIFO(out.st_mode) && !S_ISSOCK(out.st_mode);
    if (!failed || !file) return code;
    std::fprintf(stderr, "pawl: what it printed could not be written: is the disk full?\n");
    return code == 0 ? pawl::kFailed : code;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "pawl: %s\n", error.what());
    return pawl::kFailed;
  }
}
