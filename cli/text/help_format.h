#pragma once

#include <string>
#include <vector>

#include "base/options/help_format.h"

namespace pawl {

// The help of `pawl`: a command's connection flags are one line of it, `pawl help connection` has the rest.
class CommandHelpFormatter : public HelpFormatter {
 public:
  std::string FlagGroups(const CLI::App& app) const override;
  std::string make_group(std::string group, bool is_positional, std::vector<const CLI::Option*> flags) const override;
};

// The groups of connection flags.
inline constexpr char kConnectionGroup[] = "Connection", kTlsGroup[] = "TLS and authentication";
bool IsConnectionGroup(const std::string& group);

// Whether the command has connection flags.
bool HasConnectionFlags(const CLI::App& command);

}  // namespace pawl
