#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace pawl {

// Scripts that complete commands, flags, values and file names in a shell, made from the commands themselves.
std::string BashCompletion(const CLI::App& app);
std::string ZshCompletion(const CLI::App& app);
std::string FishCompletion(const CLI::App& app);

struct ManPage {
  std::string file;  // pawl-history.1
  std::string text;  // for man(1)
};

// A page for `pawl` and one for each of its commands, made from their help.
std::vector<ManPage> ManPages(const CLI::App& app, const std::string& version);

}  // namespace pawl
