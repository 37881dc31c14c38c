#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace pawl {

// How one agent is started.
struct AgentStart {
  std::string name;                          // of the program: codex
  std::vector<std::string> argv;             // no shell
  std::map<std::string, std::string> files;  // of its folder: configuration, by path
};

struct AgentCommand {
  // What the user gave: the name of a known agent (codex, claude, gemini, opencode), such a name with flags, or any
  // other command. Words as in a shell, with quotes. In another command {prompt}, {prompt_file} and {mcp_config} stand
  // for the prompt, its file and the MCP configuration; without {prompt} and {prompt_file} the prompt is its last
  // argument.
  std::string text;
  std::string prompt;
  std::string folder;            // absolute
  std::vector<std::string> mcp;  // the command that serves it Pawl's tools
};

inline constexpr char kPromptFile[] = "PROMPT.md";
inline constexpr char kMcpConfigFile[] = ".mcp.json";

// INVALID_ARGUMENT: no command, or a quote that is not closed.
absl::StatusOr<AgentStart> StartOfAgent(const AgentCommand& command);

// "codex exec 'a b'" as words.
absl::StatusOr<std::vector<std::string>> CommandWords(const std::string& text);

}  // namespace pawl
