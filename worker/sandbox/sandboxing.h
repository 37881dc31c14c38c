#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/host/toolkit.h"
#include "worker/sandbox/sandbox.h"

namespace pawl {

// How this machine locks in what runs candidates and other people's code: each member function turns a program's
// arguments into those of pawl-sandbox around it. Where there is no sandbox they stay as they are.
class Sandboxing {
 public:
  Sandboxing() = default;  // none

  // Tests whether a sandbox is available in which CUDA works. FailedPrecondition: none is, and `allow_unsandboxed` is
  // false.
  static absl::StatusOr<Sandboxing> Make(const Toolkit& toolkit, const std::string& runner_program,
                                         bool allow_unsandboxed);

  bool on() const { return !program_.empty(); }
  // "sandboxed (a user of its own, Landlock 7, ...)", or why not.
  const std::string& description() const { return description_; }

  // pawl-runner, which speaks on its standard descriptors and has one more.
  std::vector<std::string> Runner(const std::vector<std::string>& argv, int kept_fd) const;
  // ncu or compute-sanitizer over a job in a folder of the worker's own, where it may write.
  std::vector<std::string> Tool(const std::vector<std::string>& argv, const std::string& folder) const;
  // A bundle's baseline command, which is its author's code, standing in the folder of its files. Sees the Python that
  // it names with all its packages. `own` is a folder of the worker's own, perhaps the same: only that is opened to it.
  std::vector<std::string> Baseline(const std::vector<std::string>& argv, const std::string& folder,
                                    const std::string& own) const;

  // The Python process that runs bundles' problem.py, standing in a folder of the worker's own. As a baseline, with one
  // more descriptor, that of shared memory of any size.
  std::vector<std::string> Problem(const std::vector<std::string>& argv, const std::string& own, int kept_fd) const;

  // A script that builds and runs what `pawl best --output` writes, standing in a folder of the worker's own, where it
  // may write and execute. As a baseline of that Python; `visible` are further folders to show. `argv_with` makes its
  // arguments for the interpreter that the sandbox shows.
  std::vector<std::string> HandOff(
      const std::string& own, const std::string& python, const std::vector<std::string>& visible,
      const std::function<std::vector<std::string>(const std::string& python)>& argv_with) const;

  // What a runner may see and use.
  SandboxOptions RunnerOptions() const;

 private:
  // Of a Python program and its packages; `argv` becomes that of the interpreter itself.
  SandboxOptions PythonOptions(std::vector<std::string>* argv, const std::string& folder, const std::string& own) const;
  std::vector<std::string> Wrap(const SandboxOptions& options, const std::vector<int>& kept_fds,
                                const std::vector<std::string>& argv) const;

  std::string program_;  // pawl-sandbox; empty: no sandbox
  std::string description_ = "not sandboxed";
  std::vector<std::string> libraries_;  // files and folders that programs inside need beside the system's
  std::vector<std::string> tools_;      // and ncu and compute-sanitizer
  bool reserved_counters_ = false;      // to administrators, by the driver
};

}  // namespace pawl
