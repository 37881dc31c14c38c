#include "kernels/read/bundle_reader.h"

#include <algorithm>
#include <optional>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/expression/expression.h"
#include "base/names/spelling.h"
#include "base/names/utf8.h"
#include "kernels/bundle_message.h"
#include "kernels/plan.h"
#include "kernels/read/implementation_toml.h"
#include "kernels/read/reading.h"
#include "kernels/variable_values.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

// a.b.c.d makes a table in a table in a table, and toml++ takes them down by recursion. A key stands on one line.
constexpr auto kMaxDots = 500;

bool HasLineOfDots(const std::string& text) {
  int dots = 0;
  for (const char c : text) {
    if (c == '\n') dots = 0;
    if (c == '.' && ++dots > kMaxDots) return true;
  }
  return false;
}

// Whether it has no key and no table of the implementation, the source and its files included.
bool HasNoImplementation(const toml::table& table) {
  for (const auto& [key, node] : table) {
    const std::string name(key.str());
    if (name == "tensor") continue;
    if (NamesFiles(name) || IsImplementationKey(name)) return false;
  }
  const toml::array* tensors = table["tensor"].as_array();
  if (tensors == nullptr) return true;
  return std::none_of(tensors->begin(), tensors->end(), [](const toml::node& node) {
    const toml::table* tensor = node.as_table();
    return tensor != nullptr && (*tensor)["role"].value_or(std::string_view()) == "scratch" &&
           !(*tensor)["static"].value_or(false);
  });
}

void ReadTables(const std::string& text, Reading& reading) {
  const std::optional<toml::table> parsed = ParseTables(text, reading.problems);
  if (!parsed) return;
  reading.contract_alone = HasNoImplementation(*parsed);
  TomlTable root(&*parsed, &KernelToml(), "", &reading.problems);
  ReadTop(root, reading);
  ReadFiles(root, reading);
  ReadSizes(root, reading);
  ReadVariables(root, reading);
  ReadHidden(root, reading);
  ReadConstraints(root, reading);
  ReadTensors(root, reading);
  ReadScalars(root, reading);
  ReadStructs(root, reading);
  ReadTolerance(root, reading);
  ReadLaunches(root, reading);
  ReadSymbols(root, reading);
  ReadReference(root, reading);
  ReadSetup(root, reading);
  ReadWork(root, reading);
  root.Finish();
  CheckWhole(reading);
  CheckMessage(reading);
}

// The bundle of a folder that has implementation.toml beside the kernel.toml that was read.
BundleReading WithImplementation(const Reading& contract) {
  if (!contract.problems.empty()) return {contract.bundle, contract.problems.Sorted(), {}};
  Reading reading(contract.folder, (contract.folder / kImplementationToml).string());
  absl::StatusOr<std::string> text = ReadSourceFile(contract.folder, kImplementationToml);
  if (!contract.contract_alone) {
    reading.problems.Add(0, "kernel.toml has the implementation, too; expected it in one of them");
  } else if (!text.ok()) {
    reading.problems.Add(0, std::string(text.status().message()));
  } else {
    ReadImplementationFile(*text, contract.bundle, reading);
  }
  return {reading.problems.empty() ? std::move(reading.bundle) : contract.bundle, reading.problems.Sorted(),
          contract.warnings.Sorted()};
}

std::string Article(const std::string& kind) { return absl::StrCat(kind[0] == 'i' ? "an " : "a ", kind); }

}  // namespace

std::optional<toml::table> ParseTables(const std::string& text, Problems& problems) {
  if (HasLineOfDots(text)) {
    problems.Add(1, absl::StrCat("there are more than ", kMaxDots, " dots in a line; is it a bundle?"));
    return std::nullopt;
  }
  toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    problems.Add(static_cast<int>(parsed.error().source().begin.line),
                 absl::StrCat("not TOML: ", Printable(std::string(parsed.error().description()))));
    return std::nullopt;
  }
  return std::move(parsed).table();
}

void CheckMessage(Reading& reading) {
  if (!reading.problems.empty()) return;
  for (const std::string& problem : BundleProblems(reading.bundle)) {
    const auto line = reading.lines.find(problem.substr(0, problem.find(':')));
    reading.problems.Add(line == reading.lines.end() ? 1 : line->second, problem);
  }
}

bool Reading::AddName(const std::string& name, const std::string& kind, int line, TomlTable& table) {
  if (!IsName(name)) {
    table.Complain(line, absl::StrCat("\"", Printable(name.substr(0, 80)), "\" can't name ", Article(kind),
                                      "; expected letters, digits and _, at most 64, no function's name"));
    return false;
  }
  if (GpuLimits(v1::GpuInfo()).contains(name)) {
    table.Complain(line, absl::StrCat(name, " is the name of a GPU limit and can't name ", Article(kind)));
    return false;
  }
  const auto [it, added] = names.try_emplace(name, kind, line);
  if (added) return true;
  const std::string where =
      it->second.second == kOfContract ? " of the contract" : absl::StrCat(" in line ", it->second.second);
  table.Complain(line, absl::StrCat("the name ", name, " is taken by the ", it->second.first, where,
                                    "; expected a name of its own"));
  return false;
}

void Reading::Use(TomlTable& table, const std::string& key, const Text& text, Must must, const std::string& guard) {
  Use(table, key, text, table.scope(key), must, guard);
}

void Reading::Use(TomlTable& table, const std::string& key, const Text& text, Scope scope, Must must,
                  const std::string& guard) {
  const absl::StatusOr<std::string> plain = WithoutWords(bundle, text.value);
  const absl::StatusOr<std::set<std::string>> used =
      plain.ok() ? NamesIn(*plain) : absl::StatusOr<std::set<std::string>>(plain.status());
  if (!used.ok()) {
    if (!plain.ok() && !names_complete) return;
    table.Complain(text.line, absl::StrCat(key, ": ", used.status().message()));
    return;
  }
  const std::map<std::string, double> limits = GpuLimits(v1::GpuInfo());
  std::vector<std::string> known;
  for (const auto& [name, kind] : names) {
    if (kind.first == "size" || (scope.variables && kind.first == "variable")) known.push_back(name);
  }
  if (scope.limits) {
    for (const auto& [name, value] : limits) known.push_back(name);
  }
  bool good = true;
  for (const std::string& name : *used) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    good = false;
    const auto it = names.find(name);
    if (it == names.end() && !limits.contains(name) && !names_complete) continue;
    const std::string what = it != names.end()       ? absl::StrCat(name, " is ", Article(it->second.first))
                             : limits.contains(name) ? absl::StrCat(name, " is a GPU limit")
                                                     : absl::StrCat("unknown name ", name);
    table.Complain(text.line, absl::StrCat(key, " \"", text.value, "\": ", what, Expected(name, known)));
  }
  if (good)
    expressions.push_back({{*plain, text.line},
                           absl::StrCat(table.where(), ": ", key),
                           must,
                           WithoutWords(bundle, guard).value_or(guard)});
}

BundleReading ReadBundle(const fs::path& given) {
  std::error_code error;
  fs::path folder = given;
  if (fs::is_regular_file(given, error) && given.filename() == "kernel.toml") folder = given.parent_path();
  if (folder.empty()) folder = ".";
  if (!fs::is_directory(folder, error)) {
    return {{}, {{given.string(), 0, "there is no such folder; expected a bundle: a folder with a kernel.toml"}}, {}};
  }
  Reading reading(folder, (folder / "kernel.toml").string());
  absl::StatusOr<std::string> text = ReadSourceFile(folder, "kernel.toml");
  if (text.ok()) {
    ReadTables(*text, reading);
  } else {
    reading.problems.Add(0, std::string(text.status().message()));
  }
  if (text.ok() && fs::exists(folder / kImplementationToml, error)) return WithImplementation(reading);
  return {std::move(reading.bundle), reading.problems.Sorted(), reading.warnings.Sorted()};
}

}  // namespace pawl
