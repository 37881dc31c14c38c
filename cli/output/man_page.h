#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace pawl {

struct ManPage {
  std::string file;  // pawl-history.1
  std::string text;  // for man(1)
};

// A page for `pawl` and one for each of its commands, made from their help.
std::vector<ManPage> ManPages(const CLI::App& app, const std::string& version);

}  // namespace pawl
