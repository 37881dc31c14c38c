#include "cli/handoff/hand_off.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "cli/embedded.h"
#include "cli/handoff/launch_code.h"
#include "cli/handoff/merged_source.h"
#include "kernels/data_file.h"
#include "kernels/entry_name.h"
#include "kernels/plan.h"
#include "kernels/read/implementation.h"
#include "kernels/read/implementation_toml.h"
#include "kernels/source/source_patch.h"
#include "kernels/variable_values.h"
#include "worker/build/built_variant.h"
#include "worker/build/cubin.h"
#include "worker/embedded.h"
#include "worker/problem/plan_json.h"

namespace pawl {
namespace {

using HandOffJson = nlohmann::json;
using Kind = LaunchUnit::Kind;

constexpr char kLaunchFilled[] = "LaunchFilled";  // as extensions call it: their tensors may be others each time
constexpr char kSourceFolder[] = "source/", kDeviceFolder[] = "device/", kContractFolder[] = "contract/";

const std::set<std::string>& PythonKeywords() {
  static const auto& words = *new std::set<std::string>{
      "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
      "class", "continue", "def",   "del",    "elif", "else",   "except", "for",      "finally",
      "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
      "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield"};
  return words;
}

// Letters, digits and _: what C++, Python and a shell all take as a name.
std::string Identifier(const std::string& name) {
  std::string id = name;
  for (char& c : id) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return PythonKeywords().contains(id) ? absl::StrCat(id, "_") : id;
}

// A word of a command for sh.
std::string QuotedForShell(const std::string& word) {
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) {
    return std::isalnum(c) || absl::StrContains("-_=+./,:@%", std::string(1, static_cast<char>(c)));
  });
  return plain ? word : absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
}

void SetStarts(const v1::Variant& variant, v1::Bundle* bundle) {
  for (v1::Variable& variable : *bundle->mutable_variables()) {
    const auto value = variant.values().find(variable.name());
    if (value != variant.values().end()) variable.set_start(value->second);
  }
}

// Writes the files of one winner.
class HandOffWriter {
 public:
  // `bundle` is the winner's with its implementation.
  HandOffWriter(const Winner& winner, v1::Bundle bundle)
      : winner_(winner),
        bundle_(std::move(bundle)),
        id_(Identifier(winner.bundle.name())),
        space_(winner.member ? absl::StrCat(id_, "_", *winner.member) : id_),
        macro_(absl::AsciiStrToUpper(id_)),
        code_(bundle_, winner_.variant, NamespaceMacro()) {}

  absl::StatusOr<HandOff> Write() {
    size_ = FindSize(bundle_, winner_.size);
    if (size_ == nullptr) {
      return absl::FailedPreconditionError(absl::StrCat(bundle_.name(), " has no size \"", winner_.size, "\""));
    }
    absl::StatusOr<MergedSource> merged = MergeSource(winner_.bundle, winner_.implementation, winner_.variant, *size_,
                                                      absl::StrCat("Pawl: ", winner_.name));
    if (!merged.ok()) return merged.status();
    merged_ = *std::move(merged);
    hand_off_.id = id_;
    hand_off_.name_space = absl::StrCat("pawl_", space_);
    hand_off_.namespace_macro = NamespaceMacro();
    hand_off_.patch = merged_.patch;
    SetFixedSizes();
    if (winner_.from_contract) WriteImplementation();
    ReadCubin();
    WriteSources();
    if (absl::Status status = WriteHeader(); !status.ok()) return status;
    if (absl::Status status = WriteUnits(); !status.ok()) return status;
    WriteBuild();
    if (absl::Status status = WriteExtension(); !status.ok()) return status;
    if (absl::Status status = WriteData(); !status.ok()) return status;
    WriteChecks();
    return std::move(hand_off_);
  }

 private:
  struct Part {
    std::string name;  // kernel, reference, setup
    std::string function, file;
    std::vector<std::string> options;
    std::map<std::string, int32_t> fixed_sizes;
  };

  void Add(const std::string& path, const std::string& text) {
    v1::SourceFile& file = hand_off_.files.emplace_back();
    file.set_path(path);
    file.set_text(text);
  }

  std::string NamespaceMacro() const { return absl::StrCat(macro_, "_NAMESPACE"); }
  bool is_cuda() const { return IsCudaSource(bundle_.source().path()); }
  bool has_reference() const { return !bundle_.reference().source().text().empty(); }
  bool has_setup() const { return !bundle_.setup().launches().empty(); }
  std::string cubin_file() const { return absl::StrCat(id_, ".cubin"); }

  // The names of the entries in the winner's cubin or in the source that is one.
  void ReadCubin() {
    if (!is_cuda()) {
      for (const v1::Launch& launch : bundle_.launches()) symbols_[launch.entry()] = launch.entry();
      for (const v1::Symbol& symbol : bundle_.symbols()) variables_[symbol.name()] = symbol.name();
      return;
    }
    if (winner_.cubin.empty()) return;
    const absl::StatusOr<std::vector<GlobalVariable>> variables = GlobalVariables(winner_.cubin);
    for (const v1::Symbol& symbol : bundle_.symbols()) {
      const GlobalVariable* variable = variables.ok() ? FindVariable(*variables, symbol.name()) : nullptr;
      if (variable != nullptr) variables_[symbol.name()] = variable->name;
    }
    const absl::StatusOr<std::vector<std::string>> names = EntryNames(winner_.cubin);
    if (!names.ok()) return;
    for (const v1::Launch& launch : bundle_.launches()) {
      const std::string entry = EntryOf(bundle_, launch.entry(), winner_.variant, *size_);
      std::vector<std::string> alike, same;
      for (const std::string& name : *names) {
        if (name == entry) same.push_back(name);
        std::string shown = Demangled(name);
        const std::string bare = shown.substr(0, shown.find('('));
        const std::string function = bare.substr(0, bare.find('<'));
        const size_t begin = function.find_last_of(" :");
        if (function.substr(begin == std::string::npos ? 0 : begin + 1) == FunctionName(entry)) alike.push_back(name);
        if (absl::StrContains(absl::StrReplaceAll(bare, {{" ", ""}}), absl::StrReplaceAll(entry, {{" ", ""}}))) {
          same.push_back(name);
        }
      }
      const std::vector<std::string>& found = same.size() == 1 ? same : alike;
      if (found.size() == 1) symbols_[launch.entry()] = found[0];
    }
  }

  bool names_known() const {
    return std::all_of(bundle_.launches().begin(), bundle_.launches().end(),
                       [&](const v1::Launch& launch) { return symbols_.contains(launch.entry()); }) &&
           std::all_of(bundle_.symbols().begin(), bundle_.symbols().end(),
                       [&](const v1::Symbol& symbol) { return variables_.contains(symbol.name()); });
  }

  // The files with the winner's values as the starts of their variables.
  void WriteImplementation() {
    v1::Bundle started = bundle_;
    SetStarts(winner_.variant, &started);
    hand_off_.implementation = merged_.bundle_files;
    v1::SourceFile& toml = hand_off_.implementation.emplace_back();
    toml.set_path(kImplementationToml);
    toml.set_text(WholeImplementationToml(
        started, absl::StrCat("Pawl: ", winner_.name, ". The implementation of what kernel.toml promises.")));
    hand_off_.patch.clear();
    for (const v1::SourceFile& file : hand_off_.implementation) {
      absl::StrAppend(&hand_off_.patch, NewFileDiff(file.path(), file.text()));
    }
  }

  void WriteSources() {
    for (const v1::SourceFile& file : merged_.files) {
      hand_off_.files.push_back(file);
      hand_off_.files.back().set_path(absl::StrCat(kSourceFolder, file.path()));
    }
    for (const v1::SourceFile& file : merged_.device_files) {
      Add(absl::StrCat(kDeviceFolder, file.path()), file.text());
    }
    for (const v1::SourceFile* file : {&bundle_.reference().source(), &bundle_.setup().source()}) {
      if (!file->text().empty()) Add(absl::StrCat(kContractFolder, file->path()), file->text());
    }
    for (const v1::SourceFile& file : bundle_.reference().files()) {
      Add(absl::StrCat(kContractFolder, file.path()), file.text());
    }
    if (HasProblem(bundle_)) Add(absl::StrCat(kContractFolder, "problem.py"), bundle_.problem().text());
    for (const std::string& path : bundle_.problem_files()) {
      const v1::DataFile* data = FindDataFile(bundle_, path);
      if (data == nullptr) continue;
      v1::SourceFile& file = hand_off_.files.emplace_back();
      file.set_path(absl::StrCat(kContractFolder, BesideProblem(bundle_, path)));
      file.set_binary(data->data());
    }
    if (is_cuda() && !winner_.cubin.empty()) {
      v1::SourceFile& file = hand_off_.files.emplace_back();
      file.set_path(cubin_file());
      file.set_binary(winner_.cubin);
    }
  }

  std::string Filled(std::string_view text, std::map<std::string, std::string> more = {}) const {
    more.insert({{"$NAME$", bundle_.name()},
                 {"$ID$", id_},
                 {"$NAMESPACE$", NamespaceMacro()},
                 {"$SPACE$", space_},
                 {"$MACRO$", macro_},
                 {"$MODULE$", absl::StrCat(id_, "_winner")},
                 {"$FUNCTION$", id_},
                 {"$GOAL$", winner_.size},
                 {"$TITLE$", winner_.title}});
    return absl::StrReplaceAll(std::string(text), more);
  }

  absl::Status WriteHeader() {
    absl::StatusOr<std::string> tables = code_.Tables();
    if (!tables.ok()) return tables.status();
    std::string declarations;
    if (!bundle_.symbols().empty()) {
      absl::StrAppend(
          &declarations,
          "// Gives the variables of the device code that hold inputs their content: before the first call, and again\n"
          "// when those inputs have changed.\n"
          "void FillSymbols(const Sizes& sizes, const Tensors& tensors, cudaStream_t stream);\n",
          "inline void ", kLaunchFilled, "(const Sizes& sizes, Tensors& tensors, cudaStream_t stream) {\n",
          "  FillSymbols(sizes, tensors, stream);\n  Launch(sizes, tensors, stream);\n}\n");
    }
    for (const auto& [there, function, what] :
         {std::tuple{has_setup(), "LaunchSetup", "What must run before a call, on the same tensors."},
          std::tuple{has_reference(), "LaunchReference",
                     "The same call by the reference. Scratch tensors are left alone."}}) {
      if (!there) continue;
      absl::StrAppend(&declarations, "// ", what, "\nvoid ", function,
                      "(const Sizes& sizes, Tensors& tensors, cudaStream_t stream);\n");
    }
    Add(absl::StrCat(id_, ".h"),
        Filled(embedded::kHandoffKernelCuh,
               {{"$TABLES$", *tables}, {"$DECLARATIONS$", declarations}, {"$LIMITS$", LimitsText()}}));
    return absl::OkStatus();
  }

  // What a program that links it must know, as comments.
  std::string LimitsText() const {
    std::string text;
    if (winner_.member) {
      absl::StrAppend(&text,
                      "// One variant of a portfolio. Kernels of several variants may have the same names: each ",
                      "becomes a shared library\n// of its own; README.md has the commands.\n");
    }
    if (!hand_off_.fixed_sizes.empty()) {
      absl::StrAppend(
          &text, "// It is compiled for ", FixedText(hand_off_.fixed_sizes),
          ": a call at another value throws. -DSIZE_NAME=VALUE compiles it for another. A program\n",
          "// that needs several values links a shared library for each, with a namespace of its own:\n// -D",
          NamespaceMacro(), "=NAME, there and where this header is included. README.md has the commands.\n");
    }
    return text;
  }

  // Of all parts: they lie in one program.
  void SetFixedSizes() {
    hand_off_.fixed_sizes = FixedOf(Kind::kImplementation);
    if (has_setup()) hand_off_.fixed_sizes.merge(FixedOf(Kind::kSetup));
    if (has_reference()) hand_off_.fixed_sizes.merge(FixedOf(Kind::kReference));
  }

  // SIZE_<name> of the code of a unit.
  std::map<std::string, int32_t> FixedOf(Kind kind) const {
    std::map<std::string, int32_t> fixed;
    if (kind == Kind::kImplementation) fixed = merged_.fixed_sizes;
    const auto& launches = kind == Kind::kImplementation ? bundle_.launches()
                           : kind == Kind::kReference    ? bundle_.reference().launches()
                                                         : bundle_.setup().launches();
    const std::string& text = kind == Kind::kReference ? bundle_.reference().source().text()
                              : kind == Kind::kSetup   ? bundle_.setup().source().text()
                                                       : "";
    v1::SourceFile source;
    source.set_text(text);
    for (const v1::Launch& launch : launches) absl::StrAppend(source.mutable_text(), "\n", launch.entry());
    static const auto& none = *new google::protobuf::RepeatedPtrField<v1::SourceFile>();
    const std::vector<std::string> options =
        ContractCompileOptions(source, *size_, kind == Kind::kReference ? bundle_.reference().files() : none);
    for (const auto& [name, value] : size_->values()) {
      if (std::find(options.begin(), options.end(), absl::StrCat("-DSIZE_", name, "=", value)) != options.end()) {
        fixed[name] = value;
      }
    }
    return fixed;
  }

  // Entries of a contract's source that the implementation has by the same name: both are linked into one program.
  std::map<std::string, std::string> Renamed(const google::protobuf::RepeatedPtrField<v1::Launch>& launches,
                                             const std::string& part) const {
    std::set<std::string> taken;
    for (const v1::Launch& launch : bundle_.launches()) taken.insert(FunctionName(launch.entry()));
    if (part == "reference") {
      for (const v1::Launch& launch : bundle_.setup().launches()) taken.insert(FunctionName(launch.entry()));
    }
    std::map<std::string, std::string> renamed;
    for (const v1::Launch& launch : launches) {
      const std::string name = FunctionName(launch.entry());
      if (taken.contains(name)) renamed[name] = absl::StrCat("pawl_", part, "_", name);
    }
    return renamed;
  }

  // Options that the implementation is compiled with; macros of variables are in the source.
  std::vector<std::string> OwnOptions() const {
    std::vector<std::string> options;
    const std::string folder = merged_.device_files.empty() ? kSourceFolder : kDeviceFolder;
    for (const std::string& option : bundle_.options()) {
      absl::string_view path = option;
      const bool include = absl::ConsumePrefix(&path, "-I") || absl::ConsumePrefix(&path, "--include-path=");
      options.push_back(include && !absl::StartsWith(path, "/") ? absl::StrCat("-I", folder, path) : option);
    }
    for (const v1::Variable& variable : bundle_.variables()) {
      if (variable.option().empty()) continue;
      const auto found = winner_.variant.values().find(variable.name());
      const int32_t value = found == winner_.variant.values().end() ? variable.start() : found->second;
      if (absl::StrContains(variable.option(), "{}")) {
        options.push_back(absl::StrReplaceAll(variable.option(), {{"{}", ValueText(variable, value)}}));
      } else if (value != 0) {
        options.push_back(variable.option());
      }
    }
    options.push_back(absl::StrCat("-I", folder.substr(0, folder.size() - 1)));
    return options;
  }

  // Not -arch=sm_90a: with it nvcc 13.0 compiles for sm_90 as well, which has no wgmma.
  std::string Target() const {
    const std::string architecture = ArchitectureOf(winner_.gpu);
    return absl::StrCat("-gencode=arch=compute_", absl::StripPrefix(architecture, "sm_"), ",code=", architecture);
  }

  std::vector<std::string> WithCommon(const std::vector<std::string>& own) const {
    std::vector<std::string> options = {Target(), "--expt-relaxed-constexpr"};
    const bool has_standard = std::any_of(own.begin(), own.end(), [](const std::string& option) {
      return absl::StartsWith(option, "-std") || absl::StartsWith(option, "--std");
    });
    if (!has_standard) options.push_back("-std=c++17");
    options.insert(options.end(), own.begin(), own.end());
    return options;
  }

  absl::Status WriteUnits() {
    const std::string include = absl::StrCat("#include \"", id_, ".h\"\n\n");
    LaunchUnit kernel;
    kernel.function = "Launch";
    kernel.symbols = symbols_;
    kernel.variables = variables_;
    kernel.fixed_sizes = FixedOf(Kind::kImplementation);
    const std::string folder = merged_.device_files.empty() ? kSourceFolder : kDeviceFolder;
    if (is_cuda()) kernel.include = absl::StrCat(folder, bundle_.source().path());
    absl::StatusOr<std::string> text = code_.Unit(kernel);
    if (!text.ok()) return text.status();
    absl::StatusOr<std::string> tables = code_.ProgramTables();
    if (!tables.ok()) return tables.status();
    parts_.push_back({"kernel", bundle_.symbols().empty() ? kernel.function : kLaunchFilled, absl::StrCat(id_, ".cu"),
                      WithCommon(is_cuda() ? OwnOptions() : std::vector<std::string>()), kernel.fixed_sizes});
    Add(absl::StrCat(id_, ".cu"),
        absl::StrCat("// ", winner_.title, "\n// ", winner_.name, ". build.sh builds it.\n", include, *text, "\n",
                     "#ifndef ", macro_, "_WITHOUT_MAIN\n", *tables, "#endif\n\n", Main()));
    for (const auto& [there, kind, part, function] :
         {std::tuple{has_setup(), Kind::kSetup, "setup", "LaunchSetup"},
          std::tuple{has_reference(), Kind::kReference, "reference", "LaunchReference"}}) {
      if (!there) continue;
      LaunchUnit unit;
      unit.kind = kind;
      unit.function = function;
      const bool setup = kind == Kind::kSetup;
      const v1::SourceFile& source = setup ? bundle_.setup().source() : bundle_.reference().source();
      unit.include = absl::StrCat(kContractFolder, source.path());
      unit.renamed = Renamed(setup ? bundle_.setup().launches() : bundle_.reference().launches(), part);
      unit.fixed_sizes = FixedOf(kind);
      absl::StatusOr<std::string> written = code_.Unit(unit);
      if (!written.ok()) return written.status();
      parts_.push_back({part, function, absl::StrCat(id_, "_", part, ".cu"), WithCommon({}), unit.fixed_sizes});
      Add(parts_.back().file,
          absl::StrCat("// The ", part, " of ", bundle_.name(), ", as its bundle has it.\n", include, *written));
    }
    return absl::OkStatus();
  }

  std::string Main() const {
    const std::string check =
        has_reference()
            ? absl::StrCat("  {\n    Arena other(sizes);\n    Tensors expected = other.Fresh(inputs);\n",
                           "    LaunchReference(sizes, expected, nullptr);\n",
                           "    Check(cudaDeviceSynchronize(), \"run the reference\");\n",
                           "    for (size_t i = 0; i < inputs.size(); ++i) {\n",
                           "      if (!IsCompared(TensorInfos()[i])) continue;\n",
                           "      const std::string wrong = Wrong(TensorInfos()[i], arena.Read(tensors, i), "
                           "other.Read(expected, i));\n",
                           "      if (wrong.empty()) continue;\n",
                           "      std::printf(\"%s: %s\\n\", TensorInfos()[i].name, wrong.c_str());\n",
                           "      right = false;\n    }\n  }\n",
                           "  std::printf(\"%s: %s\\n\", name.c_str(), right ? \"as the reference\" : \"WRONG\");\n")
            : absl::StrCat("  std::printf(\"%s: not checked here: the reference is in problem.py, and test_", id_,
                           ".py holds the kernel against it\\n\", name.c_str());\n");
    const std::string open =
        is_cuda() ? ""
                  : absl::StrCat("  if (cubin.empty()) Library::Get().Open(",
                                 CppLiteral(absl::StrCat(kSourceFolder, bundle_.source().path())), ");\n");
    return Filled(
        embedded::kHandoffProgramCu,
        {{"$CHECK$", check},
         {"$SETUP$", absl::StrCat(has_setup() ? "  LaunchSetup(sizes, tensors, nullptr);\n" : "",
                                  bundle_.symbols().empty() ? "" : "  FillSymbols(sizes, tensors, nullptr);\n")},
         {"$OPEN$", open}});
  }

  // Commands that compile and link what is asked for. `more` are options of each compilation.
  std::string BuildOf(const std::vector<Part>& parts, const std::string& more, const std::string& suffix,
                      const std::string& link) const {
    std::string commands, objects;
    for (const Part& part : parts) {
      const std::string object = absl::StrCat(part.file.substr(0, part.file.rfind('.')), suffix);
      absl::StrAppend(&commands, "nvcc -c -O2");
      for (const std::string& option : part.options) absl::StrAppend(&commands, " ", QuotedForShell(option));
      absl::StrAppend(&commands, more, " -o ", object, " ", part.file, "\n");
      absl::StrAppend(&objects, " ", object);
    }
    return absl::StrCat(commands, "nvcc ", Target(), " -o ", link, objects, "\n");
  }

  void WriteBuild() {
    std::vector<Part> called;
    std::copy_if(parts_.begin(), parts_.end(), std::back_inserter(called),
                 [](const Part& part) { return part.name != "reference"; });
    hand_off_.program_build = BuildOf(parts_, "", ".o", id_);
    if (is_cuda()) {
      hand_off_.library = absl::StrCat("lib", space_, ".so");
      // -Bsymbolic: a library calls its own kernels, also where another has the same names.
      hand_off_.library_build = BuildOf(called, absl::StrCat(" -Xcompiler -fPIC -D", macro_, "_WITHOUT_MAIN"), ".pic.o",
                                        absl::StrCat(hand_off_.library, " -shared -Xlinker -Bsymbolic"));
    }
    Add("build.sh",
        absl::StrCat(
            "#!/bin/sh\n# Builds the program ", id_, ": ./", id_, " ", winner_.size,
            " runs it. NVCC_APPEND_FLAGS=-IFOLDER adds folders of headers",
            hand_off_.fixed_sizes.empty() ? "" : ", -DSIZE_NAME=VALUE compiles for another value of a dimension",
            ".\nset -e\ncd \"$(dirname \"$0\")\"\n", hand_off_.program_build));
  }

  // Where each size can be read off: a tensor whose extent it is. The last extent of packed types is another one.
  HandOffJson AxesOf() const {
    HandOffJson axes = HandOffJson::object();
    for (const v1::Tensor& tensor : bundle_.tensors()) {
      if (!IsFilled(tensor.role())) continue;
      const int known = tensor.shape_size() - (ElementBits(tensor.type()) < 8 ? 1 : 0);
      for (int i = 0; i < known; ++i) {
        const std::string& extent = tensor.shape(i);
        if (std::find(code_.sizes().begin(), code_.sizes().end(), extent) == code_.sizes().end()) continue;
        axes[extent].push_back(HandOffJson::array({tensor.name(), i}));
      }
    }
    return axes;
  }

  std::string Definition(const HandOffJson& axes) const {
    std::vector<std::string> tensors, sizes;
    bool keywords = false;
    for (const v1::Tensor& tensor : bundle_.tensors()) {
      if (IsFilled(tensor.role())) tensors.push_back(tensor.name());
    }
    for (const std::string& size : code_.sizes()) {
      if (!axes.contains(size)) sizes.push_back(size);
    }
    for (const auto* names : {&tensors, &sizes}) {
      for (const std::string& name : *names) keywords = keywords || PythonKeywords().contains(name) || name == id_;
    }
    const std::string doc =
        absl::StrCat("    \"\"\"", bundle_.summary().empty() ? bundle_.name() : bundle_.summary(), ".\"\"\"\n");
    if (keywords) {
      return absl::StrCat("def ", id_, "(**given):\n", doc,
                          "    names = [name for name, _, role, _ in TENSORS if role in (\"input\", \"inout\")]\n"
                          "    return call({name: given[name] for name in names}, {name: value for name, value in "
                          "given.items() if name not in names})\n");
    }
    const auto pairs = [](const std::vector<std::string>& names) {
      return absl::StrJoin(names, ", ", [](std::string* out, const std::string& name) {
        absl::StrAppend(out, "\"", name, "\": ", name);
      });
    };
    return absl::StrCat("def ", id_, "(", absl::StrJoin(tensors, ", "),
                        sizes.empty()     ? ""
                        : tensors.empty() ? "*, "
                                          : ", *, ",
                        absl::StrJoin(sizes, ", "), "):\n", doc, "    return call({", pairs(tensors), "}, {",
                        pairs(sizes), "})\n");
  }

  absl::Status WriteExtension() {
    Add(absl::StrCat(id_, "_binding.cpp"), Filled(embedded::kHandoffBindingCpp));
    HandOffJson parts = HandOffJson::object(), tensors = HandOffJson::array();
    for (const Part& part : parts_) {
      std::vector<std::string> options = part.options;
      for (std::string& option : options) {
        // A build stands elsewhere.
        if (absl::StartsWith(option, "-I") && !absl::StartsWith(option, "-I/"))
          option = absl::StrCat("-I{HERE}/", option.substr(2));
      }
      HandOffJson fixed = HandOffJson::array();
      for (const auto& size : part.fixed_sizes) fixed.push_back(size.first);
      parts[part.name] = {{"sources", {absl::StrCat(id_, "_binding.cpp"), part.file}},
                          {"launch", part.function},
                          {"options", options},
                          {"fixed", fixed}};
    }
    for (const v1::Tensor& tensor : bundle_.tensors()) {
      tensors.push_back({tensor.name(), DataTypeName(tensor.type()), RoleWord(tensor.role()),
                         tensor.align() > 0 ? tensor.align() : 1});
    }
    const HandOffJson axes = AxesOf();
    const std::string library =
        is_cuda() ? "None" : HandOffJson(absl::StrCat(kSourceFolder, bundle_.source().path())).dump();
    Add(absl::StrCat(id_, "_winner.py"),
        Filled(embedded::kHandoffModulePy, {{"$PARTS$", parts.dump(4)},
                                            {"$TENSORS$", tensors.dump()},
                                            {"$SIZES$", HandOffJson(code_.sizes()).dump()},
                                            {"$AXES$", axes.dump()},
                                            {"$LIBRARY$", library},
                                            {"$DEFINITION$", Definition(axes)}}));
    Add(absl::StrCat("test_", id_, ".py"),
        Filled(embedded::kHandoffTestPy,
               {{"$PROBLEM$", HasProblem(bundle_) ? absl::StrCat("\"", kContractFolder, "problem.py\"") : "None"}}));
    Add("support/pawl_tensors.py", std::string(embedded::kProblemPawlTensorsPy));
    if (HasProblem(bundle_)) Add("support/pawl_problem.py", std::string(embedded::kProblemPawlProblemPy));
    return WriteTestSizes();
  }

  // The smallest size and the goal's. A program may be compiled for the goal's alone.
  std::vector<const v1::Size*> CheckedSizes(bool program) const {
    std::vector<const v1::Size*> sizes;
    const bool fixed = program && !hand_off_.fixed_sizes.empty();
    if (!fixed && bundle_.sizes(0).name() != winner_.size) sizes.push_back(&bundle_.sizes(0));
    sizes.push_back(size_);
    return sizes;
  }

  absl::Status WriteTestSizes() {
    HandOffJson sizes = HandOffJson::array();
    for (const v1::Size* size : CheckedSizes(/*program=*/false)) {
      absl::StatusOr<v1::Plan> plan = MakeReferencePlan(bundle_, *size, winner_.gpu);
      if (!plan.ok()) return plan.status();
      HandOffJson described = SizeJson(size->name(), size->values(), 0);
      HandOffJson tensors = TensorsJson(*plan);
      for (int i = 0; i < plan->tensors_size(); ++i) {
        const v1::Tolerance& tolerance = ToleranceOf(*plan, plan->tensors(i));
        tensors[static_cast<size_t>(i)].update(
            {{"exact", tolerance.exact()}, {"absolute", tolerance.absolute()}, {"relative", tolerance.relative()}});
      }
      sizes.push_back({{"name", size->name()}, {"sizes", described["sizes"]}, {"tensors", tensors}});
    }
    Add(absl::StrCat(id_, "_sizes.json"), absl::StrCat(sizes.dump(1), "\n"));
    return absl::OkStatus();
  }

  // Inputs that are files: their bytes at the size that takes most of them. Smaller sizes take the first of them.
  absl::Status WriteData() {
    for (int i = 0; i < bundle_.tensors_size(); ++i) {
      if (bundle_.tensors(i).fill() != v1::FILL_FILE) continue;
      const v1::DataFile* file = FindDataFile(bundle_, bundle_.tensors(i).file());
      if (file == nullptr) continue;
      std::string most;
      for (const v1::Size& size : bundle_.sizes()) {
        absl::StatusOr<v1::Plan> plan = MakePlan(bundle_, winner_.variant, size, winner_.gpu);
        if (!plan.ok()) return plan.status();
        absl::StatusOr<absl::string_view> data = DataOf(*file, plan->tensors(i));
        if (data.ok() && data->size() > most.size()) most = std::string(*data);
      }
      v1::SourceFile& added = hand_off_.files.emplace_back();
      added.set_path(absl::StrCat("data/", bundle_.tensors(i).name(), ".bin"));
      added.set_binary(most);
    }
    return absl::OkStatus();
  }

  void WriteChecks() {
    const std::string head = "#!/bin/sh\nset -e\ncd \"$(dirname \"$0\")\"\n";
    std::string runs;
    for (const v1::Size* size : CheckedSizes(/*program=*/true))
      absl::StrAppend(&runs, "./", id_, " ", QuotedForShell(size->name()), "\n");
    const std::string build = absl::StrCat("[ -x ./", id_, " ] || sh build.sh\n");
    hand_off_.forms = {"program", "extension"};
    Add("check_program.sh", absl::StrCat(head, "sh build.sh\n", runs));
    Add("check_extension.sh", absl::StrCat(head, "exec \"${PYTHON:-python3}\" test_", id_, ".py\n"));
    if (!is_cuda() || winner_.cubin.empty() || !names_known()) return;
    hand_off_.forms.push_back("cubin");
    Add("check_cubin.sh",
        absl::StrCat(head, build, "./", id_, " --cubin ", cubin_file(), " ", QuotedForShell(winner_.size), "\n"));
  }

  const Winner& winner_;
  const v1::Bundle bundle_;
  const std::string id_;
  const std::string space_;  // the same, of each variant of a portfolio another
  const std::string macro_;  // the beginning of its macros
  LaunchCode code_;
  const v1::Size* size_ = nullptr;
  MergedSource merged_;
  std::map<std::string, std::string> symbols_, variables_;  // to their names in the cubin
  std::vector<Part> parts_;
  HandOff hand_off_;
};

}  // namespace

std::string FixedText(const std::map<std::string, int32_t>& fixed_sizes) {
  return absl::StrJoin(fixed_sizes, ", ", [](std::string* out, const auto& size) {
    absl::StrAppend(out, size.first, " = ", size.second);
  });
}

std::vector<v1::SourceFile> MakeDispatcher(const v1::Bundle& bundle, const v1::Portfolio& portfolio,
                                           const std::string& title) {
  const std::string id = Identifier(bundle.name());
  // A dimension may have any name, that of a keyword too.
  const auto parameter = [](std::string* out, const std::string& size) { absl::StrAppend(out, "size_", size); };
  std::string rule, code;
  for (const v1::Portfolio::Member& member : portfolio.members()) {
    std::vector<std::string> bounds, conditions;
    for (const v1::Portfolio::Bound& bound : member.bounds()) {
      bounds.push_back(absl::StrCat("(", HandOffJson(bound.sizes()).dump(), ", ", bound.limit(), ", ",
                                    bound.above() ? "True" : "False", ")"));
      conditions.push_back(
          absl::StrCat(absl::StrJoin(bound.sizes(), " * ", parameter), bound.above() ? " > " : " <= ", bound.limit()));
    }
    absl::StrAppend(&rule, "    (", member.iteration(), ", [", absl::StrJoin(bounds, ", "), "]),\n");
    absl::StrAppend(&code, "  ",
                    conditions.empty() ? "" : absl::StrCat("if (", absl::StrJoin(conditions, " && "), ") "), "return ",
                    member.iteration(), ";\n");
  }
  std::set<std::string> sizes;
  for (const v1::Size& size : bundle.sizes()) {
    for (const auto& value : size.values()) sizes.insert(value.first);
  }
  const std::string parameters = absl::StrJoin(sizes, ", ", [&](std::string* out, const std::string& size) {
    absl::StrAppend(out, "long long ");
    parameter(out, size);
  });
  v1::SourceFile header, module;
  header.set_path(absl::StrCat(id, "_dispatch.h"));
  header.set_text(absl::StrCat(
      "// ", title,
      "\n// Which variant serves a size: its number is that of its folder, iteration_N. Its functions are ",
      "in the namespace\n// pawl_", id,
      "_N. Kernels of several variants may have the same names: each variant becomes ",
      "a shared library of\n// its own, as the README.md of its folder says. Written by Pawl.\n#pragma once\n\n",
      "static inline int ", id, "_pick(", parameters, ") {\n", code, "}\n"));
  module.set_path(absl::StrCat(id, "_dispatch.py"));
  module.set_text(absl::StrReplaceAll(
      std::string(embedded::kHandoffDispatchPy),
      {{"$TITLE$", title}, {"$FUNCTION$", id}, {"$ID$", id}, {"$RULE$", absl::StrCat("[\n", rule, "]")}}));
  return {header, module};
}

absl::StatusOr<HandOff> MakeHandOff(const Winner& winner) {
  v1::Bundle bundle = winner.bundle;
  if (bundle.source().binary().empty()) {
    if (absl::Status status = SetImplementation(winner.implementation, &bundle); !status.ok()) return status;
  }
  absl::StatusOr<HandOff> hand_off = HandOffWriter(winner, bundle).Write();
  if (hand_off.ok() && !winner.from_contract && ChangesToml(winner.bundle, winner.implementation)) {
    // The patched files have the winner's values where variables replace text.
    SetStarts(winner.variant, &bundle);
    hand_off->toml = ImplementationToml(bundle);
  }
  return hand_off;
}

}  // namespace pawl
