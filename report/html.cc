#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "report/content.h"
#include "report/document.h"
#include "report/embedded.h"
#include "report/escape.h"
#include "report/pages.h"

namespace pawl {
namespace {

const char* ToneClass(Tone tone) {
  switch (tone) {
    case Tone::kGood:
      return "good";
    case Tone::kReverted:
      return "reverted";
    case Tone::kBad:
      return "bad";
    case Tone::kRunning:
      return "running";
    case Tone::kDim:
      return "dim";
    case Tone::kCode:
      return "code";
    case Tone::kPlain:
      break;
  }
  return "";
}

// Text in its tone; a long name may break behind an underscore where there is no room for it.
std::string Span(const Cell& cell) {
  const std::string text = absl::StrReplaceAll(EscapeHtml(cell.text), {{"_", "_<wbr/>"}});
  const std::string under =
      cell.under.empty() ? "" : absl::StrCat("<small class=\"under\">", EscapeHtml(cell.under), "</small>");
  if (cell.tone == Tone::kPlain) return text + under;
  return absl::StrCat("<span class=\"", ToneClass(cell.tone), "\">", text, "</span>", under);
}

// As the dashboard marks the lines of a diff. The sign at its beginning says the same as the colour.
std::string DiffLine(absl::string_view line) {
  const bool added = absl::StartsWith(line, "+") && !absl::StartsWith(line, "+++"),
             removed = absl::StartsWith(line, "-") && !absl::StartsWith(line, "---");
  const char* element = added ? "ins" : removed ? "del" : "span";
  return absl::StrCat("<", element, absl::StartsWith(line, "@@") ? " class=\"dim\">" : ">",
                      line.empty() ? " " : EscapeHtml({line.data(), line.size()}), "</", element, ">");
}

class HtmlWriter {
 public:
  void operator()(const Paragraph& paragraph) {
    absl::StrAppend(&page, "<p>", Span({paragraph.text, paragraph.tone}), "</p>\n");
  }

  void operator()(const Facts& facts) {
    absl::StrAppend(&page, "<dl class=\"", facts.prominent ? "tiles" : "facts", "\">\n");
    for (const Facts::Fact& fact : facts.facts) {
      absl::StrAppend(&page, "<div><dt>", EscapeHtml(fact.name), "</dt><dd>", Span(fact.value), "</dd></div>\n");
    }
    page += "</dl>\n";
  }

  void operator()(const Grid& grid) {
    page += "<div class=\"scroll\" tabindex=\"0\"><table>\n<thead><tr>";
    for (const Grid::Column& column : grid.columns) {
      absl::StrAppend(&page, column.number ? "<th class=\"number\" scope=\"col\">" : "<th scope=\"col\">",
                      EscapeHtml(column.title), "</th>");
    }
    page += "</tr></thead>\n<tbody>\n";
    for (const std::vector<Cell>& row : grid.rows) {
      page += "<tr>";
      for (size_t i = 0; i < row.size(); ++i) {
        absl::StrAppend(&page, grid.columns[i].number ? "<td class=\"number\">" : "<td>", Span(row[i]), "</td>");
      }
      page += "</tr>\n";
    }
    page += "</tbody></table></div>\n";
  }

  void operator()(const Code& code) {
    absl::StrAppend(&page, "<pre tabindex=\"0\">", EscapeHtml(absl::StrJoin(code.lines, "\n")), "</pre>\n");
  }

  void operator()(const Chart& chart) {
    absl::StrAppend(&page, "<figure class=\"wide\">\n", chart.wide, "</figure>\n<figure class=\"narrow\">\n",
                    chart.narrow, "</figure>\n");
    if (!chart.caption.empty()) (*this)(Paragraph{chart.caption, Tone::kDim});
  }

  void operator()(const Diff& diff) {
    absl::StrAppend(&page, diff.open ? "<details open=\"open\">" : "<details>", "<summary>", EscapeHtml(diff.title),
                    "</summary>\n<pre class=\"difference\" tabindex=\"0\">");
    for (const absl::string_view line : absl::StrSplit(absl::StripSuffix(diff.patch, "\n"), '\n')) {
      page += DiffLine(line);
    }
    page += "</pre></details>\n";
  }

  std::string page;
};

}  // namespace

std::string HtmlPage(const v1::Report& report) {
  const Document document = ContentOf(report);
  HtmlWriter writer;
  std::string& page = writer.page;
  const std::string title = EscapeHtml(document.title);
  absl::StrAppend(&page,
                  "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                  "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                  "<meta name=\"color-scheme\" content=\"light dark\">\n"
                  // Even if something got past the escaping, it could neither run nor load anything.
                  "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
                  "'unsafe-inline'\">\n<title>",
                  title, "</title>\n<style>\n", std::string(embedded::kStyleCss),
                  "</style>\n</head>\n<body>\n<header>\n<h1>", title, "</h1>\n<p>", EscapeHtml(document.subtitle),
                  "</p>\n</header>\n<nav aria-label=\"Sections\">");
  for (const Section& section : document.sections) {
    absl::StrAppend(&page, "<a href=\"#", section.id, "\">", EscapeHtml(section.title), "</a> ");
  }
  page += "</nav>\n<main>\n";
  for (const Section& section : document.sections) {
    absl::StrAppend(&page, "<section id=\"", section.id, "\">\n<h2>", EscapeHtml(section.title), "</h2>\n");
    for (const Block& block : section.blocks) std::visit(writer, block);
    page += "</section>\n";
  }
  absl::StrAppend(&page, "</main>\n<footer>", EscapeHtml(document.footer), "</footer>\n</body>\n</html>\n");
  return std::move(page);
}

}  // namespace pawl
