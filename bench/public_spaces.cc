#include "bench/public_spaces.h"

#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/import/t4_file.h"
#include "kernels/space.h"
#include "profiles/toml_file.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

// What a file says: a row a variant.
struct Table {
  std::vector<std::string> names;
  struct Row {
    std::vector<std::string> values;
    double milliseconds = 0;
    bool ok = false;
  };
  std::vector<Row> rows;
};

absl::StatusOr<std::string> ReadText(const fs::path& file) {
  gzFile in = gzopen(file.c_str(), "rb");  // reads plain files, too
  if (in == nullptr) return absl::NotFoundError(absl::StrCat("can't read ", file.string()));
  std::string text;
  char buffer[1 << 16];
  int read = 0;
  while ((read = gzread(in, buffer, sizeof buffer)) > 0) text.append(buffer, static_cast<size_t>(read));
  gzclose(in);
  if (read < 0) return absl::DataLossError(absl::StrCat(file.string(), " is damaged"));
  return text;
}

absl::StatusOr<Table> ReadCsv(const fs::path& file) {
  absl::StatusOr<std::string> text = ReadText(file);
  if (!text.ok()) return text.status();
  Table table;
  size_t columns = 0;
  int number = 0;
  for (const std::string& line :
       std::vector<std::string>(absl::StrSplit(*text, absl::ByAnyChar("\r\n"), absl::SkipEmpty()))) {
    ++number;
    const std::vector<std::string> cells = absl::StrSplit(line, ',');
    if (number == 1) {
      const auto time = std::find(cells.begin(), cells.end(), "time_ms");
      if (time == cells.begin() || time + 1 >= cells.end() || time[1] != "ok") {
        return absl::InvalidArgumentError(
            absl::StrCat(file.string(), ":1: expected the variables' names, then time_ms and ok"));
      }
      table.names.assign(cells.begin(), time);
      columns = cells.size();
      continue;
    }
    Table::Row& row = table.rows.emplace_back();
    const size_t time = table.names.size();
    if (cells.size() != columns) {
      return absl::InvalidArgumentError(
          absl::StrCat(file.string(), ":", number, ": expected ", columns, " cells, found ", cells.size()));
    }
    row.values.assign(cells.begin(), cells.begin() + static_cast<ptrdiff_t>(time));
    row.ok = (cells[time + 1] == "1" || cells[time + 1] == "true") &&
             absl::SimpleAtod(cells[time], &row.milliseconds) && row.milliseconds > 0;
  }
  return table;
}

absl::StatusOr<Table> ReadT4Table(const fs::path& file) {
  absl::StatusOr<T4File> t4 = ReadT4(file);
  if (!t4.ok()) return t4.status();
  Table table;
  for (const auto& [name, value] : t4->results[0].configuration) table.names.push_back(name);
  for (T4Result& result : t4->results) {
    Table::Row& row = table.rows.emplace_back();
    for (const auto& [name, value] : result.configuration) row.values.push_back(value.text);
    row.ok = !result.runtimes_us.empty() && result.invalidity == "correct";
    if (!row.ok) continue;
    std::sort(result.runtimes_us.begin(), result.runtimes_us.end());
    row.milliseconds = result.runtimes_us[(result.runtimes_us.size() - 1) / 2] / 1e3;
    row.ok = row.milliseconds > 0;
  }
  return table;
}

// The whole number of each text that a column has; the place in alphabetical order where one of them is none.
std::map<std::string, int32_t> NumbersOf(const std::set<std::string>& texts) {
  std::map<std::string, int32_t> numbers;
  bool whole = true;
  for (const std::string& text : texts) whole = whole && absl::SimpleAtoi(text, &numbers[text]);
  if (whole) return numbers;
  std::vector<std::pair<double, std::string>> order;
  for (const std::string& text : texts) {
    double number = 0;
    order.emplace_back(absl::SimpleAtod(text, &number) ? number : 0, text);
  }
  std::sort(order.begin(), order.end());
  for (size_t i = 0; i < order.size(); ++i) numbers[order[i].second] = static_cast<int32_t>(i);
  return numbers;
}

bool IsInAConstraint(const v1::Bundle& bundle, const std::string& variable) {
  return std::any_of(bundle.constraints().begin(), bundle.constraints().end(),
                     [&](const v1::Constraint& constraint) { return absl::StrContains(constraint.that(), variable); });
}

absl::Status Fill(const Table& table, MeasuredSpace* space) {
  bool varies = false;
  for (size_t column = 0; column < table.names.size(); ++column) {
    std::set<std::string> texts;
    for (const Table::Row& row : table.rows) texts.insert(row.values[column]);
    varies = varies || texts.size() > 1;
    if (texts.size() < 2 && !IsInAConstraint(space->bundle, table.names[column])) continue;  // nothing to choose
    const std::map<std::string, int32_t> numbers = NumbersOf(texts);
    std::set<int32_t> values;
    for (const auto& [text, number] : numbers) values.insert(number);
    v1::Variable* variable = space->bundle.add_variables();
    variable->set_name(table.names[column]);
    variable->mutable_values()->Add(values.begin(), values.end());
    variable->set_start(variable->values(0));
    space->entries.resize(table.rows.size());
    for (size_t i = 0; i < table.rows.size(); ++i) {
      (*space->entries[i].variant.mutable_values())[table.names[column]] = numbers.at(table.rows[i].values[column]);
    }
  }
  if (!varies) {
    return absl::InvalidArgumentError(absl::StrCat(space->name, ": there is nothing to search in ", table.rows.size(),
                                                   table.rows.size() == 1 ? " variant" : " equal variants"));
  }
  for (size_t i = 0; i < space->entries.size(); ++i) {
    space->entries[i].ok = table.rows[i].ok;
    if (table.rows[i].ok) space->entries[i].log_speed = -std::log(table.rows[i].milliseconds);
  }
  space->Index();
  if (!std::isfinite(space->best)) {
    return absl::InvalidArgumentError(absl::StrCat(space->name, ": no variant has a time"));
  }
  const absl::StatusOr<bool> allowed = IsAllowed(space->bundle, space->entries[0].variant);
  if (!allowed.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(space->name, ": ", std::string(allowed.status().message())));
  }
  return absl::OkStatus();
}

absl::Status ReadInto(const fs::path& file, PublicSpace* space) {
  const bool t4 = absl::StrContains(file.filename().string(), ".t4.json");
  const absl::StatusOr<Table> table = t4 ? ReadT4Table(file) : ReadCsv(file);
  return table.ok() ? Fill(*table, &space->space) : table.status();
}

void Name(const std::string& kernel, const std::string& gpu, PublicSpace* space) {
  space->kernel = kernel;
  space->space.device = gpu;
  space->space.name = absl::StrCat(kernel, " (", gpu, ")");
  space->space.bundle.set_name(space->space.name);
}

absl::StatusOr<std::vector<PublicSpace>> ReadUnlisted(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    for (const char* suffix : {".csv", ".csv.gz", ".t4.json", ".t4.json.gz"}) {
      if (absl::EndsWith(name, suffix)) files.push_back(entry.path());
    }
  }
  if (error || files.empty()) {
    return absl::NotFoundError(absl::StrCat(folder.string(), " has neither spaces.toml nor CSV or T4 files"));
  }
  std::sort(files.begin(), files.end());
  std::vector<PublicSpace> spaces;
  for (const fs::path& file : files) {
    const std::string name = file.filename().string(), stem = name.substr(0, name.find('.'));
    const size_t split = std::min(stem.find('_'), stem.size());
    Name(stem.substr(0, split), split < stem.size() ? stem.substr(split + 1) : "unknown GPU", &spaces.emplace_back());
    if (absl::Status read = ReadInto(file, &spaces.back()); !read.ok()) return read;
  }
  return spaces;
}

}  // namespace

absl::StatusOr<std::vector<PublicSpace>> ReadPublicSpaces(const fs::path& folder) {
  std::ifstream in(folder / "spaces.toml");
  if (!in) return ReadUnlisted(folder);
  std::stringstream text;
  text << in.rdbuf();
  TomlFile file(text.str(), (folder / "spaces.toml").string());
  std::vector<PublicSpace> spaces;
  for (const toml::table* table : file.Tables("space")) {
    PublicSpace& space = spaces.emplace_back();
    Name(file.RequiredText(*table, "name"), file.RequiredText(*table, "gpu"), &space);
    space.kernel = (*table)["kernel"].value_or(space.kernel);
    if (const auto single = (*table)["kernel_tuner"].value<int64_t>()) {
      space.peers["Kernel Tuner's best strategy"] = static_cast<int>(*single);
    }
    if (const toml::table* strategies = (*table)["kernel_tuner"].as_table()) {
      for (const auto& [name, evaluations] : *strategies) {
        space.peers[absl::StrCat("Kernel Tuner, ", std::string(name.str()))] =
            static_cast<int>(evaluations.value_or(int64_t{0}));
      }
    }
    if (table->contains("constraints")) {
      for (const std::string& that : file.Texts(*table, "constraints")) {
        space.space.bundle.add_constraints()->set_that(that);
      }
    }
    const std::string name = file.RequiredText(*table, "file");
    if (!file.status().ok()) return file.status();
    if (absl::Status read = ReadInto(folder / name, &space); !read.ok()) return read;
  }
  if (!file.status().ok()) return file.status();
  return spaces;
}

}  // namespace pawl
