#include "cli/draft/draft.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/expression/expression.h"
#include "cli/draft/drafting.h"
#include "cli/draft/read/class_constants.h"
#include "cli/draft/read/constants.h"
#include "cli/draft/read/translation.h"
#include "cli/draft/size_values.h"

namespace pawl {

bool HasWord(const std::string& name, std::initializer_list<const char*> words) {
  const std::string lower = absl::AsciiStrToLower(name);
  return std::any_of(words.begin(), words.end(), [&](const char* word) { return absl::StrContains(lower, word); });
}

std::string Rewritten(const std::string& text,
                      const std::function<std::string(size_t, const std::vector<CppToken>&)>& written) {
  const std::vector<CppToken> tokens = CppTokens(text);
  std::string out;
  size_t at = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const std::string other = written(i, tokens);
    absl::StrAppend(&out, text.substr(at, tokens[i].offset - at), other.empty() ? std::string(tokens[i].text) : other);
    at = tokens[i].offset + tokens[i].text.size();
  }
  return absl::StrCat(out, text.substr(std::min(at, text.size())));
}

std::string WithNames(const std::string& text, const std::map<std::string, std::string>& others) {
  return Rewritten(text, [&](size_t i, const std::vector<CppToken>& tokens) {
    const auto found = others.find(std::string(tokens[i].text));
    return found == others.end() ? std::string() : found->second;
  });
}

Drafting::Drafting(const SourceModel& model) : model_(model), launches_(FindLaunches(model)) {
  for (const std::unique_ptr<SourceText>& file : model_.files) {
    for (const CppToken& token : file->tokens) {
      const bool directive = token.kind == CppToken::Kind::kDirective;
      for (const CppToken& word : directive ? DirectiveTokens(token) : std::vector<CppToken>{token}) {
        if (word.IsWord()) words_.insert(word.text);
      }
    }
  }
}

absl::StatusOr<Draft> Drafting::Run(const std::string& entry) {
  if (absl::Status status = Choose(entry); !status.ok()) return status;
  for (PlannedKernel& planned : planned_) {
    planned.body = ReadKernelBody(model_, *planned.kernel);
    if (absl::Status status = CheckParameters(planned); !status.ok()) return status;
  }
  draft_.source = model_.files[0]->path;
  const SourceFunction* asked = entry.empty() ? nullptr : model_.Find(entry);
  draft_.name = BundleNameOf(asked == nullptr ? *planned_[0].kernel : *asked);
  draft_.skip_host_code = model_.host_code || model_.torch;
  Files();
  for (PlannedKernel& planned : planned_) BindTemplates(planned);
  for (PlannedKernel& planned : planned_) Numbers(planned);
  variables_.emplace(model_, Kernels(), Bodies(), LaunchesTaken(),
                     [this](const std::string& wanted) { return FreeVariableName(wanted); });
  for (const std::string& name : variables_->kept()) names_.insert(name);
  for (PlannedKernel& planned : planned_) draft_.launches.push_back(Launch(planned));
  for (size_t i = 0; i < planned_.size(); ++i) DerivedNumbers(planned_[i], draft_.launches[i]);
  Tensors();
  Symbols();
  Loops();
  for (size_t i = 0; i < planned_.size(); ++i) Arguments(planned_[i], draft_.launches[i]);
  draft_.variables = variables_->Finish(&draft_.constants);
  DropUntied();
  DropVariables();
  Constraints();
  FindOutput();
  SetSizeValues(draft_);
  ObeyConditions();
  CompareAllocations();
  LowerStarts();
  LowerSizes();
  RoundSizes(draft_, Divided());
  RaiseSizes();
  SetSizeRanges(draft_, Divided());
  ObeyConditions();
  LimitRanges();
  SetLeastBytes(draft_);
  Remarks();
  return std::move(draft_);
}

void Drafting::Files() {
  for (size_t i = 1; i < model_.files.size(); ++i) draft_.files.push_back(model_.files[i]->path);
  static const auto& libraries = *new std::map<std::string, std::string>{
      {"cub/", "cub"},         {"thrust/", "thrust"}, {"cuda/", "libcudacxx"},
      {"cutlass/", "cutlass"}, {"cute/", "cutlass"},  {"cooperative_groups", "cooperative_groups"}};
  for (const std::string& header : model_.includes) {
    // These have host functions, which NVRTC refuses; of CUB, what one block or warp does has none.
    const bool of_device = absl::StartsWith(header, "cub/block/") || absl::StartsWith(header, "cub/warp/") ||
                           absl::StartsWith(header, "cub/thread/");
    const bool with_host = absl::StartsWith(header, "thrust/") || (absl::StartsWith(header, "cub/") && !of_device);
    if (draft_.nvcc.empty() && with_host)
      draft_.nvcc = absl::StrCat("<", header, "> has host functions, which NVRTC refuses");
    for (const auto& [prefix, library] : libraries) {
      if (absl::StartsWith(header, prefix) &&
          std::find(draft_.include.begin(), draft_.include.end(), library) == draft_.include.end()) {
        draft_.include.push_back(library);
      }
    }
  }
}

std::vector<const SourceFunction*> Drafting::Kernels() const {
  std::vector<const SourceFunction*> kernels;
  for (const PlannedKernel& planned : planned_) {
    if (std::find(kernels.begin(), kernels.end(), planned.kernel) == kernels.end()) kernels.push_back(planned.kernel);
  }
  return kernels;
}

std::vector<const KernelBody*> Drafting::Bodies() const {
  std::vector<const KernelBody*> bodies;
  for (const PlannedKernel& planned : planned_) bodies.push_back(&planned.body);
  return bodies;
}

std::string Drafting::FreeVariableName(const std::string& wanted) {
  std::string name = wanted;
  while (names_.contains(name) || words_.contains(name)) {
    name = name == wanted ? absl::StrCat("TUNE_", wanted) : name + "_2";
  }
  return FreeName(name);
}

void Drafting::Constraints() {
  for (const DraftLaunch& launch : draft_.launches) {
    // A variable of its own has only values that a block can have.
    if (launch.block.size() == 1 && IsName(launch.block[0])) continue;
    std::vector<std::string> factors;
    for (const std::string& extent : launch.block)
      factors.push_back(IsName(extent) || NumberIn(extent) ? extent : absl::StrCat("(", extent, ")"));
    const std::string product = absl::StrJoin(factors, " * ");
    const absl::StatusOr<std::set<std::string>> names = NamesIn(product);
    const bool varies =
        names.ok() && std::any_of(draft_.variables.begin(), draft_.variables.end(),
                                  [&](const DraftVariable& variable) { return names->contains(variable.name); });
    std::vector<std::string> bounds = {absl::StrCat(product, " <= 1024")};
    if (absl::StrContains(product, "floor(")) bounds.push_back(absl::StrCat(product, " >= 1"));  // BM / WM may be 0
    for (const std::string& bound : bounds) {
      if (varies && std::find(draft_.constraints.begin(), draft_.constraints.end(), bound) == draft_.constraints.end())
        draft_.constraints.push_back(bound);
    }
  }
}

std::vector<const HostLaunch*> Drafting::LaunchesTaken() const {
  std::vector<const HostLaunch*> taken;
  for (const PlannedKernel& planned : planned_) {
    if (planned.launch != nullptr) taken.push_back(planned.launch);
  }
  return taken;
}

void Drafting::BindTemplates(PlannedKernel& planned) {
  const std::vector<TemplateParameter>& parameters = planned.kernel->templates;
  for (size_t i = 0; i < parameters.size(); ++i) {
    std::string argument = parameters[i].fallback;
    if (planned.launch != nullptr && i < planned.launch->template_arguments.size()) {
      argument = planned.launch->template_arguments[i];
    }
    if (parameters[i].is_type) {
      argument = TypeArgument(planned, parameters[i].name, argument);
    } else {
      argument = WithTypes(planned, argument);
      // An enumerator that the host's caller passes.
      const std::string passed = PassedTemplate(argument, planned);
      if (IsName(passed) && passed != "true" && passed != "false") argument = passed;
      // Config::kThreads has no meaning outside of the host function.
      if (planned.launch != nullptr && absl::StrContains(argument, "::")) {
        std::optional<std::string> text = ClassNumber(argument, *planned.launch);
        if (text) argument = *std::move(text);
      }
    }
    planned.templates[parameters[i].name] = argument;
  }
}

std::optional<std::string> Drafting::ClassNumber(const std::string& argument, const HostLaunch& launch) const {
  const std::vector<CppToken> tokens = CppTokens(argument);
  const std::optional<CppExpression> e = ParseCppExpression(tokens, 0, tokens.size());
  if (!e) return std::nullopt;
  const CppExpression written = WithClassConstants(
      *e, model_, [&](const std::string& name) { return TypeMeant(name, *launch.host, launch.host_templates); });
  const std::optional<int64_t> value = ConstantValue(Resolved(written, launch.values), ConstantValues(model_));
  return value ? std::optional(absl::StrCat(*value)) : std::nullopt;
}

std::string Drafting::WithTypes(const PlannedKernel& planned, const std::string& argument) {
  const std::vector<CppToken> tokens = CppTokens(argument);
  if (tokens.size() < 2 && (tokens.empty() || model_.Find(argument) == nullptr)) return argument;
  std::string text;
  for (size_t i = 0; i < tokens.size(); ++i) {
    std::string word(tokens[i].text);
    const bool qualified = i > 0 && tokens[i - 1].Is("::");
    if (tokens[i].IsWord() && !qualified) {
      if (IsOpenType(planned, word)) {
        word = TypeArgument(planned, word, word);
      } else if (const SourceFunction* function = model_.Find(word); function != nullptr && !function->kernel) {
        word = function->qualified;  // in an entry a name of a namespace needs it
      }
    }
    const bool blank = (i > 0 && tokens[i - 1].Is(",")) || (i > 0 && tokens[i].kind != CppToken::Kind::kPunctuation &&
                                                            tokens[i - 1].kind != CppToken::Kind::kPunctuation);
    absl::StrAppend(&text, blank ? " " : "", word);
  }
  return text;
}

bool Drafting::IsOpenType(const PlannedKernel& planned, const std::string& name) const {
  if (name == "scalar_t") return true;
  const SourceFunction* host = planned.launch == nullptr ? nullptr : planned.launch->host;
  return host != nullptr && std::any_of(host->templates.begin(), host->templates.end(),
                                        [&](const TemplateParameter& own) { return own.is_type && own.name == name; });
}

std::string Drafting::TypeArgument(const PlannedKernel& planned, const std::string& parameter,
                                   const std::string& given) {
  std::string argument = given;
  // using query_t = scalar_t; using acc_t = at::acc_type<scalar_t, true>; in the host function.
  for (int step = 0; step < 8 && !ElementTypeOf(argument); ++step) {
    const std::string alias = AliasOf(argument);
    if (absl::StrContains(alias, "acc_type") || absl::StrContains(alias, "opmath")) return "float";
    if (alias.empty() || alias == argument) break;
    argument = alias;
  }
  if (ElementTypeOf(argument)) return argument;
  if (planned.launch != nullptr) {
    const auto passed = planned.launch->host_templates.find(argument);
    if (passed != planned.launch->host_templates.end() && passed->second != argument) return passed->second;
  }
  // A name that nothing declares is the argument of a macro that dispatches: DISPATCH(type, query_t, [&] { ... })
  const bool declared = model_.record_bytes.contains(argument) || !IsName(argument) ||
                        model_.Find(argument) != nullptr || !absl::EndsWith(argument, "_t") ||
                        (!model_.missing.empty() && (planned.launch == nullptr || planned.launch->dispatch.empty()));
  // What only the host's variables tell: typename std::remove_pointer<decltype(x)>::type
  const bool of_host = absl::StrContains(argument, "decltype");
  const bool open =
      argument.empty() || of_host || IsOpenType(planned, argument) || (planned.launch != nullptr && !declared);
  if (!open) return WithTypes(planned, argument);
  const std::string chosen = HasWord(argument, {"fp8"})                                       ? "__nv_fp8_e4m3"
                             : HasWord(parameter, {"index", "idx", "indtype", "ids"})         ? "int"
                             : planned.launch != nullptr && planned.launch->dispatch == "int" ? "int"
                                                                                              : "float";
  const std::string remark = absl::StrCat(planned.kernel->name, "<", parameter, ">: ", chosen,
                                          " was chosen for the type; change it in `entry` and in the tensors' types");
  if (std::find(draft_.remarks.begin(), draft_.remarks.end(), remark) == draft_.remarks.end())
    draft_.remarks.push_back(remark);
  return chosen;
}

std::vector<std::string> Drafting::Divided() const {
  std::vector<std::string> texts;
  const auto add = [&](const CppExpression& e, const PlannedKernel& planned) {
    if (std::optional<std::string> text =
            Translate(e, model_, [&](const CppExpression& leaf) { return KernelLeaf(leaf, planned); })) {
      texts.push_back(*std::move(text));
    }
  };
  for (const PlannedKernel& planned : planned_) {
    for (const auto& [name, bound] : planned.body.bounds) add(bound, planned);
    for (const auto& [name, value] : planned.body.definitions) add(value, planned);
  }
  return texts;
}

void Drafting::Remarks() {
  for (const std::string& header : model_.missing) {
    draft_.remarks.push_back(
        absl::StrCat("#include \"", header, "\" was not found: copy it into this folder and add it to `files`"));
  }
}

absl::StatusOr<Draft> MakeDraft(const SourceModel& model, const std::string& entry) {
  return Drafting(model).Run(entry);
}

}  // namespace pawl
