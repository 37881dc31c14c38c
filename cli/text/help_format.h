#pragma once

#include <string>

#include "base/options/help_format.h"

namespace pawl {

// The help of `pawl`: a command's connection flags are one line of it, `pawl help connection` has the rest.
class CommandHelpFormatter : public HelpFormatter {
 public:
  std::string FlagGroups(const CLI::App& app) const override;
};

// Whether the command has connection flags.
bool HasConnectionFlags(const CLI::App& command);

}  // namespace pawl
