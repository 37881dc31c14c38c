#include "tests/orchestrator/orchestrator_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

namespace pawl {

OrchestratorProcess::OrchestratorProcess(const std::vector<std::string>& arguments, const std::string& fault) {
  const char* folder = std::getenv("PAWL_BIN_DIR");
  const std::string program = std::string(folder == nullptr ? "." : folder) + "/pawl-orchestrator";
  int out[2];
  EXPECT_EQ(pipe2(out, O_CLOEXEC), 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  posix_spawn_file_actions_adddup2(&actions, out[1], 2);
  std::vector<char*> argv = {const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  std::string fault_entry = "PAWL_FAULT=" + fault;
  std::vector<char*> environment = {fault_entry.data()};
  for (char** entry = environ; *entry != nullptr; ++entry) environment.push_back(*entry);
  environment.push_back(nullptr);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, program.c_str(), &actions, nullptr, argv.data(), environment.data());
  EXPECT_EQ(error, 0) << program;
  // kill() takes -1 and 0 for whole crowds: only a child that is there has an id.
  if (error == 0 && pid > 0) pid_ = pid;
  posix_spawn_file_actions_destroy(&actions);
  close(out[1]);
  out_ = out[0];
}

OrchestratorProcess::~OrchestratorProcess() {
  if (pid_) {
    Signal(SIGKILL);
    waitpid(*pid_, nullptr, 0);
  }
  close(out_);
}

bool OrchestratorProcess::Listens() {
  char text[4096];
  while (text_.find("listening on") == std::string::npos) {
    const ssize_t size = read(out_, text, sizeof text);
    if (size <= 0) return false;
    text_.append(text, size);
  }
  return true;
}

void OrchestratorProcess::Signal(int signal) {
  if (pid_) kill(*pid_, signal);
}

int OrchestratorProcess::WaitForEnd(std::chrono::milliseconds patience) {
  if (!pid_) return -1;
  const int fd = static_cast<int>(syscall(SYS_pidfd_open, *pid_, 0));
  pollfd ready = {fd, POLLIN, 0};
  const int polled = poll(&ready, 1, static_cast<int>(patience.count()));
  close(fd);
  if (polled != 1) return -1;
  int status = 0;
  waitpid(*pid_, &status, 0);
  pid_.reset();
  return WIFEXITED(status) ? WEXITSTATUS(status) : -2;
}

std::string OrchestratorProcess::Output() {
  char text[4096];
  ssize_t size;
  while ((size = read(out_, text, sizeof text)) > 0) text_.append(text, size);
  return text_;
}

}  // namespace pawl
