#include "report/escape.h"

namespace pawl {
namespace {

bool IsControl(char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') || c == 0x7F; }

}  // namespace

std::string EscapeHtml(std::string_view text) {
  std::string escaped;
  escaped.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += IsControl(c) ? '?' : c;
    }
  }
  return escaped;
}

std::string EscapeMarkdown(std::string_view text) {
  constexpr std::string_view kMarkup = "\\`*_{}[]<>#|~!$";
  std::string escaped;
  escaped.reserve(text.size());
  for (const char c : text) {
    if (c == '\n' || c == '\t') {
      escaped += ' ';
    } else if (c == '&') {
      escaped += "&amp;";
    } else {
      if (kMarkup.find(c) != std::string_view::npos) escaped += '\\';
      escaped += IsControl(c) ? '?' : c;
    }
  }
  return escaped;
}

}  // namespace pawl
