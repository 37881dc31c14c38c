#include "cli/draft/read/launch_syntax.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace pawl {
namespace {

using Kind = CppExpression::Kind;

}  // namespace

bool LaunchSyntax::IsLaunchFunction(std::string_view name) {
  return name == "cudaLaunchKernel" || name == "cudaLaunchCooperativeKernel" || name == "hipLaunchKernelGGL" ||
         name == "cudaLaunchKernelEx" || name == "hipLaunchKernel" || name == "hipLaunchCooperativeKernel";
}

std::optional<CppExpression> LaunchSyntax::Parsed(std::pair<size_t, size_t> range) const {
  std::optional<CppExpression> e = ParseCppExpression(tokens_, range.first, range.second);
  if (e) e = variables_.Written(*e);
  return e;
}

HostLaunch LaunchSyntax::Begin(int line) const {
  HostLaunch launch;
  launch.host = &host_;
  launch.values = values_;
  for (const SourceParameter& parameter : host_.parameters) {
    if (parameter.type.pointers > 0) launch.values.try_emplace(parameter.name, HostValue{{}, false, "", true});
  }
  launch.line = line;
  return launch;
}

// A dim3 or a number, through variables.
std::vector<CppExpression> LaunchSyntax::Extents(const CppExpression& e) const {
  if (std::optional<std::vector<CppExpression>> parts = Dim3Parts(e)) return *std::move(parts);
  if (e.kind == Kind::kName) {
    const auto found = values_.find(e.text);
    if (found != values_.end() && found->second.is_dim3 && !found->second.parts.empty()) {
      if (found->second.parts.size() == 1) {
        if (std::optional<std::vector<CppExpression>> parts = Dim3Parts(found->second.parts[0])) return *parts;
        if (found->second.parts[0].kind == Kind::kName) return Extents(found->second.parts[0]);
      }
      return found->second.parts;
    }
  }
  return {e};
}

std::optional<HostLaunch> LaunchSyntax::Chevrons(size_t at, size_t end) const {
  // Back over the template arguments to the name.
  size_t name = at;
  std::vector<std::string> arguments;
  if (name > 0 && tokens_[name - 1].Is(">")) {
    int depth = 0;
    size_t open = name;
    while (open > 0) {
      --open;
      // k<(N > 2)>: what is in brackets compares.
      for (int brackets = tokens_[open].Is(")") ? 1 : 0; brackets > 0 && open > 0;) {
        --open;
        brackets += tokens_[open].Is(")") ? 1 : tokens_[open].Is("(") ? -1 : 0;
      }
      if (tokens_[open].Is(">")) ++depth;
      if (tokens_[open].Is("<") && --depth == 0) break;
    }
    for (const auto& [from, to] : SplitAtCommas(tokens_, open + 1, name - 1)) {
      arguments.push_back(TokensText(tokens_, from, to));
    }
    name = open;
  }
  if (name == 0 || !tokens_[name - 1].IsWord()) return std::nullopt;
  HostLaunch launch = Begin(tokens_[name - 1].line);
  launch.kernel = KernelOf(std::string(tokens_[name - 1].text), &arguments);
  launch.template_arguments = std::move(arguments);
  // >>> are three tokens, the last of them before the (
  size_t close = at + 1;
  for (; close + 2 < end; ++close) {
    if (tokens_[close].Is("(") || tokens_[close].Is("{") || tokens_[close].Is("[")) {
      close = ClosingBracket(tokens_, close);
      continue;
    }
    if (tokens_[close].Is(">") && tokens_[close + 1].Is(">") && tokens_[close + 2].Is(">")) break;
  }
  if (launch.kernel == nullptr || close + 3 >= end || !tokens_[close + 3].Is("(")) return std::nullopt;
  const auto configuration = SplitAtCommas(tokens_, at + 1, close);
  if (configuration.size() < 2) return std::nullopt;
  const std::optional<CppExpression> grid = Parsed(configuration[0]), block = Parsed(configuration[1]);
  if (!grid || !block) return std::nullopt;
  launch.grid = Extents(*grid);
  launch.block = Extents(*block);
  if (configuration.size() > 2) launch.shared = Parsed(configuration[2]);
  const size_t open = close + 3;
  for (const auto& range : SplitAtCommas(tokens_, open + 1, ClosingBracket(tokens_, open))) {
    launch.arguments.push_back(Parsed(range).value_or(CppExpression{}));
  }
  return launch;
}

// A kernel by its name, or by a variable that holds it.
const SourceFunction* LaunchSyntax::KernelOf(const std::string& name, std::vector<std::string>* arguments) const {
  const SourceFunction* function = model_.Find(name);
  if (function != nullptr && function->kernel) return function;
  const auto value = values_.find(name);
  if (value == values_.end() || value->second.parts.empty()) return nullptr;
  CppExpression held = value->second.parts[0];
  while ((held.kind == Kind::kPrefix || held.kind == Kind::kCast) && !held.parts.empty())
    held = CppExpression(held.parts[0]);
  function = model_.Find(held.text);
  if (arguments->empty()) *arguments = held.template_arguments;
  return function != nullptr && function->kernel ? function : nullptr;
}

std::optional<HostLaunch> LaunchSyntax::Function(size_t at) const {
  const size_t close = ClosingBracket(tokens_, at + 1);
  std::vector<std::pair<size_t, size_t>> ranges = SplitAtCommas(tokens_, at + 2, close);
  HostLaunch launch = Begin(tokens_[at].line);
  const std::string_view name = tokens_[at].text;
  const bool ggl = name == "hipLaunchKernelGGL", extended = name == "cudaLaunchKernelEx";
  if (ranges.size() < 2) return std::nullopt;
  std::optional<CppExpression> kernel = Parsed(ranges[extended ? 1 : 0]);
  // HIP_KERNEL_NAME(k<float>) and (void*)k
  while (kernel && (kernel->kind == Kind::kCast || kernel->kind == Kind::kPrefix ||
                    (kernel->kind == Kind::kCall && kernel->parts.size() == 2))) {
    kernel = CppExpression(kernel->parts.back());
  }
  if (!kernel) kernel = LastName(ranges[0]);
  if (!kernel || kernel->kind != Kind::kName) return std::nullopt;
  launch.template_arguments = kernel->template_arguments;
  launch.kernel = KernelOf(kernel->text, &launch.template_arguments);
  if (launch.kernel == nullptr) return std::nullopt;
  launch.cooperative = name.find("Cooperative") != std::string_view::npos;
  if (extended) {
    Configuration(ranges[0], launch);
    for (size_t i = 2; i < ranges.size(); ++i) launch.arguments.push_back(Parsed(ranges[i]).value_or(CppExpression{}));
  } else {
    if (ranges.size() < 4) return std::nullopt;
    const std::optional<CppExpression> grid = Parsed(ranges[1]), block = Parsed(ranges[2]);
    if (!grid || !block) return std::nullopt;
    launch.grid = Extents(*grid);
    launch.block = Extents(*block);
    const size_t shared = ggl ? 3 : 4;
    if (ranges.size() > shared) launch.shared = Parsed(ranges[shared]);
    if (ggl) {
      for (size_t i = 5; i < ranges.size(); ++i)
        launch.arguments.push_back(Parsed(ranges[i]).value_or(CppExpression{}));
    } else if (const std::optional<CppExpression> list = Parsed(ranges[3])) {
      launch.arguments = ArgumentList(*list);
    }
  }
  if (launch.grid.empty() || launch.block.empty()) return std::nullopt;
  return launch;
}

// k<float, 4> that stands alone: SkipTemplateArguments wants something behind it.
std::optional<CppExpression> LaunchSyntax::LastName(std::pair<size_t, size_t> range) const {
  size_t at = range.first;
  while (at < range.second && !(tokens_[at].IsWord() && model_.Find(std::string(tokens_[at].text)) != nullptr)) ++at;
  if (at >= range.second) return std::nullopt;
  CppExpression name;
  name.kind = Kind::kName;
  name.text = tokens_[at].text;
  if (at + 1 < range.second && tokens_[at + 1].Is("<")) {
    const size_t behind = SkipTemplateArguments(tokens_, at + 1, range.second);
    for (const auto& [from, to] : SplitAtCommas(tokens_, at + 2, std::max(behind, at + 3) - 1)) {
      name.template_arguments.push_back(TokensText(tokens_, from, to));
    }
  }
  return name;
}

// void* arguments[] = {&x, &n}
std::vector<CppExpression> LaunchSyntax::ArgumentList(const CppExpression& list) const {
  std::vector<CppExpression> arguments;
  const CppExpression& bare = list.kind == Kind::kCast ? list.parts[0] : list;
  const auto found = values_.find(bare.text);
  if (found == values_.end()) return arguments;
  for (CppExpression part : found->second.parts) {
    while ((part.kind == Kind::kCast || (part.kind == Kind::kPrefix && part.text == "&")) && !part.parts.empty()) {
      part = CppExpression(part.parts[0]);
    }
    arguments.push_back(std::move(part));
  }
  return arguments;
}

// cudaLaunchConfig_t config; config.gridDim = ...
void LaunchSyntax::Configuration(std::pair<size_t, size_t> range, HostLaunch& launch) const {
  std::string name;
  for (size_t i = range.first; i < range.second; ++i) {
    if (tokens_[i].IsWord()) name = tokens_[i].text;
  }
  // attribute[0].val.clusterDim.x = 2;
  const auto dim = [&](size_t at, const CppExpression& value) {
    if (tokens_[at].Is("clusterDim")) launch.cluster = Extents(value);
    const size_t axis = std::string_view("xyz").find(tokens_[at].text);
    if (axis == std::string_view::npos || !tokens_[at - 2].Is("clusterDim")) return;
    CppExpression one;
    one.kind = Kind::kNumber;
    one.text = "1";
    if (launch.cluster.size() <= axis) launch.cluster.resize(axis + 1, one);
    launch.cluster[axis] = value;
  };
  std::string attributes;  // config.attrs = attributes
  for (const auto& [field, value] : ConfigurationList(name)) {
    if (field == "gridDim") launch.grid = Extents(value);
    if (field == "blockDim") launch.block = Extents(value);
    if (field == "dynamicSmemBytes") launch.shared = value;
    if (field == "attrs") attributes = HostTensor(value, {});
  }
  FieldsAssigned("cudaLaunchConfig_t", name, range.first, [&](size_t at, const CppExpression& value) {
    const std::string_view field = tokens_[at].text;
    if (field == "gridDim") launch.grid = Extents(value);
    if (field == "blockDim") launch.block = Extents(value);
    if (field == "dynamicSmemBytes") launch.shared = value;
    if (field == "attrs") attributes = HostTensor(value, {});
    dim(at, value);  // config.attrs[0].val.clusterDim.x = 2;
  });
  if (attributes.empty()) return;
  if (const auto list = values_.find(attributes); list != values_.end()) {
    for (const CppExpression& attribute : list->second.parts) Cluster(attribute, launch);
  }
  FieldsAssigned("cudaLaunchAttribute", attributes, range.first, dim);
}

// The fields of cudaLaunchConfig_t config = {grid, block, bytes, stream, attributes, 1}, and of one with names.
std::vector<std::pair<std::string, CppExpression>> LaunchSyntax::ConfigurationList(const std::string& name) const {
  static constexpr const char* kFields[] = {"gridDim", "blockDim", "dynamicSmemBytes", "stream", "attrs"};
  std::vector<std::pair<std::string, CppExpression>> fields;
  const auto made = values_.find(name);
  if (made == values_.end()) return fields;
  std::vector<CppExpression> parts = made->second.parts;
  if (parts.size() == 1 && parts[0].kind == Kind::kList) parts = std::vector<CppExpression>(parts[0].parts);
  std::string field;
  for (size_t i = 0; i < parts.size() && i < std::size(kFields); ++i) {
    const CppExpression* named = DesignatedValue(parts[i], &field);
    if (named != nullptr) {
      fields.push_back({field, *named});
    } else if (parts.size() > 1) {  // {0} and {} leave all open
      fields.push_back({kFields[i], parts[i]});
    }
  }
  return fields;
}

// {.id = cudaLaunchAttributeClusterDimension, .val = {.clusterDim = {2, 1, 1}}}
void LaunchSyntax::Cluster(const CppExpression& e, HostLaunch& launch) const {
  std::string field;
  const CppExpression* value = DesignatedValue(e, &field);
  if (value != nullptr && field == "clusterDim") {
    launch.cluster = Extents(*value);
    return;
  }
  for (const CppExpression& part : e.parts) Cluster(part, launch);
}

// What the host gives the fields of a variable between its last declaration and the token `end`: NAME.field = value
// and NAME[0].val.clusterDim.x = value, with the token of the field.
void LaunchSyntax::FieldsAssigned(std::string_view type, const std::string& name, size_t end,
                                  const std::function<void(size_t, const CppExpression&)>& visit) const {
  size_t from = host_.body;
  for (size_t i = host_.body; i + 1 < end; ++i) {
    if (tokens_[i].Is(type) && tokens_[i + 1].Is(name)) from = i + 2;
  }
  for (size_t i = from; i + 3 < end; ++i) {
    const bool begins = tokens_[i - 1].Is(";") || tokens_[i - 1].Is("{") || tokens_[i - 1].Is("}") ||
                        tokens_[i - 1].Is(")") || tokens_[i - 1].Is("else");
    if (!tokens_[i].Is(name) || !begins) continue;
    size_t equals = i + 1;
    while (equals < end && !tokens_[equals].Is("=") && !tokens_[equals].Is(";")) ++equals;
    size_t close = equals;
    while (close < end && !tokens_[close].Is(";")) ++close;
    if (equals < i + 3 || close == equals || !tokens_[equals - 2].Is(".")) continue;
    const std::optional<CppExpression> value = ParseCppExpression(tokens_, equals + 1, close);
    if (value) visit(equals - 1, *value);
  }
}

}  // namespace pawl
