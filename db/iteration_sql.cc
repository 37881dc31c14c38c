#include "db/iteration_sql.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace pawl {
namespace {

// One range of one index.
std::string Range(const IterationQuery& query, const std::string& verdict) {
  const bool speedup = query.order == v1::ITERATION_ORDER_SPEEDUP;
  std::string index = "iterations";
  std::string filter;
  if (!query.variable.empty()) {
    index += "_variable";
    filter += " AND variable = ?3";
  }
  if (!query.finding.empty()) {
    index += "_finding";
    filter += " AND finding = ?4";
  }
  if (filter.empty()) index += verdict.empty() ? "_all" : "_verdict";
  if (!verdict.empty()) absl::StrAppend(&filter, " AND verdict = ", verdict);
  if (speedup) index += "_speedup";
  const char* place = speedup                                                ? "(speedup, number) < (?6, ?5)"
                      : query.order == v1::ITERATION_ORDER_NUMBER_DESCENDING ? "number < ?5"
                                                                             : "number > ?5";
  return absl::StrCat("SELECT summary, number, speedup FROM iterations INDEXED BY ", index, " WHERE campaign = ?1",
                      filter, " AND ", place);
}

}  // namespace

std::string IterationSql(const IterationQuery& query) {
  const bool speedup = query.order == v1::ITERATION_ORDER_SPEEDUP;
  std::string sql;
  if (query.verdict != v1::VERDICT_UNSPECIFIED) {
    sql = Range(query, "?2");
  } else if (query.variable.empty() && query.finding.empty() && !speedup) {
    sql = Range(query, "");
  } else {
    for (const int verdict : {v1::KEPT, v1::REVERTED, v1::REJECTED}) {
      absl::StrAppend(&sql, sql.empty() ? "" : " UNION ALL ", Range(query, absl::StrCat(verdict)));
    }
  }
  const char* order = speedup                                                ? "speedup DESC, number DESC"
                      : query.order == v1::ITERATION_ORDER_NUMBER_DESCENDING ? "number DESC"
                                                                             : "number";
  return absl::StrCat(sql, " ORDER BY ", order, " LIMIT ?7");
}

double SpeedupKey(double speedup) { return std::isnan(speedup) ? 0 : speedup; }

}  // namespace pawl
