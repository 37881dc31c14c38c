#include "options/layered_options.h"

#include <CLI/CLI.hpp>
#include <cctype>
#include <cstdlib>
#include <memory>
#include <vector>

namespace pawl {
namespace {

// CLI11 lets the file win over the environment; here the environment wins.
class ConfigBelowEnvironment : public CLI::ConfigTOML {
 public:
  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override {
    std::vector<CLI::ConfigItem> items = CLI::ConfigTOML::from_config(input);
    std::erase_if(items, [](const CLI::ConfigItem& item) {
      const char* set = std::getenv(EnvironmentName(item.name).c_str());
      return set != nullptr && *set != '\0';
    });
    return items;
  }
};

}  // namespace

std::string EnvironmentName(const std::string& option) {
  std::string name = "PAWL_";
  for (const unsigned char c : option) name += c == '-' ? '_' : static_cast<char>(std::toupper(c));
  return name;
}

void AddConfigFile(CLI::App& app) {
  app.config_formatter(std::make_shared<ConfigBelowEnvironment>());
  app.set_config("--config", "", "TOML file with options");
  app.allow_config_extras(CLI::config_extras_mode::error);
}

}  // namespace pawl
