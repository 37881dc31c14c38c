#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace pawl {

// The help of a program or command in 80 columns, for people: an option's type is one word, its default stands behind
// its text. Words in a footer's prose are wrapped, its examples stand as they are.
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter();
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
  std::string make_option_usage(const CLI::Option* option) const override;
  std::string make_subcommand(const CLI::App* command) const override;
  std::string make_footer(const CLI::App* app) const override;

  // All flags by group.
  virtual std::string FlagGroups(const CLI::App& app) const;
};

// What a flag or an argument takes, as its help and its completion have it.
struct ValueKind {
  std::vector<std::string> words;  // one of these; empty: anything
  bool file = false;               // a file or a folder
};
ValueKind KindOf(const CLI::Option& option);

// False for a flag that is only given or not.
bool TakesValue(const CLI::Option& option);

// For a program that has no format of its own; before it gets subcommands, which inherit it.
void UseHelpFormat(CLI::App& app);

}  // namespace pawl
