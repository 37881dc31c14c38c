#pragma once

#include <sys/types.h>

#include <set>

namespace pawl {

// Everything that descends from these processes, without them.
std::set<pid_t> Descendants(const std::set<pid_t>& of);

// Makes this process the parent of whatever loses its own below it, to kill that. The children that it has when this is
// made and those of Spawn are left alone. One for a process; for one thread.
class Subreaper {
 public:
  Subreaper();
  ~Subreaper() { KillAdopted(); }

  // With all that descends from it.
  void KillAdopted() const;

 private:
  std::set<pid_t> Adopted() const;

  std::set<pid_t> before_;
};

}  // namespace pawl
