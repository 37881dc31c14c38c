#pragma once

#include <cstdint>
#include <string_view>

namespace pawl {

// What an agent reports of what it used, in the lines of JSON that it prints: codex exec --json, claude --output-format
// stream-json, gemini --output-format stream-json, opencode run --format json. Other lines are passed over. For one
// thread.
class AgentUsage {
 public:
  void Take(std::string_view line);

  int64_t tokens() const { return total_tokens_ > tokens_ ? total_tokens_ : tokens_; }
  double dollars() const { return total_dollars_ > dollars_ ? total_dollars_ : dollars_; }

 private:
  // Added up from the steps, and as the last report of the whole says.
  int64_t tokens_ = 0, total_tokens_ = 0;
  double dollars_ = 0, total_dollars_ = 0;
};

}  // namespace pawl
