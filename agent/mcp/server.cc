#include "agent/mcp/server.h"

#include <algorithm>
#include <array>
#include <exception>

#include "absl/strings/str_cat.h"
#include "agent/mcp/schema.h"
#include "base/names/spelling.h"
#include "base/names/utf8.h"

namespace pawl {
namespace {

constexpr std::array kSessionVersions = {kNewestSessionVersion, "2025-06-18", "2025-03-26", "2024-11-05"};
constexpr char kMetaVersion[] = "io.modelcontextprotocol/protocolVersion";
constexpr char kMetaCapabilities[] = "io.modelcontextprotocol/clientCapabilities";
constexpr char kMetaClient[] = "io.modelcontextprotocol/clientInfo";
constexpr char kMetaServer[] = "io.modelcontextprotocol/serverInfo";

constexpr int64_t kFixedTtlMs = 3'600'000;  // of what changes with the program only
constexpr size_t kMostCompletions = 100;
constexpr size_t kMostClientName = 100;

RpcError WrongParams(const std::string& message) { return {.code = kInvalidParams, .message = message}; }

RpcError NoMethod(const std::string& method) {
  return {.code = kMethodNotFound,
          .message = absl::StrCat("there is no method ", method.substr(0, 100)),
          .http_status = 404};
}

Json Cacheable(Json result, int64_t ttl_ms, bool for_everyone) {
  result["ttlMs"] = ttl_ms;
  result["cacheScope"] = for_everyone ? "public" : "private";
  return result;
}

RpcError FromStatus(const absl::Status& status) {
  const bool callers = absl::IsInvalidArgument(status) || absl::IsNotFound(status) ||
                       absl::IsFailedPrecondition(status) || absl::IsPermissionDenied(status);
  return {.code = callers ? kInvalidParams : kInternalError, .message = std::string(status.message())};
}

const Json* FindNamed(const Json& definitions, const std::string& name) {
  for (const Json& each : definitions) {
    if (TextAt(each, "name") == name) return &each;
  }
  return nullptr;
}

std::string NoneNamed(const std::string& what, const std::string& name, const Json& definitions) {
  std::vector<std::string> known;
  for (const Json& each : definitions) known.push_back(TextAt(each, "name"));
  return absl::StrCat("there is no ", what, " ", name.substr(0, 64), Expected(name.substr(0, 64), known));
}

// The client's name for itself: of this request's _meta, or of the session.
std::string ClientName(const Json& params, const McpServer::Surroundings& around) {
  if (const Json* meta = JsonAt(params, "_meta")) {
    if (const Json* info = JsonAt(*meta, kMetaClient)) return Shortened(TextAt(*info, "name"), kMostClientName);
  }
  return around.session == nullptr ? "" : around.session->client();
}

// Sends notifications/progress where the request asked for it. MCP wants each to be further than the last.
auto ProgressOf(const Json& params, const McpServer::Surroundings& around) {
  const Json* meta = JsonAt(params, "_meta");
  const Json* token = meta == nullptr ? nullptr : JsonAt(*meta, "progressToken");
  const bool wanted =
      around.notify != nullptr && token != nullptr && (token->is_string() || token->is_number_integer());
  return [wanted, token = wanted ? *token : Json(), notify = around.notify, last = -1.0](
             double done, double total, const std::string& message) mutable {
    if (!wanted || done <= last) return;
    last = done;
    notify(RpcNotification("notifications/progress",
                           {{"progressToken", token}, {"progress", done}, {"total", total}, {"message", message}}));
  };
}

}  // namespace

bool IsSessionVersion(const std::string& version) {
  return std::find(kSessionVersions.begin(), kSessionVersions.end(), version) != kSessionVersions.end();
}

std::optional<std::string> MetaVersion(const RpcMessage& message) {
  const Json* meta = JsonAt(message.params, "_meta");
  const Json* version = meta == nullptr ? nullptr : JsonAt(*meta, kMetaVersion);
  if (version == nullptr || !version->is_string()) return std::nullopt;
  return version->get<std::string>();
}

McpEra EraOf(const RpcMessage& message) {
  const bool stateless = MetaVersion(message) || message.method == "server/discover";
  return stateless ? McpEra::kStateless : McpEra::kSession;
}

std::optional<RpcError> CheckMeta(const RpcMessage& message) {
  const std::optional<std::string> version = MetaVersion(message);
  const Json* meta = JsonAt(message.params, "_meta");
  const Json* capabilities = meta == nullptr ? nullptr : JsonAt(*meta, kMetaCapabilities);
  if (!version || capabilities == nullptr || !capabilities->is_object()) {
    RpcError error = WrongParams(absl::StrCat("params._meta lacks ", version ? kMetaCapabilities : kMetaVersion,
                                              ", which every request has since ", kStatelessVersion));
    error.http_status = 400;
    return error;
  }
  if (*version != kStatelessVersion) {
    return RpcError{.code = kUnsupportedVersion,
                    .message = "Unsupported protocol version",
                    .data = {{"supported", Json::array({kStatelessVersion})}, {"requested", *version}},
                    .http_status = 400};
  }
  return std::nullopt;
}

McpServer::McpServer(const McpFeatures& features, const McpServerOptions& options)
    : features_(features), limit_(options.calls_per_second, options.burst, options.clock) {}

McpAnswer McpServer::Answer(const RpcMessage& request, McpEra era, const Surroundings& around) const {
  Handled handled = RpcError{.code = kTooManyRequests,
                             .message = "too many calls: slow down, and use `wait` instead of asking again and again",
                             .http_status = 429};
  if (limit_.Take()) {
    try {
      handled = Handle(request, era, around);
    } catch (const std::exception& error) {  // an answer that is no JSON, or no memory for it
      handled = RpcError{.code = kInternalError, .message = absl::StrCat("the call failed: ", error.what())};
    }
  }
  if (const RpcError* error = std::get_if<RpcError>(&handled)) {
    // Until 2025-11-25 only malformed messages and floods had statuses of their own.
    const bool plain = era == McpEra::kSession && error->code != kTooManyRequests;
    return {RpcErrorReply(request.id, *error), plain ? 200 : error->http_status};
  }
  Json result = std::get<Json>(std::move(handled));
  if (era == McpEra::kStateless) {
    Json whole = {{"resultType", "complete"}};
    whole.update(result);
    whole["_meta"][kMetaServer] = Identity();
    result = std::move(whole);
  } else {
    result.erase("ttlMs");
    result.erase("cacheScope");
  }
  return {RpcResult(request.id, std::move(result)), 200};
}

McpServer::Handled McpServer::Handle(const RpcMessage& request, McpEra era, const Surroundings& around) const {
  const Json& params = request.params;
  const std::string& method = request.method;
  if (era == McpEra::kStateless) {
    if (std::optional<RpcError> error = CheckMeta(request)) return *std::move(error);
    if (method == "server/discover") return Discover();
  } else {
    if (method == "initialize") return Initialize(params, around);
    if (method == "ping") return Json::object();
    if (around.session == nullptr || !around.session->open()) {
      return RpcError{
          .code = kInvalidRequest,
          .message = absl::StrCat("send initialize first (protocol ", kNewestSessionVersion,
                                  " and before), or the protocol version in params._meta (", kStatelessVersion, ")")};
    }
  }
  if (method == "tools/list") return ListTools(params);
  if (method == "tools/call") return CallTool(params, around);
  if (method == "resources/list") return ListResources(params);
  if (method == "resources/templates/list") {
    return Cacheable({{"resourceTemplates", features_.resource_templates()}}, kFixedTtlMs, true);
  }
  if (method == "resources/read") return ReadResource(params, era);
  if (method == "prompts/list") return Cacheable({{"prompts", features_.prompts()}}, kFixedTtlMs, true);
  if (method == "prompts/get") return GetPrompt(params);
  if (method == "completion/complete") return Complete(params);
  return NoMethod(method);
}

Json McpServer::Capabilities() const {
  return {{"tools", Json::object()},
          {"resources", Json::object()},
          {"prompts", Json::object()},
          {"completions", Json::object()}};
}

Json McpServer::Identity() const { return {{"name", features_.name()}, {"version", features_.version()}}; }

McpServer::Handled McpServer::Initialize(const Json& params, const Surroundings& around) const {
  if (around.session == nullptr) return RpcError{.code = kInternalError, .message = "there is no session to open"};
  const std::string wanted = TextAt(params, "protocolVersion");
  if (wanted.empty()) return WrongParams("protocolVersion is missing");
  const std::string version = IsSessionVersion(wanted) ? wanted : kNewestSessionVersion;
  const Json* client = JsonAt(params, "clientInfo");
  around.session->Open(version, client == nullptr ? "" : Shortened(TextAt(*client, "name"), kMostClientName));
  return Json{{"protocolVersion", version},
              {"capabilities", Capabilities()},
              {"serverInfo", Identity()},
              {"instructions", features_.instructions()}};
}

McpServer::Handled McpServer::Discover() const {
  return Cacheable({{"supportedVersions", Json::array({kStatelessVersion})},
                    {"capabilities", Capabilities()},
                    {"instructions", features_.instructions()}},
                   kFixedTtlMs, true);
}

McpServer::Handled McpServer::ListTools(const Json& params) const {
  if (params.contains("cursor")) return WrongParams("cursor: the list of tools has one page");
  return Cacheable({{"tools", features_.tools()}}, kFixedTtlMs, true);
}

McpServer::Handled McpServer::CallTool(const Json& params, const Surroundings& around) const {
  const std::string name = TextAt(params, "name");
  const Json* tool = FindNamed(features_.tools(), name);
  if (tool == nullptr) return WrongParams(NoneNamed("tool", name, features_.tools()));
  const Json* given = JsonAt(params, "arguments");
  if (given != nullptr && !given->is_object()) return WrongParams("arguments must be an object");
  const Json& schema = (*tool)["inputSchema"];
  const Json arguments = WithTypesOf(given == nullptr ? Json::object() : *given, schema);
  McpToolResult result;
  // Mistakes in the arguments are the model's to correct: MCP wants them as results, not as errors of the protocol.
  if (const std::string mistake = SchemaMistake(arguments, schema); !mistake.empty()) {
    result.failed = true;
    result.content.push_back({{"type", "text"}, {"text", absl::StrCat("wrong arguments of ", name, ": ", mistake)}});
  } else {
    static const Cancellation* const kNever = new Cancellation;
    McpCaller caller = around.caller;
    if (caller.client.empty()) caller.client = ClientName(params, around);
    const McpCall call = {caller, around.cancellation == nullptr ? *kNever : *around.cancellation,
                          ProgressOf(params, around)};
    result = features_.CallTool(name, arguments, call);
  }
  Json reply = Json::object();
  if (!result.structured.is_null()) {
    // For clients that know no structured results.
    Json content = Json::array({{{"type", "text"}, {"text", JsonText(result.structured)}}});
    for (Json& block : result.content) content.push_back(std::move(block));
    reply["content"] = std::move(content);
    reply["structuredContent"] = std::move(result.structured);
  } else {
    reply["content"] = std::move(result.content);
  }
  if (result.failed) reply["isError"] = true;
  return reply;
}

McpServer::Handled McpServer::ListResources(const Json& params) const {
  if (params.contains("cursor") && !params["cursor"].is_string()) return WrongParams("cursor: expected a string");
  absl::StatusOr<McpCached> list = features_.ListResources(TextAt(params, "cursor"));
  if (!list.ok()) return FromStatus(list.status());
  return Cacheable(std::move(list->result), list->ttl_ms, list->for_everyone);
}

McpServer::Handled McpServer::ReadResource(const Json& params, McpEra era) const {
  const std::string uri = TextAt(params, "uri");
  if (uri.empty()) return WrongParams("uri is missing");
  absl::StatusOr<McpCached> read = features_.ReadResource(uri);
  if (absl::IsNotFound(read.status())) {
    return RpcError{.code = era == McpEra::kSession ? kResourceNotFound : kInvalidParams,
                    .message = std::string(read.status().message()),
                    .data = {{"uri", uri}}};
  }
  if (!read.ok()) return FromStatus(read.status());
  return Cacheable(std::move(read->result), read->ttl_ms, read->for_everyone);
}

McpServer::Handled McpServer::GetPrompt(const Json& params) const {
  const std::string name = TextAt(params, "name");
  if (FindNamed(features_.prompts(), name) == nullptr) {
    return WrongParams(NoneNamed("prompt", name, features_.prompts()));
  }
  const Json* given = JsonAt(params, "arguments");
  if (given != nullptr && !given->is_object()) return WrongParams("arguments must be an object");
  const Json arguments = given == nullptr ? Json::object() : *given;
  for (const auto& [argument, value] : arguments.items()) {
    if (!value.is_string()) return WrongParams(absl::StrCat(argument.substr(0, 64), ": expected a string"));
  }
  absl::StatusOr<Json> prompt = features_.GetPrompt(name, arguments);
  if (!prompt.ok()) return FromStatus(prompt.status());
  return *std::move(prompt);
}

McpServer::Handled McpServer::Complete(const Json& params) const {
  const Json* reference = JsonAt(params, "ref");
  const Json* argument = JsonAt(params, "argument");
  const std::string type = reference == nullptr ? "" : TextAt(*reference, "type");
  if (type != "ref/prompt" && type != "ref/resource")
    return WrongParams("ref.type: expected ref/prompt or ref/resource");
  if (argument == nullptr || TextAt(*argument, "name").empty()) return WrongParams("argument.name is missing");
  if (type == "ref/prompt" && FindNamed(features_.prompts(), TextAt(*reference, "name")) == nullptr) {
    return WrongParams(NoneNamed("prompt", TextAt(*reference, "name"), features_.prompts()));
  }
  std::vector<std::string> values = features_.Complete(TextAt(*argument, "name"), TextAt(*argument, "value"));
  const size_t total = values.size();
  if (total > kMostCompletions) values.resize(kMostCompletions);
  return Json{{"completion", {{"values", values}, {"total", total}, {"hasMore", total > kMostCompletions}}}};
}

}  // namespace pawl
