// `pawl completion`: a script that a shell reads to complete pawl's commands and flags.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "cli/commands/commands.h"
#include "cli/output/help_files.h"

namespace pawl {

void AddCompletion(CLI::App& app, int* exit_code) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("completion", "Print a completion script for bash, zsh or fish");
  command->group(kHelping)->footer(
      "Examples: pawl completion bash > ~/.local/share/bash-completion/completions/pawl\n"
      "          pawl completion zsh > \"${fpath[1]}/_pawl\"\n"
      "          pawl completion fish > ~/.config/fish/completions/pawl.fish");
  command->add_option("SHELL", *shell, "bash, zsh or fish")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->callback([&app, shell, exit_code] {
    const std::string script = *shell == "bash"  ? BashCompletion(app)
                               : *shell == "zsh" ? ZshCompletion(app)
                                                 : FishCompletion(app);
    std::fputs(script.c_str(), stdout);
    *exit_code = kDone;
  });
}

}  // namespace pawl
