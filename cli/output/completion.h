#pragma once

#include <string>

namespace CLI {
class App;
}

namespace pawl {

// Scripts that complete commands, flags, values and file names in a shell, made from the commands themselves.
std::string BashCompletion(const CLI::App& app);
std::string ZshCompletion(const CLI::App& app);
std::string FishCompletion(const CLI::App& app);

}  // namespace pawl
