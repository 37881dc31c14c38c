#include "agent/drive/agent_usage.h"

#include <cmath>

#include "agent/mcp/json.h"

namespace pawl {
namespace {

constexpr size_t kLongestLine = 4 << 20;
constexpr double kMostTokens = 1e15;

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

}  // namespace

void AgentUsage::Take(std::string_view line) {
  const size_t begin = line.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos || line[begin] != '{' || line.size() > kLongestLine) return;
  const Json event = Json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
  if (!event.is_object()) return;
  const std::string type = TextAt(event, "type");
  if (type == "turn.completed") {  // codex: cached tokens are part of the input's
    tokens_ += static_cast<int64_t>(SumAt(Below(&event, "usage"), {"input_tokens", "output_tokens"}));
  } else if (type == "assistant") {  // claude, a step
    tokens_ += static_cast<int64_t>(
        SumAt(Below(Below(&event, "message"), "usage"),
              {"input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens"}));
  } else if (type == "result") {  // claude and gemini, the whole
    const Json* usage = Below(&event, "usage");
    const Json* stats = Below(&event, "stats");
    total_tokens_ = static_cast<int64_t>(
        SumAt(usage, {"input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens"}) +
        AmountAt(stats, "total_tokens"));
    total_dollars_ = AmountAt(&event, "total_cost_usd");
  } else if (type == "step_finish") {  // opencode, a step
    const Json* part = Below(&event, "part");
    const Json* tokens = Below(part, "tokens");
    tokens_ += static_cast<int64_t>(SumAt(tokens, {"input", "output", "reasoning"}) +
                                    SumAt(Below(tokens, "cache"), {"read", "write"}));
    dollars_ += AmountAt(part, "cost");
  }
}

}  // namespace pawl
