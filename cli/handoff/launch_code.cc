#include "cli/handoff/launch_code.h"

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "cli/handoff/host_expression.h"
#include "kernels/data_type.h"
#include "kernels/entry_name.h"
#include "kernels/plan.h"
#include "kernels/variable_values.h"

namespace pawl {
namespace {

using Kind = LaunchUnit::Kind;

const char* LimitAttribute(const std::string& name) {
  static const auto& attributes =
      *new std::map<std::string, const char*>{{"SM_COUNT", "cudaDevAttrMultiProcessorCount"},
                                              {"MAX_THREADS_PER_BLOCK", "cudaDevAttrMaxThreadsPerBlock"},
                                              {"MAX_THREADS_PER_SM", "cudaDevAttrMaxThreadsPerMultiProcessor"},
                                              {"SHARED_PER_BLOCK", "cudaDevAttrMaxSharedMemoryPerBlockOptin"},
                                              {"SHARED_PER_SM", "cudaDevAttrMaxSharedMemoryPerMultiprocessor"},
                                              {"REGISTERS_PER_SM", "cudaDevAttrMaxRegistersPerMultiprocessor"},
                                              {"L2_BYTES", "cudaDevAttrL2CacheSize"}};
  const auto found = attributes.find(name);
  return found == attributes.end() ? nullptr : found->second;
}

// The C++ type that a scalar is passed as, and whether a double becomes it by way of a float.
std::string ScalarType(v1::DataType type) {
  switch (type) {
    case v1::DATA_TYPE_F16:
      return "__half";
    case v1::DATA_TYPE_BF16:
      return "__nv_bfloat16";
    case v1::DATA_TYPE_F8E4M3:
      return "__nv_fp8_e4m3";
    case v1::DATA_TYPE_F8E5M2:
      return "__nv_fp8_e5m2";
    case v1::DATA_TYPE_F32:
      return "float";
    case v1::DATA_TYPE_F64:
      return "double";
    case v1::DATA_TYPE_BOOL:
      return "bool";
    default: {
      const std::string name = DataTypeName(type);  // i32, u8, ...
      return absl::StrCat(name[0] == 'u' ? "uint" : "int", name.substr(1), "_t");
    }
  }
}

double AbsoluteOf(const v1::Bundle& bundle, const v1::Tensor& tensor) {
  return tensor.has_tolerance() ? tensor.tolerance().absolute() : bundle.tolerance().absolute();
}

double RelativeOf(const v1::Bundle& bundle, const v1::Tensor& tensor) {
  return tensor.has_tolerance() ? tensor.tolerance().relative() : bundle.tolerance().relative();
}

bool IsExact(const v1::Tensor& tensor) {
  return tensor.has_tolerance() ? tensor.tolerance().exact() : !IsFloat(tensor.type());
}

}  // namespace

std::string CppLiteral(const std::string& text) { return absl::StrCat("\"", absl::CEscape(text), "\""); }

std::string RoleWord(v1::TensorRole role) {
  return absl::AsciiStrToLower(absl::StripPrefix(v1::TensorRole_Name(role), "TENSOR_ROLE_"));
}

std::string FillWord(v1::Fill fill) {
  return fill == v1::FILL_UNSPECIFIED ? "normal"
                                      : absl::AsciiStrToLower(absl::StripPrefix(v1::Fill_Name(fill), "FILL_"));
}

LaunchCode::LaunchCode(const v1::Bundle& bundle, const v1::Variant& variant, std::string name_space)
    : bundle_(bundle), variant_(variant), namespace_(std::move(name_space)) {
  std::set<std::string> names;
  for (const v1::Size& size : bundle.sizes()) {
    for (const auto& [name, value] : size.values()) names.insert(name);
  }
  sizes_.assign(names.begin(), names.end());
}

int LaunchCode::TensorNumber(const std::string& name) const {
  for (int i = 0; i < bundle_.tensors_size(); ++i) {
    if (bundle_.tensors(i).name() == name) return i;
  }
  return -1;
}

std::string LaunchCode::Number(const std::string& expression, Kind kind) {
  const auto name_of = [&](const std::string& name) -> std::string {
    const auto value = variant_.values().find(name);
    if (kind == Kind::kImplementation && value != variant_.values().end()) return absl::StrCat(value->second, ".0");
    if (std::find(sizes_.begin(), sizes_.end(), name) != sizes_.end()) return absl::StrCat("size_", name);
    if (const char* attribute = LimitAttribute(name); attribute != nullptr)
      return absl::StrCat("Limit(", attribute, ")");
    status_.Update(absl::InvalidArgumentError(absl::StrCat("unknown name ", name, " in \"", expression, "\"")));
    return "0.0";
  };
  absl::StatusOr<std::string> plain = WithoutWords(bundle_, expression);
  if (plain.ok()) plain = HostExpression(*plain, name_of);
  if (plain.ok()) return *plain;
  status_.Update(plain.status());
  return "0.0";
}

std::string LaunchCode::Whole(const std::string& expression, Kind kind) {
  return absl::StrCat("Whole(", Number(expression, kind), ", ", CppLiteral(expression), ")");
}

std::string LaunchCode::Dimensions(const google::protobuf::RepeatedPtrField<std::string>& extents, Kind kind) {
  std::vector<std::string> texts;
  for (const std::string& extent : extents) {
    texts.push_back(absl::StrCat("Extent(", Number(extent, kind), ", ", CppLiteral(extent), ")"));
  }
  return absl::StrCat("dim3(", absl::StrJoin(texts, ", "), ")");
}

std::string LaunchCode::SizeValues() const {
  std::string text;
  for (size_t i = 0; i < sizes_.size(); ++i) {
    absl::StrAppend(&text, "  [[maybe_unused]] const double size_", sizes_[i], " = sizes.at(", i, ");\n");
  }
  return text;
}

absl::StatusOr<std::string> LaunchCode::Tables() {
  std::string text =
      "inline const std::vector<std::string>& SizeNames() {\n  static const std::vector<std::string> names = {";
  absl::StrAppend(
      &text,
      absl::StrJoin(sizes_, ", ",
                    [](std::string* out, const std::string& name) { absl::StrAppend(out, CppLiteral(name)); }),
      "};\n  return names;\n}\n\n");
  absl::StrAppend(
      &text,
      "inline const std::vector<TensorInfo>& TensorInfos() {\n  static const std::vector<TensorInfo> infos = {\n");
  for (const v1::Tensor& tensor : bundle_.tensors()) {
    absl::StrAppendFormat(&text, "      {%s, \"%s\", %d, \"%s\", \"%s\", %d, %s, %.17g, %.17g},\n",
                          CppLiteral(tensor.name()), DataTypeName(tensor.type()), ElementBits(tensor.type()),
                          RoleWord(tensor.role()), FillWord(tensor.fill()), tensor.align() > 0 ? tensor.align() : 1,
                          IsExact(tensor) ? "true" : "false", AbsoluteOf(bundle_, tensor), RelativeOf(bundle_, tensor));
  }
  absl::StrAppend(&text,
                  "  };\n  return infos;\n}\n\ninline std::vector<int64_t> ShapeOf(int tensor, const Sizes& sizes) {\n",
                  SizeValues(), "  switch (tensor) {\n");
  for (int i = 0; i < bundle_.tensors_size(); ++i) {
    std::vector<std::string> extents;
    for (const std::string& extent : bundle_.tensors(i).shape()) {
      extents.push_back(absl::StrCat("Extent(", Number(extent, Kind::kImplementation), ", ", CppLiteral(extent), ")"));
    }
    absl::StrAppend(&text, "    case ", i, ":  // ", bundle_.tensors(i).name(), "\n      return {",
                    absl::StrJoin(extents, ", "), "};\n");
  }
  absl::StrAppend(&text, "  }\n  throw std::runtime_error(\"there is no such tensor\");\n}\n");
  if (!status_.ok()) return status_;
  return text;
}

absl::StatusOr<std::string> LaunchCode::ProgramTables() {
  std::string text = absl::StrCat(
      "namespace ", namespace_, " {\nnamespace {\n\nstruct Range {\n  bool stated;\n  double low, high;\n};\n\n",
      "Range RangeOf(int tensor, const Sizes& sizes) {\n", SizeValues(), "  switch (tensor) {\n");
  for (int i = 0; i < bundle_.tensors_size(); ++i) {
    const v1::Tensor& tensor = bundle_.tensors(i);
    if (tensor.low().empty() && tensor.high().empty()) {
      const bool old = tensor.role() == v1::TENSOR_ROLE_INPUT && tensor.type() == v1::DATA_TYPE_I32 &&
                       tensor.fill() <= v1::FILL_UNIFORM;  // of version 0.1.0
      if (old) absl::StrAppend(&text, "    case ", i, ":\n      return {true, 0, 1023};\n");
      continue;
    }
    absl::StrAppend(&text, "    case ", i, ":  // ", tensor.name(), "\n      return {true, ",
                    tensor.low().empty() ? "0" : Number(tensor.low(), Kind::kReference), ", ",
                    tensor.high().empty() ? "0" : Number(tensor.high(), Kind::kReference), "};\n");
  }
  absl::StrAppend(
      &text, "  }\n  return {false, 0, 0};\n}\n\n// The sizes of the bundle.\n",
      "const std::map<std::string, Sizes>& Ladder() {\n  static const std::map<std::string, Sizes> ladder = {\n");
  for (const v1::Size& size : bundle_.sizes()) {
    std::vector<int32_t> values;
    for (const std::string& name : sizes_) {
      const auto found = size.values().find(name);
      values.push_back(found == size.values().end() ? 0 : found->second);
    }
    absl::StrAppend(&text, "      {", CppLiteral(size.name()), ", {", absl::StrJoin(values, ", "), "}},\n");
  }
  absl::StrAppend(&text, "  };\n  return ladder;\n}\n\n}  // namespace\n}  // namespace ", namespace_, "\n");
  if (!status_.ok()) return status_;
  return text;
}

LaunchCode::Value LaunchCode::ValueOf(const std::string& name, Kind kind) {
  if (const int tensor = TensorNumber(name); tensor >= 0) return {"void*", absl::StrCat("tensors[", tensor, "]")};
  if (const auto size = std::find(sizes_.begin(), sizes_.end(), name); size != sizes_.end()) {
    return {"int32_t", absl::StrCat("sizes[", size - sizes_.begin(), "]")};
  }
  for (const v1::Scalar& scalar : bundle_.scalars()) {
    if (scalar.name() != name) continue;
    const std::string type = ScalarType(scalar.type());
    if (scalar.type() == v1::DATA_TYPE_F64) return {type, Number(scalar.value(), kind)};
    if (scalar.type() == v1::DATA_TYPE_BOOL) return {type, absl::StrCat(Number(scalar.value(), kind), " != 0")};
    if (scalar.type() == v1::DATA_TYPE_F32)
      return {type, absl::StrCat("static_cast<float>(", Number(scalar.value(), kind), ")")};
    if (IsFloat(scalar.type())) {
      return {type, absl::StrCat(type, "(static_cast<float>(", Number(scalar.value(), kind), "))")};
    }
    return {type, absl::StrCat("static_cast<", type, ">(", Whole(scalar.value(), kind), ")")};
  }
  status_.Update(
      absl::InvalidArgumentError(absl::StrCat("argument ", name, " is neither a tensor nor a scalar nor a size")));
  return {"int32_t", "0"};
}

std::string LaunchCode::LaunchText(const v1::Launch& launch, const v1::Launch& first, int entry, Kind kind) {
  // The loop itself stands around its launches.
  const std::string repeat = launch.loop().empty() ? launch.repeat() : "";
  std::string text = absl::StrCat("  // ", launch.entry(), ": grid ", absl::StrJoin(launch.grid(), ", "), "; block ",
                                  absl::StrJoin(launch.block(), ", "),
                                  launch.shared().empty() ? "" : absl::StrCat("; shared ", launch.shared()), "\n");
  absl::StrAppend(
      &text, "  ", launch.when().empty() ? "" : absl::StrCat("if (", Number(launch.when(), kind), " != 0) "),
      "{\n    Geometry geometry;\n    const int64_t repeat = ", repeat.empty() ? "1" : Whole(repeat, kind), ";\n");
  std::string body;
  absl::StrAppend(&body, "    geometry.grid = ", Dimensions(launch.grid(), kind),
                  ";\n    geometry.block = ", Dimensions(launch.block(), kind), ";\n");
  if (!launch.shared().empty()) {
    absl::StrAppend(&body, "    geometry.shared = static_cast<size_t>(", Whole(launch.shared(), kind), ");\n");
  }
  if (!launch.cluster().empty())
    absl::StrAppend(&body, "    geometry.cluster = ", Dimensions(launch.cluster(), kind), ";\n");
  if (launch.cooperative()) absl::StrAppend(&body, "    geometry.cooperative = true;\n");
  absl::StrAppend(&body, "    const void* entry = Entry(", entry, ");\n    Allow(entry, ", CppLiteral(launch.entry()),
                  ", geometry);\n    for (int32_t index = 0; index < repeat; ++index) {\n");
  std::vector<std::string> addresses;
  for (int i = 0; i < launch.arguments_size(); ++i) {
    const std::string& name = launch.arguments(i);
    const std::string own = absl::StrCat("argument", i);
    if (!first.index().empty() && name == first.index()) {
      addresses.push_back(launch.loop().empty() ? "&index" : "&round");
      continue;
    }
    const auto made = std::find_if(bundle_.structs().begin(), bundle_.structs().end(),
                                   [&](const v1::StructArgument& each) { return each.name() == name; });
    if (made != bundle_.structs().end()) {
      std::string members, values;
      for (int j = 0; j < made->fields_size(); ++j) {
        const Value value = ValueOf(made->fields(j), kind);
        absl::StrAppend(&members, "        ", value.type, " field", j, ";  // ", made->fields(j), "\n");
        absl::StrAppend(&values, j == 0 ? "" : ", ", value.text);
      }
      absl::StrAppend(&body, "      struct {\n", members, "      } ", own, " = {", values, "};  // ", name, "\n");
      if (made->in_memory()) {
        absl::StrAppend(&body, "      InMemory memory", i, "(&", own, ", sizeof(", own, "), stream);\n");
        addresses.push_back(absl::StrCat("&memory", i, ".address"));
      } else {
        addresses.push_back(absl::StrCat("&", own));
      }
      continue;
    }
    const Value value = ValueOf(name, kind);
    if (value.type == "void*") {
      addresses.push_back(absl::StrCat("&", value.text));
    } else {
      absl::StrAppend(&body, "      ", value.type, " ", own, " = ", value.text, ";  // ", name, "\n");
      addresses.push_back(absl::StrCat("&", own));
    }
  }
  absl::StrAppend(&body, "      void* arguments[] = {", addresses.empty() ? "nullptr" : absl::StrJoin(addresses, ", "),
                  "};\n      Run(entry, ", CppLiteral(launch.entry()), ", geometry, arguments, stream);\n");
  if (launch.loop().empty() && launch.swap_size() == 2) {
    absl::StrAppend(&body, "      std::swap(tensors[", TensorNumber(launch.swap(0)), "], tensors[",
                    TensorNumber(launch.swap(1)), "]);\n");
  }
  absl::StrAppend(&text, repeat.empty() ? "" : "    if (repeat > 0) {\n", body, "    }\n",
                  repeat.empty() ? "" : "    }\n", "  }\n");
  return text;
}

std::string LaunchCode::FillText(const google::protobuf::RepeatedPtrField<v1::Symbol>& symbols, bool own) const {
  std::string text = absl::StrCat(own ? "" : "namespace {\n\n", "void ", own ? "FillSymbols" : "FillOwnSymbols",
                                  "(const Sizes& sizes, const Tensors& tensors, cudaStream_t stream) {\n",
                                  "  size_t bytes = 0;\n  void* variable = nullptr;\n");
  for (int i = 0; i < symbols.size(); ++i) {
    const int tensor = TensorNumber(symbols[i].tensor());
    absl::StrAppend(&text, "  variable = Variable(", i, ", &bytes);\n  FillVariable(", CppLiteral(symbols[i].name()),
                    ", variable, bytes, tensors.at(", tensor, "), BytesOf(TensorInfos().at(", tensor, "), ShapeOf(",
                    tensor, ", sizes)), stream);\n");
  }
  return absl::StrCat(text, "}\n\n", own ? "" : "}  // namespace\n\n");
}

std::string LaunchCode::VariableText(const google::protobuf::RepeatedPtrField<v1::Symbol>& symbols,
                                     const LaunchUnit& unit) const {
  std::string text = "void* Variable(int symbol, size_t* bytes) {\n";
  if (unit.kind == Kind::kImplementation) {
    absl::StrAppend(&text, "  if (Library::Get().open()) {\n    switch (symbol) {\n");
    for (int i = 0; i < symbols.size(); ++i) {
      const auto known = unit.variables.find(symbols[i].name());
      if (known == unit.variables.end()) continue;
      absl::StrAppend(&text, "      case ", i, ":\n        return Library::Get().FindVariable(",
                      CppLiteral(known->second), ", bytes);\n");
    }
    absl::StrAppend(
        &text, "    }\n    throw std::runtime_error(\"the library's names of the variables are not known\");\n  }\n");
  }
  if (!unit.include.empty()) {
    absl::StrAppend(&text, "  [[maybe_unused]] void* address = nullptr;\n  switch (symbol) {\n");
    for (int i = 0; i < symbols.size(); ++i) {
      const std::string& name = symbols[i].name();
      const std::string from = absl::StrCat(absl::StartsWith(name, "::") ? " " : "::", name);
      absl::StrAppend(&text, "    case ", i, ":\n      Check(cudaGetSymbolAddress(&address, ", from, "), ",
                      CppLiteral(name), ");\n      Check(cudaGetSymbolSize(bytes, ", from, "), ", CppLiteral(name),
                      ");\n      return address;\n");
    }
    absl::StrAppend(&text, "  }\n");
  }
  return absl::StrCat(text, "  throw std::runtime_error(\"there is no such variable here\");\n}\n\n");
}

std::string LaunchCode::EntryText(const std::string& entry, Kind kind) const {
  return EntryOf(bundle_, entry, kind == Kind::kImplementation ? variant_ : v1::Variant(), v1::Size());
}

absl::StatusOr<std::string> LaunchCode::Unit(const LaunchUnit& unit) {
  const auto& launches = unit.kind == Kind::kImplementation ? bundle_.launches()
                         : unit.kind == Kind::kReference    ? bundle_.reference().launches()
                                                            : bundle_.setup().launches();
  const bool own = unit.kind == Kind::kImplementation;
  static const auto& none = *new google::protobuf::RepeatedPtrField<v1::Symbol>();
  const auto& symbols = own ? bundle_.symbols() : unit.kind == Kind::kReference ? bundle_.reference().symbols() : none;
  std::string text =
      absl::StrCat("namespace ", namespace_, " {\nnamespace {\n\n// Kernels, by the number of their launch.\n",
                   "const void* Entry(int launch);\n", "void CheckSizes(const Sizes& sizes);\n",
                   symbols.empty() ? "" : "void* Variable(int symbol, size_t* bytes);\n", "\n}  // namespace\n\n",
                   symbols.empty() ? "" : FillText(symbols, own), "void ", unit.function,
                   "(const Sizes& sizes, Tensors& tensors, cudaStream_t stream) {\n", "  CheckSizes(sizes);\n",
                   SizeValues(), symbols.empty() || own ? "" : "  FillOwnSymbols(sizes, tensors, stream);\n");
  for (int i = 0; i < launches.size();) {
    const v1::Launch& first = launches[i];
    if (first.loop().empty()) {
      absl::StrAppend(&text, LaunchText(first, first, i, unit.kind));
      ++i;
      continue;
    }
    absl::StrAppend(&text, "  // ", first.loop(), ": ", first.repeat(), " times\n",
                    "  for (int32_t round = 0, rounds = static_cast<int32_t>(",
                    first.repeat().empty() ? "1" : Whole(first.repeat(), unit.kind), "); round < rounds; ++round) {\n");
    std::vector<std::string> conditions;
    bool always = false;
    for (; i < launches.size() && launches[i].loop() == first.loop(); ++i) {
      absl::StrAppend(&text, LaunchText(launches[i], first, i, unit.kind));
      always |= launches[i].when().empty();
      if (!always) conditions.push_back(absl::StrCat(Number(launches[i].when(), unit.kind), " != 0"));
    }
    if (first.swap_size() == 2) {
      // A loop of which no launch is left exchanges nothing.
      if (!always) absl::StrAppend(&text, "  if (", absl::StrJoin(conditions, " || "), ")\n  ");
      absl::StrAppend(&text, "  std::swap(tensors[", TensorNumber(first.swap(0)), "], tensors[",
                      TensorNumber(first.swap(1)), "]);\n");
    }
    absl::StrAppend(&text, "  }\n");
  }
  absl::StrAppend(&text, "}\n\n}  // namespace ", namespace_, "\n\n");
  if (!unit.include.empty()) {
    for (const auto& [name, value] : unit.fixed_sizes) {
      absl::StrAppend(&text, "#ifndef SIZE_", name, "\n#define SIZE_", name, " ", value, "\n#endif\n");
    }
    for (const auto& [name, other] : unit.renamed) absl::StrAppend(&text, "#define ", name, " ", other, "\n");
    absl::StrAppend(&text, "#include \"", unit.include, "\"\n\n");
  }
  absl::StrAppend(&text, "namespace ", namespace_, " {\nnamespace {\n\nconst void* Entry(int launch) {\n");
  if (unit.kind == Kind::kImplementation) {
    absl::StrAppend(&text, "  if (Library::Get().open()) {\n    switch (launch) {\n");
    for (int i = 0; i < launches.size(); ++i) {
      const auto symbol = unit.symbols.find(launches[i].entry());
      if (symbol == unit.symbols.end()) continue;
      absl::StrAppend(&text, "      case ", i, ":\n        return Library::Get().Find(", CppLiteral(symbol->second),
                      ");\n");
    }
    absl::StrAppend(
        &text, "    }\n    throw std::runtime_error(\"the library's names of the kernels are not known\");\n  }\n");
  }
  if (!unit.include.empty()) {
    absl::StrAppend(&text, "  switch (launch) {\n");
    for (int i = 0; i < launches.size(); ++i) {
      const std::string entry = EntryText(launches[i].entry(), unit.kind);
      absl::StrAppend(&text, "    case ", i, ":\n      return reinterpret_cast<const void*>(&",
                      absl::StartsWith(entry, "::") ? " " : "::", entry, ");\n");
    }
    absl::StrAppend(&text, "  }\n");
  }
  absl::StrAppend(&text, "  throw std::runtime_error(\"there is no such kernel here\");\n}\n\n");
  if (!symbols.empty()) absl::StrAppend(&text, VariableText(symbols, unit));
  absl::StrAppend(&text, "void CheckSizes([[maybe_unused]] const Sizes& sizes) {\n");
  for (const auto& [name, value] : unit.fixed_sizes) {
    const auto size = std::find(sizes_.begin(), sizes_.end(), name) - sizes_.begin();
    absl::StrAppend(&text, "  if (sizes.at(", size, ") != SIZE_", name,
                    ") {\n    throw std::runtime_error(\"it is compiled for ", name, " = \" + std::to_string(SIZE_",
                    name, ") + \"; -DSIZE_", name, "=VALUE compiles it for another\");\n  }\n");
  }
  absl::StrAppend(&text, "}\n\n}  // namespace\n}  // namespace ", namespace_, "\n");
  if (!status_.ok()) return status_;
  return text;
}

}  // namespace pawl
