#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>

namespace pawl {

// What an agent reports of what it used, in the lines of JSON that it prints: codex exec --json, claude --output-format
// stream-json, gemini --output-format stream-json, opencode run --format json. Other lines are passed over. For one
// thread.
class AgentUsage {
 public:
  void Take(std::string_view line);

  int64_t tokens() const { return steps_.tokens + settled_.tokens + last_.tokens; }
  double dollars() const { return steps_.dollars + settled_.dollars + last_.dollars; }

 private:
  struct Amount {
    int64_t tokens = 0;
    double dollars = 0;
  };
  void TakeMessage(const std::string& id, int64_t tokens);
  void TakeResult(const std::string& session, const Amount& amount);

  Amount steps_;    // since the last report of a whole
  Amount last_;     // that report, which settles the steps before it
  Amount settled_;  // and those of earlier sessions
  std::string session_;
  // Claude prints a message several times. The newest of them, by their ids, with what was counted.
  std::map<std::string, int64_t> messages_;
  std::deque<std::string> order_;
};

}  // namespace pawl
