#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/channel/channel.h"

namespace pawl {

// What the command line says; empty: nothing.
struct ConnectionFlags {
  std::string orchestrator{};
  std::string database{};
  std::string config{};
  Credentials credentials{};
};

// Where the orchestrator is.
struct Settings {
  std::string orchestrator;        // its address; empty: the orchestrator that serves the database
  std::filesystem::path database;  // absolute
  // What an orchestrator that a command starts reads instead of what is built in; empty: nothing. Not for one that
  // runs already.
  std::filesystem::path profiles{};
  std::string http{};         // where such an orchestrator serves its dashboard; empty: nowhere
  Credentials credentials{};  // for an orchestrator on a port; one on a unix socket needs none
};

// " --database FILE" or the like: with it, the next command finds what this one did. Empty where it does so anyway.
std::string FlagsText(const ConnectionFlags& flags);

// The same for the credentials, word by word: --tls-cert, FILE and so on.
std::vector<std::string> FlagsOf(Credentials credentials);

using Environment = std::function<std::optional<std::string>(const char*)>;

// Of this process; a variable that is set to nothing counts as not set.
std::optional<std::string> FromEnvironment(const char* name);

// Flags win over the environment (PAWL_ORCHESTRATOR, PAWL_DATABASE, PAWL_CONFIG), that over the config file, that over
// the defaults. A database that is named at one level wins over an orchestrator that is named at a lower one: who says
// `--database FILE` means that file, whatever the environment says. On one level the orchestrator wins. Each file of
// the credentials is found by itself (PAWL_TLS_CERT, PAWL_TLS_KEY, PAWL_TLS_CA, PAWL_TOKEN_FILE; tls-cert and so on in
// the config file).
absl::StatusOr<Settings> ReadSettings(const ConnectionFlags& flags, const Environment& environment = FromEnvironment);

// The user's name, to be recorded with what they ask for.
std::string Author();

}  // namespace pawl
