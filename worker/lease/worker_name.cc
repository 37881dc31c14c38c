#include "worker/lease/worker_name.h"

#include <stdlib.h>
#include <unistd.h>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace pawl {
namespace {

constexpr size_t kLongest = 40;  // of a host or pod: what is around it fits into the 64 characters of a name

std::string NamePart(std::string text) {
  for (char& c : text) {
    if (!absl::ascii_isalnum(c) && c != '-' && c != '_' && c != '.') c = '-';
  }
  return text;
}

int NumberIn(const WorkerEnvironment& environment, const char* name) {
  int number = 0;
  return absl::SimpleAtoi(environment(name), &number) ? number : 0;
}

}  // namespace

std::string DefaultWorkerName(const WorkerEnvironment& environment, const std::string& host,
                              const std::string& device) {
  if (const std::string job = environment("SLURM_JOB_ID"); !job.empty()) {
    const std::string node = environment("SLURMD_NODENAME");
    const int requeued = NumberIn(environment, "SLURM_RESTART_COUNT");
    const bool tasks = NumberIn(environment, "SLURM_NTASKS") > 1;
    return absl::StrCat("slurm-", NamePart(job).substr(0, 12), "-",
                        NamePart(node.empty() ? host : node).substr(0, kLongest - 12),
                        requeued > 0 ? absl::StrCat("-r", requeued) : "",
                        tasks ? absl::StrCat("-t", NumberIn(environment, "SLURM_PROCID")) : "", "-", device);
  }
  if (!environment("KUBERNETES_SERVICE_HOST").empty()) {
    const std::string said = environment("POD_NAME");
    const std::string pod = NamePart(said.empty() ? host : said);
    // Its end is what tells it from the others of its job.
    return absl::StrCat("pod-", pod.size() > kLongest ? pod.substr(pod.size() - kLongest) : pod, "-", device);
  }
  return absl::StrCat(NamePart(host).substr(0, 48), "-", device);
}

std::string DefaultWorkerName(const std::string& device) {
  char host[256] = "worker";
  gethostname(host, sizeof(host) - 1);
  const auto environment = [](const char* name) {
    const char* value = getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  return DefaultWorkerName(environment, host, device);
}

}  // namespace pawl
