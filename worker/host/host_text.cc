#include "worker/host/host_text.h"

#include <sys/utsname.h>

#include <thread>

#include "absl/strings/str_cat.h"

namespace pawl {

std::string HostText() {
  struct utsname host;
  if (uname(&host) != 0) return "";
  return absl::StrCat(host.sysname, " ", host.machine, ", ", std::thread::hardware_concurrency(), " CPUs");
}

}  // namespace pawl
