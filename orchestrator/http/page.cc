#include "orchestrator/http/page.h"

#include <map>
#include <set>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/hash/hash.h"
#include "web/embedded.h"

namespace pawl {
namespace {

struct File {
  std::string_view content;
  std::string type;
  std::string tag = {};  // by its content: a browser keeps it until Pawl is another
};

const std::map<std::string, File>& Files() {
  static const auto* files = [] {
    auto* made = new std::map<std::string, File>{
        {"/index.html", {embedded::kIndexHtml, "text/html; charset=utf-8"}},
        {"/app.js", {embedded::kAppJs, "text/javascript; charset=utf-8"}},
        {"/app.css", {embedded::kAppCss, "text/css; charset=utf-8"}},
        {"/icon.svg", {embedded::kIconSvg, "image/svg+xml"}},
    };
    for (auto& [path, file] : *made) {
      file.tag = absl::StrCat("\"", Sha256(file.content).substr(0, 32), "\"");
    }
    return made;
  }();
  return *files;
}

// The page's own addresses: it reads them itself.
std::string FileOf(const std::string& path) {
  static const auto* pages = new std::set<std::string>{"", "campaigns", "compare", "explore", "workers", "patterns"};
  const std::string first = path.substr(1, path.find('/', 1) - 1);
  return pages->count(first) > 0 ? "/index.html" : path;
}

}  // namespace

HttpReply PageReply(const HttpRequest& request) {
  HttpReply reply;
  const auto found = request.path.empty() ? Files().end() : Files().find(FileOf(request.path));
  if (found == Files().end()) {
    reply.status = 404;
    reply.type = "text/plain; charset=utf-8";
    reply.body = "there is no such page; the dashboard starts at /\n";
    return reply;
  }
  const File& file = found->second;
  reply.type = file.type;
  reply.headers = {{"ETag", file.tag}, {"Cache-Control", "no-cache"}};
  if (request.Header("if-none-match") == file.tag) {
    reply.status = 304;
  } else {
    reply.body = std::string(file.content);
  }
  return reply;
}

}  // namespace pawl
