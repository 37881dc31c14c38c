// Speaks pawl-runner's language without a GPU, for the tests of RunnerProcess: a call does what the name of its module
// says, or is answered when that module is loaded.

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/sync/steady_time.h"
#include "pawl/v1/runner.pb.h"
#include "worker/process/message_pipe.h"

namespace {

using pawl::v1::RunnerReply;
using pawl::v1::RunnerRequest;

std::set<std::string> loaded;
std::vector<std::string> history;  // of loads and unloads in this process

void Fail(pawl::v1::Check check, const std::string& message, RunnerReply* reply) {
  reply->mutable_failure()->set_check(check);
  reply->mutable_failure()->set_message(message);
}

void Open(const pawl::v1::OpenRequest& request, RunnerReply* reply) {
  if (request.device() == 7) return reply->set_host_error("there is no such GPU");
  reply->mutable_open()->mutable_gpu()->set_name(absl::StrCat("GPU ", request.device()));
  reply->mutable_open()->mutable_gpu()->set_uuid(request.support_cubin());
}

void Load(const pawl::v1::LoadRequest& request, RunnerReply* reply) {
  history.push_back("load " + request.module());
  if (request.cubin().empty()) return Fail(pawl::v1::CHECK_ENTRY, "an empty cubin", reply);
  loaded.insert(request.module());
  reply->mutable_load()->add_resources()->set_entry(request.module());
}

void Unload(const pawl::v1::UnloadRequest& request, RunnerReply* reply) {
  history.push_back("unload " + request.module());
  loaded.erase(request.module());
  reply->mutable_load();
}

void Provide(const pawl::v1::ProvideRequest& request, RunnerReply* reply) {
  std::string content;
  for (const auto& part : request.parts()) {
    std::string bytes(static_cast<size_t>(part.bytes()), '\0');
    if (pread(3, bytes.data(), bytes.size(), part.offset()) > 0) absl::StrAppend(&content, " ", bytes);
  }
  history.push_back(absl::StrCat(request.drop() ? "drop " : "provide ", request.pool(), " ", request.entry(), content));
  if (request.pool() == "too large") Fail(pawl::v1::CHECK_OUT_OF_MEMORY, "CUDA 2", reply);
}

void Call(const std::string& what, RunnerReply* reply) {
  if (what == "hang") {
    pause();
  } else if (what == "die") {
    std::fprintf(stderr, "last words\n");
    signal(SIGABRT, SIG_DFL);
    raise(SIGABRT);
  } else if (what == "lose the context") {
    Fail(pawl::v1::CHECK_FAULT, "illegal address", reply);
    reply->set_context_lost(true);
  } else if (what == "host error") {
    reply->set_host_error("CUDA 214: take this GPU out of service");
  } else if (what == "history") {
    for (const std::string& line : history) reply->mutable_call()->add_outputs(line);
  } else if (what == "write to shared memory") {
    (void)!pwrite(3, "hello", 5, 0);
    reply->mutable_call();
  } else if (loaded.count(what)) {
    reply->mutable_call();
  } else {
    Fail(pawl::v1::CHECK_ENTRY, absl::StrCat(what, " is not loaded"), reply);
  }
}

}  // namespace

int main() {
  RunnerRequest request;
  while (pawl::ReadMessage(0, &request, pawl::SteadyTime::InfiniteFuture()).ok()) {
    RunnerReply reply;
    if (request.has_open()) Open(request.open(), &reply);
    if (request.has_load()) Load(request.load(), &reply);
    if (request.has_unload()) Unload(request.unload(), &reply);
    if (request.has_provide()) Provide(request.provide(), &reply);
    if (request.has_call()) Call(request.call().module(), &reply);
    reply.set_seconds(0.25);
    if (!pawl::WriteMessage(1, reply, pawl::SteadyTime::InfiniteFuture()).ok()) _exit(1);
  }
  _exit(0);
}
