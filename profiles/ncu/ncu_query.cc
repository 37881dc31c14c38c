#include <set>

#include "profiles/ncu/ncu_csv.h"

namespace pawl {

absl::StatusOr<std::vector<std::string>> MissingNcuMetrics(const std::vector<std::string>& wanted,
                                                           std::string_view query_output) {
  std::set<std::string_view> known;
  while (!query_output.empty()) {
    const std::string_view line = query_output.substr(0, query_output.find('\n'));
    query_output.remove_prefix(std::min(query_output.size(), line.size() + 1));
    const std::string_view word = line.substr(0, line.find_first_of(" \t,\r"));
    if (word.find("__") != std::string_view::npos) known.insert(word);
  }
  if (known.empty()) return absl::NotFoundError("ncu --query-metrics names no metric");
  std::vector<std::string> missing;
  for (const std::string& name : wanted) {
    const size_t dot = name.find('.');
    if (dot != std::string::npos && !known.count(std::string_view(name).substr(0, dot))) missing.push_back(name);
  }
  return missing;
}

}  // namespace pawl
