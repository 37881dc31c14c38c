#include "cli/text/ranking_table.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/text/layout.h"

namespace pawl {

double Mean(const v1::Score& score) { return score.rules() + score.model() + score.patterns(); }

double Rate(const v1::Score& score) { return score.seconds() > 0 ? score.gain() / score.seconds() : Mean(score); }

std::string LogText(double log_speedup) { return log_speedup == 0 ? "0" : absl::StrFormat("%+.3f", log_speedup); }

std::string ScoreText(const v1::Score& score) {
  std::string mean = LogText(Mean(score));
  if (score.sd() > 0) absl::StrAppendFormat(&mean, " ± %.3f", score.sd());
  absl::StrAppend(&mean, " = rules ", LogText(score.rules()), ", model ", LogText(score.model()), ", patterns ",
                  LogText(score.patterns()));
  if (score.seconds() > 0) {
    absl::StrAppendFormat(&mean, "; expected improvement %.4f in %.2g s", score.gain(), score.seconds());
  }
  return mean;
}

std::string RankingTable(const std::vector<RankedRow>& rows, const std::string& note_title, int limit, int width) {
  using Align = Table::Align;
  Table table({{"  change"},
               {"improvement", Align::kRight},
               {"mean", Align::kRight},
               {"sd", Align::kRight},
               {"rules", Align::kRight},
               {"model", Align::kRight},
               {"patterns", Align::kRight},
               {note_title}});
  const size_t shown = limit > 0 && rows.size() > static_cast<size_t>(limit) ? static_cast<size_t>(limit) : rows.size();
  for (size_t i = 0; i < shown; ++i) {
    const RankedRow& row = rows[i];
    const bool posterior = row.score.sd() > 0;  // versions up to 0.2 had none
    table.Add({absl::StrCat("  ", row.change), posterior ? absl::StrFormat("%.4f", row.score.gain()) : "-",
               LogText(Mean(row.score)), posterior ? absl::StrFormat("%.3f", row.score.sd()) : "-",
               LogText(row.score.rules()), LogText(row.score.model()), LogText(row.score.patterns()), row.note});
  }
  std::string text = table.empty() ? "" : table.Text(width);
  if (shown < rows.size()) absl::StrAppend(&text, "  and ", rows.size() - shown, " more (--all)\n");
  return text;
}

}  // namespace pawl
