// What clients of MCP may send: every line of the input is a message, to a server with Pawl's tools over standard input
// and over HTTP, in a session and without.
#include <string>
#include <string_view>

#include "agent/mcp/http.h"
#include "agent/mcp/server.h"
#include "agent/tools/pawl_features.h"
#include "fuzz/fuzz_target.h"
#include "tests/agent/fake_campaigns.h"

namespace pawl {
namespace {

const PawlFeatures& Features() {
  static const auto* features =
      new PawlFeatures(std::make_unique<FakeCampaigns>(), std::make_unique<FakeBundles>(), PawlFeatures::Options());
  return *features;
}

void Try(std::string_view input) {
  McpServerOptions options;
  options.calls_per_second = options.burst = 1e9;
  const McpServer server(Features(), options);
  McpHttp http(server);
  McpSession session;
  session.Open(kNewestSessionVersion, "fuzz");
  Cancellation cancelled;  // nobody waits
  cancelled.Cancel();
  while (!input.empty()) {
    const size_t end = std::min(input.find('\n'), input.size());
    const std::string line(input.substr(0, end));
    input.remove_prefix(std::min(end + 1, input.size()));
    const RpcReading reading = ReadRpcMessage(line);
    if (reading.message && reading.message->kind == RpcMessage::Kind::kRequest) {
      McpServer::Surroundings around;
      around.session = &session;
      around.cancellation = &cancelled;
      around.notify = [](const Json&) {};
      JsonText(server.Answer(*reading.message, EraOf(*reading.message), around).message);
    }
    McpHttpRequest request;
    request.method = "POST";
    // Headers say what the body says, where it says something.
    request.header = [&](const std::string& name) -> std::string {
      if (!reading.message) return "";
      if (name == "mcp-protocol-version") return MetaVersion(*reading.message).value_or("");
      if (name == "mcp-method") return reading.message->method;
      const bool by_uri = reading.message->method == "resources/read";
      return name == "mcp-name" ? TextAt(reading.message->params, by_uri ? "uri" : "name") : "";
    };
    request.body = line;
    // A wait would take its time: over HTTP it is left to the other tests.
    if (line.find("wait") == std::string::npos) http.Answer(request);
  }
}

}  // namespace
}  // namespace pawl

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  pawl::Try(std::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
