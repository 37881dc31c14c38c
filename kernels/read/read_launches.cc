// [[launch]], [[symbol]], [reference] and [setup]: what is called with what.
#include <algorithm>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "base/expression/expression.h"
#include "base/names/spelling.h"
#include "base/names/utf8.h"
#include "kernels/entry_name.h"
#include "kernels/limits.h"
#include "kernels/plan.h"
#include "kernels/read/reading.h"
#include "kernels/variable_values.h"

namespace pawl {
namespace {

enum class CallOf { kKernel, kReference, kSetup };

void CheckEntry(TomlTable& table, const Text& entry) {
  if (IsEntryName(entry.value)) return;
  table.Complain(entry.line, absl::StrCat("entry \"", Printable(entry.value),
                                          "\" can't be a function; expected the name of an extern \"C\" __global__ "
                                          "function of the source, or a C++ name such as a::copy<float, WIDTH>"));
}

// Template arguments of the reference and the setup are the contract's: no variable may stand in them.
void CheckEntryWords(TomlTable& table, const Text& entry, const Reading& reading) {
  if (!IsCppEntry(entry.value)) return;
  for (const std::string& word : WordsOf(entry.value)) {
    const auto it = reading.names.find(word);
    if (it == reading.names.end() || it->second.first != "variable") continue;
    table.Complain(entry.line, absl::StrCat("entry \"", entry.value, "\": ", word, " is a variable"));
  }
}

const v1::Tensor* FindTensor(const v1::Bundle& bundle, const std::string& name) {
  const auto it = std::find_if(bundle.tensors().begin(), bundle.tensors().end(),
                               [&](const v1::Tensor& tensor) { return tensor.name() == name; });
  return it == bundle.tensors().end() ? nullptr : &*it;
}

// Whether the reference or the setup may have a tensor or a scalar.
void CheckContractArgument(TomlTable& table, CallOf of, const Text& argument, const std::string& name,
                           const Reading& reading) {
  const v1::Tensor* tensor = FindTensor(reading.bundle, name);
  if (tensor != nullptr && of == CallOf::kReference && tensor->role() == v1::TENSOR_ROLE_SCRATCH) {
    table.Complain(argument.line, absl::StrCat("argument ", argument.value,
                                               " is scratch; the reference gets inputs and outputs only"));
  }
  if (tensor != nullptr && of == CallOf::kSetup && !tensor->is_static()) {
    table.Complain(argument.line, absl::StrCat("argument ", argument.value, ": the tensor ", name,
                                               " is not static; the setup gets tensors with static = true only"));
  }
  for (const v1::Scalar& scalar : reading.bundle.scalars()) {
    if (scalar.name() != name) continue;
    const absl::StatusOr<std::string> value = WithoutWords(reading.bundle, scalar.value());
    const absl::StatusOr<std::set<std::string>> names = NamesIn(value.value_or(""));
    if (!names.ok()) continue;
    for (const std::string& used_name : *names) {
      const auto used = reading.names.find(used_name);
      if (used == reading.names.end() || used->second.first == "size") continue;
      table.Complain(argument.line,
                     absl::StrCat("argument ", argument.value, " depends on the variable ", used_name, "; the ",
                                  of == CallOf::kSetup ? "setup" : "reference", " knows sizes only"));
    }
  }
}

void CheckArguments(TomlTable& table, CallOf of, const std::string& index, const std::vector<Text>& arguments,
                    const Reading& reading) {
  std::vector<std::string> known;
  for (const auto& [name, kind] : reading.names) {
    if (kind.first != "variable") known.push_back(name);
  }
  for (const Text& argument : arguments) {
    if (!index.empty() && argument.value == index) continue;
    const auto it = reading.names.find(argument.value);
    if (it == reading.names.end()) {
      table.Complain(argument.line,
                     absl::StrCat("argument ", argument.value, " is neither a tensor nor a scalar nor a size",
                                  Expected(argument.value, known)));
    } else if (it->second.first == "variable") {
      table.Complain(argument.line, absl::StrCat("argument ", argument.value,
                                                 " is a variable; the source has it as a macro, expected a tensor, a "
                                                 "scalar or a size"));
    }
    if (of == CallOf::kKernel) continue;
    CheckContractArgument(table, of, argument, argument.value, reading);
    for (const v1::StructArgument& of_struct : reading.bundle.structs()) {
      if (of_struct.name() != argument.value) continue;
      for (const std::string& field : of_struct.fields()) {
        CheckContractArgument(table, of, argument, field, reading);
      }
    }
  }
}

// What a loop of launches has in its first one only.
void RefuseRepetition(TomlTable& table, const v1::Launch& launch) {
  for (const char* key : {"repeat", "index", "swap"}) {
    if (!table.Has(key)) continue;
    table.Skip(key);
    table.Complain(table.Line(key), absl::StrCat(key, " of the loop ", launch.loop(), " stands in its first launch"));
  }
}

// `repeat`, `index` and `swap`.
void ReadRepetition(TomlTable& table, Reading& reading, v1::Launch& launch) {
  if (std::optional<Text> repeat = table.Expression("repeat")) {
    // A loop may go on where its first launch is left out.
    reading.Use(table, "repeat", *repeat, Must::kBeACount, launch.loop().empty() ? launch.when() : "");
    launch.set_repeat(repeat->value);
  } else if (!launch.loop().empty() && !table.Has("repeat")) {
    table.Complain(table.Line("loop"),
                   absl::StrCat("the loop ", launch.loop(), " has no repeat; expected it in its first launch"));
  }
  if (std::optional<Text> index = table.Text("index")) {
    const auto taken = reading.names.find(index->value);
    if (!IsName(index->value)) {
      table.Complain(index->line, absl::StrCat("index \"", Printable(index->value),
                                               "\" can't be a name; expected letters, digits and _"));
    } else if (taken != reading.names.end()) {
      table.Complain(index->line, absl::StrCat("index: the name ", index->value, " is taken by the ",
                                               taken->second.first, " in line ", taken->second.second));
    } else if (launch.repeat().empty() && launch.loop().empty()) {
      table.Complain(index->line, "index counts the launches of repeat, which is missing");
    }
    launch.set_index(index->value);
  }
  const std::vector<Text> swap = table.Texts("swap");
  if (!swap.empty() && (swap.size() != 2 || swap[0].value == swap[1].value)) {
    table.Complain(table.Line("swap"), "swap: expected two different tensors");
  }
  for (const Text& name : swap) {
    const v1::Tensor* tensor = FindTensor(reading.bundle, name.value);
    if (tensor == nullptr) {
      table.Complain(name.line, absl::StrCat("swap: there is no tensor ", Printable(name.value)));
    } else if (tensor->role() == v1::TENSOR_ROLE_INPUT || tensor->is_static()) {
      table.Complain(name.line, absl::StrCat("swap: ", name.value, " is ", tensor->is_static() ? "static" : "an input",
                                             ", which no launch may write; expected outputs, inouts and scratch"));
    }
    launch.add_swap(name.value);
  }
}

// The loop's name. `before`: the launches so far. The first launch of the loop: null where this is the first.
const v1::Launch* ReadLoop(TomlTable& table, const google::protobuf::RepeatedPtrField<v1::Launch>& before,
                           v1::Launch& launch) {
  const std::optional<Text> loop = table.Text("loop");
  if (!loop) return nullptr;
  if (!IsLoopName(loop->value)) {
    table.Complain(loop->line, absl::StrCat("loop \"", Printable(loop->value),
                                            "\" can't be a name; expected letters, digits and _"));
    return nullptr;
  }
  launch.set_loop(loop->value);
  const auto first =
      std::find_if(before.begin(), before.end(), [&](const v1::Launch& other) { return other.loop() == loop->value; });
  if (first == before.end()) return nullptr;
  if (before.rbegin()->loop() != loop->value) {
    table.Complain(loop->line, absl::StrCat("the loop ", loop->value, " has ended with another launch than those of ",
                                            "it; expected launches that follow each other, or another name"));
  }
  return &*first;
}

void ReadGeometry(TomlTable& table, const std::string& key, Reading& reading, const v1::Launch& launch,
                  google::protobuf::RepeatedPtrField<std::string>& list) {
  const std::vector<Text> extents = table.Expressions(key);
  if (extents.size() > kMaxExtents) {
    table.Complain(table.Line(key), absl::StrCat(key, " has ", extents.size(), " entries; expected one to three"));
  }
  for (const Text& extent : extents) {
    reading.Use(table, key, extent, Must::kBeAnExtent, launch.when());
    list.Add(std::string(extent.value));
  }
}

void ReadLaunch(TomlTable& table, CallOf of, Reading& reading,
                google::protobuf::RepeatedPtrField<v1::Launch>& launches) {
  v1::Launch launch;
  if (std::optional<Text> entry = table.Text("entry")) {
    CheckEntry(table, *entry);
    table.set_where(absl::StrCat(table.where(), " ", entry->value));
    if (of != CallOf::kKernel) CheckEntryWords(table, *entry, reading);
    reading.lines[absl::StrCat("launch ", entry->value)] = table.line();
    launch.set_entry(entry->value);
  }
  if (std::optional<Text> when = table.Expression("when")) {
    reading.Use(table, "when", *when, Must::kBeFinite);
    launch.set_when(when->value);
  }
  ReadGeometry(table, "grid", reading, launch, *launch.mutable_grid());
  ReadGeometry(table, "block", reading, launch, *launch.mutable_block());
  ReadGeometry(table, "cluster", reading, launch, *launch.mutable_cluster());
  if (std::optional<Text> shared = table.Expression("shared")) {
    reading.Use(table, "shared", *shared, Must::kBeBytes, launch.when());
    launch.set_shared(shared->value);
  }
  const v1::Launch* first = ReadLoop(table, launches, launch);
  if (first != nullptr) {
    RefuseRepetition(table, launch);
  } else {
    ReadRepetition(table, reading, launch);
  }
  launch.set_cooperative(table.Flag("cooperative").value_or(false));
  const std::vector<Text> arguments = table.Texts("arguments");
  CheckArguments(table, of, first == nullptr ? launch.index() : first->index(), arguments, reading);
  for (const Text& argument : arguments) launch.add_arguments(argument.value);
  table.Finish();
  *launches.Add() = std::move(launch);
}

void ReadSymbolTables(TomlTable& table, bool reference, Reading& reading,
                      google::protobuf::RepeatedPtrField<v1::Symbol>& symbols) {
  std::set<std::string> names;
  for (TomlTable& each : table.Tables("symbol")) {
    v1::Symbol& symbol = *symbols.Add();
    if (std::optional<Text> name = each.Text("name")) {
      each.set_where(absl::StrCat(each.where(), " ", Printable(name->value.substr(0, 80))));
      if (!IsSymbolName(name->value)) {
        each.Complain(name->line,
                      "it can't be a variable; expected the name of a __constant__ or __device__ variable "
                      "of the source, such as filter::taps");
      } else if (!names.insert(name->value).second) {
        each.Complain(name->line, "another [[symbol]] has this name");
      }
      symbol.set_name(name->value);
    }
    if (std::optional<Text> tensor = each.Text("tensor")) {
      const v1::Tensor* filled = FindTensor(reading.bundle, tensor->value);
      if (filled == nullptr) {
        each.Complain(tensor->line, absl::StrCat("there is no tensor ", Printable(tensor->value)));
      } else if (filled->role() != v1::TENSOR_ROLE_INPUT) {
        each.Complain(tensor->line, absl::StrCat("the tensor ", tensor->value, " is not an input"));
      } else if (!reference && !filled->is_static()) {
        each.Complain(tensor->line, absl::StrCat("the tensor ", tensor->value,
                                                 " is not static; a symbol holds the same in every call: add static = "
                                                 "true to the tensor"));
      }
      symbol.set_tensor(tensor->value);
    }
    each.Finish();
  }
}

// Whether a launch gets a tensor, itself or as a field.
bool Gets(const v1::Bundle& bundle, const v1::Launch& launch, const std::string& tensor) {
  return absl::c_any_of(launch.arguments(), [&](const std::string& argument) {
    return argument == tensor || absl::c_any_of(bundle.structs(), [&](const v1::StructArgument& of) {
             return of.name() == argument && absl::c_linear_search(of.fields(), tensor);
           });
  });
}

// An output that no launch is given can't be written.
void CheckOutputs(const std::string& who, const google::protobuf::RepeatedPtrField<v1::Launch>& launches, int line,
                  Reading& reading) {
  for (const v1::Tensor& tensor : reading.bundle.tensors()) {
    if (!IsCompared(tensor.role()) || tensor.name().empty()) continue;
    const bool given =
        absl::c_any_of(launches, [&](const v1::Launch& launch) { return Gets(reading.bundle, launch, tensor.name()); });
    if (!given) reading.problems.Add(line, absl::StrCat("no ", who, " has the output ", tensor.name(), " as argument"));
  }
}

}  // namespace

void ReadLaunches(TomlTable& root, Reading& reading) {
  if (reading.contract_alone) return;
  std::vector<TomlTable> tables = root.Tables("launch");
  for (TomlTable& table : tables) ReadLaunch(table, CallOf::kKernel, reading, *reading.bundle.mutable_launches());
  if (tables.empty()) return;
  reading.lines["launches"] = tables.front().line();
  CheckOutputs("[[launch]]", reading.bundle.launches(), tables.front().line(), reading);
}

void ReadSymbols(TomlTable& root, Reading& reading) {
  ReadSymbolTables(root, false, reading, *reading.bundle.mutable_symbols());
}

void ReadReference(TomlTable& root, Reading& reading) {
  std::optional<TomlTable> table = root.Table("reference");
  const bool problem = reading.bundle.has_problem();
  if (!table) {
    if (!problem && !root.Has("reference")) {
      reading.problems.Add(1, "the table [reference] is missing; expected it, or problem = \"problem.py\"");
    }
    return;
  }
  if (problem) {
    table->Complain(table->line(), "problem has the reference already; expected one of them");
  }
  v1::Reference& reference = *reading.bundle.mutable_reference();
  ReadSource(*table, "source", reading, *reference.mutable_source());
  std::vector<TomlTable> launches = table->Tables("launch");
  ReadSourceFiles(*table, reference.source().path(), reading, *reference.mutable_files());
  ReadSymbolTables(*table, true, reading, *reference.mutable_symbols());
  for (TomlTable& launch : launches) ReadLaunch(launch, CallOf::kReference, reading, *reference.mutable_launches());
  if (!launches.empty()) {
    CheckOutputs("[[reference.launch]]", reference.launches(), launches.front().line(), reading);
  }
  table->Finish();
}

void ReadSetup(TomlTable& root, Reading& reading) {
  std::optional<TomlTable> table = root.Table("setup");
  if (table) {
    v1::Setup& setup = *reading.bundle.mutable_setup();
    ReadSource(*table, "source", reading, *setup.mutable_source());
    for (TomlTable& launch : table->Tables("launch")) {
      ReadLaunch(launch, CallOf::kSetup, reading, *setup.mutable_launches());
    }
    table->Finish();
  }
  for (const v1::Tensor& tensor : reading.bundle.tensors()) {
    if (tensor.role() != v1::TENSOR_ROLE_SCRATCH || !tensor.is_static()) continue;
    if (absl::c_any_of(reading.bundle.setup().launches(),
                       [&](const v1::Launch& launch) { return Gets(reading.bundle, launch, tensor.name()); })) {
      continue;
    }
    reading.problems.Add(
        reading.lines[absl::StrCat("tensor ", tensor.name())],
        absl::StrCat("[[tensor]] ", tensor.name(),
                     ": static scratch is what [setup] writes; no [[setup.launch]] has it as argument"));
  }
}

}  // namespace pawl
