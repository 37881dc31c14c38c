#include "cli/text/ranking_table.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/text/layout.h"

namespace pawl {

double Sum(const v1::Score& score) { return score.rules() + score.model() + score.patterns(); }

std::string LogText(double log_speedup) { return log_speedup == 0 ? "0" : absl::StrFormat("%+.3f", log_speedup); }

std::string ScoreText(const v1::Score& score) {
  return absl::StrCat(LogText(Sum(score)), " = rules ", LogText(score.rules()), ", model ", LogText(score.model()),
                      ", patterns ", LogText(score.patterns()));
}

std::string RankingTable(const std::vector<RankedRow>& rows, const std::string& note_title, int limit, int width) {
  using Align = Table::Align;
  Table table({{"  change"},
               {"sum", Align::kRight},
               {"rules", Align::kRight},
               {"model", Align::kRight},
               {"patterns", Align::kRight},
               {note_title}});
  const size_t shown = limit > 0 && rows.size() > static_cast<size_t>(limit) ? static_cast<size_t>(limit) : rows.size();
  for (size_t i = 0; i < shown; ++i) {
    const RankedRow& row = rows[i];
    table.Add({absl::StrCat("  ", row.change), LogText(Sum(row.score)), LogText(row.score.rules()),
               LogText(row.score.model()), LogText(row.score.patterns()), row.note});
  }
  std::string text = table.empty() ? "" : table.Text(width);
  if (shown < rows.size()) absl::StrAppend(&text, "  and ", rows.size() - shown, " more (--all)\n");
  return text;
}

}  // namespace pawl
