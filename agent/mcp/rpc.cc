#include "agent/mcp/rpc.h"

#include "absl/strings/str_cat.h"

namespace pawl {
namespace {

RpcError BadMessage(int code, const std::string& message) {
  return {.code = code, .message = message, .data = nullptr, .http_status = 400};
}

}  // namespace

RpcReading ReadRpcMessage(std::string_view text) {
  RpcReading reading;
  if (text.size() > kMostMessageBytes) {
    reading.error =
        BadMessage(kInvalidRequest, absl::StrCat("the message has more than ", kMostMessageBytes, " bytes"));
    return reading;
  }
  if (const std::string excess = JsonExcess(text); !excess.empty()) {
    reading.error = BadMessage(kInvalidRequest, absl::StrCat("the message ", excess));
    return reading;
  }
  Json json = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) {
    reading.error = BadMessage(kParseError, "the message is not JSON (RFC 8259, UTF-8)");
    return reading;
  }
  if (json.is_array()) {
    reading.error = BadMessage(kInvalidRequest, "batches are not supported: send one message at a time");
    return reading;
  }
  if (!json.is_object()) {
    reading.error = BadMessage(kInvalidRequest, "a message is an object with jsonrpc, method and params");
    return reading;
  }
  const Json* id = JsonAt(json, "id");
  const bool good_id = id != nullptr && (id->is_string() || id->is_number_integer());
  if (good_id) reading.id = *id;
  if (TextAt(json, "jsonrpc") != "2.0") {
    reading.error = BadMessage(kInvalidRequest, "expected \"jsonrpc\": \"2.0\"");
    return reading;
  }
  if (id != nullptr && !good_id && json.contains("method")) {
    reading.error = BadMessage(kInvalidRequest, "the id of a request must be a string or an integer");
    return reading;
  }
  RpcMessage message;
  message.id = reading.id;
  message.method = TextAt(json, "method");
  if (message.method.empty()) {
    if (!json.contains("method") && (json.contains("result") || json.contains("error"))) {
      message.kind = RpcMessage::Kind::kResponse;
      reading.message = std::move(message);
      return reading;
    }
    reading.error = BadMessage(kInvalidRequest, "the method is missing or empty");
    return reading;
  }
  message.kind = good_id ? RpcMessage::Kind::kRequest : RpcMessage::Kind::kNotification;
  if (Json* params = json.contains("params") ? &json["params"] : nullptr; params != nullptr) {
    if (!params->is_object()) {
      reading.error = BadMessage(kInvalidRequest, "params must be an object");
      return reading;
    }
    message.params = std::move(*params);
  }
  reading.message = std::move(message);
  return reading;
}

Json RpcResult(const Json& id, Json result) { return {{"jsonrpc", "2.0"}, {"id", id}, {"result", std::move(result)}}; }

Json RpcErrorReply(const Json& id, const RpcError& error) {
  Json reply = {{"jsonrpc", "2.0"}};
  if (!id.is_null()) reply["id"] = id;
  reply["error"] = {{"code", error.code}, {"message", error.message}};
  if (!error.data.is_null()) reply["error"]["data"] = error.data;
  return reply;
}

Json RpcNotification(const std::string& method, Json params) {
  return {{"jsonrpc", "2.0"}, {"method", method}, {"params", std::move(params)}};
}

}  // namespace pawl
