#include "agent/drive/agent_command.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "agent/mcp/json.h"

namespace pawl {
namespace {

using Words = std::vector<std::string>;

std::string Basename(const std::string& path) { return path.substr(path.rfind('/') + 1); }

void Append(const Words& more, Words* words) { words->insert(words->end(), more.begin(), more.end()); }

// A subcommand that the user may have given.
void InsertSecond(const std::string& word, Words* words) {
  if (std::find(words->begin(), words->end(), word) == words->end()) words->insert(words->begin() + 1, word);
}

// {"mcpServers": {"pawl": {"command": ..., "args": [...]}}}, as most clients read it.
Json McpServers(const Words& mcp, bool trusted) {
  Json server = {{"command", mcp[0]}, {"args", Words(mcp.begin() + 1, mcp.end())}};
  if (trusted) server["trust"] = true;
  return {{"mcpServers", {{"pawl", std::move(server)}}}};
}

AgentStart Codex(const AgentCommand& command, Words words) {
  InsertSecond("exec", &words);
  const Words args(command.mcp.begin() + 1, command.mcp.end());
  Append({"--json", "--skip-git-repo-check", "-c", absl::StrCat("mcp_servers.pawl.command=", JsonText(command.mcp[0])),
          "-c", absl::StrCat("mcp_servers.pawl.args=", JsonText(args)), command.prompt},
         &words);
  return {"codex", std::move(words), {}};
}

AgentStart Claude(const AgentCommand& command, Words words) {
  Append(
      {"--output-format", "stream-json", "--verbose", "--mcp-config", absl::StrCat(command.folder, "/", kMcpConfigFile),
       "--strict-mcp-config", "--allowedTools", "mcp__pawl", "-p", command.prompt},
      &words);
  return {"claude", std::move(words), {}};
}

AgentStart Gemini(const AgentCommand& command, Words words) {
  Append({"--output-format", "stream-json", "--allowed-mcp-server-names", "pawl", "-p", command.prompt}, &words);
  return {"gemini",
          std::move(words),
          {{".gemini/settings.json", JsonText(McpServers(command.mcp, /*trusted=*/true), 2) + "\n"}}};
}

AgentStart Opencode(const AgentCommand& command, Words words) {
  InsertSecond("run", &words);
  Append({"--format", "json", command.prompt}, &words);
  const Json config = {{"mcp", {{"pawl", {{"type", "local"}, {"command", command.mcp}, {"enabled", true}}}}}};
  return {"opencode", std::move(words), {{"opencode.json", JsonText(config, 2) + "\n"}}};
}

AgentStart Other(const AgentCommand& command, Words words) {
  const std::string whole = absl::StrCat(command.folder, "/");
  bool prompted = false;
  for (std::string& word : words) {
    prompted = prompted || absl::StrContains(word, "{prompt}") || absl::StrContains(word, "{prompt_file}");
    word = absl::StrReplaceAll(word, {{"{prompt}", command.prompt},
                                      {"{prompt_file}", absl::StrCat(whole, kPromptFile)},
                                      {"{mcp_config}", absl::StrCat(whole, kMcpConfigFile)}});
  }
  if (!prompted) words.push_back(command.prompt);
  const std::string name = Basename(words[0]);
  return {name, std::move(words), {}};
}

}  // namespace

absl::StatusOr<std::vector<std::string>> CommandWords(const std::string& text) {
  Words words;
  std::string word;
  bool begun = false;
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0 ? c == quote : (c == '\'' || c == '"')) {
      quote = quote != 0 ? 0 : c;
      begun = true;
    } else if (c == '\\' && quote != '\'' && i + 1 < text.size()) {
      word += text[++i];
      begun = true;
    } else if (quote == 0 && (c == ' ' || c == '\t' || c == '\n')) {
      if (begun) words.push_back(std::move(word));
      word.clear();
      begun = false;
    } else {
      word += c;
      begun = true;
    }
  }
  if (quote != 0) return absl::InvalidArgumentError(absl::StrCat("a quote is not closed: ", text));
  if (begun) words.push_back(std::move(word));
  if (words.empty()) return absl::InvalidArgumentError("the command is empty");
  return words;
}

absl::StatusOr<AgentStart> StartOfAgent(const AgentCommand& command) {
  absl::StatusOr<Words> words = CommandWords(command.text);
  if (!words.ok()) return words.status();
  const std::string name = Basename((*words)[0]);
  AgentStart start = name == "codex"      ? Codex(command, *std::move(words))
                     : name == "claude"   ? Claude(command, *std::move(words))
                     : name == "gemini"   ? Gemini(command, *std::move(words))
                     : name == "opencode" ? Opencode(command, *std::move(words))
                                          : Other(command, *std::move(words));
  start.files[kMcpConfigFile] = JsonText(McpServers(command.mcp, /*trusted=*/false), 2) + "\n";
  start.files[kPromptFile] = command.prompt;
  return start;
}

}  // namespace pawl
