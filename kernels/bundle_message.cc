#include "kernels/bundle_message.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <functional>
#include <set>
#include <tuple>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/expression/expression.h"
#include "base/hash/hash.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "kernels/data_file.h"
#include "kernels/entry_name.h"
#include "kernels/limits.h"
#include "kernels/plan.h"
#include "kernels/space.h"
#include "kernels/substitution.h"
#include "kernels/variable_values.h"

namespace pawl {
namespace {

constexpr int kMaxItems = kMaxTables;  // sizes, tensors, variables, launches, ...
constexpr int kMaxValues = kMaxListEntries;

bool HasControlCharacter(const std::string& text) {
  return std::any_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

// Inside the bundle's folder, wherever that is.
bool IsSourcePath(const std::string& path) {
  const std::filesystem::path parts(path);
  return !path.empty() && path.size() <= kMaxPath && !HasControlCharacter(path) && parts.is_relative() &&
         parts.has_filename() && std::find(parts.begin(), parts.end(), "..") == parts.end();
}

class Checker {
 public:
  explicit Checker(const v1::Bundle& bundle) : bundle_(bundle) {}

  std::vector<std::string> Problems() {
    Fields();
    if (problems_.empty()) Sources();
    if (problems_.empty()) Names();
    if (problems_.empty()) Tensors();
    if (problems_.empty()) Space();
    if (problems_.empty()) Plans();
    return problems_;
  }

 private:
  void Add(const std::string& problem) { problems_.push_back(problem); }

  void Fields() {
    if (!IsBundleName(bundle_.name())) Add("name: expected a letter, then letters, digits, _ and -, at most 64");
    const bool contract = IsContractAlone(bundle_);
    if (!contract && bundle_.source().text().empty() && bundle_.source().binary().empty()) {
      Add("source: there is no device code");
    }
    for (const v1::Tensor& tensor : bundle_.tensors()) {
      // Otherwise the start variant shows how large inputs may be, and here that is a proposal.
      const bool open = IsFilled(tensor.role()) && IsFloat(tensor.type()) && tensor.low().empty() &&
                        (tensor.fill() <= v1::FILL_UNIFORM);
      if (contract && open) {
        Add(absl::StrCat("tensor ", tensor.name(),
                         ": expected a range, such as range = [-4, 4]: without device code, "
                         "nothing else says which inputs are allowed"));
      }
    }
    if (bundle_.has_problem()) {
      if (bundle_.problem().text().empty()) Add("problem: it is empty");
      if (bundle_.has_reference()) Add("problem: it has the reference, and there is another");
    } else {
      if (bundle_.reference().source().text().empty()) Add("reference: there is no source");
      if (bundle_.reference().launches().empty()) Add("reference: there is no launch");
    }
    if (bundle_.has_setup() && bundle_.setup().source().text().empty()) Add("setup: there is no source");
    if (bundle_.has_setup() && bundle_.setup().launches().empty()) Add("setup: there is no launch");
    if (bundle_.compiler() != v1::COMPILER_NVRTC && bundle_.compiler() != v1::COMPILER_NVCC) {
      Add("compiler: expected NVRTC or nvcc");
    }
    const std::tuple<const char*, int, int> counts[] = {{"sizes", bundle_.sizes_size(), 1},
                                                        {"tensors", bundle_.tensors_size(), 1},
                                                        {"variables", bundle_.variables_size(), 0}};
    for (const auto& [what, count, least] : counts) {
      if (count >= least && count <= kMaxItems) continue;
      Add(absl::StrCat(what, ": found ", count, ", expected ", least, " to ", kMaxItems));
    }
    if (!contract && bundle_.launches().empty()) Add("launches: there is none");
    for (const int count :
         {bundle_.launches_size(), bundle_.reference().launches_size(), bundle_.setup().launches_size()}) {
      if (count > kMaxLaunches) Add(absl::StrCat("launches: found ", count, ", expected at most ", kMaxLaunches));
    }
    if (bundle_.constraints_size() > kMaxItems || bundle_.scalars_size() > kMaxItems ||
        bundle_.structs_size() > kMaxItems) {
      Add(absl::StrCat("constraints, scalars, structs: expected at most ", kMaxItems));
    }
    if (bundle_.has_tolerance() || NeedsTolerance(bundle_)) Tolerance(bundle_.tolerance(), "tolerance");
    Counts();
    Texts(bundle_);
  }

  // Every text but those of files, which have their own limits.
  void Texts(const google::protobuf::Message& message) {
    const google::protobuf::Reflection& fields = *message.GetReflection();
    std::vector<const google::protobuf::FieldDescriptor*> set;
    fields.ListFields(message, &set);
    for (const google::protobuf::FieldDescriptor* field : set) {
      const int count = field->is_repeated() ? fields.FieldSize(message, field) : 1;
      for (int i = 0; i < count; ++i) {
        if (field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) {
          const google::protobuf::Message& part =
              field->is_repeated() ? fields.GetRepeatedMessage(message, field, i) : fields.GetMessage(message, field);
          const bool file = part.GetDescriptor() == v1::SourceFile::descriptor() ||
                            part.GetDescriptor() == v1::DataFile::descriptor();
          if (!file) Texts(part);
        } else if (field->type() == google::protobuf::FieldDescriptor::TYPE_STRING) {
          std::string scratch;
          const std::string& text = field->is_repeated()
                                        ? fields.GetRepeatedStringReference(message, field, i, &scratch)
                                        : fields.GetStringReference(message, field, &scratch);
          if (text.size() <= kMaxTextBytes) continue;
          Add(absl::StrCat(field->name(), ": found ", text.size(), " bytes, expected at most ", kMaxTextBytes));
        }
      }
    }
  }

  // Files, data and libraries.
  void Counts() {
    size_t files = 0, data = 0;
    for (const v1::SourceFile& file : bundle_.files()) files += file.text().size();
    for (const v1::DataFile& file : bundle_.data_files()) data += file.data().size();
    if (bundle_.files_size() > static_cast<int>(kMaxFiles) || files > kMaxFilesBytes) {
      Add(absl::StrCat("files: expected at most ", kMaxFiles, " files and ", kMaxFilesBytes, " bytes"));
    }
    if (bundle_.data_files_size() > kMaxItems || data > kMaxDataBytes) {
      Add(absl::StrCat("data files: expected at most ", kMaxItems, " files and ", kMaxDataBytes, " bytes"));
    }
    if (bundle_.problem_files_size() > kMaxItems) Add(absl::StrCat("data: expected at most ", kMaxItems, " files"));
    size_t reference = 0;
    for (const v1::SourceFile& file : bundle_.reference().files()) reference += file.text().size();
    if (bundle_.reference().files_size() > static_cast<int>(kMaxFiles) || reference > kMaxFilesBytes) {
      Add(absl::StrCat("reference files: expected at most ", kMaxFiles, " files and ", kMaxFilesBytes, " bytes"));
    }
    if (bundle_.symbols_size() > kMaxItems || bundle_.reference().symbols_size() > kMaxItems) {
      Add(absl::StrCat("symbols: expected at most ", kMaxItems));
    }
    if (bundle_.baseline_files_size() > static_cast<int>(kMaxListEntries)) {
      Add(absl::StrCat("baseline: expected at most ", kMaxListEntries, " files"));
    }
    if (bundle_.source().binary().size() > kMaxCubinBytes) {
      Add(absl::StrCat("source: a cubin of more than ", kMaxCubinBytes, " bytes"));
    }
    if (bundle_.include_size() > static_cast<int>(kMaxIncludes)) {
      Add(absl::StrCat("include: expected at most ", kMaxIncludes, " libraries"));
    }
    for (const std::string& name : bundle_.include()) {
      if (!IsHeaderLibrary(name)) Add("include: not the name of a header library");
    }
  }

  void Tolerance(const v1::Tolerance& tolerance, const std::string& what) {
    if (!(tolerance.absolute() > 0) || !(tolerance.relative() > 0) || !(tolerance.relative() < 1)) {
      Add(absl::StrCat(what, ": expected absolute > 0 and 0 < relative < 1"));
    }
  }

  void Tensors() {
    for (const v1::Tensor& tensor : bundle_.tensors()) {
      const std::string what = absl::StrCat("tensor ", tensor.name());
      const bool input = IsFilled(tensor.role());
      if (tensor.shape_size() > static_cast<int>(kMaxRank)) {
        Add(absl::StrCat(what, ": shape: expected at most ", kMaxRank, " extents"));
      }
      if (!v1::DataType_IsValid(tensor.type()) || tensor.type() == v1::DATA_TYPE_UNSPECIFIED ||
          !v1::TensorRole_IsValid(tensor.role()) || tensor.role() == v1::TENSOR_ROLE_UNSPECIFIED ||
          !v1::Fill_IsValid(tensor.fill()) || !v1::Fill_IsValid(tensor.file_holds())) {
        Add(absl::StrCat(what, ": its type, role or fill is unknown here"));
        continue;
      }
      if (tensor.low().empty() != tensor.high().empty() || (!input && !tensor.low().empty())) {
        Add(absl::StrCat(what, ": a range has a lowest and a highest value, and only an input has one"));
      }
      const bool drawn = tensor.fill() <= v1::FILL_INTEGERS || tensor.fill() == v1::FILL_SORTED;
      if (input && IsInteger(tensor.type()) && drawn && tensor.low().empty()) {
        Add(absl::StrCat(what, ": an ", DataTypeName(tensor.type()),
                         " input must state its range, such as range = [0, 1023]"));
      }
      const bool stated = tensor.fill() == v1::FILL_CONSTANT || tensor.fill() == v1::FILL_SORTED ||
                          tensor.fill() == v1::FILL_CSR_OFFSETS || tensor.fill() == v1::FILL_INTEGERS;
      if (input && stated && tensor.low().empty()) Add(absl::StrCat(what, ": its fill needs values"));
      if (!input && (tensor.fill() != v1::FILL_UNSPECIFIED || !tensor.file().empty())) {
        Add(absl::StrCat(what, ": only inputs are filled"));
      }
      if (tensor.fill() == v1::FILL_PROBLEM && !bundle_.has_problem()) {
        Add(absl::StrCat(what, ": it is filled by problem.py, and there is none"));
      }
      if (tensor.file_holds() != v1::FILL_UNSPECIFIED && tensor.fill() != v1::FILL_FILE) {
        Add(absl::StrCat(what, ": only of a file it is stated what it holds"));
      }
      if (tensor.file_holds() == v1::FILL_CSR_OFFSETS && tensor.high().empty()) {
        Add(absl::StrCat(what, ": its CSR offsets need the number of non-zeros"));
      }
      if (tensor.is_static() && IsCompared(tensor.role())) Add(absl::StrCat(what, ": an output can't be static"));
      const int32_t align = tensor.align();
      const bool power = align > 0 && (align & (align - 1)) == 0;
      if (align != 0 && (!power || align < ElementBytes(tensor.type()) || align > kMaxAlign)) {
        Add(absl::StrCat(what, ": align: expected a power of two from ", ElementBytes(tensor.type()), " to ",
                         kMaxAlign));
      }
      if (!tensor.has_tolerance()) continue;
      if (!IsCompared(tensor.role())) Add(absl::StrCat(what, ": only an output has a tolerance"));
      if (!tensor.tolerance().exact()) Tolerance(tensor.tolerance(), what);
    }
    for (const v1::Size& size : bundle_.sizes()) {
      const bool same = std::all_of(size.values().begin(), size.values().end(),
                                    [&](const auto& value) { return bundle_.sizes(0).values().contains(value.first); });
      if (!same || size.values_size() != bundle_.sizes(0).values_size()) {
        Add("sizes: expected the same dimensions in all of them");
      }
    }
    for (const auto& [name, range] : bundle_.hidden()) {
      if (bundle_.sizes().empty() || !bundle_.sizes(0).values().contains(name)) {
        Add(absl::StrCat("hidden: ", name.substr(0, kMaxSizeName), " is no dimension of the sizes"));
      }
      const int64_t multiple = std::max(1, range.multiple());
      if (range.multiple() < 0 || range.low() < 1 || range.high() / multiple * multiple < range.low()) {
        Add(absl::StrCat("hidden: expected 1 or more, and a range with a multiple of ", multiple, " in it, of ", name));
      }
    }
  }

  void Sources() {
    const auto check = [&](const v1::SourceFile& file, const char* what) {
      if (!IsSourcePath(file.path())) {
        Add(absl::StrCat(what,
                         ": expected a path inside of the bundle's folder, without .. and control characters, of "
                         "at most ",
                         kMaxPath, " bytes"));
      }
      if (file.text().size() > kMaxSourceBytes) {
        Add(absl::StrCat(what, ": found ", file.text().size(), " bytes, expected at most ", kMaxSourceBytes));
      }
      if (const std::string problem = SourceTextProblem(file.text()); !problem.empty()) {
        Add(absl::StrCat(what, ": ", problem));
      }
    };
    if (!IsContractAlone(bundle_)) check(bundle_.source(), "source");
    if (bundle_.has_reference()) check(bundle_.reference().source(), "reference");
    if (bundle_.has_setup()) check(bundle_.setup().source(), "setup");
    if (bundle_.has_problem()) check(bundle_.problem(), "problem");
    for (const v1::SourceFile& file : bundle_.baseline_files()) check(file, "baseline");
    std::set<std::string> paths = {bundle_.source().path()};
    for (const v1::SourceFile& file : bundle_.files()) {
      check(file, "files");
      if (!paths.insert(file.path()).second) Add("files: a path is there twice");
      if (!file.binary().empty()) Add("files: expected text");
    }
    std::set<std::string> reference_paths = {bundle_.reference().source().path()};
    for (const v1::SourceFile& file : bundle_.reference().files()) {
      check(file, "reference files");
      if (!reference_paths.insert(file.path()).second) Add("reference files: a path is there twice");
      if (!file.binary().empty()) Add("reference files: expected text");
    }
    for (const v1::DataFile& file : bundle_.data_files()) {
      if (!IsSourcePath(file.path())) Add("data files: expected a path inside of the bundle's folder");
    }
    for (const std::string& path : bundle_.problem_files()) {
      if (FindDataFile(bundle_, path) == nullptr) Add("data: one of its files is not there");
      if (path == bundle_.problem().path()) Add("data: it names problem.py itself");
      const bool taken = path != bundle_.problem().path() && BesideProblem(bundle_, path) == "problem.py";
      if (taken) Add("data: problem.py is what the problem is called in what is handed over; rename this file");
      if (absl::StartsWith(BesideProblem(bundle_, path), "..")) Add("data: a file does not lie beside problem.py");
    }
    if (!bundle_.problem_files().empty() && !bundle_.has_problem()) Add("data: there is no problem.py that reads it");
    const bool cubin = absl::EndsWith(bundle_.source().path(), ".cubin");
    if (cubin != !bundle_.source().binary().empty()) Add("source: expected bytes of a cubin, and only of a cubin");
    for (const v1::Variable& variable : bundle_.variables()) {
      if (variable.replaces().empty()) continue;
      if (const absl::Status status = CheckReplaced(bundle_, variable); !status.ok())
        Add(std::string(status.message()));
    }
    Entries(bundle_.launches(), "launches");
    Entries(bundle_.reference().launches(), "reference");
    Entries(bundle_.setup().launches(), "setup");
  }

  void Entries(const google::protobuf::RepeatedPtrField<v1::Launch>& launches, const char* what) {
    for (const v1::Launch& launch : launches) {
      if (!IsEntryName(launch.entry())) {
        Add(absl::StrCat(what,
                         ": an entry is not a kernel's name: a letter or _, then letters, digits and _, or a C++ "
                         "name with template arguments"));
      }
      if (!launch.index().empty() && !IsName(launch.index())) Add(absl::StrCat(what, ": index is not a valid name"));
      if (!launch.loop().empty() && !IsLoopName(launch.loop())) Add(absl::StrCat(what, ": loop is not a valid name"));
    }
  }

  void Names() {
    std::set<std::string> names;
    auto take = [&](const std::string& name, const char* what) {
      if (!IsName(name)) Add(absl::StrCat(what, ": not a valid name"));
      if (!names.insert(name).second) Add(absl::StrCat(what, ": the name ", name, " is taken"));
    };
    for (const v1::Variable& variable : bundle_.variables()) {
      take(variable.name(), "variable");
      const auto& values = variable.values();
      const std::set<int32_t> distinct(values.begin(), values.end());
      if (values.empty() || values.size() > kMaxValues || static_cast<int>(distinct.size()) != values.size()) {
        Add(absl::StrCat("variable ", variable.name(), ": expected 1 to ", kMaxValues, " different values"));
      } else if (!distinct.contains(variable.start())) {
        Add(absl::StrCat("variable ", variable.name(), ": start is not one of its values"));
      }
      Words(variable);
    }
    for (const v1::Tensor& tensor : bundle_.tensors()) take(tensor.name(), "tensor");
    for (const v1::Scalar& scalar : bundle_.scalars()) {
      take(scalar.name(), "scalar");
      if (!v1::DataType_IsValid(scalar.type()) || scalar.type() == v1::DATA_TYPE_UNSPECIFIED ||
          ElementBits(scalar.type()) < 8) {
        Add(absl::StrCat("scalar ", scalar.name(), ": no parameter has its type"));
      }
    }
    for (const v1::StructArgument& argument : bundle_.structs()) {
      take(argument.name(), "struct");
      if (argument.fields().empty() || argument.fields_size() > static_cast<int>(kMaxFields)) {
        Add(absl::StrCat("struct ", argument.name(), ": expected 1 to ", kMaxFields, " fields"));
      }
    }
    for (const auto* symbols : {&bundle_.symbols(), &bundle_.reference().symbols()}) {
      std::set<std::string> filled;
      for (const v1::Symbol& symbol : *symbols) {
        if (!IsSymbolName(symbol.name())) Add("symbols: expected the name of a variable of the source");
        if (!filled.insert(symbol.name()).second) Add("symbols: a name is there twice");
      }
    }
    std::set<std::string> sizes;
    for (const v1::Size& size : bundle_.sizes()) {
      if (size.name().empty() || !sizes.insert(size.name()).second) Add("sizes: a name is empty or used twice");
      if (size.name().size() > kMaxSizeName || HasControlCharacter(size.name())) {
        Add(absl::StrCat("sizes: expected names of at most ", kMaxSizeName, " bytes without control characters"));
      }
      if (size.values().empty() || size.values_size() > kMaxItems) Add("sizes: one has no values");
    }
    if (!sizes.contains(bundle_.goal().size())) Add("goal: its size is not one of the sizes");
    if (!(bundle_.goal().speedup() > 0)) Add("goal: expected a speedup above 0");
    double sum = 0;
    for (const auto& [name, weight] : bundle_.goal().sizes()) {
      if (!sizes.contains(name) || !(weight > 0)) Add("goal: expected weights above 0, of sizes that there are");
      sum += weight;
    }
    if (!bundle_.goal().sizes().empty() && !(std::fabs(sum - 1) <= kGoalWeights)) {
      Add("goal: expected weights whose sum is 1");
    }
    if (!(bundle_.goal().worst() >= 0) || bundle_.goal().worst() > 1) Add("goal: expected worst from 0 to 1");
    if (bundle_.goal().sizes().empty() && bundle_.goal().worst() > 0) Add("goal: expected worst with sizes only");
    if (bundle_.goal().portfolio() < 0 || bundle_.goal().portfolio() > kMaxPortfolio) {
      Add(absl::StrCat("goal: expected a portfolio of at most ", kMaxPortfolio));
    }
    if (bundle_.goal().portfolio() > 1 && bundle_.goal().sizes_size() < 2)
      Add("goal: expected portfolio with sizes only");
    if (!bundle_.goal().sizes().empty() && !bundle_.goal().sizes().contains(bundle_.goal().size())) {
      Add("goal: its size is not one of its sizes");
    }
  }

  // Values are the positions of words, or 0 and 1 of a flag.
  void Words(const v1::Variable& variable) {
    const std::string what = absl::StrCat("variable ", variable.name());
    const std::set<std::string> distinct(variable.words().begin(), variable.words().end());
    if (variable.words_size() > 0) {
      bool good = variable.words_size() == variable.values_size() &&
                  static_cast<int>(distinct.size()) == variable.words_size() && !variable.flag();
      for (int i = 0; good && i < variable.values_size(); ++i) {
        good = variable.values(i) == i && IsValueWord(variable.words(i));
      }
      if (!good) Add(absl::StrCat(what, ": expected different words without blanks, and their positions as values"));
    }
    for (const int32_t value : variable.values()) {
      if (variable.flag() && value != 0 && value != 1) Add(absl::StrCat(what, ": a flag is 0 or 1"));
    }
    const bool on_or_off = !variable.option().empty() && !absl::StrContains(variable.option(), "{}");
    if (on_or_off && !variable.flag()) Add(absl::StrCat(what, ": its option has no {}, and it is not a flag"));
  }

  void Space() {
    if (SpaceSize(bundle_) > kMaxSpace) Add(absl::StrCat("variables: the space is over ", kMaxSpace, " variants"));
    const absl::StatusOr<bool> allowed = IsAllowed(bundle_, StartVariant(bundle_));
    if (!allowed.ok()) Add(absl::StrCat("constraints: ", std::string(allowed.status().message())));
    if (allowed.ok() && !*allowed) Add("constraints: they forbid the start variant");
  }

  void Plans() {
    Planner planner(bundle_);
    for (const v1::Size& size : bundle_.sizes()) {
      const absl::StatusOr<v1::Plan> plan = planner.MakePlan(StartVariant(bundle_), size, TypicalGpu());
      if (!plan.ok()) Add(absl::StrCat("size ", size.name(), ": ", std::string(plan.status().message())));
      if (plan.ok()) Data(*plan);
      const absl::StatusOr<v1::Plan> reference = planner.MakeReferencePlan(size, TypicalGpu());
      if (!reference.ok()) Add(absl::StrCat("size ", size.name(), ": ", std::string(reference.status().message())));
      if (!problems_.empty()) return;
    }
    // Where less of a file is taken, what is left must be what the contract states as well.
    if (std::none_of(bundle_.tensors().begin(), bundle_.tensors().end(),
                     [](const v1::Tensor& tensor) { return tensor.file_holds() != v1::FILL_UNSPECIFIED; })) {
      return;
    }
    for (const v1::Size& size : HiddenSizes(bundle_, 1)) {
      const absl::StatusOr<v1::Plan> plan = planner.MakeReferencePlan(size, TypicalGpu());
      if (plan.ok()) Data(*plan);
      if (!problems_.empty()) return;
    }
  }

  // The values in files, against the ranges that the contract states.
  void Data(const v1::Plan& plan) {
    for (const v1::PlanTensor& tensor : plan.tensors()) {
      const v1::DataFile* file = tensor.fill() == v1::FILL_FILE ? FindDataFile(bundle_, tensor.file()) : nullptr;
      if (file == nullptr) continue;
      const absl::StatusOr<absl::string_view> data = DataOf(*file, tensor);
      const absl::Status status = data.ok() ? CheckDataValues(*file, tensor, *data) : data.status();
      if (!status.ok())
        Add(absl::StrCat("tensor ", tensor.name(), ": ", status.message(), " (size ", plan.size(), ")"));
    }
  }

  const v1::Bundle& bundle_;
  std::vector<std::string> problems_;
};

}  // namespace

bool IsBundleName(const std::string& name) {
  return !name.empty() && name.size() <= kMaxBundleName && std::isalpha(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '-'; });
}

bool IsHeaderLibrary(const std::string& name) {
  return !name.empty() && name.size() <= kMaxBundleName &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '-'; });
}

bool NeedsTolerance(const v1::Bundle& bundle) {
  const auto compared = [](const v1::Tensor& tensor) { return IsCompared(tensor.role()); };
  return std::none_of(bundle.tensors().begin(), bundle.tensors().end(), compared) ||
         std::any_of(bundle.tensors().begin(), bundle.tensors().end(), [&](const v1::Tensor& tensor) {
           return compared(tensor) && !tensor.has_tolerance() && IsFloat(tensor.type());
         });
}

bool IsOwnScratch(const v1::Tensor& tensor) { return tensor.role() == v1::TENSOR_ROLE_SCRATCH && !tensor.is_static(); }

bool IsContractAlone(const v1::Bundle& bundle) {
  const v1::SourceFile& source = bundle.source();
  return source.path().empty() && source.text().empty() && source.binary().empty() && bundle.files().empty() &&
         bundle.launches().empty() && bundle.variables().empty() && bundle.constraints().empty() &&
         bundle.options().empty() && bundle.symbols().empty() &&
         std::none_of(bundle.tensors().begin(), bundle.tensors().end(), IsOwnScratch);
}

v1::Bundle ContractPartOf(v1::Bundle bundle) {
  bundle.clear_source();
  bundle.clear_files();
  bundle.clear_options();
  bundle.clear_variables();
  bundle.clear_constraints();
  bundle.clear_launches();
  bundle.clear_symbols();
  auto& tensors = *bundle.mutable_tensors();
  tensors.erase(std::remove_if(tensors.begin(), tensors.end(), IsOwnScratch), tensors.end());
  return bundle;
}

std::string ContractHash(const v1::Bundle& bundle) { return Sha256(BundleBytes(ContractPartOf(bundle))); }

namespace {

// Path and content of each; the first of a path counts.
void VisitContractFiles(const v1::Bundle& bundle,
                        const std::function<void(const std::string&, const std::string&)>& visit) {
  const auto add = [&](const v1::SourceFile& file) {
    if (!file.path().empty()) visit(file.path(), file.text());
  };
  add(bundle.problem());
  add(bundle.reference().source());
  for (const v1::SourceFile& file : bundle.reference().files()) add(file);
  add(bundle.setup().source());
  for (const v1::SourceFile& file : bundle.baseline_files()) add(file);
  for (const v1::DataFile& file : bundle.data_files()) visit(file.path(), file.data());
}

}  // namespace

std::map<std::string, std::string> ContractFiles(const v1::Bundle& bundle) {
  std::map<std::string, std::string> files;
  VisitContractFiles(bundle,
                     [&](const std::string& path, const std::string& content) { files.try_emplace(path, content); });
  return files;
}

std::set<std::string> ContractPaths(const v1::Bundle& bundle) {
  std::set<std::string> paths;
  VisitContractFiles(bundle, [&](const std::string& path, const std::string&) { paths.insert(path); });
  return paths;
}

std::string BundleBytes(const v1::Bundle& bundle) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  bundle.SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

std::string SourceTextProblem(const std::string& text) {
  return text.find('\0') == std::string::npos ? "" : "its text has a NUL character";
}

std::vector<std::string> BundleProblems(const v1::Bundle& bundle) { return Checker(bundle).Problems(); }

}  // namespace pawl
