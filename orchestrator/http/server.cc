#include "orchestrator/http/server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <thread>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "orchestrator/core/errors.h"
#include "orchestrator/core/grpc_status.h"
#include "orchestrator/http/address.h"
#include "orchestrator/http/connections.h"
#include "orchestrator/http/json.h"
#include "orchestrator/http/mcp.h"
#include "orchestrator/http/page.h"
#include "orchestrator/http/stream.h"
#include "orchestrator/http/threads.h"
#include "orchestrator/http/tls.h"
#include "spdlog/spdlog.h"

namespace pawl {
namespace {

// Scripts only from the page's own file, nothing from other origins, no framing.
constexpr char kPolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

constexpr auto kLastReplies = std::chrono::seconds(1);  // for replies under way when it ends

HttpRequest Read(const httplib::Request& from) {
  HttpRequest request;
  request.method = from.method;
  request.path = from.path;
  for (const auto& [name, value] : from.params) request.parameters.emplace(name, value);
  for (const auto& [name, value] : from.headers) request.headers.emplace(absl::AsciiStrToLower(name), value);
  request.body = from.body;
  return request;
}

class RunningHttpServer final : public HttpServer, private httplib::Server {
 public:
  RunningHttpServer(const std::shared_ptr<grpc::Channel>& channel, HttpServerOptions options, HttpAddress address,
                    Access access, TlsContext tls)
      : options_(std::move(options)),
        address_(std::move(address)),
        tls_(std::move(tls)),
        guard_(address_.loopback, std::move(access)),
        api_(channel, guard_, options_.api),
        mcp_(options_.mcp == nullptr ? nullptr : std::make_unique<HttpMcp>(options_.mcp, guard_)) {}

  ~RunningHttpServer() override {
    stopping_ = true;
    stop();
    connections_.End(kLastReplies);
    if (listener_.joinable()) listener_.join();
  }

  absl::Status Listen() {
    new_task_queue = [this] { return threads_ = new HttpThreads(options_.threads, options_.waiting); };
    set_payload_max_length(options_.max_body);
    set_tcp_nodelay(true);
    // The library would let another process share the port.
    set_socket_options([](socket_t socket) {
      const int yes = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      const absl::Status status = guard_.Check(Read(request));
      if (status.ok()) return HandlerResponse::Unhandled;
      Write(ErrorReply(ToGrpc(status)), response);
      return HandlerResponse::Handled;
    });
    const auto handler = [this](const httplib::Request& request, httplib::Response& response) {
      // The library reads no body of a GET.
      const bool body = request.has_header("Content-Length") || request.has_header("Transfer-Encoding");
      if ((request.method != "GET" || !body) && current_ != nullptr) current_->Took();
      // Of a body in chunks it knows the size only now.
      HttpRequest read = Read(request);
      if (current_ != nullptr) read.left = [stream = current_] { return stream->left(); };
      Write(request.body.size() > options_.max_body ? TooLarge() : Answer(read), response);
    };
    Get("[^]*", handler);
    Post("[^]*", handler);
    Delete("[^]*", handler);
    // What the library itself refuses has no body: too long, too large, no HTTP.
    set_error_handler([this](const httplib::Request&, httplib::Response& response) {
      if (!response.body.empty() || response.status == 304) return;
      if (current_ != nullptr && current_->too_large()) return Write(TooLarge(), response);
      HttpReply reply = ErrorReply(ToGrpc(BadField("request", "not a valid HTTP request, or too large")));
      reply.status = response.status;
      Write(std::move(reply), response);
    });
    set_exception_handler([this](const httplib::Request&, httplib::Response& response, std::exception_ptr) {
      Write(ErrorReply(ToGrpc(absl::InternalError("the request could not be answered"))), response);
    });
    const bool bound = address_.port == 0 ? (address_.port = bind_to_any_port(address_.host)) > 0
                                          : bind_to_port(address_.host, address_.port);
    if (!bound) {
      return absl::UnavailableError(
          absl::StrCat("can't listen on ", options_.address, " for the dashboard; name another address with --http"));
    }
    listener_ = std::thread([this] {
      listen_after_bind();
      ended_ = true;
    });
    // One that was stopped before it ran would run for ever.
    while (!is_running() && !ended_) std::this_thread::yield();
    return absl::OkStatus();
  }

  std::string url() const override { return address_.Url(tls_ != nullptr); }

 private:
  HttpReply TooLarge() const {
    HttpReply reply =
        ErrorReply(ToGrpc(BadField("request", absl::StrCat("its body is larger than ", options_.max_body, " bytes"))));
    reply.status = 413;
    return reply;
  }

  HttpReply Answer(const HttpRequest& request) {
    if (mcp_ != nullptr && request.path == kMcpPath) return mcp_->Answer(request);
    if (IsProbe(request.path)) return AnswerProbe(options_.probes, request);
    return absl::StartsWith(request.path + "/", "/api/") ? api_.Answer(request) : PageReply(request);
  }

  // The library's own would let one client hold a thread for as long as it likes.
  bool process_and_close_socket(socket_t socket) override {
    if (connections_.Add(socket)) {
      Serve(socket);
      connections_.Remove(socket);
    }
    shutdown(socket, SHUT_RDWR);
    close(socket);
    return true;
  }

  void Serve(socket_t socket) {
    try {
      HttpDeadlines deadlines;
      deadlines.request = std::chrono::milliseconds(static_cast<int64_t>(options_.request_seconds * 1000));
      HttpStream stream(socket, tls_.get(), deadlines, [this] { return threads_->HasWaiting(); });
      current_ = &stream;
      bool closed = false;
      if (stream.Begin()) {
        process_request(stream, true, closed, [](httplib::Request& request) {
          // Compressing takes longer than sending; ranges of ranges would be put together in memory.
          request.headers.erase("Accept-Encoding");
          request.headers.erase("Range");
          request.ranges.clear();
        });
        stream.End();
      }
      current_ = nullptr;
    } catch (const std::exception& error) {
      current_ = nullptr;
      spdlog::warn("dashboard: a request could not be answered: {}", error.what());
    }
  }

  void Write(HttpReply reply, httplib::Response& response) {
    const bool follows = reply.events != nullptr && !reply.under_way;
    if (follows && streams_.fetch_add(1) >= options_.streams) {
      --streams_;
      reply = ErrorReply(ToGrpc(TryLater("too many pages are following campaigns; close some", 5)));
    }
    response.status = reply.status;
    response.headers.erase("Content-Type");
    response.set_header("Content-Security-Policy", kPolicy);
    response.set_header("X-Content-Type-Options", "nosniff");
    response.set_header("X-Frame-Options", "DENY");
    response.set_header("Referrer-Policy", "no-referrer");
    response.set_header("Cross-Origin-Resource-Policy", "same-origin");
    response.set_header("Cross-Origin-Opener-Policy", "same-origin");
    bool cached = false;
    for (const auto& [name, value] : reply.headers) {
      response.set_header(name, value);
      cached |= name == "Cache-Control";
    }
    if (!cached) response.set_header("Cache-Control", "no-store");
    if (reply.events == nullptr) {
      response.set_content(reply.body, reply.type);
      return;
    }
    if (current_ != nullptr) current_->GoOn();
    const std::shared_ptr<HttpEvents> events = std::move(reply.events);
    response.set_chunked_content_provider(
        reply.type,
        [this, events](size_t, httplib::DataSink& sink) {
          std::string piece;
          const bool more = events->Next(&piece);
          if (stopping_ || !sink.is_writable()) return false;
          // An empty piece would be the end of it to the library.
          if (!piece.empty() && !sink.write(piece.data(), piece.size())) return false;
          if (!more) sink.done();
          return true;
        },
        [this, follows](bool) { streams_ -= follows; });
  }

  static thread_local HttpStream* current_;

  const HttpServerOptions options_;
  HttpAddress address_;
  const TlsContext tls_;  // null: plain
  const HttpGuard guard_;
  const HttpApi api_;
  const std::unique_ptr<HttpMcp> mcp_;  // null: there is none
  HttpConnections connections_;
  HttpThreads* threads_ = nullptr;  // the library's, for as long as there are connections
  std::atomic<bool> stopping_ = false;
  std::atomic<int> streams_ = 0;
  std::atomic<bool> ended_ = false;  // nobody is accepted any more
  std::thread listener_;
};

thread_local HttpStream* RunningHttpServer::current_ = nullptr;

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const std::shared_ptr<grpc::Channel>& channel,
                                                              const HttpServerOptions& options) {
  absl::StatusOr<HttpAddress> address = ParseHttpAddress(options.address);
  if (!address.ok()) return address.status();
  const bool six = absl::StrContains(address->host, ':');
  const std::string listening = absl::StrCat(six ? "[" : "", address->host, six ? "]" : "", ":", address->port);
  if (absl::Status status = CheckListening(listening, options.security); !status.ok()) return status;
  // The library would say only that it could not listen.
  if (auto free = ListeningSockets::Open(listening, "--http"); !free.ok()) return free.status();
  absl::StatusOr<Access> access = LoadAccess(options.security);
  if (!access.ok()) return access.status();
  // A browser shows no certificate; on this machine everybody may, as over the API without TLS.
  if (address->loopback && options.security.tokens.empty()) access = Access::Open();
  TlsContext tls;
  if (!address->loopback) {
    if (options.security.tokens.empty()) {
      return absl::InvalidArgumentError(
          "the dashboard needs tokens on an address that others can reach: give --tokens, or listen on 127.0.0.1");
    }
    // Also says what is wrong with the files.
    if (absl::StatusOr<TlsTexts> texts = ReadTlsFiles(options.security.tls); !texts.ok()) return texts.status();
    absl::StatusOr<TlsContext> made = MakeTlsContext(options.security.tls.cert, options.security.tls.key);
    if (!made.ok()) return made.status();
    tls = *std::move(made);
  }
  auto server = std::make_unique<RunningHttpServer>(channel, options, *address, *std::move(access), std::move(tls));
  if (absl::Status status = server->Listen(); !status.ok()) return status;
  return server;
}

}  // namespace pawl
