#include "agent/mcp/http.h"

#include <deque>
#include <thread>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/sync/steady_condition.h"

namespace pawl {
namespace {

constexpr int kMostCalls = 16;                                // at a time: the dashboard is served by the same threads
constexpr auto kStreamLook = std::chrono::milliseconds(300);  // whether the client is still there
constexpr auto kStreamSilence = std::chrono::seconds(5);

McpHttpReply Refused(int status, const Json& id, const RpcError& error) {
  McpHttpReply reply;
  reply.status = status;
  reply.body = JsonText(RpcErrorReply(id, error));
  if (status == 429) reply.headers.emplace_back("Retry-After", "1");
  return reply;
}

McpHttpReply Mismatch(const Json& id, const std::string& message) {
  return Refused(400, id, {.code = kHeaderMismatch, .message = absl::StrCat("Header mismatch: ", message)});
}

// What stands in a header for a text that is no plain ASCII: =?base64?...?=. Nothing: it is not encoded as it says.
std::optional<std::string> Decoded(const std::string& value) {
  absl::string_view text = value;
  if (!absl::StartsWith(text, "=?base64?") || !absl::EndsWith(text, "?=") || text.size() < 11) return value;
  text.remove_prefix(9);
  text.remove_suffix(2);
  std::string decoded;
  if (text.size() % 4 != 0 || !absl::Base64Unescape(text, &decoded)) return std::nullopt;
  return decoded;
}

// Headers of a stateless request must repeat what its body says.
std::optional<McpHttpReply> HeaderMistake(const McpHttpRequest& request, const RpcMessage& message) {
  const std::string method = request.header("mcp-method");
  if (method != message.method) {
    return Mismatch(message.id, method.empty()
                                    ? "Mcp-Method is missing"
                                    : absl::StrCat("Mcp-Method is not the body's ", message.method.substr(0, 100)));
  }
  const bool by_uri = message.method == "resources/read";
  if (!by_uri && message.method != "tools/call" && message.method != "prompts/get") return std::nullopt;
  const std::string name = request.header("mcp-name");
  if (name.empty()) return Mismatch(message.id, "Mcp-Name is missing");
  const std::optional<std::string> decoded = Decoded(name);
  if (!decoded) return Mismatch(message.id, "Mcp-Name is not valid Base64");
  const std::string in_body = TextAt(message.params, by_uri ? "uri" : "name");
  if (*decoded != in_body) {
    return Mismatch(message.id, absl::StrCat("Mcp-Name is not the body's ", in_body.substr(0, 100)));
  }
  return std::nullopt;
}

// A call in a thread of its own, whose notifications and reply are read piece by piece.
class CallStream final : public McpHttpStream {
 public:
  // `answer` runs until it has the reply, or until it finds itself cancelled.
  using Answer = std::function<McpAnswer(const Cancellation&, const std::function<void(const Json&)>& notify)>;

  // The call is under way for as long as this holds `running`.
  CallStream(std::shared_ptr<Cancellation> cancellation, Answer answer, std::shared_ptr<void> running)
      : cancellation_(std::move(cancellation)), running_(std::move(running)) {
    thread_ = std::thread([this, answer = std::move(answer)] {
      const McpAnswer reply =
          answer(*cancellation_, [this](const Json& notification) { Put(notification, /*last=*/false); });
      Put(reply.message, /*last=*/true);
    });
  }

  ~CallStream() override {
    cancellation_->Cancel();
    thread_.join();
  }

  bool Next(std::string* piece) override {
    piece->clear();
    absl::MutexLock lock(&mutex_);
    const auto now = std::chrono::steady_clock::now();
    while (messages_.empty() && !over_ && changed_.WaitUntil(&mutex_, now + kStreamLook)) {
    }
    if (!messages_.empty()) {
      *piece = absl::StrCat("event: message\ndata: ", messages_.front(), "\n\n");
      messages_.pop_front();
      spoke_ = std::chrono::steady_clock::now();
    } else if (!over_ && std::chrono::steady_clock::now() - spoke_ > kStreamSilence) {
      *piece = ": still here\n\n";
      spoke_ = std::chrono::steady_clock::now();
    }
    return !over_ || !messages_.empty();
  }

 private:
  void Put(const Json& message, bool last) {
    absl::MutexLock lock(&mutex_);
    // A cancelled call has no reply.
    if (!cancellation_->cancelled()) messages_.push_back(JsonText(message));
    over_ = over_ || last;
    changed_.SignalAll();
  }

  const std::shared_ptr<Cancellation> cancellation_;
  const std::shared_ptr<void> running_;
  absl::Mutex mutex_;
  SteadyCondition changed_;
  std::deque<std::string> messages_ ABSL_GUARDED_BY(mutex_);
  bool over_ ABSL_GUARDED_BY(mutex_) = false;
  std::chrono::steady_clock::time_point spoke_ ABSL_GUARDED_BY(mutex_) = std::chrono::steady_clock::now();
  std::thread thread_;
};

}  // namespace

McpHttpReply McpHttp::Answer(const McpHttpRequest& request) {
  if (request.method == "POST") return Post(request);
  if (request.method == "DELETE") {
    const bool ended = sessions_.End(request.header("mcp-session-id"), request.owner);
    if (!ended) return Refused(404, nullptr, {.code = kInvalidRequest, .message = "there is no such session"});
    McpHttpReply reply;
    reply.status = 204;
    return reply;
  }
  McpHttpReply reply = Refused(405, nullptr, {.code = kInvalidRequest, .message = "send messages by POST"});
  reply.headers.emplace_back("Allow", "POST, DELETE");
  return reply;
}

McpHttpReply McpHttp::Post(const McpHttpRequest& request) {
  RpcReading reading = ReadRpcMessage(request.body);
  if (!reading.message) return Refused(reading.error.http_status, reading.id, reading.error);
  const RpcMessage& message = *reading.message;
  const std::string version = request.header("mcp-protocol-version");
  const bool by_header = !version.empty() && !IsSessionVersion(version);
  if (by_header || EraOf(message) == McpEra::kStateless) return AnswerStateless(request, message);
  return AnswerInSession(request, message);
}

McpHttpReply McpHttp::AnswerStateless(const McpHttpRequest& request, const RpcMessage& message) {
  if (message.kind == RpcMessage::Kind::kResponse) {
    return Refused(400, nullptr,
                   {.code = kInvalidRequest, .message = "a client sends requests and notifications only"});
  }
  if (message.kind == RpcMessage::Kind::kNotification) {
    McpHttpReply reply;
    reply.status = 202;
    return reply;
  }
  const std::string version = request.header("mcp-protocol-version");
  const std::optional<std::string> in_body = MetaVersion(message);
  if (in_body && *in_body != version) {
    return Mismatch(message.id, version.empty() ? "MCP-Protocol-Version is missing"
                                                : "MCP-Protocol-Version is not the version in params._meta");
  }
  if (const std::optional<RpcError> error = CheckMeta(message)) return Refused(error->http_status, message.id, *error);
  if (std::optional<McpHttpReply> mistake = HeaderMistake(request, message)) return *std::move(mistake);
  return Run(request, message, McpEra::kStateless, nullptr);
}

McpHttpReply McpHttp::AnswerInSession(const McpHttpRequest& request, const RpcMessage& message) {
  const auto now = std::chrono::steady_clock::now();
  if (message.kind == RpcMessage::Kind::kRequest && message.method == "initialize") {
    const auto session = std::make_shared<McpSession>();
    McpHttpReply reply = Run(request, message, McpEra::kSession, session);
    if (session->open()) reply.headers.emplace_back("Mcp-Session-Id", sessions_.Add(request.owner, session, now));
    return reply;
  }
  const std::string id = request.header("mcp-session-id");
  if (id.empty()) {
    return Refused(
        400, message.id,
        {.code = kInvalidRequest,
         .message = absl::StrCat("Mcp-Session-Id is missing: send initialize first (protocol ", kNewestSessionVersion,
                                 " and before), or MCP-Protocol-Version: ", kStatelessVersion)});
  }
  const std::shared_ptr<McpSession> session = sessions_.Find(id, request.owner, now);
  if (session == nullptr) {
    return Refused(404, message.id,
                   {.code = kInvalidRequest, .message = "there is no such session: send initialize again"});
  }
  if (message.kind == RpcMessage::Kind::kRequest) return Run(request, message, McpEra::kSession, session);
  if (message.method == "notifications/cancelled") {
    if (const Json* cancelled = JsonAt(message.params, "requestId")) session->Cancel(*cancelled);
  }
  McpHttpReply reply;
  reply.status = 202;
  return reply;
}

McpHttpReply McpHttp::Run(const McpHttpRequest& request, const RpcMessage& message, McpEra era,
                          const std::shared_ptr<McpSession>& session) {
  const std::shared_ptr<void> counted(nullptr, [count = running_](void*) { --*count; });
  if (running_->fetch_add(1) >= kMostCalls) {
    return Refused(429, message.id,
                   {.code = kTooManyRequests,
                    .message = absl::StrCat("more than ", kMostCalls, " calls at a time: try again in a second")});
  }
  std::shared_ptr<Cancellation> cancellation = session == nullptr ? nullptr : session->Begin(message.id);
  if (session == nullptr) cancellation = std::make_shared<Cancellation>();
  if (cancellation == nullptr) {
    return Refused(400, message.id, {.code = kInvalidRequest, .message = "another request with this id is under way"});
  }
  // Whatever fails from here on, a thread that can't be started among it, the call ends.
  const std::shared_ptr<void> running(nullptr, [counted, session, id = message.id](void*) {
    if (session != nullptr) session->End(id);
  });
  const auto answer = [this, message, era, session, caller = request.caller](
                          const Cancellation& cancelled, const std::function<void(const Json&)>& notify) {
    McpServer::Surroundings around;
    around.caller = caller;
    around.session = session.get();
    around.cancellation = &cancelled;
    around.notify = notify;
    return server_.Answer(message, era, around);
  };
  const Json* meta = JsonAt(message.params, "_meta");
  const bool streams = message.method == "tools/call" &&
                       absl::StrContains(request.header("accept"), "text/event-stream") &&
                       ((meta != nullptr && meta->contains("progressToken")) ||
                        server_.features().TakesLong(TextAt(message.params, "name")));
  McpHttpReply reply;
  if (streams) {
    reply.headers.emplace_back("X-Accel-Buffering", "no");
    reply.stream = std::make_unique<CallStream>(cancellation, answer, running);
    return reply;
  }
  const Cancellation cancelled_or_left(
      [&] { return cancellation->cancelled() || (request.left != nullptr && request.left()); });
  const McpAnswer answered = answer(cancelled_or_left, nullptr);
  reply.status = answered.http_status;
  reply.body = JsonText(answered.message);
  if (reply.status == 429) reply.headers.emplace_back("Retry-After", "1");
  return reply;
}

}  // namespace pawl
