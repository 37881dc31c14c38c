// [[tensor]], [[scalar]] and [[struct]]: what launches are given.
#include <algorithm>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "base/names/spelling.h"
#include "kernels/data_file.h"
#include "kernels/data_type.h"
#include "kernels/limits.h"
#include "kernels/plan.h"
#include "kernels/read/reading.h"

namespace pawl {
namespace {

// The fills that are words, in the order of the row.
constexpr v1::Fill kFillWords[] = {v1::FILL_NORMAL, v1::FILL_UNIFORM,     v1::FILL_ZEROS, v1::FILL_ONES,
                                   v1::FILL_IOTA,   v1::FILL_PERMUTATION, v1::FILL_BYTES};

Must MustOf(v1::DataType type) {
  if (type == v1::DATA_TYPE_I32) return Must::kBeAnInt32;
  return IsFloat(type) ? Must::kBeFinite : Must::kBeWhole;
}

void ReadEnds(TomlTable& table, const std::string& key, Reading& reading, v1::Tensor& tensor) {
  const std::vector<Text> ends = table.Expressions(key);
  if (ends.size() != 2) {
    if (!ends.empty()) {
      table.Complain(table.Line(key),
                     absl::StrCat(key, " has ", ends.size(), " entries; expected the lowest and the highest value"));
    }
    return;
  }
  for (const Text& end : ends) reading.Use(table, key, end, MustOf(tensor.type()));
  tensor.set_low(ends[0].value);
  tensor.set_high(ends[1].value);
}

void ReadFillFile(TomlTable& fill, Reading& reading, v1::Tensor& tensor) {
  const std::optional<Text> path = fill.Text("file");
  if (!path) return;
  tensor.set_file(path->value);
  ReadDataFile(fill, "file", *path, path->value, reading);
}

// What is stated of the data of a file, beside its name.
constexpr std::pair<const char*, v1::Fill> kFileHolds[] = {{"integers", v1::FILL_INTEGERS},
                                                           {"sorted", v1::FILL_SORTED},
                                                           {"csr_offsets", v1::FILL_CSR_OFFSETS},
                                                           {"permutation", v1::FILL_PERMUTATION}};

void CheckFilePermutation(TomlTable& fill) {
  if (!fill.Has("permutation")) return;
  const std::optional<bool> given = fill.Flag("permutation");
  if (given && !*given) fill.Complain(fill.Line("permutation"), "permutation is true, or it is left out");
  if (!fill.Has("file")) {
    fill.Complain(fill.Line("permutation"), "permutation says what a file holds; expected fill = \"permutation\"");
  }
}

// { integers = [0, 9] } and such.
void ReadFillTable(TomlTable& fill, Reading& reading, v1::Tensor& tensor) {
  const std::pair<const char*, v1::Fill> kinds[] = {
      {"integers", v1::FILL_INTEGERS}, {"uniform", v1::FILL_UNIFORM_RANGE},   {"sorted", v1::FILL_SORTED},
      {"constant", v1::FILL_CONSTANT}, {"csr_offsets", v1::FILL_CSR_OFFSETS}, {"file", v1::FILL_FILE}};
  int count = 0;
  for (const auto& [key, kind] : kinds) {
    if (!fill.Has(key)) continue;
    ++count;
    tensor.set_fill(kind);
    if (kind == v1::FILL_FILE) {
      ReadFillFile(fill, reading, tensor);
    } else if (kind == v1::FILL_CONSTANT || kind == v1::FILL_CSR_OFFSETS) {
      const std::optional<Text> value = fill.Expression(key);
      if (!value) continue;
      reading.Use(fill, key, *value, kind == v1::FILL_CSR_OFFSETS ? Must::kBeACount : MustOf(tensor.type()));
      tensor.set_low(kind == v1::FILL_CSR_OFFSETS ? "0" : value->value);
      tensor.set_high(value->value);
    } else {
      ReadEnds(fill, key, reading, tensor);
    }
  }
  CheckFilePermutation(fill);
  int holds = 0;
  for (const auto& [key, kind] : kFileHolds) {
    if (!fill.Has("file") || !fill.Has(key)) continue;
    ++holds;
    tensor.set_fill(v1::FILL_FILE);
    tensor.set_file_holds(kind);
  }
  const bool states_file = holds == 1 && count == (fill.Has("permutation") ? 1 : 2);
  if (fill.Has("file") && !states_file && (holds > 0 || count > 1)) {
    fill.Complain(fill.line(),
                  "a file is stated to hold one of integers, sorted, csr_offsets and permutation; expected one of "
                  "them beside file");
  } else if ((count > 1 && !states_file) || fill.Names().empty()) {
    fill.Complain(fill.line(),
                  absl::StrCat("it has ", count, " of its keys; expected one, such as { integers = [0, 9] }"));
  }
  fill.Finish();
}

std::string SomeDimension(const v1::Bundle& bundle) {
  std::set<std::string> names;
  for (const v1::Size& size : bundle.sizes()) {
    for (const auto& [name, value] : size.values()) names.insert(name);
  }
  return names.empty() ? "N" : *names.begin();
}

// The fill says what an input may hold, and a range of its own would contradict it.
bool StatesValues(v1::Fill fill) {
  switch (fill) {
    case v1::FILL_INTEGERS:
    case v1::FILL_CONSTANT:
    case v1::FILL_IOTA:
    case v1::FILL_PERMUTATION:
    case v1::FILL_SORTED:
    case v1::FILL_CSR_OFFSETS:
    case v1::FILL_BYTES:
      return true;
    default:
      return false;
  }
}

// Integers are drawn from a range that only the bundle knows: the rows of a table, the number of nodes.
void CheckHasRange(TomlTable& table, const Reading& reading, v1::Tensor& tensor) {
  if (!tensor.low().empty() || tensor.fill() > v1::FILL_INTEGERS) return;
  if (tensor.type() == v1::DATA_TYPE_BOOL) {
    tensor.set_fill(v1::FILL_INTEGERS);
    tensor.set_low("0");
    tensor.set_high("1");
  }
  const bool stated = table.Has("range") || tensor.fill() == v1::FILL_INTEGERS;  // and complained about
  if (!IsInteger(tensor.type()) || (stated && (table.Has("range") || table.Has("fill")))) return;
  table.Complain(table.line(), absl::StrCat("the key range is missing; an ", DataTypeName(tensor.type()),
                                            " input must say what it may hold, such as range = [0, 1023] or fill = { "
                                            "integers = [0, \"",
                                            SomeDimension(reading.bundle), " - 1\"] }"));
}

void CheckFillOfType(TomlTable& table, const v1::Tensor& tensor) {
  const v1::Fill fill = tensor.fill();
  if (fill == v1::FILL_NORMAL && table.Has("fill") && !IsFloat(tensor.type()) && tensor.type() != v1::DATA_TYPE_I32) {
    table.Complain(table.Line("fill"), "normal is for floats; expected a range, such as fill = { integers = [0, 9] }");
  }
  if ((fill == v1::FILL_CSR_OFFSETS || tensor.file_holds() == v1::FILL_CSR_OFFSETS) && !IsInteger(tensor.type())) {
    table.Complain(table.Line("fill"),
                   absl::StrCat("csr_offsets are integers; the tensor's type is ", DataTypeName(tensor.type())));
  }
}

v1::Fill DefaultFill(const TomlTable& table, const Reading& reading, v1::DataType type) {
  if (reading.bundle.has_problem() && !table.Has("range")) return v1::FILL_PROBLEM;
  return IsFloat(type) || type == v1::DATA_TYPE_I32 ? v1::FILL_NORMAL : v1::FILL_INTEGERS;
}

// What an input is filled with, and the values that it may hold.
void ReadFill(TomlTable& table, Reading& reading, v1::Tensor& tensor) {
  if (!IsFilled(tensor.role())) {
    for (const char* key : {"fill", "range"}) {
      if (!table.Has(key)) continue;
      table.Skip(key);
      table.Complain(table.Line(key),
                     absl::StrCat(key, " is for inputs; outputs and scratch are poisoned before each call"));
    }
    return;
  }
  tensor.set_fill(DefaultFill(table, reading, tensor.type()));
  if (std::optional<TomlTable> fill = table.TableInstead("fill")) {
    ReadFillTable(*fill, reading, tensor);
  } else if (const std::optional<int> word = table.Word("fill")) {
    tensor.set_fill(kFillWords[*word]);
  }
  CheckFillOfType(table, tensor);
  if (table.Has("range") && table.Has("fill") &&
      (StatesValues(tensor.fill()) || StatesValues(tensor.file_holds()) || !tensor.low().empty())) {
    table.Skip("range");
    table.Complain(table.Line("range"), "the fill states what the tensor holds; expected fill or range, not both");
  } else {
    ReadEnds(table, "range", reading, tensor);
  }
  CheckHasRange(table, reading, tensor);
}

void ReadAlign(TomlTable& table, v1::Tensor& tensor) {
  const std::optional<int64_t> align = table.Integer("align");
  if (!align) return;
  const int least = ElementBytes(tensor.type());
  if ((*align & (*align - 1)) != 0 || *align < least) {
    table.Complain(table.Line("align"), absl::StrCat("align is ", *align, "; expected a power of two from ", least,
                                                     ", the bytes of an element, to ", kMaxAlign));
  }
  tensor.set_align(static_cast<int32_t>(*align));
}

void ReadOutputTolerance(TomlTable& table, v1::Tensor& tensor) {
  const bool exact = table.Flag("exact").value_or(false);
  std::optional<TomlTable> tolerance = table.Table("tolerance");
  if (!IsCompared(tensor.role())) {
    for (const char* key : {"exact", "tolerance"}) {
      if (table.Has(key)) table.Complain(table.Line(key), absl::StrCat(key, " is for outputs: only they are compared"));
    }
    return;
  }
  if (exact && tolerance) {
    table.Complain(table.Line("exact"), "exact and tolerance exclude each other; expected one of them");
  }
  if (exact) tensor.mutable_tolerance()->set_exact(true);
  if (!tolerance) return;
  tolerance->set_where(absl::StrCat(table.where(), ": tolerance"));
  ReadToleranceKeys(*tolerance, *tensor.mutable_tolerance());
}

void ReadTensor(TomlTable& table, Reading& reading) {
  v1::Tensor& tensor = *reading.bundle.add_tensors();
  if (std::optional<Text> name = table.Text("name")) {
    table.set_where(absl::StrCat("[[tensor]] ", name->value));
    reading.AddName(name->value, "tensor", name->line, table);
    reading.lines[absl::StrCat("tensor ", name->value)] = table.line();
    tensor.set_name(name->value);
  }
  if (std::optional<int> type = table.Word("type")) {
    tensor.set_type(static_cast<v1::DataType>(*type + 1));
  }
  const std::optional<int> role = table.Word("role");
  tensor.set_role(static_cast<v1::TensorRole>(role.value_or(0) + 1));
  tensor.set_is_static(table.Flag("static").value_or(false));
  if (tensor.is_static() && IsCompared(tensor.role())) {
    table.Complain(table.Line("static"), "static is for inputs and scratch; a call writes its outputs");
  }
  ReadFill(table, reading, tensor);
  const std::vector<Text> shape = table.Expressions("shape");
  if (shape.size() > kMaxRank) {
    table.Complain(table.Line("shape"),
                   absl::StrCat("shape has ", shape.size(), " entries; expected at most ", kMaxRank));
  }
  // The reference has the same inputs and outputs, the setup the same static scratch, and neither knows variables.
  const bool scratch = tensor.role() == v1::TENSOR_ROLE_SCRATCH || (table.Has("role") && !role);
  const Scope scope = scratch && !tensor.is_static() ? kEverything : table.scope("shape");
  for (const Text& extent : shape) {
    reading.Use(table, "shape", extent, scope, Must::kBeAnExtent, "");
    tensor.add_shape(extent.value);
  }
  ReadAlign(table, tensor);
  ReadOutputTolerance(table, tensor);
  table.Finish();
}

v1::DataType TypeNamed(const std::string& name) {
  const auto& names = DataTypeNames();
  return static_cast<v1::DataType>(std::find(names.begin(), names.end(), name) - names.begin() + 1);
}

}  // namespace

void ReadTensors(TomlTable& root, Reading& reading) {
  std::vector<TomlTable> tables = root.Tables("tensor");
  for (TomlTable& table : tables) ReadTensor(table, reading);
  if (!tables.empty() &&
      absl::c_none_of(reading.bundle.tensors(), [](const v1::Tensor& tensor) { return IsCompared(tensor.role()); })) {
    reading.problems.Add(tables.front().line(),
                         "no [[tensor]] has role = \"output\" or \"inout\"; expected at least one");
  }
}

void ReadScalars(TomlTable& root, Reading& reading) {
  for (TomlTable& table : root.Tables("scalar")) {
    v1::Scalar& scalar = *reading.bundle.add_scalars();
    if (std::optional<Text> name = table.Text("name")) {
      table.set_where(absl::StrCat("[[scalar]] ", name->value));
      reading.AddName(name->value, "scalar", name->line, table);
      scalar.set_name(name->value);
    }
    if (std::optional<int> type = table.Word("type")) scalar.set_type(TypeNamed(table.words("type")[*type]));
    if (std::optional<Text> value = table.Expression("value")) {
      reading.Use(table, "value", *value, MustOf(scalar.type()));
      scalar.set_value(value->value);
    }
    table.Finish();
  }
}

void ReadStructs(TomlTable& root, Reading& reading) {
  for (TomlTable& table : root.Tables("struct")) {
    v1::StructArgument& argument = *reading.bundle.add_structs();
    if (std::optional<Text> name = table.Text("name")) {
      table.set_where(absl::StrCat("[[struct]] ", name->value));
      reading.AddName(name->value, "struct", name->line, table);
      argument.set_name(name->value);
    }
    std::vector<std::string> known;
    for (const auto& [name, kind] : reading.names) {
      if (kind.first != "variable" && kind.first != "struct") known.push_back(name);
    }
    const std::vector<Text> fields = table.Texts("fields");
    for (const Text& field : fields) {
      if (!absl::c_linear_search(known, field.value)) {
        table.Complain(field.line, absl::StrCat("field ", field.value, " is neither a tensor nor a scalar nor a size",
                                                Expected(field.value, known)));
      }
      argument.add_fields(field.value);
    }
    if (fields.size() > kMaxFields) {
      table.Complain(table.Line("fields"),
                     absl::StrCat("fields has ", fields.size(), " entries; expected at most ", kMaxFields));
    }
    argument.set_in_memory(table.Flag("in_memory").value_or(false));
    table.Finish();
  }
}

}  // namespace pawl
