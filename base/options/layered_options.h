#pragma once

#include <string>

namespace CLI {
class App;
}

namespace pawl {

// Adds --config FILE to a daemon's options. Each option may stand on the command line, in the environment
// (EnvironmentName) or in that TOML file; the first of these wins. A key of the file that is no option is an error.
void AddConfigFile(CLI::App& app);

// PAWL_LOG_LEVEL for "log-level".
std::string EnvironmentName(const std::string& option);

}  // namespace pawl
