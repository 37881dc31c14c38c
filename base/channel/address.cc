#include "base/channel/address.h"

#include "absl/strings/match.h"

namespace pawl {

bool IsUnixSocket(const std::string& address) { return absl::StartsWith(address, "unix:"); }

bool IsEveryAddress(const std::string& address) {
  const std::string host = address.substr(0, address.rfind(':'));
  return host == "0.0.0.0" || host == "[::]";
}

bool IsLocal(const std::string& address) {
  if (IsUnixSocket(address)) return true;
  const std::string host = address.substr(0, address.rfind(':'));
  return host == "localhost" || host == "127.0.0.1" || host == "[::1]";
}

}  // namespace pawl
