// Integer parameters as sizes, and the types of all parameters (declared in drafting.h).
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
#include "cli/draft/shapes.h"

namespace pawl {
namespace {

using Kind = CppExpression::Kind;

// {x, n, {1, 2, 3}} as x, n, 1, 2, 3: the fields of an array, or of a struct in the struct.
void Leaves(const CppExpression& e, std::vector<const CppExpression*>& leaves) {
  if (e.kind != Kind::kList) {
    leaves.push_back(&e);
    return;
  }
  for (const CppExpression& part : e.parts) Leaves(part, leaves);
}

}  // namespace

std::string Drafting::FreeName(const std::string& wanted) {
  std::string name;
  for (const char c : wanted) name += absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' ? c : '_';
  while (!name.empty() && name.back() == '_') name.pop_back();
  if (name.empty() || !IsName(name)) name = absl::StrCat("p_", name);
  while (names_.contains(name)) name += "_2";
  names_.insert(name);
  return name;
}

std::string Drafting::AddSize(const std::string& key, const std::string& wanted, std::optional<int64_t> main,
                              std::string todo) {
  if (const auto known = size_of_.find(key); known != size_of_.end()) {
    for (DraftSize& own : draft_.sizes) {
      if (own.name != known->second || !main || *main == own.main) continue;
      if (own.main > 0) {
        absl::StrAppend(&own.todo, own.todo.empty() ? "" : "; ", "another launch has ", *main,
                        " for it: which is right?");
      } else {
        own.main = *main;
        own.todo = todo;  // why it had no value says nothing of this one
      }
    }
    return known->second;
  }
  DraftSize size;
  size.name = FreeName(wanted);
  size.main = main.value_or(0);
  size.todo = std::move(todo);
  size.unknown = absl::StartsWith(key, "?") || key == "elements";
  size_of_[key] = size.name;
  draft_.sizes.push_back(size);
  return draft_.sizes.back().name;
}

void Drafting::Numbers(PlannedKernel& planned) {
  // Strides are made of sizes: they come last.
  for (const bool strides : {false, true}) {
    const auto number = [&](const SourceParameter& parameter, const CppExpression* argument) {
      const bool stride = argument != nullptr && absl::StrContains(RootText(*argument, planned), ".stride(");
      if (stride == strides) Number(parameter, argument, planned);
    };
    const auto named = [&](const SourceParameter& parameter, const CppExpression* argument) {
      // g.nx of the host is the size that the kernel's field is.
      if (argument == nullptr || argument->kind != Kind::kName) return;
      for (const SourceParameter& field : parameter.fields) {
        const auto size = planned.sizes.find(absl::StrCat(parameter.name, ".", field.name));
        if (size != planned.sizes.end()) size_of_.emplace(absl::StrCat(argument->text, ".", field.name), size->second);
      }
    };
    ForEachParameter(planned, number);
    ForEachParameter(planned, named);
  }
}

void Drafting::ForEachParameter(const PlannedKernel& planned,
                                const std::function<void(const SourceParameter&, const CppExpression*)>& visit) {
  for (size_t i = 0; i < planned.kernel->parameters.size(); ++i) {
    const SourceParameter& parameter = planned.kernel->parameters[i];
    const CppExpression* argument =
        planned.launch != nullptr && i < planned.launch->arguments.size() ? &planned.launch->arguments[i] : nullptr;
    visit(parameter, argument);
    for (size_t k = 0; k < parameter.fields.size(); ++k) {
      SourceParameter field = parameter.fields[k];
      field.name = absl::StrCat(parameter.name, ".", field.name);
      visit(field, FieldOf(parameter, k, argument, planned));
    }
  }
}

std::string Drafting::RootText(const CppExpression& argument, const PlannedKernel& planned) {
  const std::string root = RootOf(argument, planned.launch->values);
  const auto value = planned.launch->values.find(root);
  return value != planned.launch->values.end() && value->second.parts.size() == 1 ? CppText(value->second.parts[0])
                                                                                  : root;
}

std::optional<std::string> Drafting::TensorCall(const CppExpression& e) {
  if (e.kind == Kind::kCast) return TensorCall(e.parts[0]);
  if (e.kind != Kind::kCall || e.parts[0].kind != Kind::kMember) return std::nullopt;
  const std::string& method = e.parts[0].text;
  if (method != "size" && method != "numel" && method != "length") return std::nullopt;
  return CppText(e);
}

std::string Drafting::SizeKey(const std::string& root, const HostValues& values) {
  const auto value = values.find(root);
  if (value == values.end() || value->second.parts.size() != 1) return root;
  return TensorCall(value->second.parts[0]).value_or(root);
}

void Drafting::Number(const SourceParameter& parameter, const CppExpression* argument, PlannedKernel& planned) {
  const std::optional<ElementType> type = TypeOf(parameter.type, planned);
  if (parameter.type.pointers > 0 || parameter.type.record || !type || !IsWholeType(type->type)) return;
  if (argument == nullptr) {
    LoneNumber(parameter, planned);
  } else {
    GivenNumber(parameter, *argument, planned);
  }
}

const CppExpression* Drafting::FieldOf(const SourceParameter& parameter, size_t field, const CppExpression* argument,
                                       const PlannedKernel& planned) {
  if (argument == nullptr || argument->kind != Kind::kName) return nullptr;
  const HostValues& values = planned.launch->values;
  const auto assigned = values.find(absl::StrCat(argument->text, ".", parameter.fields[field].name));
  if (assigned != values.end() && assigned->second.parts.size() == 1) return &assigned->second.parts[0];
  const auto made = values.find(argument->text);
  if (made == values.end()) return nullptr;
  std::vector<const CppExpression*> parts;
  for (const CppExpression& part : made->second.parts) Leaves(part, parts);
  return parts.size() == parameter.fields.size() ? parts[field] : nullptr;
}

std::string Drafting::LastName(const std::string& name) {
  const size_t dot = name.find('.');  // behind it, p.pos.x is pos.x
  return dot == std::string::npos ? name : name.substr(dot + 1);
}

bool Drafting::IsFlagName(const std::string& name) {
  return HasWord(name, {"causal", "is_", "use_", "has_", "flag", "seed", "offset", "step", "mode", "debug"});
}

void Drafting::LoneNumber(const SourceParameter& parameter, PlannedKernel& planned) {
  if (IsFlagName(parameter.name) || HasWord(parameter.name, {"stride", "pitch"})) return;
  if (absl::StrContains(parameter.name, "[") || parameter.type.bytes < 4) return;  // one of a table, or too small
  planned.sizes[parameter.name] =
      AddSize(parameter.name, LastName(parameter.name), std::nullopt, "no launch in the source says how large it is");
}

std::string Drafting::RootOf(const CppExpression& argument, const HostValues& values) {
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

std::optional<int64_t> Drafting::WorthOf(const std::string& root, const HostValues& values) const {
  const std::map<std::string, int64_t> constants = ConstantValues(model_);
  const auto found = values.find(root);
  if (found != values.end() && found->second.parts.size() == 1) {
    return LikelyValue(Resolved(found->second.parts[0], values), constants);
  }
  const auto constant = constants.find(root);
  return constant == constants.end() ? std::nullopt : std::optional(constant->second);
}

std::string Drafting::Contradictions(const std::string& name, int64_t worth, const PlannedKernel& planned) const {
  std::vector<std::string> others;
  for (const SourceConstant& constant : model_.constants) {
    if (constant.name == name && !constant.local && constant.value != worth) {
      others.push_back(absl::StrCat(constant.file->path, ":", constant.line, " has ", constant.value));
    }
  }
  const auto passed = planned.launch->other_numbers.find(name);
  if (passed != planned.launch->other_numbers.end() && !planned.launch->values.contains(name)) {
    std::vector<std::string> numbers;
    for (const int64_t other : passed->second) {
      if (other != worth) numbers.push_back(numbers.size() < 3 ? absl::StrCat(other) : "…");
    }
    if (numbers.size() > 4) numbers.resize(4);
    if (!numbers.empty()) {
      others.push_back(absl::StrCat(numbers.size() == 1 ? "another caller passes " : "other callers pass ",
                                    absl::StrJoin(numbers, ", ")));
    }
  }
  return others.empty() ? "" : absl::StrCat(absl::StrJoin(others, ", "), ": which is right?");
}

void Drafting::GivenNumber(const SourceParameter& parameter, const CppExpression& argument, PlannedKernel& planned) {
  const HostLaunch& launch = *planned.launch;
  const std::string root = RootOf(argument, launch.values);
  if (launch.first_round.contains(root) || (launch.loop && root == launch.loop->index)) return;  // of a loop
  if (IsFlagName(parameter.name)) return;                                                        // a scalar
  if (std::optional<std::string> stride = StrideText(argument, planned)) {
    planned.sizes[parameter.name] = *stride;
    return;
  }
  if (argument.kind == Kind::kNumber && HasWord(parameter.name, {"stride", "pitch"})) return;
  if (argument.kind == Kind::kNumber || argument.kind == Kind::kPrefix) {
    planned.sizes[parameter.name] = AddSize(absl::StrCat(parameter.name, "=", CppText(argument)),
                                            LastName(parameter.name), ConstantValue(argument, {}), "");
    return;
  }
  const auto value = launch.values.find(root);
  // int blocks = grid.x * grid.y; follows the launch, and is no size of its own.
  if (value != launch.values.end() && value->second.parts.size() == 1 && value->second.parts[0].kind == Kind::kBinary &&
      IsMadeOfGeometry(value->second.parts[0], launch)) {
    return;
  }
  const bool made = value != launch.values.end() && value->second.parts.size() == 1 &&
                    value->second.parts[0].kind == Kind::kBinary && IsMadeOfSizes(value->second.parts[0], launch);
  const bool bare = !made && (root == CppText(argument) || launch.values.contains(root) ||
                              argument.kind == Kind::kName || argument.kind == Kind::kCast);
  const bool simple = bare && (argument.kind == Kind::kName || argument.kind == Kind::kCast ||
                               (argument.kind == Kind::kCall && argument.parts[0].kind == Kind::kMember) ||
                               argument.kind == Kind::kMember || argument.kind == Kind::kSubscript);
  if (!simple) return;  // an expression: a scalar, once all sizes are known
  std::optional<int64_t> worth = WorthOf(root, launch.values);
  if (!worth && argument.kind == Kind::kMember) {
    worth = LikelyValue(Resolved(argument, launch.values), ConstantValues(model_));
  }
  if (!worth && !launch.values.contains(root)) worth = Passed(root, planned);
  const std::string size = AddSize(SizeKey(root, launch.values), SizeNameFor(parameter, root), worth,
                                   worth ? Contradictions(root, *worth, planned) : "guessed by its name");
  planned.sizes[parameter.name] = size;
  size_of_.emplace(root, size);
  if (absl::StrContains(RootText(argument, planned), ".stride(")) {
    for (DraftSize& own : draft_.sizes) own.stride = own.stride || own.name == size;
  }
  // d = x.size(-1) / 2: the tensor's extent follows.
  if (value != launch.values.end() && value->second.parts.size() == 1) {
    const CppExpression& made_of = value->second.parts[0];
    if (made_of.kind == Kind::kBinary && made_of.text == "/") {
      const std::optional<std::string> over = TensorCall(made_of.parts[0]);
      const std::optional<int64_t> by = ConstantValue(made_of.parts[1], ConstantValues(model_));
      if (over && by) size_of_.emplace(*over, absl::StrCat(*by, " * ", size));
    }
  }
}

bool Drafting::IsMadeOfGeometry(const CppExpression& e, const HostLaunch& launch) const {
  const auto text = [](const std::vector<CppExpression>& list) {
    return absl::StrJoin(list, ", ", [](std::string* out, const CppExpression& own) { *out += CppText(own); });
  };
  if (e.kind == Kind::kMember && e.parts[0].kind == Kind::kName) {
    const auto value = launch.values.find(e.parts[0].text);
    return value != launch.values.end() && value->second.is_dim3 &&
           std::any_of(launches_.begin(), launches_.end(), [&](const HostLaunch& other) {
             const std::string parts = text(value->second.parts);
             return other.host == launch.host && (parts == text(other.grid) || parts == text(other.block));
           });
  }
  return std::any_of(e.parts.begin(), e.parts.end(),
                     [&](const CppExpression& part) { return IsMadeOfGeometry(part, launch); });
}

bool Drafting::IsMadeOfSizes(const CppExpression& e, const HostLaunch& launch) const {
  if (ConstantValue(Resolved(e, launch.values), ConstantValues(model_))) return false;
  if (e.kind == Kind::kName) {
    const auto value = launch.values.find(e.text);
    if (value != launch.values.end()) return value->second.parts.size() == 1;
    return std::any_of(launch.host->parameters.begin(), launch.host->parameters.end(),
                       [&](const SourceParameter& parameter) { return parameter.name == e.text; }) ||
           std::any_of(launch.host->templates.begin(), launch.host->templates.end(),
                       [&](const TemplateParameter& own) { return own.name == e.text && !own.is_type; }) ||
           model_.FindConstant(e.text) != nullptr;
  }
  if (e.kind == Kind::kNumber) return true;
  if (e.kind != Kind::kBinary && e.kind != Kind::kCast) return false;
  return std::all_of(e.parts.begin(), e.parts.end(), [&](const CppExpression& part) {
    return part.kind == Kind::kNumber || ConstantValue(part, ConstantValues(model_)) || IsMadeOfSizes(part, launch);
  });
}

std::string Drafting::SizeNameFor(const SourceParameter& parameter, const std::string& root) const {
  const std::string name = LastName(parameter.name);
  // Of int shape[3] the host's names say more.
  if (absl::StrContains(name, "[") && IsName(root)) return root;
  if (parameter.type.element == "int") return name;
  if (IsName(root) && root != name) return root;
  const std::string upper = absl::AsciiStrToUpper(name);
  return upper != name ? upper : absl::StrCat(name, "_size");
}

std::optional<ElementType> Drafting::TypeOf(const SourceType& type, const PlannedKernel& planned) const {
  std::string element = type.element;
  if (const auto bound = planned.templates.find(element); bound != planned.templates.end()) element = bound->second;
  if (std::optional<ElementType> known = ElementTypeOf(element)) return known;
  return ElementTypeOf(AliasOf(element));
}

std::string Drafting::AliasOf(const std::string& name) const {
  for (const std::unique_ptr<SourceText>& file : model_.files) {
    if (std::string alias = AliasIn(file->tokens, 0, file->tokens.size(), name); !alias.empty()) return alias;
  }
  return "";
}

std::string Drafting::TypeMeant(const std::string& name, const SourceFunction& function,
                                const std::map<std::string, std::string>& templates) const {
  if (const auto bound = templates.find(name); bound != templates.end()) return bound->second;
  const std::vector<CppToken>& tokens = function.file->tokens;
  std::string alias = AliasIn(tokens, function.body, ClosingBracket(tokens, function.body), name);
  return alias.empty() ? AliasOf(name) : alias;
}

}  // namespace pawl
