#include "cli/text/help_format.h"

#include <utility>

namespace pawl {

std::string CommandHelpFormatter::FlagGroups(const CLI::App& app) const {
  std::string text = HelpFormatter::FlagGroups(app);
  if (HasConnectionFlags(app)) text += "  --database FILE, --orchestrator ADDRESS, TLS, ...: pawl help connection\n";
  return text;
}

std::string CommandHelpFormatter::make_group(std::string group, bool is_positional,
                                             std::vector<const CLI::Option*> flags) const {
  if (IsConnectionGroup(group)) return "";
  return HelpFormatter::make_group(std::move(group), is_positional, std::move(flags));
}

bool IsConnectionGroup(const std::string& group) { return group == kConnectionGroup || group == kTlsGroup; }

bool HasConnectionFlags(const CLI::App& command) { return command.get_option_no_throw("--orchestrator") != nullptr; }

}  // namespace pawl
