// pawl-runner: owns a CUDA context for its parent. Requests on standard input, replies on standard output.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/sync/steady_time.h"
#include "worker/process/message_pipe.h"
#include "worker/runner/job.h"
#include "worker/runner/runner.h"

namespace {

constexpr char kUsage[] =
    "usage: pawl-runner --shared-fd N   serve requests on standard input (started by pawl)\n"
    "       pawl-runner --counters      the same, to read counters (started by pawl)\n"
    "       pawl-runner --job FILE [SECONDS]\n"
    "                                   call each item of a job, or as many as fit into that time (started under ncu "
    "or\n"
    "                                   compute-sanitizer)\n"
    "       pawl-runner --version\n";

int Serve(int shared_fd) {
  // A candidate's device printf goes to standard output: keep that apart from the replies.
  const int requests = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 64);
  const int replies = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 64);
  const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (requests < 0 || replies < 0 || nowhere < 0) return EXIT_FAILURE;
  dup2(nowhere, STDIN_FILENO);
  dup2(nowhere, STDOUT_FILENO);
  signal(SIGPIPE, SIG_IGN);

  pawl::Runner runner(shared_fd);
  for (;;) {
    pawl::v1::RunnerRequest request;
    if (!pawl::ReadMessage(requests, &request, pawl::SteadyTime::InfiniteFuture()).ok())
      return EXIT_SUCCESS;  // the owner is gone
    const pawl::SteadyTime start = pawl::SteadyNow();
    pawl::v1::RunnerReply reply = runner.Answer(request);
    reply.set_seconds(absl::ToDoubleSeconds(pawl::SteadyNow() - start));
    const bool sent = pawl::WriteMessage(replies, reply, pawl::SteadyTime::InfiniteFuture()).ok();
    // Destructors would only fail on a lost context: leave at once.
    if (!sent || reply.context_lost()) _exit(EXIT_FAILURE);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "--version") {
    puts("pawl-runner " PAWL_VERSION);
    return EXIT_SUCCESS;
  }
  if (argc == 2 && std::string(argv[1]) == "--counters") return Serve(-1);
  if ((argc == 3 || argc == 4) && std::string(argv[1]) == "--job") {
    const absl::Duration limit = argc == 4 ? absl::Seconds(atof(argv[3])) : absl::InfiniteDuration();
    const absl::Status status = pawl::RunJob(argv[2], limit);
    if (status.ok()) return EXIT_SUCCESS;
    fprintf(stderr, "pawl-runner: %s\n", std::string(status.message()).c_str());
    return EXIT_FAILURE;
  }
  if (argc == 3 && std::string(argv[1]) == "--shared-fd") return Serve(atoi(argv[2]));
  fputs(kUsage, stderr);
  return 2;
}
