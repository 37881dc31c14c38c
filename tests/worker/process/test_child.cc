// A child for the tests of ChildProcess and of the sandbox: does what the name of each request says. With --sandbox it
// enters one first, and says in an unasked reply how that went.

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "base/sync/steady_time.h"
#include "pawl/v1/builder.pb.h"
#include "worker/process/child_process.h"
#include "worker/process/message_pipe.h"
#include "worker/sandbox/sandbox.h"

namespace {

std::string OpenText(const std::string& path, int flags) {
  const int fd = open(path.c_str(), flags, 0600);
  if (fd < 0) return strerror(errno);
  close(fd);
  return "opened";
}

std::string ConnectText() {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(9);
  inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  const int result = connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address));
  return result == 0 ? "connected" : strerror(errno);
}

}  // namespace

int main(int argc, char** argv) {
  using pawl::v1::BuildReply;
  using pawl::v1::BuildRequest;
  BuildRequest request;
  std::unique_ptr<pawl::ChildProcess> child;
  if (argc > 1) {
    pawl::SandboxOptions options;
    for (int i = 2; i < argc; ++i) options.visible.push_back(argv[i]);
    BuildReply hello;
    hello.set_host_error(std::string(pawl::EnterSandbox(options).message()));
    if (!pawl::WriteMessage(1, hello, pawl::SteadyTime::InfiniteFuture()).ok()) _exit(1);
  }
  while (pawl::ReadMessage(0, &request, pawl::SteadyTime::InfiniteFuture()).ok()) {
    BuildReply reply;
    const std::string& name = request.name();
    if (name == "echo") {
      reply.set_log(request.source());
    } else if (name == "chatter") {
      for (int i = 0; i < 100000; ++i) std::fprintf(stderr, "line %d of many\n", i);
    } else if (name == "die") {
      std::fprintf(stderr, "last words\n");
      signal(SIGABRT, SIG_DFL);
      raise(SIGABRT);
    } else if (name == "exit") {
      _exit(5);
    } else if (name == "hang") {
      pause();
    } else if (name == "print") {
      std::printf("this is no message\n");
      std::fflush(stdout);
      pause();
    } else if (name == "close") {
      close(1);
      pause();
    } else if (name == "write to 5") {
      (void)!write(5, "hello", 5);
    } else if (name == "environment") {
      const char* value = getenv(request.source().c_str());
      reply.set_log(value == nullptr ? "unset" : value);
    } else if (name == "read") {
      reply.set_log(OpenText(request.source(), O_RDONLY));
    } else if (name == "create") {
      reply.set_log(OpenText(request.source(), O_WRONLY | O_CREAT));
    } else if (name == "connect") {
      reply.set_log(ConnectText());
    } else if (name == "process id") {
      reply.set_log(std::to_string(getpid()));
    } else if (name == "leave a process") {
      if (fork() == 0) {
        pause();
        _exit(0);
      }
    } else if (name == "own a child") {
      pawl::ChildOptions options;
      options.argv = {argv[0]};
      child = pawl::ChildProcess::Start(options).value();
      reply.set_log(std::to_string(child->pid()));
    }
    if (!pawl::WriteMessage(1, reply, pawl::SteadyTime::InfiniteFuture()).ok()) return 1;
  }
  _exit(0);
}
