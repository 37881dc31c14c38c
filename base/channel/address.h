#pragma once

#include <string>

namespace pawl {

// unix:/path: a socket of this machine, which the folder's permissions guard.
bool IsUnixSocket(const std::string& address);

// Whether only this machine can reach it: a unix socket, or a port of localhost, 127.0.0.1 or [::1]. A name that merely
// looks like one of these is not.
bool IsLocal(const std::string& address);

// Where a server listens on all of its machine's addresses: 0.0.0.0:7465. Nobody can connect to that.
bool IsEveryAddress(const std::string& address);

}  // namespace pawl
