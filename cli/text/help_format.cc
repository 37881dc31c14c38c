#include "cli/text/help_format.h"

#include "absl/strings/str_cat.h"

namespace pawl {

std::string CommandHelpFormatter::FlagGroups(const CLI::App& app) const {
  std::string text = HelpFormatter::FlagGroups(app);
  const CLI::Option* orchestrator = app.get_option_no_throw("--orchestrator");
  if (orchestrator != nullptr && orchestrator->get_group().empty()) {
    text += "  --database FILE, --orchestrator ADDRESS, TLS, ...: pawl help connection\n";
  }
  return text;
}

bool HasConnectionFlags(const CLI::App& command) { return command.get_option_no_throw("--orchestrator") != nullptr; }

}  // namespace pawl
