#include <algorithm>

#include "absl/strings/str_cat.h"
#include "report/content.h"
#include "report/document.h"
#include "report/escape.h"
#include "report/pages.h"

namespace pawl {
namespace {

// A fence that nothing in the lines can end.
std::string FenceOf(const std::vector<std::string>& lines) {
  size_t longest = 0;
  for (const std::string& line : lines) {
    size_t run = 0;
    for (const char c : line) {
      run = c == '`' ? run + 1 : 0;
      longest = std::max(longest, run);
    }
  }
  return std::string(std::max<size_t>(3, longest + 1), '`');
}

class MarkdownWriter {
 public:
  void operator()(const Paragraph& paragraph) { absl::StrAppend(&page, EscapeMarkdown(paragraph.text), "\n\n"); }

  void operator()(const Facts& facts) {
    for (const Facts::Fact& fact : facts.facts) {
      absl::StrAppend(&page, "- ", EscapeMarkdown(fact.name), ": ", facts.prominent ? "**" : "",
                      EscapeMarkdown(fact.value.text), facts.prominent ? "**" : "", "\n");
    }
    page += "\n";
  }

  void operator()(const Grid& grid) {
    page += "|";
    for (const Grid::Column& column : grid.columns) absl::StrAppend(&page, " ", EscapeMarkdown(column.title), " |");
    page += "\n|";
    for (const Grid::Column& column : grid.columns) page += column.number ? " ---: |" : " --- |";
    page += "\n";
    for (const std::vector<Cell>& row : grid.rows) {
      page += "|";
      for (const Cell& cell : row) {
        const std::string under = cell.under.empty() ? "" : absl::StrCat(" (", cell.under, ")");
        absl::StrAppend(&page, " ", EscapeMarkdown(cell.text + under), " |");
      }
      page += "\n";
    }
    page += "\n";
  }

  void operator()(const Code& code) {
    const std::string fence = FenceOf(code.lines);
    absl::StrAppend(&page, fence, "\n");
    for (const std::string& line : code.lines) absl::StrAppend(&page, line, "\n");
    absl::StrAppend(&page, fence, "\n\n");
  }

  void operator()(const Chart& chart) {
    if (!chart.words.empty()) (*this)(Paragraph{chart.words});
  }

  void operator()(const Diff&) {}

  std::string page;
};

}  // namespace

std::string MarkdownPage(const v1::Report& report) {
  const Document document = ContentOf(report);
  MarkdownWriter writer;
  absl::StrAppend(&writer.page, "# ", EscapeMarkdown(document.title), "\n\n", EscapeMarkdown(document.subtitle),
                  "\n\n");
  for (const Section& section : document.sections) {
    absl::StrAppend(&writer.page, "## ", EscapeMarkdown(section.title), "\n\n");
    for (const Block& block : section.blocks) std::visit(writer, block);
  }
  absl::StrAppend(&writer.page, EscapeMarkdown(document.footer), "\n");
  return std::move(writer.page);
}

}  // namespace pawl
