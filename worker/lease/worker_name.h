#pragma once

#include <functional>
#include <string>

namespace pawl {

// A variable of the environment; empty: it is not set.
using WorkerEnvironment = std::function<std::string(const char* name)>;

// What a worker calls itself where nobody named it: by its Slurm job and node (slurm-4711-node1-cuda0; -r2 after the
// job's second requeue and -t3 for its fourth task tell such workers apart), by its Kubernetes pod
// (pod-pawl-worker-x7f2p-cuda0), or by its host. `device` is cuda0 or replay.
std::string DefaultWorkerName(const WorkerEnvironment& environment, const std::string& host, const std::string& device);
// The same of this process's environment and host.
std::string DefaultWorkerName(const std::string& device);

}  // namespace pawl
