#include "kernels/read/implementation_toml.h"

#include <algorithm>
#include <optional>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/names/utf8.h"
#include "kernels/bundle_message.h"
#include "kernels/data_type.h"
#include "kernels/read/reading.h"
#include "kernels/space.h"
#include "kernels/variable_values.h"

namespace pawl {
namespace {

// The names that the implementation may use and not define.
void AddContractNames(Reading& reading) {
  const v1::Bundle& bundle = reading.bundle;
  const auto add = [&](const std::string& name, const char* kind) {
    reading.names.try_emplace(name, kind, kOfContract);
  };
  for (const v1::Size& size : bundle.sizes()) {
    for (const auto& [name, value] : size.values()) add(name, "size");
  }
  for (const v1::Tensor& tensor : bundle.tensors()) add(tensor.name(), "tensor");
  for (const v1::Scalar& scalar : bundle.scalars()) add(scalar.name(), "scalar");
  for (const v1::StructArgument& argument : bundle.structs()) add(argument.name(), "struct");
}

// What the implementation has of kernel.toml goes; the contract stays.
void ClearImplementation(v1::Bundle& bundle) {
  bundle.clear_options();
  bundle.clear_variables();
  bundle.clear_constraints();
  bundle.clear_launches();
  bundle.clear_symbols();
  auto& tensors = *bundle.mutable_tensors();
  tensors.erase(std::remove_if(tensors.begin(), tensors.end(), IsOwnScratch), tensors.end());
}

// Where the files of an implementation come from.
enum class Files {
  kAsTheyAre,  // the bundle has them, and the text names none
  kAdded,      // the text names files that an edit adds
  kInFolder,   // the text names files of the bundle's folder
};

// Says so of every table and key that is not the implementation's.
void RefuseContract(const toml::table& table, Files source, Problems& problems) {
  const char* const contract = source == Files::kInFolder ? " belongs to the contract, which is in kernel.toml"
                                                          : " belongs to the contract, which no edit may change";
  const auto refuse = [&](const toml::node& node, const std::string& what) {
    problems.Add(static_cast<int>(node.source().begin.line),
                 absl::StrCat(what, NamesFiles(what) ? kFilesStay : contract));
  };
  for (const auto& [key, node] : table) {
    const std::string name(key.str());
    if (KernelToml().Find(name) == nullptr || IsImplementationKey(name)) continue;
    if (source != Files::kAsTheyAre && NamesFiles(name)) continue;
    refuse(node, node.is_table()             ? absl::StrCat("[", name, "]")
                 : node.is_array_of_tables() ? absl::StrCat("[[", name, "]]")
                                             : name);
  }
  const toml::array* tensors = table["tensor"].as_array();
  if (tensors == nullptr) return;
  for (const toml::node& node : *tensors) {
    const toml::table* tensor = node.as_table();
    if (tensor == nullptr) continue;
    const bool scratch = (*tensor)["role"].value_or(std::string_view()) == "scratch";
    if (scratch && !(*tensor)["static"].value_or(false)) continue;
    const std::string name = Printable((*tensor)["name"].value_or(std::string("")).substr(0, 80));
    refuse(node, absl::StrCat("[[tensor]] ", name, scratch ? ", which is static," : ", which is no scratch,"));
  }
}

// The source and the files that the text names, of those that were added.
void ReadAddedFiles(TomlTable& root, const SourceFiles& added, Reading& reading) {
  std::vector<std::string> paths;
  for (const auto& [path, text] : added) paths.push_back(path);
  const std::string all = paths.empty() ? "no file" : absl::StrJoin(paths, ", ");
  const std::optional<Text> source = root.Text("source");
  const std::vector<Text> patterns = root.Texts("files");
  if (!source) return;
  std::set<std::string> named = {source->value};
  for (const Text& pattern : patterns) {
    const size_t before = named.size();
    for (const std::string& path : paths) {
      if (IsLike(path, pattern.value)) named.insert(path);
    }
    const bool known = named.size() > before || named.contains(pattern.value);
    if (!known) root.Complain(pattern.line, absl::StrCat("files: the edit adds no ", pattern.value, "; it adds ", all));
  }
  bool found = false;
  for (const auto& [path, text] : added) {
    found = found || path == source->value;
    if (!named.contains(path)) {
      root.Complain(source->line, absl::StrCat("the edit adds ", path, ", which neither source nor files names"));
      continue;
    }
    v1::SourceFile& file = path == source->value ? *reading.bundle.mutable_source() : *reading.bundle.add_files();
    file.set_path(path);
    file.set_text(text);
    if (absl::EndsWith(path, ".cubin")) root.Complain(source->line, absl::StrCat(path, ": an edit can't add a cubin"));
  }
  if (!found) {
    root.Complain(source->line, absl::StrCat("source: the edit adds no ", source->value, "; it adds ", all,
                                             " (diff -ruN and git diff write files that are new)"));
  }
  std::sort(reading.bundle.mutable_files()->begin(), reading.bundle.mutable_files()->end(),
            [](const v1::SourceFile& a, const v1::SourceFile& b) { return a.path() < b.path(); });
}

// `added` is what an edit adds.
void ReadImplementationTables(const std::string& text, const v1::Bundle& contract, Files source,
                              const SourceFiles& added, Reading& reading) {
  const std::optional<toml::table> parsed = ParseTables(text, reading.problems);
  if (!parsed) return;
  RefuseContract(*parsed, source, reading.problems);
  if (!reading.problems.empty()) return;
  reading.bundle = contract;
  ClearImplementation(reading.bundle);
  AddContractNames(reading);
  TomlTable root(&*parsed, &KernelToml(), "", &reading.problems);
  if (source == Files::kAdded) ReadAddedFiles(root, added, reading);
  if (source == Files::kInFolder) ReadFiles(root, reading);
  ReadCompiling(root, reading);
  reading.bundle.set_compiler(contract.compiler());  // the text has none
  if (root.Has("variable")) ReadVariables(root, reading);
  ReadConstraints(root, reading);
  if (root.Has("tensor")) ReadTensors(root, reading);
  ReadLaunches(root, reading);
  ReadSymbols(root, reading);
  root.Finish();
}

absl::Status StatusOf(const Reading& reading) {
  const std::vector<Problem> problems = reading.problems.Sorted();
  if (problems.empty()) return absl::OkStatus();
  constexpr size_t kShown = 3;
  std::vector<std::string> shown;
  for (const Problem& problem : problems) {
    if (shown.size() < kShown) shown.push_back(FormatProblem(problem));
  }
  if (problems.size() > kShown) shown.push_back(absl::StrCat("and ", problems.size() - kShown, " more mistakes"));
  return absl::InvalidArgumentError(absl::StrJoin(shown, "; "));
}

// The value of the variable that is written as this one of another variable is.
std::optional<int32_t> SameText(const v1::Variable& from, int32_t value, const v1::Variable& to) {
  const std::string text = ValueText(from, value);
  for (const int32_t other : to.values()) {
    if (ValueText(to, other) == text) return other;
  }
  return std::nullopt;
}

// What the edited text says, before a variable's start becomes the one that its parent has.
v1::Variant EditedVariant(const v1::Bundle& edited, const v1::Bundle& parent, const v1::Variant& values) {
  v1::Variant variant = StartVariant(edited);
  for (const v1::Variable& variable : edited.variables()) {
    const v1::Variable* before = FindVariable(parent, variable.name());
    // The start of such a variable is what its source has, whatever the parent's value.
    if (before == nullptr || variable.replaces().empty() || !values.values().contains(variable.name())) continue;
    if (SameText(*before, before->start(), variable) != variable.start()) continue;
    const std::optional<int32_t> kept = SameText(*before, values.values().at(variable.name()), variable);
    if (kept) (*variant.mutable_values())[variable.name()] = *kept;
  }
  return variant;
}

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      absl::StrAppendFormat(&quoted, "\\u%04X", static_cast<unsigned>(c));
      continue;
    }
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

template <typename List>
std::string QuotedList(const List& list) {
  return absl::StrCat(
      "[",
      absl::StrJoin(list, ", ", [](std::string* out, const std::string& each) { absl::StrAppend(out, Quoted(each)); }),
      "]");
}

void AppendText(const char* key, const std::string& text, std::string* toml) {
  if (!text.empty()) absl::StrAppend(toml, key, " = ", Quoted(text), "\n");
}

template <typename List>
void AppendTexts(const char* key, const List& list, std::string* toml) {
  if (!list.empty()) absl::StrAppend(toml, key, " = ", QuotedList(list), "\n");
}

std::string WrittenText(const v1::Variable& variable, int32_t value) {
  const std::string text = ValueText(variable, value);
  return variable.words().empty() ? text : Quoted(text);
}

void AppendVariable(const v1::Variable& variable, int32_t start, std::string* toml) {
  absl::StrAppend(
      toml, "\n[[variable]]\nname = ", Quoted(variable.name()), "\nvalues = [",
      absl::StrJoin(variable.values(), ", ",
                    [&](std::string* out, int32_t value) { absl::StrAppend(out, WrittenText(variable, value)); }),
      "]\nstart = ", WrittenText(variable, start), "\n");
  AppendText("option", variable.option(), toml);
  AppendText("replaces", variable.replaces(), toml);
  if (variable.affects().empty()) return;
  absl::StrAppend(toml, "affects = { ",
                  absl::StrJoin(variable.affects(), ", ",
                                [](std::string* out, const v1::Effect& effect) {
                                  absl::StrAppend(out, Resources()[static_cast<size_t>(effect.resource() - 1)].name,
                                                  effect.direction() == v1::DIRECTION_MORE ? " = \"+\"" : " = \"-\"");
                                }),
                  " }\n");
}

void AppendLaunch(const v1::Launch& launch, std::string* toml) {
  absl::StrAppend(toml, "\n[[launch]]\nentry = ", Quoted(launch.entry()), "\n");
  AppendText("when", launch.when(), toml);
  AppendTexts("grid", launch.grid(), toml);
  AppendTexts("block", launch.block(), toml);
  AppendTexts("cluster", launch.cluster(), toml);
  AppendText("shared", launch.shared(), toml);
  AppendText("loop", launch.loop(), toml);
  AppendText("repeat", launch.repeat(), toml);
  AppendText("index", launch.index(), toml);
  AppendTexts("swap", launch.swap(), toml);
  if (launch.cooperative()) absl::StrAppend(toml, "cooperative = true\n");
  absl::StrAppend(toml, "arguments = ", QuotedList(launch.arguments()), "\n");
}

// All but the files.
void AppendTables(const v1::Bundle& bundle, const v1::Variant& variant, std::string* toml) {
  AppendTexts("options", bundle.options(), toml);
  for (const v1::Variable& variable : bundle.variables()) {
    const auto value = variant.values().find(variable.name());
    const bool fixed = !variable.replaces().empty() || value == variant.values().end();
    AppendVariable(variable, fixed ? variable.start() : value->second, toml);
  }
  for (const v1::Constraint& constraint : bundle.constraints()) {
    absl::StrAppend(toml, "\n[[constraint]]\nthat = ", Quoted(constraint.that()), "\n");
  }
  for (const v1::Tensor& tensor : bundle.tensors()) {
    if (!IsOwnScratch(tensor)) continue;
    absl::StrAppend(toml, "\n[[tensor]]\nname = ", Quoted(tensor.name()),
                    "\ntype = ", Quoted(DataTypeName(tensor.type())), "\nshape = ", QuotedList(tensor.shape()),
                    "\nrole = \"scratch\"\n");
    if (tensor.align() != 0) absl::StrAppend(toml, "align = ", tensor.align(), "\n");
  }
  for (const v1::Launch& launch : bundle.launches()) AppendLaunch(launch, toml);
  for (const v1::Symbol& symbol : bundle.symbols()) {
    absl::StrAppend(toml, "\n[[symbol]]\nname = ", Quoted(symbol.name()), "\ntensor = ", Quoted(symbol.tensor()), "\n");
  }
}

}  // namespace

bool IsImplementationKey(const std::string& key) {
  // The reference and the setup are built by the same compiler with the same libraries, so these stay.
  return key == "options" || key == "variable" || key == "constraint" || key == "tensor" || key == "launch" ||
         key == "symbol";
}

bool NamesFiles(const std::string& key) { return key == "source" || key == "files"; }

std::string ImplementationToml(const v1::Bundle& bundle, const v1::Variant& variant) {
  std::string toml =
      "# The part of kernel.toml that an edit may change. start: the variant that is edited, and what the edit "
      "tries.\n";
  AppendTables(bundle, variant, &toml);
  return toml;
}

std::string WholeImplementationToml(const v1::Bundle& bundle, const std::string& comment) {
  std::vector<std::string> files;
  for (const v1::SourceFile& file : bundle.files()) files.push_back(file.path());
  std::string toml = absl::StrCat("# ", comment, "\n");
  AppendText("source", bundle.source().path(), &toml);
  AppendTexts("files", files, &toml);
  AppendTables(bundle, {}, &toml);
  return toml;
}

void ReadImplementationFile(const std::string& text, const v1::Bundle& contract, Reading& reading) {
  ReadImplementationTables(text, contract, Files::kInFolder, {}, reading);
  if (reading.problems.empty()) CheckWhole(reading);
  CheckMessage(reading);
}

absl::Status ReadStoredToml(const std::string& text, v1::Bundle* bundle) {
  Reading reading("", "kernel.toml");
  ReadImplementationTables(text, *bundle, Files::kAsTheyAre, {}, reading);
  if (absl::Status status = StatusOf(reading); !status.ok()) return status;
  *bundle = std::move(reading.bundle);
  return absl::OkStatus();
}

absl::StatusOr<v1::Variant> ReadEditedToml(const std::string& text, const v1::Bundle& parent, const v1::Variant& values,
                                           v1::Bundle* bundle) {
  Reading reading("", "kernel.toml");
  ReadImplementationTables(text, *bundle, Files::kAsTheyAre, {}, reading);
  if (absl::Status status = StatusOf(reading); !status.ok()) return status;
  v1::Bundle edited = reading.bundle;
  const v1::Variant variant = EditedVariant(edited, parent, values);
  // The whole is judged as it will be tried.
  for (v1::Variable& variable : *reading.bundle.mutable_variables()) {
    variable.set_start(variant.values().at(variable.name()));
    variable.clear_replaces();
  }
  CheckWhole(reading);
  CheckMessage(reading);
  if (absl::Status status = StatusOf(reading); !status.ok()) return status;
  for (v1::Variable& variable : *edited.mutable_variables()) {
    const v1::Variable* before = FindVariable(parent, variable.name());
    if (before == nullptr || !variable.replaces().empty()) continue;
    if (const std::optional<int32_t> start = SameText(*before, before->start(), variable)) variable.set_start(*start);
  }
  *bundle = std::move(edited);
  return variant;
}

absl::StatusOr<v1::Variant> ReadStartToml(const std::string& text, const SourceFiles& added, v1::Bundle* bundle) {
  Reading reading("", "kernel.toml");
  ReadImplementationTables(text, *bundle, Files::kAdded, added, reading);
  if (reading.problems.empty()) CheckWhole(reading);
  CheckMessage(reading);
  if (absl::Status status = StatusOf(reading); !status.ok()) return status;
  *bundle = std::move(reading.bundle);
  return StartVariant(*bundle);
}

}  // namespace pawl
