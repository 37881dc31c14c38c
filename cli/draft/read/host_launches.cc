#include "cli/draft/read/host_launches.h"

#include <algorithm>
#include <functional>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cli/draft/read/constants.h"
#include "cli/draft/read/host_calls.h"
#include "cli/draft/read/host_swaps.h"
#include "cli/draft/read/translation.h"

namespace pawl {
namespace {

using Kind = CppExpression::Kind;

bool IsDim3(const std::string& type) { return absl::StrContains(type, "dim3"); }

// dim3(a, b), dim3{a, b}, {a, b}; nothing: a plain value.
std::optional<std::vector<CppExpression>> Dim3Parts(const CppExpression& e) {
  if (e.kind == Kind::kList) {
    std::vector<CppExpression> parts;
    std::string name;
    for (const CppExpression& part : e.parts) {
      const CppExpression* named = DesignatedValue(part, &name);  // {.x = 2, .y = 1}
      parts.push_back(named == nullptr ? part : *named);
    }
    return parts;
  }
  if (e.kind == Kind::kCall && e.parts[0].IsName("dim3")) {
    return std::vector<CppExpression>(e.parts.begin() + 1, e.parts.end());
  }
  if (e.kind == Kind::kCast && e.text == "dim3") return std::vector<CppExpression>{e.parts[0]};
  return std::nullopt;
}

// Whether two conditions can't hold together, as far as their texts tell: n < 4 and n >= 4, d == 64 and d == 128.
bool Contradict(const std::pair<CppExpression, bool>& a, const std::pair<CppExpression, bool>& b) {
  const auto& [one, one_negative] = a;
  const auto& [two, two_negative] = b;
  if (CppText(one) == CppText(two)) return one_negative != two_negative;
  if (one.kind != CppExpression::Kind::kBinary || two.kind != CppExpression::Kind::kBinary) return false;
  static const auto& opposites = *new std::map<std::string, std::string>{{"==", "!="}, {"!=", "=="}, {"<", ">="},
                                                                         {">=", "<"},  {">", "<="},  {"<=", ">"}};
  if (!opposites.contains(one.text) || !opposites.contains(two.text)) return false;
  if (CppText(one.parts[0]) != CppText(two.parts[0])) return false;
  const std::string first = one_negative ? opposites.at(one.text) : one.text,
                    second = two_negative ? opposites.at(two.text) : two.text;
  if (CppText(one.parts[1]) == CppText(two.parts[1])) return opposites.at(first) == second;
  const std::optional<int64_t> x = ConstantValue(one.parts[1], {}), y = ConstantValue(two.parts[1], {});
  return first == "==" && second == "==" && x && y && *x != *y;
}

class HostReader {
 public:
  HostReader(const SourceModel& model, const SourceFunction& host, std::vector<HostLaunch>& found,
             std::vector<HostCall>& calls)
      : model_(model), host_(host), tokens_(host.file->tokens), found_(found), calls_(calls) {}

  void Run() {
    // Constants made of others: what they are made of may be varied.
    for (const SourceConstant& constant : model_.constants) {
      if (!constant.literal && !constant.local)
        values_[constant.name] = {{constant.expression}, false, "constexpr int"};
    }
    VisitAll(ParseCppBody(tokens_, host_.body));
  }

 private:
  // The statements of a block. Behind `if (c) { launch; return; }` c does not hold.
  void VisitAll(const std::vector<CppStatement>& statements) {
    const size_t conditions = conditions_.size();
    for (const CppStatement& statement : statements) {
      const size_t launches = found_.size();
      Visit(statement);
      const bool returns = statement.kind == CppStatement::Kind::kIf && statement.body.size() == 1 &&
                           !statement.expressions.empty() && Returns(statement.body[0]);
      if (returns && found_.size() > launches) conditions_.push_back({statement.expressions[0], true});
    }
    conditions_.resize(conditions);
  }

  static bool Returns(const CppStatement& statement) {
    if (statement.kind == CppStatement::Kind::kReturn) return true;
    return statement.kind == CppStatement::Kind::kBlock && !statement.body.empty() && Returns(statement.body.back());
  }

  // Labels behind a break begin another group: only one of them runs.
  void Switch(const CppStatement& statement) {
    cases_.push_back({statement.begin, 0});
    for (const CppStatement& block : statement.body) {
      bool left = false;
      for (const CppStatement& inner : block.body) {
        if (inner.kind == CppStatement::Kind::kCase && left) {
          ++cases_.back().second;
          left = false;
        }
        const HostValues before = values_;
        const size_t launches = found_.size();
        Visit(inner);
        if (found_.size() > launches) values_ = before;
        left = left || Leaves(inner);
      }
    }
    cases_.pop_back();
  }

  static bool Leaves(const CppStatement& statement) {
    if (statement.kind == CppStatement::Kind::kReturn || statement.kind == CppStatement::Kind::kJump) return true;
    return statement.kind == CppStatement::Kind::kBlock && !statement.body.empty() && Leaves(statement.body.back());
  }

  // int sms = 0; query(&sms): what a call gives a variable is not what it held before. A number other than 0 is what it
  // is unless the user says otherwise: int n = 1024; parse(argv, &n).
  void Filled(const CppExpression& call) {
    const std::string& function = call.parts[0].text;
    const bool query = absl::StrContains(function, "Get") || absl::StrContains(function, "Occupancy");
    for (size_t i = 1; i < call.parts.size(); ++i) {
      CppExpression e = call.parts[i];
      while (e.kind == Kind::kCast) e = CppExpression(e.parts[0]);
      if (e.kind != Kind::kPrefix || e.text != "&" || e.parts[0].kind != Kind::kName) continue;
      const auto value = values_.find(e.parts[0].text);
      if (value == values_.end() || value->second.pointer || value->second.parts.size() > 1) continue;
      const bool empty = value->second.parts.empty() || ConstantValue(value->second.parts[0], {}) == 0;
      if (!query && !empty) continue;
      CppExpression answer;
      answer.kind = Kind::kOther;
      answer.text = function;
      if (absl::StrContains(CppText(call), "MultiProcessorCount")) answer.text = "multiProcessorCount";
      if (answer.text != function || absl::StrContains(function, "Occupancy")) answer.kind = Kind::kName;
      value->second.parts.clear();
      if (query) value->second.parts.push_back(std::move(answer));
    }
  }

  // Calls of host functions of the source, with what is passed.
  void Calls(const CppExpression& e) {
    for (const CppExpression& part : e.parts) Calls(part);
    if (e.kind != Kind::kCall || e.parts[0].kind != Kind::kName) return;
    Filled(e);
    const std::string& name = e.parts[0].text;
    const SourceFunction* callee = model_.Find(name);
    if (callee == nullptr) callee = model_.Find(name.substr(name.rfind(':') + 1));
    if (callee == nullptr || callee == &host_ || callee->kernel || callee->device) return;
    HostCall call;
    call.callee = callee;
    call.caller = &host_;
    call.template_arguments = e.parts[0].template_arguments;
    call.arguments.assign(e.parts.begin() + 1, e.parts.end());
    call.values = values_;
    calls_.push_back(std::move(call));
  }

  void Visit(const CppStatement& statement) {
    using StatementKind = CppStatement::Kind;
    switch (statement.kind) {
      case StatementKind::kDeclaration:
        for (const CppDeclarator& declarator : statement.declared) {
          for (const CppExpression& initial : declarator.initial) Calls(initial);
          Declare(declarator);
        }
        Launches(statement);
        return;
      case StatementKind::kSwitch:
        Switch(statement);
        return;
      case StatementKind::kFor:
        Loop(statement, 1);
        return;
      case StatementKind::kWhile:
        for (const CppExpression& expression : statement.expressions) Calls(expression);
        if (const std::string text = WhileText(statement); !text.empty()) {
          Loop(statement, 0, text);
        } else {
          VisitAll(statement.body);
        }
        return;
      case StatementKind::kIf:
        If(statement);
        return;
      case StatementKind::kExpression:
        for (const CppExpression& expression : statement.expressions) {
          Calls(expression);
          Assign(expression);
        }
        Launches(statement);
        return;
      default:
        for (const CppExpression& expression : statement.expressions) Calls(expression);
        if (statement.kind == StatementKind::kReturn) Launches(statement);
        VisitAll(statement.body);
    }
  }

  void Declare(const CppDeclarator& declarator) {
    HostValue value;
    value.type = declarator.type;
    value.is_dim3 = IsDim3(declarator.type);
    value.pointer = declarator.pointer;
    value.parts = declarator.initial;
    Fields(declarator);
    // float* src = in: from now on src is what in is now, whatever in becomes.
    if (value.pointer && value.parts.size() == 1) {
      CppExpression held = value.parts[0];
      while (held.kind == Kind::kCast) held = CppExpression(held.parts[0]);
      if (held.kind == Kind::kName) {
        const auto other = values_.find(held.text);
        const bool alias = other != values_.end() && other->second.pointer && other->second.parts.size() == 1;
        value.parts = {alias ? other->second.parts[0] : held};
        if (value.parts[0].IsName("nullptr") || value.parts[0].IsName("NULL")) value.parts.clear();
        values_[declarator.name] = std::move(value);
        return;
      }
      if (held.kind == Kind::kNumber) value.parts.clear();  // float* x = 0
    }
    if (declarator.initial.size() == 1) {
      if (std::optional<std::vector<CppExpression>> parts = Dim3Parts(declarator.initial[0])) {
        const bool list = declarator.initial[0].kind == Kind::kList;
        if (!list || value.is_dim3 || declarator.array) {
          value.parts = *std::move(parts);
          value.is_dim3 = value.is_dim3 || !list;
        }
      }
    }
    values_[declarator.name] = std::move(value);
  }

  // The fields that a list names: Params p{.x = x}, p = {.x = x}, auto p = Params{.x = x}.
  void Fields(const CppDeclarator& declarator) {
    const std::vector<CppExpression>* list = &declarator.initial;
    if (list->size() == 1 && ((*list)[0].kind == Kind::kList || (*list)[0].kind == Kind::kCall))
      list = &(*list)[0].parts;
    std::string name;
    for (const CppExpression& part : *list) {
      if (const CppExpression* value = DesignatedValue(part, &name))
        values_[absl::StrCat(declarator.name, ".", name)] = {{*value}, false, ""};
    }
  }

  // std::swap(a, b) of two pointers: from now on each is what the other was.
  void Exchange(const std::string& a, const std::string& b) {
    const auto held = [&](const std::string& name) -> std::optional<HostValue> {
      const auto known = values_.find(name);
      const bool pointer = known == values_.end() ? IsPointerParameter(name) : known->second.pointer;
      if (!pointer) return std::nullopt;
      CppExpression own;
      own.kind = Kind::kName;
      own.text = name;
      own.text = HostTensor(own, values_);
      return HostValue{{own}, false, known == values_.end() ? "" : known->second.type, true};
    };
    const std::optional<HostValue> of_a = held(a), of_b = held(b);
    if (!of_a || !of_b) return;
    values_[a] = *of_b;
    values_[b] = *of_a;
  }

  void Assign(const CppExpression& e) {
    if (IsSwap(e) && e.parts[1].kind == Kind::kName && e.parts[2].kind == Kind::kName)
      Exchange(e.parts[1].text, e.parts[2].text);
    // waves++: what it is from now on is not followed.
    if ((e.kind == Kind::kPrefix || e.kind == Kind::kPostfix) && (e.text == "++" || e.text == "--") &&
        e.parts[0].kind == Kind::kName) {
      values_.erase(e.parts[0].text);
    }
    if (e.kind != Kind::kAssign) return;
    const CppExpression& left = e.parts[0];
    if (e.text == "=" && left.kind == Kind::kName) {
      CppDeclarator again;
      again.name = left.text;
      const auto known = values_.find(left.text);
      again.type = known == values_.end() ? "" : known->second.type;
      again.pointer = (known != values_.end() && known->second.pointer) || IsPointerParameter(left.text);
      again.initial = {e.parts[1]};
      if (Mentions(e.parts[1], left.text)) {
        // n = n / 2: of what it was, or not followed.
        if (known == values_.end() || known->second.parts.size() != 1) {
          values_.erase(left.text);
          return;
        }
        again.initial = {Substituted(e.parts[1], {{left.text, known->second.parts[0]}})};
      }
      Declare(again);
    } else if (e.text == "=" && left.kind == Kind::kMember && left.parts[0].kind == Kind::kName) {
      static const std::string kAxes = "xyz";
      const size_t axis = kAxes.find(left.text);
      HostValue& value = values_[left.parts[0].text];
      if (axis == std::string::npos || left.text.size() != 1 || !value.is_dim3) {
        values_[CppText(left)] = {{e.parts[1]}, false, ""};  // a field of a struct
        return;
      }
      CppExpression one;
      one.kind = Kind::kNumber;
      one.text = "1";
      while (value.parts.size() <= axis) value.parts.push_back(one);
      value.parts[axis] = e.parts[1];
    } else if (e.text == "=" && left.kind == Kind::kSubscript &&
               (left.parts[0].kind == Kind::kName || left.parts[0].kind == Kind::kMember)) {
      values_[CppText(left)] = {{e.parts[1]}, false, ""};  // an element of an array
    } else if (left.kind == Kind::kName) {
      values_.erase(left.text);  // n /= 2: what it is from now on is not followed
    }
  }

  bool IsPointerParameter(const std::string& name) const {
    return std::any_of(host_.parameters.begin(), host_.parameters.end(), [&](const SourceParameter& parameter) {
      return parameter.name == name && parameter.type.pointers > 0;
    });
  }

  void If(const CppStatement& statement) {
    const CppExpression condition = statement.expressions.empty() ? CppExpression{} : statement.expressions[0];
    const HostValues before = values_;
    for (size_t i = 0; i < statement.body.size(); ++i) {
      const size_t launches = found_.size();
      conditions_.push_back({condition, i == 1});
      Visit(statement.body[i]);
      conditions_.pop_back();
      // What a branch without a launch assigns holds perhaps: the values before it are the better guess.
      if (found_.size() > launches || statement.body.size() == 2) {
        values_ = before;
      } else {
        for (const auto& [name, value] : before) {
          if (!value.parts.empty()) values_[name] = value;
        }
        // The same of a field: g.nx = atoi(argv[1]) behind Grid g{256, 256}.
        std::erase_if(values_, [&](const auto& value) {
          const size_t dot = value.first.find('.');
          const auto whole = dot == std::string::npos ? before.end() : before.find(value.first.substr(0, dot));
          return whole != before.end() && !whole->second.parts.empty() && !before.contains(value.first);
        });
      }
    }
  }

  // while(left>0), do ... while(left>0). Empty: do { } while (0), which macros are made of, is no loop.
  std::string WhileText(const CppStatement& statement) const {
    const size_t end = std::min(statement.end, tokens_.size());
    if (statement.begin + 3 >= end) return "";
    if (!tokens_[statement.begin].Is("do"))
      return TokensText(tokens_, statement.begin, ClosingBracket(tokens_, statement.begin + 1) + 1);
    size_t open = end - 1;
    while (open > statement.begin && !tokens_[open].Is("while")) --open;
    if (open == statement.begin || open + 3 >= end || tokens_[open + 2].Is("0") || tokens_[open + 2].Is("false"))
      return "";
    return absl::StrCat("do ... ", TokensText(tokens_, open, ClosingBracket(tokens_, open + 1) + 1));
  }

  // A loop, whose body begins with the statement `body`.
  void Loop(const CppStatement& statement, size_t body, const std::string& text = "") {
    const size_t first = found_.size();
    const HostValues before = values_;
    HostLoop loop;
    loop.begin = statement.begin;
    loop.text = text;
    if (text.empty()) {
      loop.text = TokensText(tokens_, statement.begin,
                             std::min(ClosingBracket(tokens_, statement.begin + 1) + 1, statement.end));
    }
    if (body == 1 && !statement.body.empty() && statement.body[0].kind == CppStatement::Kind::kDeclaration &&
        statement.body[0].declared.size() == 1 && statement.has_condition && statement.expressions.size() == 2) {
      const CppDeclarator& index = statement.body[0].declared[0];
      const CppExpression& condition = statement.expressions[0];
      const CppExpression& step = statement.expressions[1];
      loop.index = index.name;
      const bool up = (step.kind == Kind::kPrefix || step.kind == Kind::kPostfix) && step.text == "++";
      const bool zero =
          index.initial.size() == 1 && index.initial[0].kind == Kind::kNumber && index.initial[0].text == "0";
      if (up && zero && condition.kind == Kind::kBinary && condition.text == "<" &&
          condition.parts[0].IsName(loop.index)) {
        loop.plain = true;
        loop.count = condition.parts[1];
      }
    }
    for (size_t i = body; i < statement.body.size(); ++i) Visit(statement.body[i]);
    values_.erase(loop.index);
    const Swaps swaps = SwapsIn(statement);
    // The rounds are made of the names as they were before: behind the loop each means what it was exchanged for.
    for (const auto& [a, b] : swaps) {
      for (const std::string& name : {a, b}) {
        values_.erase(name);
        if (const auto known = before.find(name); known != before.end()) values_.insert(*known);
      }
    }
    for (size_t i = first; i < found_.size(); ++i) {
      found_[i].loops.push_back(loop.begin);
      if (found_[i].loop) {
        if (found_[i].loop->outer.empty()) found_[i].loop->outer = loop.text;
        continue;
      }
      loop.launches = static_cast<int>(
          std::count_if(found_.begin() + static_cast<std::ptrdiff_t>(first), found_.end(),
                        [&](const HostLaunch& other) { return &other == &found_[i] || !Exclude(found_[i], other); }));
      found_[i].loop = loop;
      found_[i].values.erase(loop.index);
      found_[i].swaps = NetSwaps(swaps);
    }
  }

  // Launches in the tokens of a statement: <<<, the functions of the runtime, or those of a lambda in it.
  void Launches(const CppStatement& statement) {
    const size_t end = std::min(statement.end, tokens_.size());
    bool any = false;
    size_t lambda = 0;
    for (size_t i = statement.begin; i < end; ++i) {
      any = any || tokens_[i].Is("<<<") || IsLaunchFunction(tokens_[i].text);
      if (lambda == 0 && tokens_[i].Is("[")) {
        const size_t open = LambdaBody(i, end);
        if (open != 0) lambda = open;
      }
    }
    if (!any) return;
    if (lambda != 0) {
      const std::string outer = dispatch_;
      const std::string_view macro = tokens_[statement.begin].text;
      if (macro.find("DISPATCH") != std::string_view::npos)
        dispatch_ = macro.find("INTEGRAL") != std::string_view::npos ? "int" : "float";
      VisitAll(ParseCppBody(tokens_, lambda));
      dispatch_ = outer;
      return;
    }
    for (size_t i = statement.begin; i < end; ++i) {
      if (tokens_[i].Is("<<<")) Chevrons(i, end);
      if (IsLaunchFunction(tokens_[i].text) && i + 1 < end && tokens_[i + 1].Is("(")) LaunchFunction(i);
    }
  }

  size_t LambdaBody(size_t open, size_t end) const {
    size_t at = ClosingBracket(tokens_, open) + 1;
    if (at < end && tokens_[at].Is("<")) at = SkipTemplateArguments(tokens_, at, end);  // []<typename T>()
    if (at < end && tokens_[at].Is("(")) at = ClosingBracket(tokens_, at) + 1;
    while (at < end && (tokens_[at].IsWord() || tokens_[at].Is("->"))) ++at;
    return at < end && tokens_[at].Is("{") ? at : 0;
  }

  static bool IsLaunchFunction(std::string_view name) {
    return name == "cudaLaunchKernel" || name == "cudaLaunchCooperativeKernel" || name == "hipLaunchKernelGGL" ||
           name == "cudaLaunchKernelEx" || name == "hipLaunchKernel" || name == "hipLaunchCooperativeKernel";
  }

  std::optional<CppExpression> Parsed(std::pair<size_t, size_t> range) const {
    return ParseCppExpression(tokens_, range.first, range.second);
  }

  HostLaunch Begin(int line) const {
    HostLaunch launch;
    launch.host = &host_;
    launch.values = values_;
    for (const SourceParameter& parameter : host_.parameters) {
      if (parameter.type.pointers > 0) launch.values.try_emplace(parameter.name, HostValue{{}, false, "", true});
    }
    launch.conditions = conditions_;
    launch.cases = cases_;
    launch.dispatch = dispatch_;
    launch.line = line;
    return launch;
  }

  // A dim3 or a number, through variables.
  std::vector<CppExpression> Extents(const CppExpression& e) const {
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

  void Chevrons(size_t at, size_t end) {
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
    if (name == 0 || !tokens_[name - 1].IsWord()) return;
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
    if (launch.kernel == nullptr || close + 3 >= end || !tokens_[close + 3].Is("(")) return;
    const auto configuration = SplitAtCommas(tokens_, at + 1, close);
    if (configuration.size() < 2) return;
    const std::optional<CppExpression> grid = Parsed(configuration[0]), block = Parsed(configuration[1]);
    if (!grid || !block) return;
    launch.grid = Extents(*grid);
    launch.block = Extents(*block);
    if (configuration.size() > 2) launch.shared = Parsed(configuration[2]);
    const size_t open = close + 3;
    for (const auto& range : SplitAtCommas(tokens_, open + 1, ClosingBracket(tokens_, open))) {
      launch.arguments.push_back(Parsed(range).value_or(CppExpression{}));
    }
    found_.push_back(std::move(launch));
  }

  // A kernel by its name, or by a variable that holds it.
  const SourceFunction* KernelOf(const std::string& name, std::vector<std::string>* arguments) const {
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

  void LaunchFunction(size_t at) {
    const size_t close = ClosingBracket(tokens_, at + 1);
    std::vector<std::pair<size_t, size_t>> ranges = SplitAtCommas(tokens_, at + 2, close);
    HostLaunch launch = Begin(tokens_[at].line);
    const std::string_view name = tokens_[at].text;
    const bool ggl = name == "hipLaunchKernelGGL", extended = name == "cudaLaunchKernelEx";
    if (ranges.size() < 2) return;
    std::optional<CppExpression> kernel = Parsed(ranges[extended ? 1 : 0]);
    // HIP_KERNEL_NAME(k<float>) and (void*)k
    while (kernel && (kernel->kind == Kind::kCast || kernel->kind == Kind::kPrefix ||
                      (kernel->kind == Kind::kCall && kernel->parts.size() == 2))) {
      kernel = CppExpression(kernel->parts.back());
    }
    if (!kernel) kernel = LastName(ranges[0]);
    if (!kernel || kernel->kind != Kind::kName) return;
    launch.template_arguments = kernel->template_arguments;
    launch.kernel = KernelOf(kernel->text, &launch.template_arguments);
    if (launch.kernel == nullptr) return;
    launch.cooperative = name.find("Cooperative") != std::string_view::npos;
    if (extended) {
      Configuration(ranges[0], launch);
      for (size_t i = 2; i < ranges.size(); ++i)
        launch.arguments.push_back(Parsed(ranges[i]).value_or(CppExpression{}));
    } else {
      if (ranges.size() < 4) return;
      const std::optional<CppExpression> grid = Parsed(ranges[1]), block = Parsed(ranges[2]);
      if (!grid || !block) return;
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
    if (launch.grid.empty() || launch.block.empty()) return;
    found_.push_back(std::move(launch));
  }

  // k<float, 4> that stands alone: SkipTemplateArguments wants something behind it.
  std::optional<CppExpression> LastName(std::pair<size_t, size_t> range) const {
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
  std::vector<CppExpression> ArgumentList(const CppExpression& list) const {
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
  void Configuration(std::pair<size_t, size_t> range, HostLaunch& launch) const {
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
  std::vector<std::pair<std::string, CppExpression>> ConfigurationList(const std::string& name) const {
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
  void Cluster(const CppExpression& e, HostLaunch& launch) const {
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
  void FieldsAssigned(std::string_view type, const std::string& name, size_t end,
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

  const SourceModel& model_;
  const SourceFunction& host_;
  const std::vector<CppToken>& tokens_;
  std::vector<HostLaunch>& found_;
  std::vector<HostCall>& calls_;
  HostValues values_;
  std::vector<std::pair<size_t, int>> cases_;
  std::vector<std::pair<CppExpression, bool>> conditions_;
  std::string dispatch_;
};

}  // namespace

bool Exclude(const HostLaunch& a, const HostLaunch& b) {
  for (const auto& condition : a.conditions) {
    for (const auto& other : b.conditions) {
      if (Contradict(condition, other)) return true;
    }
  }
  for (const auto& [where, group] : a.cases) {
    for (const auto& [other, other_group] : b.cases) {
      if (where == other && group != other_group) return true;
    }
  }
  return false;
}

std::vector<HostLaunch> FindLaunches(const SourceModel& model) {
  std::vector<HostLaunch> launches;
  std::vector<HostCall> calls;
  for (const SourceFunction& function : model.functions) {
    if (!function.kernel && !function.device) HostReader(model, function, launches, calls).Run();
  }
  const Callers callers(model, calls);
  std::map<const SourceFunction*, const HostLaunch*> known;
  for (HostLaunch& launch : launches) {
    const auto [first, added] = known.emplace(launch.host, &launch);
    if (added) {
      launch.host_templates = callers.Templates(*launch.host);
      launch.host_numbers = callers.Numbers(*launch.host);
      launch.other_numbers = callers.OtherNumbers(*launch.host);
      launch.host_reals = callers.Reals(*launch.host);
    } else {
      launch.host_templates = first->second->host_templates;
      launch.host_numbers = first->second->host_numbers;
      launch.other_numbers = first->second->other_numbers;
      launch.host_reals = first->second->host_reals;
    }
  }
  return launches;
}

}  // namespace pawl
