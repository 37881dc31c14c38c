#include "orchestrator/http/mcp.h"

#include "base/hash/hash.h"

namespace pawl {
namespace {

class McpEvents final : public HttpEvents {
 public:
  explicit McpEvents(std::unique_ptr<McpHttpStream> stream) : stream_(std::move(stream)) {}
  bool Next(std::string* piece) override { return stream_->Next(piece); }

 private:
  const std::unique_ptr<McpHttpStream> stream_;
};

}  // namespace

HttpReply HttpMcp::Answer(const HttpRequest& request) {
  McpHttpRequest asked;
  asked.method = request.method;
  asked.header = [&request](const std::string& name) { return request.Header(name); };
  asked.body = request.body;
  asked.caller.may_submit = guard_.May(request, Role::kSubmit).ok();
  asked.left = request.left;
  asked.owner = Sha256(request.Header("authorization"));
  McpHttpReply answered = mcp_.Answer(asked);
  HttpReply reply;
  reply.status = answered.status;
  reply.headers = std::move(answered.headers);
  reply.body = std::move(answered.body);
  if (answered.stream != nullptr) {
    reply.type = "text/event-stream";
    reply.events = std::make_unique<McpEvents>(std::move(answered.stream));
    reply.under_way = true;
  }
  return reply;
}

}  // namespace pawl
