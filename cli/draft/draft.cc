#include "cli/draft/draft.h"

#include <algorithm>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/expression/expression.h"
#include "base/names/spelling.h"
#include "cli/draft/constants.h"
#include "cli/draft/draft_variables.h"
#include "cli/draft/element_type.h"
#include "cli/draft/host_launches.h"
#include "cli/draft/host_tensors.h"
#include "cli/draft/kernel_body.h"
#include "cli/draft/shapes.h"
#include "cli/draft/size_values.h"
#include "cli/draft/translation.h"

namespace pawl {
namespace {

using Kind = CppExpression::Kind;

std::string LowerName(const SourceFunction& function) { return absl::AsciiStrToLower(function.name); }

bool IsTorchType(const std::string& type) {
  for (const char* word :
       {"TensorAccessor", "at::Tensor", "torch::", "TensorInfo", "PhiloxCudaState", "TensorIterator"}) {
    if (absl::StrContains(type, word)) return true;
  }
  return false;
}

bool HasWord(const std::string& name, std::initializer_list<const char*> words) {
  const std::string lower = absl::AsciiStrToLower(name);
  return std::any_of(words.begin(), words.end(), [&](const char* word) { return absl::StrContains(lower, word); });
}

// A kernel of the draft: one of the host's launches, or one without.
struct Planned {
  const SourceFunction* kernel = nullptr;
  const HostLaunch* launch = nullptr;
  KernelBody body;
  std::map<std::string, std::string> templates;  // parameter to argument
  std::map<std::string, std::string> sizes;    // the kernel's parameters as kernel.toml's sizes or expressions of them
  std::map<std::string, std::string> tensors;  // the kernel's pointer parameters to tensors
};

class Drafting {
 public:
  explicit Drafting(const SourceModel& model) : model_(model), launches_(FindLaunches(model)) {}

  absl::StatusOr<Draft> Run(const std::string& entry) {
    if (absl::Status status = Choose(entry); !status.ok()) return status;
    for (const Planned& planned : planned_) {
      if (absl::Status status = CheckParameters(*planned.kernel); !status.ok()) return status;
    }
    draft_.source = model_.files[0]->path;
    const SourceFunction* asked = entry.empty() ? nullptr : model_.Find(entry);
    draft_.name = BundleNameOf(asked == nullptr ? *planned_[0].kernel : *asked);
    draft_.skip_host_code = model_.host_code || model_.torch;
    Files();
    for (Planned& planned : planned_) BindTemplates(planned);
    for (Planned& planned : planned_) Numbers(planned);
    variables_.emplace(model_, Kernels(), Bodies(), LaunchesTaken(),
                       [this](const std::string& wanted) { return FreeVariableName(wanted); });
    for (const std::string& name : variables_->kept()) names_.insert(name);
    for (Planned& planned : planned_) draft_.launches.push_back(Launch(planned));
    Tensors();
    for (size_t i = 0; i < planned_.size(); ++i) Arguments(planned_[i], draft_.launches[i]);
    draft_.variables = variables_->Finish(&draft_.constants);
    Constraints();
    SetSizeValues(draft_);
    Remarks();
    return std::move(draft_);
  }

 private:
  // The kernel or the host function that is asked for, and its launches.
  absl::Status Choose(const std::string& entry) {
    std::vector<const SourceFunction*> kernels;
    for (const SourceFunction& function : model_.functions) {
      if (function.kernel) kernels.push_back(&function);
    }
    const std::string& path = model_.files[0]->path;
    if (kernels.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, " has no __global__ function with a body",
          model_.first_error.empty() ? ""
                                     : absl::StrCat("; the first thing that is not understood: ", model_.first_error)));
    }
    std::vector<std::string> names, listed;
    for (const SourceFunction* kernel : kernels) {
      names.push_back(kernel->name);
      listed.push_back(absl::StrCat(kernel->qualified, " (", kernel->file->path, ":", kernel->line, ")"));
    }
    if (entry.empty() && kernels.size() > 1) {
      return absl::InvalidArgumentError(absl::StrCat(path, " has ", kernels.size(),
                                                     " kernels: ", absl::StrJoin(listed, ", "),
                                                     ". Choose one with --entry NAME, or a host function that launches "
                                                     "several of them"));
    }
    const SourceFunction* asked = entry.empty() ? kernels[0] : model_.Find(entry);
    if (asked == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(path, " has no kernel ", entry, Suggestion(entry, names),
                                                     "; it has ", absl::StrJoin(listed, ", ")));
    }
    if (asked->kernel) {
      TakeKernel(*asked);
      return absl::OkStatus();
    }
    for (const HostLaunch& launch : launches_) {
      if (launch.host == asked) TakeLaunch(launch);
    }
    if (planned_.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(entry, " launches no kernel of ", path, "; its kernels are ", absl::StrJoin(listed, ", ")));
    }
    return absl::OkStatus();
  }

  void TakeKernel(const SourceFunction& kernel) {
    const SourceFunction* host = nullptr;
    std::set<std::string> others;
    for (const HostLaunch& launch : launches_) {
      if (launch.kernel == &kernel && host == nullptr) host = launch.host;
    }
    std::vector<std::string> again;
    for (const HostLaunch& launch : launches_) {
      if (launch.host != host) continue;
      if (launch.kernel != &kernel) {
        others.insert(launch.kernel->name);
      } else if (planned_.empty()) {
        TakeLaunch(launch);
      } else {
        again.push_back(absl::StrCat(launch.line));
      }
    }
    if (!again.empty()) {
      draft_.remarks.push_back(
          absl::StrCat(host->name, " launches ", kernel.name, " again in line ", absl::StrJoin(again, ", "),
                       ": the draft has the first launch only; `--entry ", host->name, "` drafts all of them"));
    }
    if (!others.empty()) {
      draft_.remarks.push_back(absl::StrCat(host->name, " also launches ", absl::StrJoin(others, ", "), "; `--entry ",
                                            host->name, "` drafts the whole call"));
    }
    if (planned_.empty()) {
      planned_.emplace_back();
      planned_.back().kernel = &kernel;
    }
  }

  // Of launches that exclude each other the first is taken.
  void TakeLaunch(const HostLaunch& launch) {
    const auto texts = [](const HostLaunch& made) {
      std::string text;
      for (const CppExpression& argument : made.arguments) absl::StrAppend(&text, CppText(argument), ", ");
      return text;
    };
    for (const Planned& planned : planned_) {
      if (planned.kernel != launch.kernel || planned.launch == nullptr) continue;
      // The same once more, as a benchmark does.
      bool excluded =
          planned.launch->template_arguments != launch.template_arguments || texts(*planned.launch) == texts(launch);
      for (const auto& [condition, negative] : launch.conditions) {
        for (const auto& [other, other_negative] : planned.launch->conditions) {
          excluded = excluded || (CppText(condition) == CppText(other) && negative != other_negative);
        }
      }
      if (!excluded) continue;
      draft_.remarks.push_back(absl::StrCat("the launch of ", launch.kernel->name, " in line ", launch.line,
                                            " is left out: the draft has the one in line ", planned.launch->line));
      return;
    }
    planned_.emplace_back();
    planned_.back().kernel = launch.kernel;
    planned_.back().launch = &launch;
  }

  absl::Status CheckParameters(const SourceFunction& kernel) const {
    for (const SourceParameter& parameter : kernel.parameters) {
      const std::string where = absl::StrCat(kernel.file->path, ":", kernel.line, ": ", kernel.name);
      if (IsTorchType(parameter.type.element) || IsTorchType(parameter.type.spelling)) {
        return absl::InvalidArgumentError(
            absl::StrCat(where, " takes ", parameter.name, " as ", parameter.type.spelling,
                         ", a type of PyTorch's. Let it take a pointer and the extents it needs (const float* ",
                         parameter.name, ", int rows, ...); the host passes ", parameter.name,
                         ".data_ptr<float>() and ", parameter.name, ".size(0)"));
      }
      const bool is_template =
          std::any_of(kernel.templates.begin(), kernel.templates.end(),
                      [&](const TemplateParameter& own) { return own.is_type && own.name == parameter.type.element; });
      if (is_template && parameter.type.pointers == 0 &&
          HasWord(parameter.type.element, {"func", "functor", "lambda", "op_t", "_op"})) {
        return absl::InvalidArgumentError(
            absl::StrCat(where, " takes ", parameter.name, " as ", parameter.type.spelling,
                         ", a function object, which a launch of Pawl can't pass: write a kernel "
                         "that calls the function itself"));
      }
      for (const char* word : {"(*)", "cudaTextureObject_t", "cudaSurfaceObject_t", "CUtensorMap", "curandState"}) {
        if (!absl::StrContains(parameter.type.spelling, word)) continue;
        return absl::InvalidArgumentError(
            absl::StrCat(where, " takes ", parameter.name, " as ", parameter.type.spelling,
                         ", which a launch of Pawl can't make; expected pointers, numbers "
                         "and structs of them"));
      }
    }
    return absl::OkStatus();
  }

  static std::string BundleNameOf(const SourceFunction& kernel) {
    std::string name = LowerName(kernel);
    for (const char* suffix : {"_kernel", "kernel"}) {
      if (absl::EndsWith(name, suffix) && name.size() > std::string_view(suffix).size()) {
        name.resize(name.size() - std::string_view(suffix).size());
      }
    }
    while (!name.empty() && (name[0] == '_' || absl::ascii_isdigit(static_cast<unsigned char>(name[0]))))
      name.erase(0, 1);
    while (!name.empty() && name.back() == '_') name.pop_back();
    return name.empty() ? "kernel" : name.substr(0, 64);
  }

  void Files() {
    for (size_t i = 1; i < model_.files.size(); ++i) draft_.files.push_back(model_.files[i]->path);
    static const auto& libraries = *new std::map<std::string, std::string>{
        {"cub/", "cub"},         {"thrust/", "thrust"}, {"cuda/", "libcudacxx"},
        {"cutlass/", "cutlass"}, {"cute/", "cutlass"},  {"cooperative_groups", "cooperative_groups"}};
    for (const std::string& header : model_.includes) {
      for (const auto& [prefix, library] : libraries) {
        if (absl::StartsWith(header, prefix) &&
            std::find(draft_.include.begin(), draft_.include.end(), library) == draft_.include.end()) {
          draft_.include.push_back(library);
        }
      }
    }
  }

  std::vector<const SourceFunction*> Kernels() const {
    std::vector<const SourceFunction*> kernels;
    for (const Planned& planned : planned_) {
      if (std::find(kernels.begin(), kernels.end(), planned.kernel) == kernels.end()) kernels.push_back(planned.kernel);
    }
    return kernels;
  }

  std::vector<const KernelBody*> Bodies() const {
    std::vector<const KernelBody*> bodies;
    for (const Planned& planned : planned_) bodies.push_back(&planned.body);
    return bodies;
  }

  // A variable without `replaces` is a macro: a word of the source can't be its name.
  std::string FreeVariableName(const std::string& wanted) {
    std::string name = wanted;
    const auto in_source = [&] {
      return std::any_of(model_.files.begin(), model_.files.end(), [&](const std::unique_ptr<SourceText>& file) {
        return std::any_of(file->tokens.begin(), file->tokens.end(),
                           [&](const CppToken& token) { return token.Is(name); });
      });
    };
    while (names_.contains(name) || in_source()) name = name == wanted ? absl::StrCat("TUNE_", wanted) : name + "_2";
    return FreeName(name);
  }

  // Blocks of more threads than a GPU can launch are never tried.
  void Constraints() {
    for (const DraftLaunch& launch : draft_.launches) {
      if (launch.block.size() < 2) continue;
      std::vector<std::string> factors;
      for (const std::string& extent : launch.block)
        factors.push_back(IsName(extent) || NumberIn(extent) ? extent : absl::StrCat("(", extent, ")"));
      const std::string product = absl::StrJoin(factors, " * ");
      const absl::StatusOr<std::set<std::string>> names = NamesIn(product);
      const bool varies =
          names.ok() && std::any_of(draft_.variables.begin(), draft_.variables.end(),
                                    [&](const DraftVariable& variable) { return names->contains(variable.name); });
      const std::string constraint = absl::StrCat(product, " <= 1024");
      if (varies &&
          std::find(draft_.constraints.begin(), draft_.constraints.end(), constraint) == draft_.constraints.end()) {
        draft_.constraints.push_back(constraint);
      }
    }
  }

  std::vector<const HostLaunch*> LaunchesTaken() const {
    std::vector<const HostLaunch*> taken;
    for (const Planned& planned : planned_) {
      if (planned.launch != nullptr) taken.push_back(planned.launch);
    }
    return taken;
  }

  // Template arguments of the launch; what the host itself has as a parameter is chosen here.
  void BindTemplates(Planned& planned) {
    planned.body = ReadKernelBody(model_, *planned.kernel);
    const std::vector<TemplateParameter>& parameters = planned.kernel->templates;
    for (size_t i = 0; i < parameters.size(); ++i) {
      std::string argument = parameters[i].fallback;
      if (planned.launch != nullptr && i < planned.launch->template_arguments.size()) {
        argument = planned.launch->template_arguments[i];
      }
      if (parameters[i].is_type) argument = TypeArgument(planned, parameters[i], argument);
      planned.templates[parameters[i].name] = argument;
    }
  }

  std::string TypeArgument(const Planned& planned, const TemplateParameter& parameter, const std::string& argument) {
    const auto is_parameter_of = [&](const SourceFunction* host) {
      return host != nullptr && std::any_of(host->templates.begin(), host->templates.end(),
                                            [&](const TemplateParameter& own) { return own.name == argument; });
    };
    // using acc_t = at::acc_type<scalar_t, true>; in the host function.
    const std::string alias = AliasOf(argument);
    if (absl::StrContains(alias, "acc_type") || absl::StrContains(alias, "opmath")) return "float";
    if (ElementTypeOf(alias)) return alias;
    const bool open =
        argument.empty() || argument == "scalar_t" || is_parameter_of(planned.launch ? planned.launch->host : nullptr);
    if (!open) return argument;
    const std::string chosen = HasWord(parameter.name, {"index", "idx"}) ? "int" : "float";
    const std::string remark = absl::StrCat(planned.kernel->name, "<", parameter.name, ">: ", chosen,
                                            " was chosen for the type; change it in `entry` and in the tensors' types");
    if (std::find(draft_.remarks.begin(), draft_.remarks.end(), remark) == draft_.remarks.end())
      draft_.remarks.push_back(remark);
    return chosen;
  }

  // A name that is free in kernel.toml.
  std::string FreeName(const std::string& wanted) {
    std::string name;
    for (const char c : wanted) name += absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' ? c : '_';
    while (!name.empty() && name.back() == '_') name.pop_back();
    if (name.empty() || !IsName(name)) name = absl::StrCat("p_", name);
    while (names_.contains(name)) name += "_2";
    names_.insert(name);
    return name;
  }

  std::string AddSize(const std::string& key, const std::string& wanted, std::optional<int64_t> main,
                      std::string todo) {
    if (const auto known = size_of_.find(key); known != size_of_.end()) return known->second;
    DraftSize size;
    size.name = FreeName(wanted);
    size.main = main.value_or(0);
    size.todo = std::move(todo);
    size_of_[key] = size.name;
    draft_.sizes.push_back(size);
    return draft_.sizes.back().name;
  }

  // The integer parameters: sizes, or scalars made of sizes.
  void Numbers(Planned& planned) {
    for (size_t i = 0; i < planned.kernel->parameters.size(); ++i) {
      const SourceParameter& parameter = planned.kernel->parameters[i];
      const CppExpression* argument =
          planned.launch != nullptr && i < planned.launch->arguments.size() ? &planned.launch->arguments[i] : nullptr;
      Number(parameter, argument, planned);
      for (size_t k = 0; k < parameter.fields.size(); ++k) {
        SourceParameter field = parameter.fields[k];
        const CppExpression* given = FieldOf(parameter, k, argument, planned);
        field.name = absl::StrCat(parameter.name, ".", field.name);
        Number(field, given, planned);
      }
    }
  }

  void Number(const SourceParameter& parameter, const CppExpression* argument, Planned& planned) {
    const std::optional<ElementType> type = TypeOf(parameter.type, planned);
    if (parameter.type.pointers > 0 || parameter.type.record || !type || !IsWholeType(type->type)) return;
    if (argument == nullptr) {
      LoneNumber(parameter, planned);
    } else {
      GivenNumber(parameter, *argument, planned);
    }
  }

  // What the host puts into a field of a struct: Params p{x, n}, or p.n = n.
  static const CppExpression* FieldOf(const SourceParameter& parameter, size_t field, const CppExpression* argument,
                                      const Planned& planned) {
    if (argument == nullptr || argument->kind != Kind::kName) return nullptr;
    const HostValues& values = planned.launch->values;
    const auto assigned = values.find(absl::StrCat(argument->text, ".", parameter.fields[field].name));
    if (assigned != values.end() && assigned->second.parts.size() == 1) return &assigned->second.parts[0];
    const auto made = values.find(argument->text);
    if (made == values.end()) return nullptr;
    const std::vector<CppExpression>* parts = &made->second.parts;
    if (parts->size() == 1 && (*parts)[0].kind == Kind::kList) parts = &(*parts)[0].parts;
    return parts->size() == parameter.fields.size() ? &(*parts)[field] : nullptr;
  }

  // n of params.n
  static std::string LastName(const std::string& name) {
    const size_t dot = name.rfind('.');
    return dot == std::string::npos ? name : name.substr(dot + 1);
  }

  static bool IsFlagName(const std::string& name) {
    return HasWord(name, {"causal", "is_", "use_", "has_", "flag", "seed", "offset", "step", "mode", "debug"});
  }

  void LoneNumber(const SourceParameter& parameter, Planned& planned) {
    if (IsFlagName(parameter.name) || HasWord(parameter.name, {"stride", "pitch"})) return;
    planned.sizes[parameter.name] =
        AddSize(parameter.name, LastName(parameter.name), std::nullopt, "no launch in the source says how large it is");
  }

  // The name at the root of an argument: n of int n = N; is N.
  static std::string RootOf(const CppExpression& argument, const HostValues& values) {
    CppExpression e = argument;
    for (int step = 0; step < 16; ++step) {
      while (e.kind == Kind::kCast) e = CppExpression(e.parts[0]);
      if (e.kind != Kind::kName) break;
      const auto found = values.find(e.text);
      if (found == values.end() || found->second.parts.size() != 1 || found->second.is_dim3) return e.text;
      CppExpression inner = found->second.parts[0];
      while (inner.kind == Kind::kCast) inner = CppExpression(inner.parts[0]);
      if (inner.kind != Kind::kName || inner.text == e.text) return e.text;
      e = inner;
    }
    return CppText(e);
  }

  // What the root is worth where the source says it: int n = 1 << 20;
  std::optional<int64_t> WorthOf(const std::string& root, const HostValues& values) const {
    const std::map<std::string, int64_t> constants = ConstantValues(model_);
    const auto found = values.find(root);
    if (found != values.end() && found->second.parts.size() == 1) {
      return ConstantValue(Resolved(found->second.parts[0], values), constants);
    }
    const auto constant = constants.find(root);
    return constant == constants.end() ? std::nullopt : std::optional(constant->second);
  }

  void GivenNumber(const SourceParameter& parameter, const CppExpression& argument, Planned& planned) {
    const HostLaunch& launch = *planned.launch;
    const std::string root = RootOf(argument, launch.values);
    if (launch.loop && root == launch.loop->index) return;  // the launch's index
    if (IsFlagName(parameter.name)) return;                 // a scalar
    if (argument.kind == Kind::kNumber || argument.kind == Kind::kPrefix) {
      planned.sizes[parameter.name] = AddSize(absl::StrCat(parameter.name, "=", CppText(argument)),
                                              LastName(parameter.name), ConstantValue(argument, {}), "");
      return;
    }
    const auto value = launch.values.find(root);
    const bool made = value != launch.values.end() && value->second.parts.size() == 1 &&
                      value->second.parts[0].kind == Kind::kBinary && IsMadeOfSizes(value->second.parts[0], launch);
    const bool bare = !made && (root == CppText(argument) || launch.values.contains(root) ||
                                argument.kind == Kind::kName || argument.kind == Kind::kCast);
    const bool simple = bare && (argument.kind == Kind::kName || argument.kind == Kind::kCast ||
                                 (argument.kind == Kind::kCall && argument.parts[0].kind == Kind::kMember) ||
                                 argument.kind == Kind::kMember || argument.kind == Kind::kSubscript);
    if (!simple) return;  // an expression: a scalar, once all sizes are known
    const std::optional<int64_t> worth = WorthOf(root, launch.values);
    planned.sizes[parameter.name] =
        AddSize(root, SizeNameFor(parameter, root), worth, worth ? "" : "guessed by its name");
  }

  // int n = rows * cols, where both are the host's own integers: not 1 << 20, and not x.numel() / cols.
  bool IsMadeOfSizes(const CppExpression& e, const HostLaunch& launch) const {
    if (ConstantValue(Resolved(e, launch.values), ConstantValues(model_))) return false;
    if (e.kind == Kind::kName) {
      const auto value = launch.values.find(e.text);
      if (value != launch.values.end()) return value->second.parts.size() == 1;
      return std::any_of(launch.host->parameters.begin(), launch.host->parameters.end(),
                         [&](const SourceParameter& parameter) { return parameter.name == e.text; }) ||
             model_.FindConstant(e.text) != nullptr;
    }
    if (e.kind == Kind::kNumber) return true;
    if (e.kind != Kind::kBinary && e.kind != Kind::kCast) return false;
    return std::all_of(e.parts.begin(), e.parts.end(), [&](const CppExpression& part) {
      return part.kind == Kind::kNumber || ConstantValue(part, ConstantValues(model_)) || IsMadeOfSizes(part, launch);
    });
  }

  // An int takes the size itself; a long is a scalar beside a size, which needs another name.
  std::string SizeNameFor(const SourceParameter& parameter, const std::string& root) const {
    const std::string name = LastName(parameter.name);
    if (parameter.type.element == "int") return name;
    if (IsName(root) && root != name) return root;
    const std::string upper = absl::AsciiStrToUpper(name);
    return upper != name ? upper : absl::StrCat(name, "_size");
  }

  std::optional<ElementType> TypeOf(const SourceType& type, const Planned& planned) const {
    std::string element = type.element;
    if (const auto bound = planned.templates.find(element); bound != planned.templates.end()) element = bound->second;
    if (std::optional<ElementType> known = ElementTypeOf(element)) return known;
    return ElementTypeOf(AliasOf(element));
  }

  // using bf16 = __nv_bfloat16; typedef float real;
  std::string AliasOf(const std::string& name) const {
    for (const std::unique_ptr<SourceText>& file : model_.files) {
      const std::vector<CppToken>& tokens = file->tokens;
      for (size_t i = 0; i + 3 < tokens.size(); ++i) {
        size_t end = i;
        while (end < tokens.size() && !tokens[end].Is(";")) ++end;
        if (tokens[i].Is("using") && tokens[i + 1].Is(name) && tokens[i + 2].Is("="))
          return TokensText(tokens, i + 3, end);
        if (tokens[i].Is("typedef") && end > i + 2 && tokens[end - 1].Is(name))
          return TokensText(tokens, i + 1, end - 1);
        if (!tokens[i].Is("using") && !tokens[i].Is("typedef")) continue;
        i = end;
      }
    }
    return "";
  }

  // What a name of the host is in kernel.toml; a new size where it is an integer that only the host knows.
  std::optional<std::string> HostLeaf(const CppExpression& e, const Planned& planned, bool may_add) {
    const std::string text = CppText(e);
    if (absl::StrContains(text, "multiProcessorCount") || absl::StrContains(text, "num_sms") ||
        absl::StrContains(text, "numSMs") || absl::StrContains(text, "sm_count") || text == "sms" || text == "num_sm") {
      return "SM_COUNT";
    }
    if (const auto known = size_of_.find(text); known != size_of_.end()) return known->second;
    if (e.kind == Kind::kCall && e.parts[0].IsName("sizeof") && e.parts.size() == 2)
      return SizeOf(e.parts[1].text, planned);
    if (e.kind == Kind::kName) {
      if (std::optional<std::string> variable = variables_->NameOf(e.text)) return variable;
      const std::string root = RootOf(e, planned.launch->values);
      if (const auto known = size_of_.find(root); known != size_of_.end()) return known->second;
      if (const std::optional<int64_t> worth = WorthOf(e.text, planned.launch->values)) return absl::StrCat(*worth);
      for (const TemplateParameter& own : planned.launch->host->templates) {
        if (own.name == e.text && !own.is_type) return variables_->AddTemplate(own, "");
      }
    }
    if (!may_add) return std::nullopt;
    if (e.kind == Kind::kName) {
      // Of a class: what it is worth, only the compiler knows.
      if (absl::StrContains(text, "::")) return std::nullopt;
      if (std::optional<std::string> variable = variables_->AddLaunchParameter(text)) return variable;
      return AddSize(text, text, std::nullopt, "only the launch uses it");
    }
    if (e.kind == Kind::kCall && e.parts[0].kind == Kind::kMember) {
      const std::string object = CppText(e.parts[0].parts[0]), method = e.parts[0].text;
      if (method == "numel" || method == "size" || method == "sizes" || method == "length") {
        const std::string axis = e.parts.size() > 1 ? CppText(e.parts[1]) : "";
        return AddSize(text, absl::StrCat(object, "_", method == "size" ? "dim" : method, axis), std::nullopt,
                       absl::StrCat("is ", text));
      }
    }
    return std::nullopt;
  }

  // sizeof(T), where T is a type of the kernel's, or the host's own that the draft chose.
  std::optional<std::string> SizeOf(const std::string& type, const Planned& planned) const {
    SourceType named;
    named.element = type;
    std::optional<ElementType> element = TypeOf(named, planned);
    for (const TemplateParameter& own : planned.launch->host->templates) {
      if (!element && own.is_type && own.name == type) element = ElementTypeOf("float");
    }
    if (!element && type == "scalar_t") element = ElementTypeOf("float");
    if (!element) return std::nullopt;
    return absl::StrCat(BytesOfType(element->type) * element->width);
  }

  std::optional<std::string> HostText(const CppExpression& e, const Planned& planned, std::string* missing = nullptr,
                                      bool may_add = true) {
    std::map<std::string, bool> kept;
    for (const auto& [key, size] : size_of_) kept[key] = true;
    for (const std::string& name : variables_->kept()) kept[name] = true;
    const CppExpression resolved = Resolved(e, planned.launch->values, kept);
    return Translate(
        resolved, model_, [&](const CppExpression& leaf) { return HostLeaf(leaf, planned, may_add); }, missing);
  }

  DraftLaunch Launch(Planned& planned) {
    DraftLaunch launch;
    launch.entry = EntryText(planned, launch);
    if (planned.launch == nullptr) {
      GuessGeometry(planned, launch);
    } else {
      HostGeometry(planned, launch);
    }
    launch.cooperative = planned.body.grid_sync || (planned.launch != nullptr && planned.launch->cooperative);
    if (planned.body.uses_cluster && launch.cluster.empty()) {
      launch.cluster = {"2"};
      launch.todos.push_back("the kernel uses clusters: say how many blocks one has");
    }
    return launch;
  }

  std::string EntryText(const Planned& planned, DraftLaunch& launch) {
    const SourceFunction& kernel = *planned.kernel;
    if (kernel.extern_c) return kernel.name;
    // :: says that it is a C++ name, which the compiler lowers.
    if (kernel.templates.empty()) return absl::StrCat(kernel.name == kernel.qualified ? "::" : "", kernel.qualified);
    std::vector<std::string> arguments;
    for (const TemplateParameter& parameter : kernel.templates) {
      std::string argument = planned.templates.at(parameter.name);
      // A name of the host's that is worth a number: a constexpr in a lambda.
      if (!parameter.is_type && planned.launch != nullptr && IsName(argument) && !variables_->NameOf(argument)) {
        if (const auto value = planned.launch->values.find(argument); value != planned.launch->values.end()) {
          if (const std::optional<int64_t> worth = WorthOf(argument, planned.launch->values))
            argument = absl::StrCat(*worth);
        }
      }
      arguments.push_back(parameter.is_type ? argument : variables_->AddTemplate(parameter, argument));
      if (!parameter.is_type && arguments.back() == argument && IsName(argument) && argument != "true" &&
          argument != "false" && model_.FindConstant(argument) == nullptr && !variables_->NameOf(argument)) {
        launch.todos.push_back(
            absl::StrCat("entry: ", argument, " is a name of the host's; say what ", parameter.name, " is"));
      }
    }
    return absl::StrCat(kernel.qualified, "<", absl::StrJoin(arguments, ", "), ">");
  }

  void HostGeometry(Planned& planned, DraftLaunch& launch) {
    const HostLaunch& host = *planned.launch;
    const auto extents = [&](const std::vector<CppExpression>& from, const char* what, std::vector<std::string>& to) {
      for (const CppExpression& extent : from) {
        std::string missing;
        std::optional<std::string> text = HostText(extent, planned, &missing);
        if (!text) {
          launch.todos.push_back(absl::StrCat(what, ": `", CppText(extent), "` of line ", host.line, " uses ", missing,
                                              ", which has no meaning here"));
        }
        to.push_back(text.value_or("1"));
      }
      while (to.size() > 1 && to.back() == "1") to.pop_back();
    };
    extents(host.block, "block", launch.block);
    extents(host.grid, "grid", launch.grid);
    // Numbers that only the launch has can be varied where the kernel asks for blockDim.
    for (size_t axis = 0; axis < launch.block.size(); ++axis) {
      const std::string number = launch.block[axis];
      const std::string wanted =
          launch.block.size() == 1 ? "BLOCK" : absl::StrCat("BLOCK_", std::string(1, "XYZ"[axis]));
      std::optional<std::string> variable = variables_->AddBlock(wanted, number, planned.body);
      if (!variable) continue;
      launch.block[axis] = *variable;
      for (size_t i = 0; i < launch.grid.size(); ++i) {
        if (launch.block.size() > 1 && i != axis) continue;
        launch.grid[i] = absl::StrReplaceAll(launch.grid[i],
                                             {{absl::StrCat(", ", number, ")"), absl::StrCat(", ", *variable, ")")},
                                              {absl::StrCat("/ ", number, ")"), absl::StrCat("/ ", *variable, ")")}});
      }
    }
    if (host.shared) {
      std::string missing;
      std::optional<std::string> text = HostText(*host.shared, planned, &missing);
      if (!text) launch.todos.push_back(absl::StrCat("shared: `", CppText(*host.shared), "` uses ", missing));
      if (text && *text != "0") launch.shared = *text;
    }
    Loop(planned, launch);
    When(planned, launch);
    launch.todos.push_back(absl::StrCat("geometry from line ", host.line, " of ", host.host->name));
  }

  void Loop(const Planned& planned, DraftLaunch& launch) {
    if (!planned.launch->loop) return;
    const HostLoop& loop = *planned.launch->loop;
    // Where nothing differs from one launch to the next, the loop is a benchmark's.
    const bool differs = !planned.launch->swaps.empty() ||
                         std::any_of(planned.launch->arguments.begin(), planned.launch->arguments.end(),
                                     [&](const CppExpression& argument) {
                                       return RootOf(argument, planned.launch->values) == loop.index;
                                     });
    if (loop.plain && !differs) {
      launch.todos.push_back(
          absl::StrCat("the host repeats the launch, `", loop.text, "`; if that is no benchmark, add `repeat`"));
      return;
    }
    std::optional<std::string> count = loop.plain ? HostText(loop.count, planned) : std::nullopt;
    if (!count) {
      launch.todos.push_back(absl::StrCat("it is launched in a loop that `repeat` can't say: ", loop.text));
      return;
    }
    launch.repeat = *count;
  }

  void When(const Planned& planned, DraftLaunch& launch) {
    std::vector<std::string> conditions;
    for (const auto& [condition, negative] : planned.launch->conditions) {
      std::optional<std::string> text = HostText(condition, planned, nullptr, false);
      if (!text || NumberIn(*text)) {
        launch.todos.push_back(absl::StrCat("it is only launched where ", negative ? "not " : "", CppText(condition)));
        continue;
      }
      conditions.push_back(negative ? absl::StrCat("!(", *text, ")") : *text);
    }
    // The only launch of a call always runs.
    if (planned_.size() > 1) {
      launch.when = absl::StrJoin(conditions, " && ");
    } else if (!conditions.empty()) {
      launch.todos.push_back(absl::StrCat("the host launches it where ", absl::StrJoin(conditions, " && ")));
    }
  }

  std::optional<std::string> KernelLeaf(const CppExpression& e, const Planned& planned) const {
    if (e.kind == Kind::kMember) {
      const auto size = planned.sizes.find(CppText(e));
      return size == planned.sizes.end() ? std::nullopt : std::optional(size->second);
    }
    if (e.kind != Kind::kName) return std::nullopt;
    if (const auto size = planned.sizes.find(e.text); size != planned.sizes.end()) return size->second;
    if (const SourceConstant* constant = model_.FindConstant(e.text)) return absl::StrCat(constant->value);
    if (const auto bound = planned.templates.find(e.text); bound != planned.templates.end()) {
      if (NumberIn(bound->second)) return bound->second;
      if (const SourceConstant* constant = model_.FindConstant(bound->second)) return absl::StrCat(constant->value);
    }
    return std::nullopt;
  }

  // Without a launch in the source: threads by __launch_bounds__ or 256, blocks by the bound of the index.
  void GuessGeometry(Planned& planned, DraftLaunch& launch) {
    std::string block = variables_->BoundsOrBlock(*planned.kernel, planned.body);
    launch.block = {block};
    ShapeScope scope{&model_, &planned.body, [&](const CppExpression& e) { return KernelLeaf(e, planned); }, {}, {}};
    std::map<std::string, std::string> rows;  // blockIdx.x to what it runs over
    for (const auto& [name, value] : planned.body.definitions) {
      const std::string text = CppText(value);
      const auto bound = planned.body.bounds.find(name);
      if (bound == planned.body.bounds.end()) continue;
      std::optional<std::string> size =
          Translate(bound->second, model_, [&](const CppExpression& e) { return KernelLeaf(e, planned); });
      if (!size) continue;
      for (const char axis : {'x', 'y', 'z'}) {
        const std::string id = absl::StrCat("blockIdx.", std::string(1, axis));
        if (!absl::StrContains(text, id)) continue;
        const bool by_thread = absl::StrContains(text, "threadIdx");
        rows.emplace(id, by_thread ? absl::StrCat("ceil_div(", *size, ", ", axis == 'x' ? block : "1", ")") : *size);
      }
    }
    for (const auto& [text, bound] : planned.body.bounds) {
      if (rows.contains("blockIdx.x") || !absl::StrContains(text, "blockIdx.x")) continue;
      std::optional<std::string> size =
          Translate(bound, model_, [&](const CppExpression& e) { return KernelLeaf(e, planned); });
      if (size)
        rows["blockIdx.x"] =
            absl::StrContains(text, "threadIdx") ? absl::StrCat("ceil_div(", *size, ", ", block, ")") : *size;
    }
    if (rows.empty() && !draft_.sizes.empty())
      rows["blockIdx.x"] = absl::StrCat("ceil_div(", draft_.sizes[0].name, ", ", block, ")");
    for (const char* id : {"blockIdx.x", "blockIdx.y", "blockIdx.z"}) {
      const bool used = rows.contains(id);
      launch.grid.push_back(used ? rows[id] : "1");
    }
    while (launch.grid.size() > 1 && launch.grid.back() == "1") launch.grid.pop_back();
    launch.todos.push_back("the source has no launch of this kernel: grid and block are guesses");
    if (planned.body.words.contains("extern")) {
      launch.shared = "0";
      launch.todos.push_back("the kernel has an extern __shared__ array: say how many bytes it needs");
    }
  }

  // One tensor for each piece of memory, over all launches.
  struct TensorUse {
    std::string name;
    std::vector<std::pair<size_t, std::string>> uses;  // of which planned kernel, as which parameter
    std::string host;
  };

  void Tensors() {
    std::vector<TensorUse> tensors;
    for (size_t i = 0; i < planned_.size(); ++i) {
      Planned& planned = planned_[i];
      for (const auto& [key, index] : PointersOf(*planned.kernel)) {
        std::string host;
        if (planned.launch != nullptr && index < planned.launch->arguments.size() && !absl::StrContains(key, ".")) {
          host = HostTensor(planned.launch->arguments[index], planned.launch->values);
        }
        const auto same = std::find_if(tensors.begin(), tensors.end(), [&](const TensorUse& known) {
          return host.empty() ? known.name == key : known.host == host;
        });
        const auto own = [&](const TensorUse& use) {
          return std::any_of(use.uses.begin(), use.uses.end(), [&](const auto& other) { return other.first == i; });
        };
        if (same != tensors.end() && !own(*same)) {
          same->uses.push_back({i, key});
          continue;
        }
        TensorUse use;
        use.host = host;
        use.name = planned_.size() == 1 || host.empty() ? key : ShortName(host);
        use.uses = {{i, key}};
        tensors.push_back(std::move(use));
      }
    }
    for (TensorUse& use : tensors) AddTensor(use);
    SetRanges();
  }

  // Integers that index another tensor stay within it.
  void SetRanges() {
    for (const auto& [which, parameter, extent] : indexed_) {
      const auto tensor = planned_[which].tensors.find(parameter);
      if (tensor == planned_[which].tensors.end()) continue;
      const auto unknown = size_of_.find(extent);
      for (DraftTensor& own : draft_.tensors) {
        if (own.name != tensor->second || !own.range_high.empty() || !IsWholeType(own.type)) continue;
        own.range_high =
            absl::StrCat(absl::StartsWith(extent, "?") && unknown != size_of_.end() ? unknown->second : extent, " - 1");
        if (absl::StrContains(own.range_high, "?")) own.range_high.clear();
      }
    }
  }

  // d_x is x.
  static std::string ShortName(const std::string& host) {
    for (const char* prefix : {"d_", "dev_", "device_"}) {
      if (absl::StartsWith(host, prefix) && host.size() > std::string_view(prefix).size()) {
        return host.substr(std::string_view(prefix).size());
      }
    }
    return host;
  }

  static std::vector<std::pair<std::string, size_t>> PointersOf(const SourceFunction& kernel) {
    std::vector<std::pair<std::string, size_t>> pointers;
    for (size_t i = 0; i < kernel.parameters.size(); ++i) {
      const SourceParameter& parameter = kernel.parameters[i];
      if (parameter.type.pointers > 0) pointers.push_back({parameter.name, i});
      for (const SourceParameter& field : parameter.fields) {
        if (field.type.pointers > 0) pointers.push_back({absl::StrCat(parameter.name, ".", field.name), i});
      }
    }
    return pointers;
  }

  static const SourceType& TypeOfPointer(const SourceFunction& kernel, const std::string& key) {
    for (const SourceParameter& parameter : kernel.parameters) {
      if (parameter.name == key) return parameter.type;
      for (const SourceParameter& field : parameter.fields) {
        if (absl::StrCat(parameter.name, ".", field.name) == key) return field.type;
      }
    }
    return kernel.parameters[0].type;
  }

  void AddTensor(TensorUse& use) {
    Planned& first = planned_[use.uses[0].first];
    const SourceType& type = TypeOfPointer(*first.kernel, use.uses[0].second);
    DraftTensor tensor;
    tensor.name = FreeName(use.name.substr(use.name.rfind('.') == std::string::npos ? 0 : use.name.rfind('.') + 1));
    for (const auto& [which, key] : use.uses) planned_[which].tensors[key] = tensor.name;
    const std::optional<ElementType> element = TypeOf(type, first);
    tensor.type = element ? element->type : "u8";
    int64_t width = element ? element->width : std::max<int64_t>(1, type.bytes);
    if (!element && type.unknown) {
      tensor.type = "f32";
      width = 1;
      tensor.todos.push_back(absl::StrCat("type: ", type.element, " is declared in a header that was not found"));
    } else if (!element) {
      tensor.range_high = "bytes";
      tensor.todos.push_back(absl::StrCat("type: bytes of ", type.element, ", ", width, " each"));
    } else if (type.element == "void") {
      tensor.todos.push_back("type: the parameter is void*");
    }
    if (type.pointers > 1) tensor.todos.push_back("type: the parameter is a pointer to pointers");
    SetRole(use, tensor);
    SetShape(use, width, tensor);
    if (element && width > 1)
      tensor.todos.push_back(absl::StrCat("shape: ", width, " elements for each ", type.element));
    draft_.tensors.push_back(std::move(tensor));
  }

  void SetRole(const TensorUse& use, DraftTensor& tensor) {
    bool written = false, read_before = false, read_later = false, known = false, added = false, passed = false;
    for (const auto& [which, key] : use.uses) {
      const PointerUse& uses = planned_[which].body.pointers[key];
      const bool is_const = TypeOfPointer(*planned_[which].kernel, key).is_const;
      const bool reads = is_const || uses.read_first;
      if (reads && !written) read_before = true;
      if (reads && written) read_later = true;
      written = written || (uses.written && !is_const);
      added = added || uses.added_to;
      passed = passed || (uses.passed_on && !is_const);
      known = known || is_const || uses.read || uses.written;
      if (uses.atomic && tensor.type[0] != 'i' && tensor.type[0] != 'u') draft_.deterministic = false;
    }
    const Planned& first = planned_[use.uses[0].first];
    const HostAllocation made = AllocationOf(first.launch, use.host);
    if (!written && passed) {
      tensor.role = "output";
      tensor.todos.push_back("role: it is passed on to a function that is not in the source");
    } else if (!written) {
      tensor.role = known ? "input" : "output";
      if (!known) tensor.todos.push_back("role: the kernel's body does not use it in a way that is understood");
      if (known && !TypeOfPointer(*first.kernel, use.uses[0].second).is_const) {
        tensor.todos.push_back("role: it is never written, though its pointer is not const");
      }
    } else if (read_before) {
      tensor.role = "inout";
      tensor.todos.push_back(added ? "role: the kernel adds to what it holds"
                                   : "role: it is read before it is written");
      if (made.cleared) tensor.range_high = "zeros";
    } else if (read_later && made.local && !made.returned) {
      tensor.role = "scratch";
      tensor.todos.push_back("role: a later launch reads what an earlier one wrote");
    } else {
      tensor.role = "output";
    }
  }

  void SetShape(const TensorUse& use, int64_t width, DraftTensor& tensor) {
    const Planned& first = planned_[use.uses[0].first];
    const HostAllocation made = AllocationOf(first.launch, use.host);
    std::optional<std::vector<std::string>> shape = AllocatedShape(made, first);
    const bool exact = shape.has_value() && !made.flat;
    for (const auto& [which, key] : use.uses) {
      if (exact) break;
      Planned& planned = planned_[which];
      const DraftLaunch& launch = draft_.launches[which];
      ShapeScope scope{&model_, &planned.body, [&](const CppExpression& e) { return KernelLeaf(e, planned); },
                       SizesOnly(launch.grid), SizesOnly(launch.block)};
      IndexedExtents by_data;
      std::optional<std::vector<std::string>> indexed = ShapeOf(planned.body.pointers[key].indices, scope, &by_data);
      for (const auto& [parameter, extent] : by_data)
        indexed_.push_back({which, parameter, extent == "?" ? absl::StrCat("?", tensor.name) : extent});
      const auto unknown = [](const std::vector<std::string>& s) {
        return std::any_of(s.begin(), s.end(), [](const std::string& e) { return absl::StrContains(e, "?"); });
      };
      if (!indexed || (shape && unknown(*indexed))) continue;
      shape = indexed;
      if (!unknown(*indexed)) break;
    }
    if (!shape) {
      shape.emplace();
      for (const auto& [parameter, size] : first.sizes) {
        const bool known = std::any_of(draft_.sizes.begin(), draft_.sizes.end(),
                                       [&](const DraftSize& own) { return own.name == size; });
        if (known && std::find(shape->begin(), shape->end(), size) == shape->end()) shape->push_back(size);
      }
      if (shape->empty())
        shape->push_back(AddSize("elements", "N", std::nullopt, "nothing in the source says how large"));
      tensor.todos.push_back("shape: neither its indices nor an allocation tell it");
    } else if (!exact) {
      tensor.todos.push_back("shape: from the indices at which it is used");
    }
    for (std::string& extent : *shape) {
      if (!absl::StrContains(extent, "?")) continue;
      const std::string key = absl::StrCat("?", tensor.name);
      const bool by_data =
          std::any_of(indexed_.begin(), indexed_.end(), [&](const Indexed& index) { return index.extent == key; });
      const std::string why =
          by_data ? "other data decide which of its rows are used" : "how large an index gets is not understood";
      extent = AddSize(key, absl::StrCat(absl::AsciiStrToUpper(tensor.name), by_data ? "_ROWS" : "_EXTENT"),
                       std::nullopt, absl::StrCat("of ", tensor.name, ": ", why));
      tensor.todos.push_back(absl::StrCat("shape: ", why));
    }
    if (width > 1) shape->push_back(absl::StrCat(width));
    tensor.shape = *std::move(shape);
  }

  // Extents that are made of sizes alone: a shape may not depend on variables.
  std::vector<std::string> SizesOnly(const std::vector<std::string>& extents) const {
    std::vector<std::string> only;
    for (const std::string& extent : extents) {
      const absl::StatusOr<std::set<std::string>> names = NamesIn(extent);
      const bool plain = names.ok() && std::all_of(names->begin(), names->end(), [&](const std::string& name) {
                           return std::any_of(draft_.sizes.begin(), draft_.sizes.end(),
                                              [&](const DraftSize& size) { return size.name == name; });
                         });
      only.push_back(plain ? extent : "?");
    }
    return only;
  }

  std::optional<std::vector<std::string>> AllocatedShape(const HostAllocation& made, const Planned& planned) {
    if (made.shape.empty() || planned.launch == nullptr) return std::nullopt;
    std::vector<std::string> shape;
    for (const CppExpression& extent : made.shape) {
      std::optional<std::string> text = HostText(extent, planned, nullptr, !made.flat);
      if (!text) return std::nullopt;
      shape.push_back(*std::move(text));
    }
    for (const std::string& extent : SizesOnly(shape)) {
      if (extent == "?") return std::nullopt;
    }
    return shape;
  }

  void Arguments(Planned& planned, DraftLaunch& launch) {
    for (size_t i = 0; i < planned.kernel->parameters.size(); ++i) {
      const SourceParameter& parameter = planned.kernel->parameters[i];
      const CppExpression* given =
          planned.launch != nullptr && i < planned.launch->arguments.size() ? &planned.launch->arguments[i] : nullptr;
      launch.arguments.push_back(Argument(parameter, given, planned, launch));
    }
    if (planned.launch == nullptr) return;
    for (const auto& [a, b] : planned.launch->swaps) {
      std::vector<std::string> names;
      for (const std::string& host : {a, b}) {
        for (const auto& [key, tensor] : planned.tensors) {
          for (size_t i = 0; i < planned.kernel->parameters.size() && i < planned.launch->arguments.size(); ++i) {
            if (planned.kernel->parameters[i].name == key &&
                HostTensor(planned.launch->arguments[i], planned.launch->values) == host) {
              names.push_back(tensor);
            }
          }
        }
      }
      if (names.size() == 2) {
        launch.swap = names;
        for (DraftTensor& tensor : draft_.tensors) {
          if (tensor.name == names[0] || tensor.name == names[1]) {
            tensor.role = "inout";
            tensor.todos.push_back("role: the launches exchange it with another; say which one is the result");
          }
        }
      }
    }
  }

  std::string Argument(const SourceParameter& parameter, const CppExpression* given, Planned& planned,
                       DraftLaunch& launch) {
    if (parameter.type.pointers > 1) {
      DraftStruct made;
      made.name = FreeName(absl::StrCat(parameter.name, "_pointers"));
      made.fields = {planned.tensors.at(parameter.name)};
      made.in_memory = true;
      made.todo = "name all tensors that it points to";
      draft_.structs.push_back(made);
      return made.name;
    }
    if (parameter.type.pointers == 1) return planned.tensors.at(parameter.name);
    if (parameter.type.record) {
      // A __half by value is a scalar, however libclang sees it.
      const std::optional<ElementType> plain = TypeOf(parameter.type, planned);
      if (!plain || plain->width > 1) return Struct(parameter, given, planned);
    }
    if (given != nullptr && planned.launch->loop &&
        RootOf(*given, planned.launch->values) == planned.launch->loop->index) {
      launch.index = FreeName(parameter.name);
      return launch.index;
    }
    const std::optional<ElementType> type = TypeOf(parameter.type, planned);
    const auto size = planned.sizes.find(parameter.name);
    if (size != planned.sizes.end() && type && type->type == "i32") return size->second;
    return Scalar(parameter, given, planned, type, size == planned.sizes.end() ? "" : size->second);
  }

  std::string Scalar(const SourceParameter& parameter, const CppExpression* given, Planned& planned,
                     const std::optional<ElementType>& type, const std::string& size) {
    DraftScalar scalar;
    scalar.type = type ? type->type : "f32";
    if (!type) scalar.todo = absl::StrCat("type: ", parameter.type.element, " is not known");
    if (!size.empty()) {
      scalar.value = size;
    } else if (given != nullptr) {
      // A number of the host that is no integer is none of the sizes.
      if (std::optional<std::string> text =
              HostText(*given, planned, nullptr, IsWholeType(scalar.type) && !IsFlagName(parameter.name))) {
        scalar.value = *text;
      }
    }
    if (scalar.value.empty()) {
      scalar.value = TypicalValue(parameter.name, scalar.type);
      scalar.todo = given == nullptr ? "no launch in the source gives its value"
                                     : absl::StrCat("the host passes ", CppText(*given));
    }
    for (const DraftScalar& known : draft_.scalars) {
      if (known.type == scalar.type && known.value == scalar.value &&
          (known.name == parameter.name || absl::StartsWith(known.name, parameter.name))) {
        return known.name;
      }
    }
    scalar.name = FreeName(parameter.name);
    draft_.scalars.push_back(scalar);
    return scalar.name;
  }

  std::string Struct(const SourceParameter& parameter, const CppExpression* given, Planned& planned) {
    DraftStruct made;
    made.name = FreeName(parameter.name);
    if (parameter.fields.empty()) made.todo = absl::StrCat(parameter.type.spelling, " is not known: name its fields");
    for (const SourceParameter& field : parameter.fields) {
      const auto tensor = planned.tensors.find(absl::StrCat(parameter.name, ".", field.name));
      if (tensor != planned.tensors.end()) {
        made.fields.push_back(tensor->second);
        continue;
      }
      const std::optional<ElementType> type = TypeOf(field.type, planned);
      const auto size = planned.sizes.find(absl::StrCat(parameter.name, ".", field.name));
      if (size != planned.sizes.end() && type && type->type == "i32") {
        made.fields.push_back(size->second);
      } else {
        const CppExpression* value =
            FieldOf(parameter, static_cast<size_t>(&field - parameter.fields.data()), given, planned);
        made.fields.push_back(Scalar(field, value, planned, type, size == planned.sizes.end() ? "" : size->second));
      }
    }
    draft_.structs.push_back(made);
    return made.name;
  }

  void Remarks() {
    for (const std::string& header : model_.missing) {
      draft_.remarks.push_back(
          absl::StrCat("#include \"", header, "\" was not found: copy it into this folder and add it to `files`"));
    }
    for (const std::string& file : draft_.files) {
      if (absl::StrContains(file, "..")) {
        draft_.remarks.push_back(
            absl::StrCat(file, " lies outside of the source's folder: a bundle's files lie in its own"));
      }
    }
  }

  const SourceModel& model_;
  std::vector<HostLaunch> launches_;
  std::vector<Planned> planned_;
  Draft draft_;
  std::optional<DraftVariables> variables_;
  std::set<std::string> names_ = {"SM_COUNT", "MAX_REGISTERS", "FAST_MATH"};
  std::map<std::string, std::string> size_of_;  // by the host's name for it
  struct Indexed {
    size_t which = 0;
    std::string parameter, extent;
  };
  std::vector<Indexed> indexed_;  // integer parameters of the planned kernels, and what they index
};

}  // namespace

absl::StatusOr<Draft> MakeDraft(const SourceModel& model, const std::string& entry) {
  return Drafting(model).Run(entry);
}

}  // namespace pawl
