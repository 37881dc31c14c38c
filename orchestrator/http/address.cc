#include "orchestrator/http/address.h"

#include <arpa/inet.h>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace pawl {
namespace {

bool AllDigits(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

bool IsLoopback(const std::string& host) {
  in_addr four;  // and no name that only looks like one
  if (inet_pton(AF_INET, host.c_str(), &four) == 1) return ntohl(four.s_addr) >> 24 == 127;
  return host == "::1" || host == "localhost";
}

}  // namespace

std::string HttpAddress::Url(bool encrypted) const {
  const bool six = absl::StrContains(host, ':');
  return absl::StrCat(encrypted ? "https://" : "http://", six ? "[" : "", host, six ? "]" : "", ":", port, "/");
}

absl::StatusOr<HttpAddress> ParseHttpAddress(const std::string& text) {
  const absl::Status mistake = absl::InvalidArgumentError(
      absl::StrCat("\"", text, "\" is not a valid dashboard address; expected host:port, or a port on 127.0.0.1"));
  const size_t colon = text.rfind(':');
  const std::string port = colon == std::string::npos ? text : text.substr(colon + 1);
  HttpAddress address;
  if (!AllDigits(port) || !absl::SimpleAtoi(port, &address.port) || address.port > 65535) return mistake;
  address.host = colon == std::string::npos ? "127.0.0.1" : text.substr(0, colon);
  if (absl::StartsWith(address.host, "[") && absl::EndsWith(address.host, "]")) {
    address.host = address.host.substr(1, address.host.size() - 2);
    in6_addr six;
    if (inet_pton(AF_INET6, address.host.c_str(), &six) != 1) return mistake;
  } else if (address.host.empty() || address.host.find_first_of(":/ ") != std::string::npos) {
    return mistake;
  }
  address.loopback = IsLoopback(address.host);
  // The name may stand for both of its addresses; a socket has one.
  if (address.host == "localhost") address.host = "127.0.0.1";
  return address;
}

bool IsLoopbackHost(const std::string& host_header) {
  std::string host = absl::AsciiStrToLower(host_header);
  const size_t colon = host.rfind(':');
  if (colon != std::string::npos && AllDigits(host.substr(colon + 1))) host.resize(colon);
  if (absl::StartsWith(host, "[")) return host == "[::1]";
  return host != "::1" && IsLoopback(host);
}

}  // namespace pawl
