// [[tensor]], [[scalar]], [[launch]] and [reference]: what is called with what.
#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/expression/expression.h"
#include "base/names/spelling.h"
#include "kernels/limits.h"
#include "kernels/plan.h"
#include "kernels/reading.h"

namespace pawl {
namespace {

// The values that an input may hold.
void ReadRange(TomlTable& table, Reading& reading, v1::Tensor& tensor) {
  const bool input = tensor.role() == v1::TENSOR_ROLE_INPUT;
  const bool whole = tensor.type() == v1::DATA_TYPE_I32;
  if (!table.Has("range")) {
    if (input && whole) {
      table.Complain(table.line(),
                     "the key range is missing; an i32 input must say what it may hold, such as range = [0, 1023]");
    }
    return;
  }
  const std::vector<Text> range = table.Expressions("range");
  if (!input) {
    table.Complain(table.Line("range"), "range is for inputs; outputs and scratch are poisoned before each call");
    return;
  }
  if (range.size() != 2) {
    if (!range.empty()) {
      table.Complain(table.Line("range"),
                     absl::StrCat("range has ", range.size(), " entries; expected the lowest and the highest value"));
    }
    return;
  }
  for (const Text& end : range) reading.Use(table, "range", end, whole ? Must::kBeAnInt32 : Must::kBeFinite);
  tensor.set_low(range[0].value);
  tensor.set_high(range[1].value);
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
  if (tensor.role() != v1::TENSOR_ROLE_OUTPUT) {
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
  const std::optional<int> fill = table.Word("fill");
  if (tensor.role() == v1::TENSOR_ROLE_INPUT) {
    tensor.set_fill(static_cast<v1::Fill>(fill.value_or(0) + 1));
  } else if (fill) {
    table.Complain(table.Line("fill"), "fill is for inputs; outputs and scratch are poisoned before each call");
  }
  const std::vector<Text> shape = table.Expressions("shape");
  if (shape.size() > kMaxRank) {
    table.Complain(table.Line("shape"),
                   absl::StrCat("shape has ", shape.size(), " entries; expected at most ", kMaxRank));
  }
  // The reference has the same inputs and outputs, and it knows no variables.
  const bool scratch = tensor.role() == v1::TENSOR_ROLE_SCRATCH || (table.Has("role") && !role);
  const Scope scope = scratch ? kEverything : table.scope("shape");
  for (const Text& extent : shape) {
    reading.Use(table, "shape", extent, scope, Must::kBeAnExtent, "");
    tensor.add_shape(extent.value);
  }
  ReadRange(table, reading, tensor);
  ReadAlign(table, tensor);
  ReadOutputTolerance(table, tensor);
  table.Finish();
}

// C's rules: it is what comes after `extern "C" __global__ void`.
void CheckEntry(TomlTable& table, const Text& entry) {
  if (!IsName(entry.value)) {
    table.Complain(entry.line, absl::StrCat("entry \"", entry.value,
                                            "\" can't be a function; expected the name of an "
                                            "extern \"C\" __global__ function of the source"));
  }
}

void CheckArguments(TomlTable& table, bool reference, const std::vector<Text>& arguments, const Reading& reading) {
  std::vector<std::string> known;
  for (const auto& [name, kind] : reading.names) {
    if (kind.first != "variable") known.push_back(name);
  }
  for (const Text& argument : arguments) {
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
    if (!reference) continue;
    for (const v1::Tensor& tensor : reading.bundle.tensors()) {
      if (tensor.name() == argument.value && tensor.role() == v1::TENSOR_ROLE_SCRATCH) {
        table.Complain(argument.line, absl::StrCat("argument ", argument.value,
                                                   " is scratch; the reference gets inputs and outputs only"));
      }
    }
    for (const v1::Scalar& scalar : reading.bundle.scalars()) {
      if (scalar.name() != argument.value) continue;
      absl::StatusOr<std::set<std::string>> names = NamesIn(scalar.value());
      if (!names.ok()) continue;
      for (const std::string& name : *names) {
        const auto used = reading.names.find(name);
        if (used == reading.names.end() || used->second.first == "size") continue;
        table.Complain(argument.line, absl::StrCat("argument ", argument.value, " depends on the variable ", name,
                                                   "; the reference knows sizes only"));
      }
    }
  }
}

void ReadLaunch(TomlTable& table, bool reference, Reading& reading, v1::Launch& launch) {
  if (std::optional<Text> entry = table.Text("entry")) {
    CheckEntry(table, *entry);
    table.set_where(absl::StrCat(table.where(), " ", entry->value));
    reading.lines[absl::StrCat("launch ", entry->value)] = table.line();
    launch.set_entry(entry->value);
  }
  if (std::optional<Text> when = table.Expression("when")) {
    reading.Use(table, "when", *when, Must::kBeFinite);
    launch.set_when(when->value);
  }
  for (const auto& [key, list] :
       {std::pair{"grid", launch.mutable_grid()}, std::pair{"block", launch.mutable_block()}}) {
    const std::vector<Text> extents = table.Expressions(key);
    if (extents.size() > kMaxExtents) {
      table.Complain(table.Line(key), absl::StrCat(key, " has ", extents.size(), " entries; expected one to three"));
    }
    for (const Text& extent : extents) {
      reading.Use(table, key, extent, Must::kBeAnExtent, launch.when());
      list->Add(std::string(extent.value));
    }
  }
  if (std::optional<Text> shared = table.Expression("shared")) {
    reading.Use(table, "shared", *shared, Must::kBeBytes, launch.when());
    launch.set_shared(shared->value);
  }
  const std::vector<Text> arguments = table.Texts("arguments");
  CheckArguments(table, reference, arguments, reading);
  for (const Text& argument : arguments) launch.add_arguments(argument.value);
  table.Finish();
}

// An output that no launch is given can't be written.
void CheckOutputs(const std::string& who, const google::protobuf::RepeatedPtrField<v1::Launch>& launches, int line,
                  Reading& reading) {
  for (const v1::Tensor& tensor : reading.bundle.tensors()) {
    if (tensor.role() != v1::TENSOR_ROLE_OUTPUT || tensor.name().empty()) continue;
    const bool given = std::any_of(launches.begin(), launches.end(), [&](const v1::Launch& launch) {
      return std::find(launch.arguments().begin(), launch.arguments().end(), tensor.name()) != launch.arguments().end();
    });
    if (!given) reading.problems.Add(line, absl::StrCat("no ", who, " has the output ", tensor.name(), " as argument"));
  }
}

}  // namespace

void ReadTensors(TomlTable& root, Reading& reading) {
  std::vector<TomlTable> tables = root.Tables("tensor");
  for (TomlTable& table : tables) ReadTensor(table, reading);
  const auto& tensors = reading.bundle.tensors();
  if (!tables.empty() && std::none_of(tensors.begin(), tensors.end(), [](const v1::Tensor& tensor) {
        return tensor.role() == v1::TENSOR_ROLE_OUTPUT;
      })) {
    reading.problems.Add(tables.front().line(), "no [[tensor]] has role = \"output\"; expected at least one");
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
    constexpr v1::DataType kTypes[] = {v1::DATA_TYPE_F32, v1::DATA_TYPE_F64, v1::DATA_TYPE_I32};
    if (std::optional<int> type = table.Word("type")) scalar.set_type(kTypes[*type]);
    if (std::optional<Text> value = table.Expression("value")) {
      reading.Use(table, "value", *value, scalar.type() == v1::DATA_TYPE_I32 ? Must::kBeAnInt32 : Must::kBeFinite);
      scalar.set_value(value->value);
    }
    table.Finish();
  }
}

void ReadLaunches(TomlTable& root, Reading& reading) {
  std::vector<TomlTable> tables = root.Tables("launch");
  for (TomlTable& table : tables) ReadLaunch(table, false, reading, *reading.bundle.add_launches());
  if (tables.empty()) return;
  reading.lines["launches"] = tables.front().line();
  CheckOutputs("[[launch]]", reading.bundle.launches(), tables.front().line(), reading);
}

void ReadReference(TomlTable& root, Reading& reading) {
  std::optional<TomlTable> table = root.Table("reference");
  if (!table) return;
  v1::Reference& reference = *reading.bundle.mutable_reference();
  if (std::optional<Text> source = table->Text("source")) {
    absl::StatusOr<std::string> text = ReadSourceFile(reading.folder, source->value);
    if (!text.ok()) table->Complain(source->line, absl::StrCat("source: ", text.status().message()));
    reference.mutable_source()->set_path(source->value);
    reference.mutable_source()->set_text(text.value_or(""));
  }
  std::vector<TomlTable> launches = table->Tables("launch");
  for (TomlTable& launch : launches) ReadLaunch(launch, true, reading, *reference.add_launches());
  if (!launches.empty()) {
    CheckOutputs("[[reference.launch]]", reference.launches(), launches.front().line(), reading);
  }
  table->Finish();
}

}  // namespace pawl
