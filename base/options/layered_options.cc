#include "base/options/layered_options.h"

#include <CLI/CLI.hpp>
#include <cctype>
#include <cstdlib>
#include <memory>
#include <optional>
#include <sstream>
#include <vector>

#include "base/toml/settings_text.h"
#include "base/toml/toml.h"

namespace pawl {
namespace {

// Says where a mistake is and what was expected; CLI11 only says that it "was not able to parse" a key.
void Check(const CLI::App& app, const std::string& text, const std::string& file) {
  const toml::parse_result parsed = toml::parse(text, file);
  const auto refuse = [&](const toml::source_region& where, const std::string& message) {
    throw CLI::ConfigError(file + ":" + std::to_string(where.begin.line) + ": " + message);
  };
  if (!parsed) {
    refuse(parsed.error().source(), std::string(parsed.error().description()) + "; expected lines like key = \"text\"");
  }
  std::string known;
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_configurable() || option->get_lnames().empty()) continue;
    known += (known.empty() ? "" : ", ") + option->get_lnames()[0];
  }
  for (const auto& [key, node] : parsed.table()) {
    const std::string name(key.str());
    const CLI::Option* option = app.get_option_no_throw("--" + name);
    if (option == nullptr || !option->get_configurable()) {
      refuse(node.source(), "unknown key \"" + name + "\"; there are " + known);
    }
    if (node.is_table()) refuse(node.source(), "\"" + name + "\" is a table; expected a value");
  }
}

// CLI11 lets the file win over the environment; here the environment wins.
class ConfigBelowEnvironment : public CLI::ConfigTOML {
 public:
  explicit ConfigBelowEnvironment(const CLI::App& app) : app_(app) {}

  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override {
    const std::string file = app_.get_config_ptr()->as<std::string>();
    const std::optional<std::string> text = ReadSettings(input);
    if (!text) throw CLI::ConfigError(file + " is longer than 1 MB; expected a TOML file with options");
    Check(app_, *text, file);
    std::istringstream checked(*text);
    std::vector<CLI::ConfigItem> items = CLI::ConfigTOML::from_config(checked);
    std::erase_if(items, [](const CLI::ConfigItem& item) {
      const char* set = std::getenv(EnvironmentName(item.name).c_str());
      return set != nullptr && *set != '\0';
    });
    return items;
  }

 private:
  const CLI::App& app_;  // that owns it
};

}  // namespace

std::string EnvironmentName(const std::string& option) {
  std::string name = "PAWL_";
  for (const unsigned char c : option) name += c == '-' ? '_' : static_cast<char>(std::toupper(c));
  return name;
}

void AddConfigFile(CLI::App& app) {
  app.config_formatter(std::make_shared<ConfigBelowEnvironment>(app));
  app.set_config("--config", "", "TOML file with options")->type_name("FILE");
  app.allow_config_extras(CLI::config_extras_mode::error);
}

}  // namespace pawl
