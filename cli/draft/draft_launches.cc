// [[launch]] tables: entries, geometry and conditions (declared in drafting.h).
#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/expression/expression.h"
#include "cli/draft/drafting.h"
#include "cli/draft/read/class_constants.h"
#include "cli/draft/read/constants.h"
#include "cli/draft/read/translation.h"
#include "cli/draft/shapes.h"
#include "kernels/source/cluster_use.h"

namespace pawl {
namespace {

using Kind = CppExpression::Kind;

constexpr int64_t kResidentSize = 16384;  // elements of a cooperative grid with a thread for each

}  // namespace

std::optional<std::string> Drafting::HostLeaf(const CppExpression& e, const PlannedKernel& planned, bool may_add) {
  const std::string text = CppText(e);
  // The loop's variable means nothing outside of the loop.
  if (planned.launch->loop && text == planned.launch->loop->index) return std::nullopt;
  if (planned.launch->first_round.contains(text) && !planned.launch->values.contains(text)) return std::nullopt;
  if (absl::StrContains(text, "multiProcessorCount") || absl::StrContains(text, "num_sms") ||
      absl::StrContains(text, "numSMs") || absl::StrContains(text, "sm_count") || text == "sms" || text == "num_sm") {
    return "SM_COUNT";
  }
  if (const auto known = size_of_.find(text); known != size_of_.end()) return known->second;
  if (e.kind == Kind::kCall && e.parts[0].IsName("sizeof") && e.parts.size() == 2)
    return SizeOf(e.parts[1].text, planned);
  if (e.kind == Kind::kName) {
    if (!variables_->ValuesOf(e.text).empty()) return e.text;
    if (std::optional<std::string> variable = variables_->NameOf(e.text)) return variable;
    const std::string root = RootOf(e, planned.launch->values);
    for (const std::string& key : {root, SizeKey(root, planned.launch->values)}) {
      if (const auto known = size_of_.find(key); known != size_of_.end()) return known->second;
    }
    if (const std::optional<int64_t> worth = WorthOf(e.text, planned.launch->values)) return absl::StrCat(*worth);
    for (const TemplateParameter& own : planned.launch->host->templates) {
      if (own.name == e.text && !own.is_type) return variables_->AddTemplate(own, "", PassedTemplate(e.text, planned));
    }
  }
  if (!may_add) {
    const std::optional<int64_t> passed = e.kind == Kind::kName ? Passed(text, planned) : std::nullopt;
    if (passed) return absl::StrCat(*passed);
    return e.kind == Kind::kName ? PassedReal(text, planned) : std::nullopt;
  }
  if (e.kind == Kind::kName) {
    // Of a class: what it is worth, only the compiler knows; of the runtime: only the GPU.
    if (absl::StrContains(text, "::") || absl::StrContains(text, "Occupancy")) return std::nullopt;
    if (std::optional<std::string> variable = variables_->AddLaunchParameter(text, Passed(text, planned)))
      return variable;
    const auto value = planned.launch->values.find(text);
    const bool made = value != planned.launch->values.end() && value->second.parts.size() == 1;
    return AddSize(SizeKey(text, planned.launch->values), text, Passed(text, planned),
                   made ? absl::StrCat("is ", CppText(value->second.parts[0])) : "only the launch uses it");
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

std::optional<std::string> Drafting::SizeOf(const std::string& type, const PlannedKernel& planned) const {
  SourceType named;
  named.element = type;
  std::optional<ElementType> element = TypeOf(named, planned);
  for (const TemplateParameter& own : planned.launch->host->templates) {
    if (!element && own.is_type && own.name == type) element = ElementTypeOf("float");
  }
  if (!element && type == "scalar_t") element = ElementTypeOf("float");
  if (const auto record = model_.record_bytes.find(type); !element && record != model_.record_bytes.end())
    return record->second > 0 ? std::optional(absl::StrCat(record->second)) : std::nullopt;
  if (!element) return std::nullopt;
  return absl::StrCat(BytesOfType(element->type) * element->width);
}

bool Drafting::IsCountOfRows(const CppExpression& e) {
  if (e.kind == Kind::kCast) return IsCountOfRows(e.parts[0]);
  if (e.kind != Kind::kBinary || e.text != "/" || ConstantValue(e.parts[1], {})) return false;
  const std::optional<std::string> over = TensorCall(e.parts[0]);
  return over && absl::StrContains(*over, "numel");
}

std::map<std::string, bool> Drafting::Kept(const PlannedKernel& planned) const {
  std::map<std::string, bool> kept;
  for (const auto& [key, size] : size_of_) kept[key] = true;
  for (const std::string& name : variables_->kept()) kept[name] = true;
  // rows = x.numel() / x.size(-1) is a size of its own: two independent ones would not make whole rows.
  for (const auto& [name, value] : planned.launch->values) {
    if (value.parts.size() == 1 && IsCountOfRows(value.parts[0])) kept[name] = true;
  }
  return kept;
}

std::optional<std::string> Drafting::HostText(const CppExpression& e, const PlannedKernel& planned,
                                              std::string* missing, bool may_add) {
  const HostLaunch& host = *planned.launch;
  const std::map<std::string, bool> kept = Kept(planned);
  CppExpression resolved = Resolved(e, host.values, kept);
  resolved = WithClassConstants(
      resolved, model_, [&](const std::string& name) { return TypeMeant(name, *host.host, host.host_templates); });
  resolved = Resolved(resolved, host.values, kept);
  return Translate(
      resolved, model_, [&](const CppExpression& leaf) { return HostLeaf(leaf, planned, may_add); }, missing);
}

DraftLaunch Drafting::Launch(PlannedKernel& planned) {
  DraftLaunch launch;
  launch.entry = EntryText(planned, launch);
  if (planned.launch == nullptr) {
    GuessGeometry(planned, launch);
  } else {
    HostGeometry(planned, launch);
  }
  launch.cooperative = planned.body.grid_sync || (planned.launch != nullptr && planned.launch->cooperative);
  const ClusterUse use = FindClusterUse(planned.kernel->file->tokens, planned.kernel->name_at, planned.kernel->body);
  for (const std::string& dim : launch.cluster.empty() ? use.dims : std::vector<std::string>()) {
    const std::vector<CppToken> tokens = CppTokens(dim);
    const std::optional<CppExpression> e = ParseCppExpression(tokens, 0, tokens.size());
    const std::optional<int64_t> blocks = e ? ConstantValue(*e, ConstantValues(model_)) : std::nullopt;
    launch.cluster.push_back(absl::StrCat(blocks.value_or(1)));
    if (!blocks) launch.todos.push_back(absl::StrCat("cluster: what is ", dim, " of __cluster_dims__?"));
  }
  // The kernel itself, or a device function that it calls.
  const auto uses_cluster = [&](const SourceFunction& own) {
    const bool called =
        std::any_of(planned.body.called.begin(), planned.body.called.end(), [&](const std::string& name) {
          return name == own.name || absl::EndsWith(name, absl::StrCat("::", own.name));
        });
    return own.device && called && FindClusterUse(own.file->tokens, own.name_at, own.body).line > 0;
  };
  const bool uses = use.line > 0 || std::any_of(model_.functions.begin(), model_.functions.end(), uses_cluster);
  if (uses && launch.cluster.empty()) {
    launch.cluster = {"2"};
    launch.todos.push_back("the kernel uses clusters: say how many blocks one has");
  }
  return launch;
}

std::string Drafting::PassedTemplate(const std::string& name, const PlannedKernel& planned) const {
  if (planned.launch == nullptr) return "";
  const auto found = planned.launch->host_templates.find(name);
  return found == planned.launch->host_templates.end() ? "" : found->second;
}

std::optional<int64_t> Drafting::Passed(const std::string& name, const PlannedKernel& planned) const {
  if (planned.launch == nullptr) return std::nullopt;
  const auto found = planned.launch->host_numbers.find(name);
  return found == planned.launch->host_numbers.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::string> Drafting::PassedReal(const std::string& name, const PlannedKernel& planned) const {
  const auto found = planned.launch->host_reals.find(name);
  if (found == planned.launch->host_reals.end()) return std::nullopt;
  const std::vector<CppToken> tokens = CppTokens(found->second);
  const std::optional<CppExpression> number = ParseCppExpression(tokens, 0, tokens.size());
  if (!number) return std::nullopt;
  return Translate(*number, model_, [](const CppExpression&) { return std::nullopt; });
}

std::optional<bool> Drafting::Truth(const std::string& argument) const {
  const std::vector<CppToken> tokens = CppTokens(argument);
  const std::optional<CppExpression> e = ParseCppExpression(tokens, 0, tokens.size());
  const std::optional<int64_t> value = e ? ConstantValue(*e, ConstantValues(model_)) : std::nullopt;
  return value ? std::optional(*value != 0) : std::nullopt;
}

std::string Drafting::EntryText(const PlannedKernel& planned, DraftLaunch& launch) {
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
    const bool is_bool = parameter.kind == "bool" || parameter.kind == "const bool";
    // sizeof(T) == 4
    if (is_bool && !IsName(argument)) {
      if (const std::optional<bool> known = Truth(argument)) argument = *known ? "true" : "false";
    }
    if (parameter.is_type && IsName(argument) && !ElementTypeOf(argument) && AliasOf(argument).empty() &&
        !model_.record_bytes.contains(argument)) {
      launch.todos.push_back(
          absl::StrCat("entry: ", argument, " is not declared in the source; say which type ", parameter.name, " is"));
    }
    const std::string passed = PassedTemplate(argument, planned);
    arguments.push_back(parameter.is_type ? argument : variables_->AddTemplate(parameter, argument, passed));
    if (is_bool && passed.empty() && argument != "true" && argument != "false" &&
        (arguments.back() == "true" || arguments.back() == "false")) {
      launch.todos.push_back(absl::StrCat(
          "entry: ", parameter.name, " is a guess",
          argument.empty() ? ": no launch says what it is" : absl::StrCat(": the host passes `", argument, "`")));
    }
    if (parameter.kind == "function" && argument.empty()) {
      arguments.back() = parameter.name;
      launch.todos.push_back(absl::StrCat("entry: say which function ", parameter.name, " is"));
    }
    const bool chosen = planned.launch != nullptr &&
                        std::any_of(planned.launch->host_templates.begin(), planned.launch->host_templates.end(),
                                    [&](const auto& bound) { return bound.second == argument; });
    if (!chosen && parameter.kind != "function" && !parameter.is_type && arguments.back() == argument &&
        IsName(argument) && argument != "true" && argument != "false" && model_.FindConstant(argument) == nullptr &&
        !variables_->NameOf(argument)) {
      launch.todos.push_back(
          absl::StrCat("entry: ", argument, " is a name of the host's; say what ", parameter.name, " is"));
    }
  }
  return absl::StrCat(kernel.qualified, "<", absl::StrJoin(arguments, ", "), ">");
}

void Drafting::HostGeometry(PlannedKernel& planned, DraftLaunch& launch) {
  const HostLaunch& host = *planned.launch;
  const auto extents = [&](const std::vector<CppExpression>& from, const char* what, std::vector<std::string>& to) {
    for (const CppExpression& extent : from) {
      std::string missing;
      std::optional<std::string> text = HostText(extent, planned, &missing);
      if (!text) {
        launch.todos.push_back(absl::StrCat(what, ": `", CppText(extent), "` of line ", host.line, " uses ", missing,
                                            ", which has no meaning here"));
      }
      // As many blocks as are resident, where they must be: one for each multiprocessor is not too many.
      const bool resident = &to == &launch.grid && to.empty() && (host.cooperative || planned.body.grid_sync);
      to.push_back(text.value_or(resident ? "SM_COUNT" : "1"));
    }
    while (to.size() > 1 && to.back() == "1") to.pop_back();
  };
  extents(host.block, "block", launch.block);
  extents(host.grid, "grid", launch.grid);
  extents(host.cluster, "cluster", launch.cluster);
  const std::vector<std::string> numbers = launch.block;
  TieGeometry(planned, launch);
  if (host.shared) Shared(planned, numbers, launch);
  NoteFixed(planned, launch);
  Loop(planned, launch);
  When(planned, launch);
  launch.todos.push_back(absl::StrCat("geometry from line ", host.line, " of ", host.host->name));
}

void Drafting::When(const PlannedKernel& planned, DraftLaunch& launch) {
  std::vector<std::string> conditions;
  for (const auto& [condition, negative] : planned.launch->conditions) {
    std::optional<std::string> text = HostText(condition, planned, nullptr, false);
    // What always holds says nothing.
    if (const std::optional<bool> known = text ? Truth(*text) : std::nullopt; known && *known != negative) continue;
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
    launch.only_where = absl::StrJoin(conditions, " && ");
    launch.todos.push_back(absl::StrCat("the host launches it where ", launch.only_where));
  }
}

std::optional<std::string> Drafting::KernelLeaf(const CppExpression& e, const PlannedKernel& planned) const {
  if (e.kind == Kind::kMember || e.kind == Kind::kSubscript) {
    const auto size = planned.sizes.find(CppText(e));
    return size == planned.sizes.end() ? std::nullopt : std::optional(size->second);
  }
  if (e.kind != Kind::kName) return std::nullopt;
  if (absl::StrContains(e.text, "::")) {
    const CppExpression written = WithClassConstants(
        e, model_, [&](const std::string& name) { return TypeMeant(name, *planned.kernel, planned.templates); });
    std::optional<std::string> text = Translate(written, model_, [&](const CppExpression& leaf) {
      return absl::StrContains(leaf.text, "::") ? std::nullopt : KernelLeaf(leaf, planned);
    });
    if (text) return NumberIn(*text) ? *text : absl::StrCat("(", *text, ")");
  }
  if (const auto size = planned.sizes.find(e.text); size != planned.sizes.end()) return size->second;
  if (const SourceConstant* constant = model_.FindConstant(e.text)) return absl::StrCat(constant->value);
  if (const auto bound = planned.templates.find(e.text); bound != planned.templates.end()) {
    if (NumberIn(bound->second)) return bound->second;
    if (const SourceConstant* constant = model_.FindConstant(bound->second)) return absl::StrCat(constant->value);
  }
  return std::nullopt;
}

void Drafting::ResidentGrid(const PlannedKernel& planned, DraftLaunch& launch) {
  // i += gridDim.x * blockDim.x, i += grid.size()
  const std::vector<CppToken>& tokens = planned.kernel->file->tokens;
  const size_t end = ClosingBracket(tokens, planned.kernel->body);
  bool loops = planned.body.words.contains("gridDim");
  for (size_t i = planned.kernel->body; i + 2 < end; ++i) {
    loops = loops || (tokens[i].Is(".") && (tokens[i + 1].Is("size") || tokens[i + 1].Is("num_threads")));
  }
  if (loops) {
    launch.grid = {absl::StrCat("min(", launch.grid[0], ", SM_COUNT)")};
    launch.todos.push_back(
        "grid: all blocks of a cooperative launch must fit on the GPU at once, and the kernel's loop takes the rest; "
        "more than one block for each SM may fit");
    return;
  }
  launch.todos.push_back(
      "grid: all blocks of a cooperative launch must fit on the GPU at once, and the kernel has no loop over what is "
      "left: keep the sizes so small that they do");
  for (DraftSize& size : draft_.sizes) {
    if (absl::StrContains(launch.grid[0], size.name) && size.main == 0) {
      size.main = kResidentSize;
      absl::StrAppend(&size.todo, "; small, so that the whole grid fits on the GPU at once");
    }
  }
}

Drafting::KernelUse Drafting::UseOf(const SourceFunction& kernel) const {
  KernelUse use;
  for (const std::unique_ptr<SourceText>& file : model_.files) {
    const std::vector<CppToken>& tokens = file->tokens;
    for (size_t i = 0; i + 1 < tokens.size(); ++i) {
      if (!tokens[i].Is(kernel.name) || (file.get() == kernel.file && i == kernel.name_at)) continue;
      size_t behind = i + 1;
      if (tokens[behind].Is("<")) behind = SkipTemplateArguments(tokens, behind, tokens.size());
      if (behind < tokens.size() && tokens[behind].Is("<<<")) return {tokens[i].line, true};
      for (size_t back = 1; back < 24 && back <= i && !tokens[i - back].Is(";"); ++back) {
        const bool named = tokens[i - back].text.find("Launch") != std::string_view::npos;
        if (named && use.line == 0) use.line = tokens[i].line;
      }
    }
  }
  return use;
}

void Drafting::GuessGeometry(PlannedKernel& planned, DraftLaunch& launch) {
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
  const KernelUse use = UseOf(*planned.kernel);
  launch.todos.push_back(
      use.line == 0 ? "the source has no launch of this kernel: grid and block are guesses"
                    : absl::StrCat(use.is_launch ? absl::StrCat("the launch in line ", use.line, " is not understood")
                                                 : absl::StrCat("line ", use.line, " may launch this kernel, in a way ",
                                                                "that is not understood"),
                                   ": grid, block and arguments are guesses"));
  if (planned.body.grid_sync) ResidentGrid(planned, launch);
  if (planned.body.words.contains("extern")) {
    launch.shared = "0";
    launch.todos.push_back("the kernel has an extern __shared__ array: say how many bytes it needs");
  }
}

}  // namespace pawl
