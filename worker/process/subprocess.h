#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "worker/process/process.h"

namespace pawl {

struct ProcessOptions {
  std::vector<std::string> argv;           // no shell; argv[0] is looked up on PATH unless it has a slash
  std::map<std::string, std::string> env;  // added to the caller's
  std::string directory;                   // empty: the caller's
  std::string input;                       // its standard input
  absl::Duration timeout = absl::Minutes(1);
  absl::Duration grace = absl::Seconds(1);  // between TERM and KILL
  size_t output_cap = 16 << 20;             // of standard output and of standard error, each; the rest is discarded
  // False: stays in the caller's process group, whose owner kills it whole; at the deadline only the process itself
  // is killed here.
  bool own_group = true;
  Stopped stopped = nullptr;  // ends it at once
};

struct ProcessResult {
  int exit_code = 0;  // -1 when it died of a signal
  int signal = 0;     // not 0: it died of this
  bool timed_out = false;
  bool truncated = false;  // output went past the cap
  std::string out;
  std::string err;
  double seconds = 0;

  bool ok() const { return exit_code == 0 && signal == 0 && !timed_out; }
};

// "exited with code 3", "died of signal 9 (Killed)", "was killed after 10 s: it had not ended by its deadline".
std::string EndText(const ProcessResult& result);

// Runs a program to its end. It has a process group of its own: at the deadline the group gets TERM, then KILL, and
// whatever the program left behind in its group is killed when it ends. An error status means that it could not be
// started, or CANCELLED: it was stopped; a program that failed is a result. Thread-safe.
absl::StatusOr<ProcessResult> RunProcess(const ProcessOptions& options);

}  // namespace pawl
