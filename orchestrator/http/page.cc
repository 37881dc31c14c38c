#include "orchestrator/http/page.h"

#include <map>
#include <regex>
#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/hash/hash.h"
#include "web/embedded.h"

namespace pawl {
namespace {

struct File {
  std::string_view content;
  std::string type;
  std::string tag = {};  // by its content: a browser keeps it until another Pawl serves another
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

constexpr char kIndex[] = "/index.html";

// Addresses that the page shows something for; PAGES of web/src/app.js lists the same.
bool IsPage(const std::string& path) {
  static const auto* pages =
      new std::regex("/|/campaigns(/[0-9]{1,20}(/iterations/[0-9]{1,20})?)?|/compare|/explore|/workers|/patterns");
  return path.size() < 100 && std::regex_match(path, *pages);
}

}  // namespace

HttpReply PageReply(const HttpRequest& request) {
  HttpReply reply;
  if (!IsPage(request.path) && (request.path == kIndex || Files().count(request.path) == 0)) {
    reply.status = 404;
    // A browser gets the dashboard, which says that it has no such page.
    const bool browser = absl::StrContains(request.Header("accept"), "text/html");
    const File& index = Files().at(kIndex);
    reply.type = browser ? index.type : "text/plain; charset=utf-8";
    reply.body = browser ? std::string(index.content) : "page not found; the dashboard starts at /\n";
    return reply;
  }
  const File& file = Files().at(IsPage(request.path) ? kIndex : request.path);
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
