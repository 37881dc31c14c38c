#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace pawl {

// One HTTP request, as far as the dashboard looks at it.
struct HttpRequest {
  std::string method;
  std::string path;  // decoded, without the query
  std::multimap<std::string, std::string> parameters;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
  std::function<bool()> left;  // whether the client has, while the reply is made; null: not known

  // Empty: it has none of this name, given in lower case.
  std::string Header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
  }
};

// A reply that goes on. For one thread.
class HttpEvents {
 public:
  virtual ~HttpEvents() = default;
  // The next piece of text/event-stream; empty when none came within a moment. False: that was the last.
  virtual bool Next(std::string* piece) = 0;
};

struct HttpReply {
  int status = 200;
  std::string type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
  std::unique_ptr<HttpEvents> events;  // instead of a body
  bool under_way = false;              // what the events are of has begun: it can't be refused any more
};

}  // namespace pawl
