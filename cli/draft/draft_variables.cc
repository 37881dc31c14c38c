#include "cli/draft/draft_variables.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/expression/expression.h"
#include "cli/draft/read/constants.h"
#include "cli/draft/read/translation.h"
#include "kernels/substitution.h"

namespace pawl {
namespace {

using Kind = CppExpression::Kind;

// All names in an expression, and in what the host's variables among them are made of.
void CollectNames(const CppExpression& e, const HostValues& values, int steps, std::set<std::string>& names) {
  if (steps > 24) return;
  if (e.kind == Kind::kName && names.insert(e.text).second) {
    if (const size_t colons = e.text.rfind("::"); colons != std::string::npos) names.insert(e.text.substr(colons + 2));
    if (const auto found = values.find(e.text); found != values.end()) {
      for (const CppExpression& part : found->second.parts) CollectNames(part, values, steps + 1, names);
    }
  }
  for (const CppExpression& part : e.parts) CollectNames(part, values, steps + 1, names);
}

bool IsIntegerKind(const std::string& kind) {
  for (const char* word : {"int", "unsigned", "size_t", "long", "short", "auto", "uint"}) {
    if (absl::StrContains(kind, word)) return true;
  }
  return false;
}

std::vector<std::string> Texts(const std::vector<int64_t>& values, bool flags) {
  std::vector<std::string> texts;
  for (const int64_t value : values) texts.push_back(flags ? (value != 0 ? "true" : "false") : absl::StrCat(value));
  return texts;
}

}  // namespace

DraftVariables::DraftVariables(const SourceModel& model, std::vector<const SourceFunction*> kernels,
                               std::vector<const KernelBody*> bodies, std::vector<const HostLaunch*> launches,
                               FreeName free_name)
    : model_(model),
      kernels_(std::move(kernels)),
      bodies_(std::move(bodies)),
      launches_(std::move(launches)),
      free_name_(std::move(free_name)) {
  for (const HostLaunch* launch : launches_) {
    for (const std::vector<CppExpression>* list : {&launch->grid, &launch->block}) {
      for (const CppExpression& e : *list) CollectNames(e, launch->values, 0, in_geometry_);
    }
    if (launch->shared) CollectNames(*launch->shared, launch->values, 0, in_geometry_);
    for (const std::string& argument : launch->template_arguments) {
      const std::vector<CppToken> tokens = CppTokens(argument);
      for (const CppToken& token : tokens) {
        if (token.IsWord()) in_geometry_.emplace(token.text);
      }
    }
  }
  HostValues constants;
  for (const SourceConstant& constant : model_.constants) {
    if (!constant.literal) constants[constant.name] = {{constant.expression}, false, ""};
  }
  for (const SourceSymbol& symbol : model_.symbols) {
    std::set<std::string> names;
    for (const CppExpression& extent : symbol.extents) CollectNames(extent, constants, 0, names);
    for (const std::string& name : names) {
      if (symbol.filled != 0 || !symbol.initialised) in_symbols_.emplace(name, symbol.name);
    }
  }
  ReadConstants();
}

bool DraftVariables::InKernels(const std::string& name) const {
  // A template parameter of the same name is another thing.
  const bool is_parameter = std::any_of(kernels_.begin(), kernels_.end(), [&](const SourceFunction* kernel) {
    return std::any_of(kernel->templates.begin(), kernel->templates.end(),
                       [&](const TemplateParameter& own) { return own.name == name; });
  });
  if (is_parameter) return false;
  return std::any_of(bodies_.begin(), bodies_.end(),
                     [&](const KernelBody* body) { return body->words.contains(name); }) ||
         std::any_of(kernels_.begin(), kernels_.end(),
                     [&](const SourceFunction* kernel) { return absl::StrContains(kernel->launch_bounds, name); });
}

void DraftVariables::ReadConstants() {
  std::set<std::string> seen;
  for (const SourceConstant& constant : model_.constants) {
    const Tunable tunable = TunableOf(constant.name, constant.value, constant.is_bool);
    if (tunable == Tunable::kNone || !constant.literal) continue;
    const bool in_kernel = InKernels(constant.name), in_geometry = in_geometry_.contains(constant.name);
    if (!in_kernel && !in_geometry) continue;
    if (const auto symbol = in_symbols_.find(constant.name); symbol != in_symbols_.end()) {
      left_out_.push_back(absl::StrCat(constant.name, " = ", constant.value_text, " in line ", constant.line, ": ",
                                       symbol->second, " has a size that depends on it"));
      continue;
    }
    if (!seen.insert(constant.name).second) {
      left_out_.push_back(absl::StrCat(constant.name, " = ", constant.value_text, " in line ", constant.line,
                                       ": the source defines this name more than once"));
      continue;
    }
    if (!in_geometry && !IsLocalTo(tunable) && !launches_.empty()) {
      left_out_.push_back(absl::StrCat(constant.name, " = ", constant.value_text, " in line ", constant.line,
                                       ": the launch does not use this name, and may depend on its value"));
      continue;
    }
    AddConstant(constant, tunable, in_kernel);
  }
}

void DraftVariables::AddConstant(const SourceConstant& constant, Tunable tunable, bool in_kernel) {
  // A constant of a host function that no kernel sees: only the geometry changes.
  const bool host_only = constant.local && !in_kernel;
  const bool given = std::any_of(launches_.begin(), launches_.end(), [&](const HostLaunch* launch) {
    return std::any_of(launch->template_arguments.begin(), launch->template_arguments.end(),
                       [&](const std::string& argument) { return absl::StrContains(argument, constant.name); });
  });
  const bool fixed = std::any_of(bodies_.begin(), bodies_.end(), [&](const KernelBody* body) {
    return !body->words.contains("blockDim") &&
           std::any_of(body->numbers.begin(), body->numbers.end(),
                       [&](const std::string& number) { return WholeNumber(number) == constant.value; });
  });
  if (host_only && tunable == Tunable::kBlock && !given && fixed) {
    left_out_.push_back(absl::StrCat(constant.name, " = ", constant.value_text, " in line ", constant.line,
                                     ": a kernel has this number itself, and does not ask for blockDim"));
    return;
  }
  std::string replaces;
  if (!host_only) {
    replaces = Replaces(constant.before, constant.value_text, constant.after);
    if (replaces.empty()) {
      left_out_.push_back(absl::StrCat(constant.name, " = ", constant.value_text, " in line ", constant.line,
                                       ": its definition is not a text that occurs once in the source"));
      return;
    }
  }
  DraftVariable& variable = Add(constant.name, tunable, constant.value,
                                absl::StrCat("values: around ", constant.value_text, " of line ", constant.line));
  variable.replaces = replaces;
  if (constant.is_bool) {
    variable.values = {"false", "true"};
    variable.start = constant.value != 0 ? "true" : "false";
  }
  // A macro of a name that the source has would change the source.
  if (host_only) {
    variable.name =
        free_name_(absl::AsciiStrToUpper(constant.name) == constant.name ? absl::StrCat("LAUNCH_", constant.name)
                                                                         : absl::AsciiStrToUpper(constant.name));
  }
  constants_[constant.name] = variable.name;
}

DraftVariable& DraftVariables::Add(const std::string& name, Tunable tunable, int64_t start, const std::string& why) {
  DraftVariable variable;
  variable.name = name;
  variable.values = Texts(ValuesToTry(tunable, start), false);
  variable.start = absl::StrCat(start);
  variable.affects = Effects(tunable);
  if (!why.empty()) variable.todos.push_back(why);
  variables_.push_back(std::move(variable));
  return variables_.back();
}

std::string DraftVariables::Replaces(const std::string& before, const std::string& value,
                                     const std::string& after) const {
  // 256u: the number is the value, the u stays.
  std::string number = value, suffix;
  while (!number.empty() && number != "true" && number != "false" &&
         absl::ascii_isalpha(static_cast<unsigned char>(number.back()))) {
    suffix.insert(suffix.begin(), number.back());
    number.pop_back();
  }
  if (number.empty() || absl::StartsWith(number, "0x") || absl::StrContains(before, "{}") ||
      absl::StrContains(after, "{}")) {
    return "";
  }
  const std::string pattern = absl::StrCat(before, "{}", suffix, after);
  size_t count = 0;
  for (const std::unique_ptr<SourceText>& file : model_.files) count += PlacesOf(pattern, number, file->text).size();
  return count == 1 ? pattern : "";
}

std::optional<std::string> DraftVariables::NameOf(const std::string& constant) const {
  const auto found = constants_.find(constant);
  return found == constants_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<std::string> DraftVariables::ValuesOf(const std::string& name) const {
  const auto found =
      std::find_if(variables_.begin(), variables_.end(), [&](const DraftVariable& own) { return own.name == name; });
  return found == variables_.end() ? std::vector<std::string>() : found->values;
}

std::vector<std::string> DraftVariables::kept() const {
  std::vector<std::string> names;
  for (const auto& [constant, variable] : constants_) names.push_back(constant);
  return names;
}

std::string DraftVariables::AddTemplate(const TemplateParameter& parameter, const std::string& argument,
                                        const std::string& passed) {
  if (std::optional<std::string> constant = NameOf(argument)) return *constant;
  // A parameter of the host's template is one variable, whatever the kernels that get it call it.
  const bool literal = NumberIn(argument) || argument == "true" || argument == "false";
  const std::string key = argument.empty()               ? parameter.name
                          : IsName(argument) && !literal ? argument
                                                         : absl::StrCat(parameter.name, "=", argument);
  if (const auto known = templates_.find(key); known != templates_.end()) return known->second;
  const bool is_bool = parameter.kind == "bool" || parameter.kind == "const bool";
  std::optional<int64_t> start = NumberIn(argument);
  if (!start && !passed.empty()) start = NumberIn(passed);
  if (!start && (passed == "true" || passed == "false")) start = passed == "true";
  if (const SourceConstant* constant = model_.FindConstant(argument); !start && constant != nullptr)
    start = constant->value;
  if (argument == "true" || argument == "false") start = argument == "true";
  const Tunable tunable = TunableOf(parameter.name, start.value_or(256), is_bool);
  // A constant of a host function has no meaning in the name of a kernel; its value has.
  if (start && tunable == Tunable::kNone) {
    const SourceConstant* constant = model_.FindConstant(argument);
    if (!passed.empty()) return passed;
    return constant != nullptr && constant->local ? absl::StrCat(*start) : argument;
  }
  // An enum's value is part of what the kernel computes.
  if (!is_bool && !IsIntegerKind(parameter.kind))
    return !passed.empty() ? passed : argument.empty() ? parameter.fallback : argument;
  if (is_bool && tunable == Tunable::kNone)
    return argument == "true" || argument == "false" ? argument
           : parameter.fallback.empty()              ? "false"
                                                     : parameter.fallback;
  if (!start && tunable == Tunable::kNone && !argument.empty() && NumberIn(parameter.fallback))
    return parameter.fallback;
  const bool block = tunable == Tunable::kBlock;
  std::string why = start ? absl::StrCat("values: around ", passed.empty() ? argument : passed,
                                         ", the template argument of the ", passed.empty() ? "launch" : "host's caller")
                          : "start: no launch says what it is";
  if (!start) start = NumberIn(parameter.fallback).value_or(block ? 256 : is_bool ? 0 : 4);
  const std::string wanted = model_.Find(argument) == nullptr && !argument.empty() && !NumberIn(argument) &&
                                     argument != "true" && argument != "false" &&
                                     model_.FindConstant(argument) == nullptr &&
                                     argument.find_first_of("<>:+-*/ ()") == std::string::npos
                                 ? argument
                                 : parameter.name;
  DraftVariable& variable = Add(free_name_(wanted), tunable == Tunable::kNone ? Tunable::kItems : tunable, *start, why);
  if (is_bool) {
    variable.values = {"false", "true"};
    variable.start = *start != 0 ? "true" : "false";
  }
  templates_[key] = variable.name;
  return variable.name;
}

std::optional<std::string> DraftVariables::TemplateVariable(const TemplateParameter& parameter,
                                                            const std::string& argument) const {
  const auto known = templates_.find(absl::StrCat(parameter.name, "=", argument));
  return known == templates_.end() ? std::nullopt : std::optional(known->second);
}

bool DraftVariables::IsWarps(const std::string& name) const { return TunableOf(name, 4, false) == Tunable::kWarps; }

std::vector<std::string> DraftVariables::literal_templates() const {
  std::vector<std::string> names;
  for (const auto& [key, name] : templates_) {
    const size_t equals = key.find('=');
    if (equals != std::string::npos && NumberIn(key.substr(equals + 1))) names.push_back(name);
  }
  return names;
}

std::optional<std::string> DraftVariables::AddBlock(const std::string& wanted, const std::string& threads,
                                                    const KernelBody& body) {
  const std::optional<int64_t> number = NumberIn(threads);
  if (!number || *number < 2 || (*number & (*number - 1)) != 0) return std::nullopt;
  if (const auto known = blocks_.find(absl::StrCat(wanted, "=", threads)); known != blocks_.end()) return known->second;
  for (const auto& [key, name] : templates_) {
    const auto variable =
        std::find_if(variables_.begin(), variables_.end(), [&](const DraftVariable& v) { return v.name == name; });
    if (variable == variables_.end() || variable->start != threads) continue;
    if (TunableOf(name, *number, false) != Tunable::kBlock) continue;
    variable->todos.push_back("the block of the launch follows it");
    return name;
  }
  const bool fixed = std::find(body.numbers.begin(), body.numbers.end(), threads) != body.numbers.end() ||
                     (*number >= 64 && std::find(body.numbers.begin(), body.numbers.end(),
                                                 absl::StrCat(*number / 32)) != body.numbers.end());
  if (!body.words.contains("blockDim") || fixed) return std::nullopt;
  int64_t most = 1024;
  for (const SourceFunction* kernel : kernels_) {
    const std::string first = kernel->launch_bounds.substr(0, kernel->launch_bounds.find(','));
    if (const std::optional<int64_t> bound = NumberIn(first)) most = std::min(most, *bound);
  }
  DraftVariable& variable = Add(free_name_(wanted), Tunable::kBlock, *number,
                                "values: the kernel asks for blockDim; is every block right for it?");
  std::vector<std::string> allowed;
  for (const std::string& value : variable.values) {
    if (*NumberIn(value) <= most) allowed.push_back(value);
  }
  variable.values = allowed;
  blocks_[absl::StrCat(wanted, "=", threads)] = variable.name;
  return variable.name;
}

std::optional<std::string> DraftVariables::AddLaunchParameter(const std::string& name, std::optional<int64_t> passed) {
  if (const auto known = blocks_.find(name); known != blocks_.end()) return known->second;
  const Tunable tunable = TunableOf(name, 256, false);
  if (tunable == Tunable::kNone || tunable == Tunable::kFlag) return std::nullopt;
  const int64_t start = passed.value_or(tunable == Tunable::kBlock ? 256 : tunable == Tunable::kTile ? 32 : 4);
  const std::string upper = absl::AsciiStrToUpper(name);
  blocks_[name] = Add(free_name_(upper), tunable, start,
                      passed ? absl::StrCat("values: around ", start, ", which the caller of the host function passes")
                             : absl::StrCat("start: the caller of the host function chooses ", name))
                      .name;
  return blocks_[name];
}

std::string DraftVariables::BoundsOrBlock(const SourceFunction& kernel, const KernelBody& body) {
  const std::string bound = kernel.launch_bounds.substr(0, kernel.launch_bounds.find(','));
  if (std::optional<std::string> constant = NameOf(bound)) return *constant;
  if (!bound.empty()) {
    for (const TemplateParameter& parameter : kernel.templates) {
      if (parameter.name == bound) return AddTemplate(parameter, parameter.fallback);
    }
    if (NumberIn(bound)) return bound;
    if (const SourceConstant* constant = model_.FindConstant(bound)) return absl::StrCat(constant->value);
  }
  for (const auto& [constant, variable] : constants_) {
    const SourceConstant* known = model_.FindConstant(constant);
    if (known != nullptr && TunableOf(constant, known->value, false) == Tunable::kBlock &&
        body.words.contains(constant))
      return variable;
  }
  for (const TemplateParameter& parameter : kernel.templates) {
    if (!parameter.is_type && TunableOf(parameter.name, 256, false) == Tunable::kBlock)
      return AddTemplate(parameter, parameter.fallback);
  }
  if (!body.words.contains("blockDim")) return "256";
  return Add(free_name_("BLOCK"), Tunable::kBlock, 256, "start: the source does not say it").name;
}

void DraftVariables::AddUnrolls(const SourceFunction& kernel) {
  const std::vector<CppToken>& tokens = kernel.file->tokens;
  const size_t close = ClosingBracket(tokens, kernel.body);
  for (size_t i = kernel.body; i < close; ++i) {
    if (tokens[i].kind != CppToken::Kind::kDirective) continue;
    const std::vector<CppToken> words = DirectiveTokens(tokens[i]);
    // #pragma unroll 4, #pragma unroll(4)
    if (words.size() < 4 || !words[1].Is("pragma") || !words[2].Is("unroll")) continue;
    const CppToken& factor = words[words[3].Is("(") && words.size() > 4 ? 4 : 3];
    const std::optional<int64_t> start = WholeNumber(factor.text);
    if (!start || *start < 1) continue;
    const std::string& text = kernel.file->text;
    const size_t begin = words[0].offset, end = factor.offset + factor.text.size();
    const std::string before = text.substr(begin, factor.offset - begin);
    std::string after = text.substr(end, text.find('\n', end) - end);
    // A line may end with CR and LF.
    const auto without_cr = [](std::string line) {
      if (absl::EndsWith(line, "\r")) line.pop_back();
      return line;
    };
    std::string replaces = Replaces(before, std::string(factor.text), without_cr(std::move(after)));
    if (replaces.empty()) {
      const size_t line = text.find('\n', end);
      if (line != std::string::npos)
        replaces =
            Replaces(before, std::string(factor.text), without_cr(text.substr(end, text.find('\n', line + 1) - end)));
    }
    if (replaces.empty()) {
      left_out_.push_back(absl::StrCat("#pragma unroll ", *start, " in line ", factor.line,
                                       ": the text occurs more than once in the source"));
      continue;
    }
    DraftVariable& variable = Add(free_name_("UNROLL"), Tunable::kUnroll, *start,
                                  absl::StrCat("values: the unroll factor of line ", factor.line));
    variable.replaces = replaces;
  }
}

void DraftVariables::AddLaunchBounds(const SourceFunction& kernel) {
  const std::vector<CppToken>& tokens = kernel.file->tokens;
  for (size_t i = kernel.head; i < kernel.name_at; ++i) {
    if (!tokens[i].Is("__launch_bounds__") || !tokens[i + 1].Is("(")) continue;
    const auto ranges = SplitAtCommas(tokens, i + 2, ClosingBracket(tokens, i + 1));
    if (ranges.size() < 2 || ranges[1].second != ranges[1].first + 1) continue;
    const CppToken& blocks = tokens[ranges[1].first];
    const std::optional<int64_t> start = WholeNumber(blocks.text);
    if (!start || *start < 1) continue;
    const std::string before = kernel.file->text.substr(tokens[i].offset, blocks.offset - tokens[i].offset);
    std::string replaces = Replaces(before, std::string(blocks.text), ")");
    if (replaces.empty()) continue;
    DraftVariable variable;
    variable.name = free_name_("MIN_BLOCKS");
    variable.values = {"1", "2", "3", "4"};
    if (*start > 4) variable.values.push_back(absl::StrCat(*start));
    variable.start = absl::StrCat(*start);
    variable.replaces = replaces;
    variable.affects = {{"registers", "-"}, {"parallelism", "+"}};
    variable.todos = {
        absl::StrCat("values: blocks that must fit on an SM, from __launch_bounds__ in line ", tokens[i].line)};
    variables_.push_back(std::move(variable));
  }
}

std::vector<DraftVariable> DraftVariables::Finish(std::vector<std::string>* left_out) {
  for (const SourceFunction* kernel : kernels_) {
    AddUnrolls(*kernel);
    AddLaunchBounds(*kernel);
  }
  DraftVariable registers;
  registers.name = "MAX_REGISTERS";
  registers.values = {"32", "48", "64", "96", "128", "255"};
  registers.start = "255";
  registers.option = "-maxrregcount={}";
  registers.affects = {{"registers", "+"}};
  variables_.push_back(std::move(registers));
  DraftVariable fast;
  fast.name = "FAST_MATH";
  fast.values = {"false", "true"};
  fast.start = "false";
  fast.option = "--use_fast_math";
  fast.todos = {"remove it if approximate division, square root and exponentials are not acceptable"};
  variables_.push_back(std::move(fast));
  *left_out = left_out_;
  return variables_;
}

}  // namespace pawl
