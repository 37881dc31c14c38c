#include "agent/drive/agent_usage.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "agent/mcp/json.h"

namespace pawl {
namespace {

constexpr size_t kLongestLine = 4 << 20;
constexpr double kMostTokens = 1e12;  // of one report
constexpr size_t kMostMessages = 1000;
constexpr size_t kLongestId = 200;

double AmountAt(const Json* object, const char* key) {
  const Json* value = object == nullptr ? nullptr : JsonAt(*object, key);
  if (value == nullptr || !value->is_number()) return 0;
  const double number = value->get<double>();
  return std::isfinite(number) && number > 0 ? std::min(number, kMostTokens) : 0;
}

double SumAt(const Json* object, std::initializer_list<const char*> keys) {
  double sum = 0;
  for (const char* key : keys) sum += AmountAt(object, key);
  return sum;
}

const Json* Below(const Json* object, const char* key) { return object == nullptr ? nullptr : JsonAt(*object, key); }

int64_t ClaudeTokens(const Json* usage) {
  return static_cast<int64_t>(
      SumAt(usage, {"input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens"}));
}

}  // namespace

void AgentUsage::Take(std::string_view line) {
  const size_t begin = line.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos || line[begin] != '{' || line.size() > kLongestLine || !JsonExcess(line).empty())
    return;
  const Json event = Json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
  if (!event.is_object()) return;
  const std::string type = TextAt(event, "type");
  if (type == "turn.completed") {  // codex: cached tokens are part of the input's
    steps_.tokens += static_cast<int64_t>(SumAt(Below(&event, "usage"), {"input_tokens", "output_tokens"}));
  } else if (type == "assistant") {  // claude, a part of a message
    const Json* message = Below(&event, "message");
    TakeMessage(message == nullptr ? "" : TextAt(*message, "id"), ClaudeTokens(Below(message, "usage")));
  } else if (type == "result") {  // claude and gemini, the whole
    const Json* usage = Below(&event, "usage");
    const Json* stats = Below(&event, "stats");
    const Amount whole = {ClaudeTokens(usage) + static_cast<int64_t>(AmountAt(stats, "total_tokens")),
                          AmountAt(&event, "total_cost_usd")};
    if (whole.tokens > 0 || whole.dollars > 0) TakeResult(TextAt(event, "session_id"), whole);
  } else if (type == "step_finish") {  // opencode, a step
    const Json* part = Below(&event, "part");
    const Json* tokens = Below(part, "tokens");
    steps_.tokens += static_cast<int64_t>(SumAt(tokens, {"input", "output", "reasoning"}) +
                                          SumAt(Below(tokens, "cache"), {"read", "write"}));
    steps_.dollars += AmountAt(part, "cost");
  }
}

// A later part of a message may know of more tokens.
void AgentUsage::TakeMessage(const std::string& id, int64_t tokens) {
  int64_t known = 0;
  if (!id.empty() && id.size() <= kLongestId) {
    const auto [message, is_new] = messages_.emplace(id, 0);
    known = std::exchange(message->second, std::max(message->second, tokens));
    if (is_new) order_.push_back(id);
    if (order_.size() > kMostMessages) {
      messages_.erase(order_.front());
      order_.pop_front();
    }
  }
  steps_.tokens += std::max<int64_t>(0, tokens - known);
}

// A session may report its whole several times; a script may start several.
void AgentUsage::TakeResult(const std::string& session, const Amount& amount) {
  if (session.empty() || session != session_) {
    settled_ = {settled_.tokens + last_.tokens, settled_.dollars + last_.dollars};
  }
  session_ = session.substr(0, kLongestId);
  last_ = amount;
  steps_ = {};
}

}  // namespace pawl
