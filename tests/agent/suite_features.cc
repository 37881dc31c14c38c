#include "tests/agent/suite_features.h"

#include <chrono>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace pawl {
namespace {

// A red pixel, and a moment of silence.
constexpr char kPng[] =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
constexpr char kWav[] = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";

Json TextBlock(const std::string& text) { return {{"type", "text"}, {"text", text}}; }
Json ImageBlock() { return {{"type", "image"}, {"data", kPng}, {"mimeType", "image/png"}}; }
Json ResourceBlock(const std::string& uri, const std::string& type, const std::string& text) {
  return {{"type", "resource"}, {"resource", {{"uri", uri}, {"mimeType", type}, {"text", text}}}};
}
Json UserMessage(Json content) { return {{"role", "user"}, {"content", std::move(content)}}; }

Json SuiteTools() {
  Json tools = Json::array();
  for (const char* name :
       {"test_simple_text", "test_image_content", "test_audio_content", "test_embedded_resource",
        "test_multiple_content_types", "test_error_handling", "test_tool_with_progress", "test_slow_tool"}) {
    tools.push_back({{"name", name},
                     {"description", "for tests"},
                     {"inputSchema", {{"type", "object"}, {"additionalProperties", false}}}});
  }
  tools.push_back(Json::parse(R"({
    "name": "json_schema_2020_12_tool", "description": "Tool with JSON Schema 2020-12 features",
    "inputSchema": {
      "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
      "$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
      "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]}, "phone": {"type": "string"}, "email": {"type": "string"}},
      "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
      "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
      "then": {"required": ["phone"]}, "else": {"required": ["email"]},
      "additionalProperties": false
    }})"));
  return tools;
}

Json SuitePrompts() {
  return Json::parse(R"([
    {"name": "test_simple_prompt", "description": "for tests"},
    {"name": "test_prompt_with_arguments", "description": "for tests",
     "arguments": [{"name": "arg1", "required": true}, {"name": "arg2", "required": true}]},
    {"name": "test_prompt_with_embedded_resource", "description": "for tests", "arguments": [{"name": "resourceUri", "required": true}]},
    {"name": "test_prompt_with_image", "description": "for tests"}])");
}

}  // namespace

SuiteFeatures::SuiteFeatures()
    : tools_(SuiteTools()),
      templates_(Json::array({{{"uriTemplate", "test://template/{id}/data"}, {"name", "template"}}})),
      prompts_(SuitePrompts()) {}

McpToolResult SuiteFeatures::CallTool(const std::string& name, const Json&, const McpCall& call) const {
  McpToolResult result;
  Json& content = result.content;
  if (name == "test_image_content") {
    content.push_back(ImageBlock());
  } else if (name == "test_audio_content") {
    content.push_back({{"type", "audio"}, {"data", kWav}, {"mimeType", "audio/wav"}});
  } else if (name == "test_embedded_resource") {
    content.push_back(ResourceBlock("test://embedded-resource", "text/plain", "This is an embedded resource content."));
  } else if (name == "test_multiple_content_types") {
    content = {TextBlock("Multiple content types test:"), ImageBlock(),
               ResourceBlock("test://mixed-content-resource", "application/json", R"({"test":"data","value":123})")};
  } else if (name == "test_error_handling") {
    result.failed = true;
    content.push_back(TextBlock("This tool intentionally returns an error for testing"));
  } else if (name == "test_tool_with_progress") {
    for (const double done : {0, 50, 50, 100}) call.progress(done, 100, "still at it");
    content.push_back(TextBlock("done"));
  } else if (name == "test_slow_tool") {
    for (int i = 0; i < 2000 && !call.cancellation.cancelled(); ++i) {
      if (i == 0) call.progress(1, 100, "begun");
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    content.push_back(TextBlock(call.cancellation.cancelled() ? "cancelled" : "done"));
  } else {
    content.push_back(TextBlock(name == "test_simple_text" ? "This is a simple text response for testing." : "called"));
  }
  return result;
}

absl::StatusOr<McpCached> SuiteFeatures::ListResources(const std::string& cursor) const {
  if (!cursor.empty()) return absl::InvalidArgumentError("there is one page");
  return McpCached{Json::parse(R"({"resources": [
    {"uri": "test://static-text", "name": "text", "description": "for tests", "mimeType": "text/plain"},
    {"uri": "test://static-binary", "name": "binary", "description": "for tests", "mimeType": "image/png"}]})"),
                   1000, true};
}

absl::StatusOr<McpCached> SuiteFeatures::ReadResource(const std::string& uri) const {
  Json content = {{"uri", uri}};
  absl::string_view id = uri;
  if (uri == "test://static-text") {
    content["mimeType"] = "text/plain";
    content["text"] = "This is the content of the static text resource.";
  } else if (uri == "test://static-binary") {
    content["mimeType"] = "image/png";
    content["blob"] = kPng;
  } else if (absl::ConsumePrefix(&id, "test://template/") && absl::ConsumeSuffix(&id, "/data")) {
    content["mimeType"] = "application/json";
    content["text"] = absl::StrCat(R"({"id":")", id, R"(","templateTest":true,"data":"Data for ID: )", id, "\"}");
  } else {
    return absl::NotFoundError("Resource not found");
  }
  return McpCached{{{"contents", Json::array({content})}}, 0, false};
}

absl::StatusOr<Json> SuiteFeatures::GetPrompt(const std::string& name, const Json& arguments) const {
  Json messages = Json::array();
  if (name == "test_simple_prompt") {
    messages.push_back(UserMessage(TextBlock("This is a simple prompt for testing.")));
  } else if (name == "test_prompt_with_arguments") {
    messages.push_back(UserMessage(TextBlock(absl::StrCat("Prompt with arguments: arg1='", TextAt(arguments, "arg1"),
                                                          "', arg2='", TextAt(arguments, "arg2"), "'"))));
  } else if (name == "test_prompt_with_embedded_resource") {
    messages.push_back(UserMessage(
        ResourceBlock(TextAt(arguments, "resourceUri"), "text/plain", "Embedded resource content for testing.")));
    messages.push_back(UserMessage(TextBlock("Please process the embedded resource above.")));
  } else {
    messages.push_back(UserMessage(ImageBlock()));
    messages.push_back(UserMessage(TextBlock("Please analyze the image above.")));
  }
  return Json{{"messages", std::move(messages)}};
}

std::vector<std::string> SuiteFeatures::Complete(const std::string& argument, const std::string& value) const {
  if (argument == "many") return std::vector<std::string>(150, value);
  return absl::StartsWith("paris", value) ? std::vector<std::string>{"paris"} : std::vector<std::string>();
}

}  // namespace pawl
