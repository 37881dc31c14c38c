#include <CLI/CLI.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/options/help_format.h"
#include "cli/connect/flags.h"
#include "cli/output/help_files.h"

namespace pawl {
namespace {

struct Flag {
  std::string name;  // with its dashes
  std::string text;
  bool takes_value = false;
  ValueKind kind;
};

struct Command {
  std::string name;  // empty: the program itself
  std::string text;
  std::vector<Flag> flags;
  ValueKind arguments;  // of all its arguments together
};

Command Describe(const CLI::App& app, const std::string& name) {
  Command command{name, app.get_description(), {}, {}};
  for (const CLI::Option* option : app.get_options()) {
    const ValueKind kind = KindOf(*option);
    if (option->get_positional()) {
      command.arguments.words.insert(command.arguments.words.end(), kind.words.begin(), kind.words.end());
      command.arguments.file = command.arguments.file || kind.file;
      continue;
    }
    if (option->get_lnames().empty()) continue;
    command.flags.push_back(
        {absl::StrCat("--", option->get_lnames()[0]), option->get_description(), TakesValue(*option), kind});
  }
  return command;
}

// The program itself first. Global flags come before a command, too.
std::vector<Command> Commands(const CLI::App& app) {
  std::vector<Command> commands = {Describe(app, "")};
  CLI::App global;
  ConnectionFlags connection;
  bool json = false;
  AddConnectionFlags(global, &connection);
  AddJsonFlag(global, &json);
  for (const Flag& flag : Describe(global, "").flags) {
    if (flag.name != "--help") commands[0].flags.push_back(flag);
  }
  for (const CLI::App* command : app.get_subcommands({})) commands.push_back(Describe(*command, command->get_name()));
  return commands;
}

std::string Words(const std::vector<Command>& commands) {
  return absl::StrJoin(commands, " ", [](std::string* out, const Command& command) { *out += command.name; });
}

std::string FlagNames(const Command& command) {
  return absl::StrJoin(command.flags, " ", [](std::string* out, const Flag& flag) { *out += flag.name; });
}

// In single quotes of a shell.
std::string ShellQuoted(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

}  // namespace

std::string BashCompletion(const CLI::App& app) {
  const std::vector<Command> commands = Commands(app);
  std::string text =
      "# bash completion for pawl, made by `pawl completion bash`.\n"
      "_pawl() {\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command= i\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    case ${COMP_WORDS[i]} in\n";
  std::vector<std::string> valued;
  for (const Flag& flag : commands[0].flags) {
    if (flag.takes_value) valued.push_back(flag.name);
  }
  absl::StrAppend(&text, "      ", absl::StrJoin(valued, "|"),
                  ") ((i++)) ;;\n"
                  "      -*) ;;\n"
                  "      *) command=${COMP_WORDS[i]}; break ;;\n"
                  "    esac\n"
                  "  done\n"
                  "  COMPREPLY=()\n"
                  "  case \"$command $previous\" in\n");
  for (const Command& command : commands) {
    for (const Flag& flag : command.flags) {
      if (!flag.takes_value) continue;
      absl::StrAppend(&text, "    '", command.name, " ", flag.name, "') ");
      if (!flag.kind.words.empty()) {
        absl::StrAppend(&text, "COMPREPLY=($(compgen -W '", absl::StrJoin(flag.kind.words, " "),
                        "' -- \"$current\")); ");
      } else if (flag.kind.file) {
        text += "compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- \"$current\")); ";
      }
      text += "return ;;\n";
    }
  }
  text +=
      "  esac\n"
      "  local words= files=\n"
      "  case $command in\n";
  for (const Command& command : commands) {
    const bool program = command.name.empty();
    std::vector<std::string> plain = command.arguments.words;
    if (program) {
      for (size_t i = 1; i < commands.size(); ++i) plain.push_back(commands[i].name);
    }
    absl::StrAppend(&text, "    '", command.name, "') if [[ $current == -* ]]; then words='", FlagNames(command),
                    "'; else words='", absl::StrJoin(plain, " "), "'", command.arguments.file ? "; files=1" : "",
                    "; fi ;;\n");
  }
  text +=
      "  esac\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
      "  if [[ -n $files ]]; then\n"
      "    compopt -o filenames 2>/dev/null\n"
      "    COMPREPLY+=($(compgen -f -- \"$current\"))\n"
      "  fi\n"
      "}\n"
      "complete -F _pawl pawl\n";
  return text;
}

std::string ZshCompletion(const CLI::App& app) {
  const std::vector<Command> commands = Commands(app);
  // Brackets and colons end a text of _arguments.
  const auto plain = [](const std::string& text) {
    return absl::StrReplaceAll(text, {{"[", "("}, {"]", ")"}, {":", "\\:"}, {"'", "'\\''"}});
  };
  const auto values = [](const ValueKind& kind) {
    if (!kind.words.empty())
      return absl::StrCat("(", absl::StrReplaceAll(absl::StrJoin(kind.words, " "), {{":", "\\:"}}), ")");
    return std::string(kind.file ? "_files" : "");
  };
  const auto flags = [&](const Command& command) {
    std::string lines;
    for (const Flag& flag : command.flags) {
      absl::StrAppend(&lines, " \\\n        '", flag.name, "[", plain(flag.text), "]",
                      flag.takes_value ? absl::StrCat(":value:", values(flag.kind)) : "", "'");
    }
    return lines;
  };
  std::string text =
      "#compdef pawl\n# zsh completion for pawl, made by `pawl completion zsh`.\n_pawl() {\n  local -a commands\n  "
      "commands=(\n";
  for (size_t i = 1; i < commands.size(); ++i) {
    absl::StrAppend(&text, "    '", commands[i].name, ":", plain(commands[i].text), "'\n");
  }
  absl::StrAppend(&text, "  )\n  local state line\n  _arguments -C", flags(commands[0]),
                  " \\\n        '1:command:->command' '*::argument:->argument'\n"
                  "  case $state in\n"
                  "    command) _describe command commands ;;\n"
                  "    argument) case $words[1] in\n");
  for (size_t i = 1; i < commands.size(); ++i) {
    absl::StrAppend(&text, "      ", commands[i].name, ") _arguments", flags(commands[i]),
                    " \\\n        '*:argument:", values(commands[i].arguments), "' ;;\n");
  }
  return absl::StrCat(text, "    esac ;;\n  esac\n}\ncompdef _pawl pawl\n");
}

std::string FishCompletion(const CLI::App& app) {
  const std::vector<Command> commands = Commands(app);
  std::string text = "# fish completion for pawl, made by `pawl completion fish`.\ncomplete -c pawl -f\n";
  const std::string names = Words({commands.begin() + 1, commands.end()});
  const auto value = [](const ValueKind& kind) {
    if (!kind.words.empty()) return absl::StrCat(" -x -a ", ShellQuoted(absl::StrJoin(kind.words, " ")));
    return std::string(kind.file ? " -r -F" : " -x");
  };
  for (const Command& command : commands) {
    const std::string condition = command.name.empty() ? absl::StrCat("not __fish_seen_subcommand_from ", names)
                                                       : absl::StrCat("__fish_seen_subcommand_from ", command.name);
    const std::string head = absl::StrCat("complete -c pawl -n ", ShellQuoted(condition));
    if (!command.name.empty()) {
      absl::StrAppend(&text, "complete -c pawl -n ",
                      ShellQuoted(absl::StrCat("not __fish_seen_subcommand_from ", names)), " -a ", command.name,
                      " -d ", ShellQuoted(command.text), "\n");
    }
    if (!command.arguments.words.empty()) {
      absl::StrAppend(&text, head, " -a ", ShellQuoted(absl::StrJoin(command.arguments.words, " ")), "\n");
    }
    if (command.arguments.file) absl::StrAppend(&text, head, " -F\n");
    for (const Flag& flag : command.flags) {
      absl::StrAppend(&text, head, " -l ", flag.name.substr(2), flag.takes_value ? value(flag.kind) : "", " -d ",
                      ShellQuoted(flag.text), "\n");
    }
  }
  return text;
}

}  // namespace pawl
