#include "cli/draft/read/host_launches.h"

#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cli/draft/read/constants.h"
#include "cli/draft/read/host_calls.h"
#include "cli/draft/read/host_swaps.h"
#include "cli/draft/read/host_variables.h"
#include "cli/draft/read/launch_syntax.h"

namespace pawl {
namespace {

using Kind = CppExpression::Kind;

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
      : model_(model),
        host_(host),
        tokens_(host.file->tokens),
        found_(found),
        calls_(calls),
        variables_(model, host),
        values_(variables_.values()),
        syntax_(model, host, variables_) {}

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
    labels_.push_back({statement.expressions.empty() ? CppExpression{} : statement.expressions[0], {}});
    for (const CppStatement& block : statement.body) {
      bool left = false;
      for (const CppStatement& inner : block.body) {
        if (inner.kind == CppStatement::Kind::kCase) {
          if (left) {
            ++cases_.back().second;
            labels_.back().second.clear();
            left = false;
          }
          if (!inner.expressions.empty()) labels_.back().second.push_back(inner.expressions[0]);
        }
        const HostValues before = values_;
        const size_t launches = found_.size();
        Visit(inner);
        if (found_.size() > launches) values_ = before;
        left = left || Leaves(inner);
      }
    }
    cases_.pop_back();
    labels_.pop_back();
  }

  static bool Leaves(const CppStatement& statement) {
    if (statement.kind == CppStatement::Kind::kReturn || statement.kind == CppStatement::Kind::kJump) return true;
    return statement.kind == CppStatement::Kind::kBlock && !statement.body.empty() && Leaves(statement.body.back());
  }

  // Calls of host functions of the source, with what is passed.
  void Calls(const CppExpression& e) {
    for (const CppExpression& part : e.parts) Calls(part);
    if (e.kind != Kind::kCall || e.parts[0].kind != Kind::kName) return;
    variables_.Filled(e);
    const std::string& name = e.parts[0].text;
    Run(name, e);
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
          variables_.Declare(declarator);
        }
        if (!Names(statement)) Launches(statement);
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
          variables_.Assign(expression);
        }
        Launches(statement);
        return;
      default:
        for (const CppExpression& expression : statement.expressions) Calls(expression);
        if (statement.kind == StatementKind::kReturn) Launches(statement);
        VisitAll(statement.body);
    }
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

  static CppExpression Sum(const CppExpression& e, const std::string& op, int64_t number) {
    CppExpression one, sum;
    one.kind = Kind::kNumber;
    one.text = absl::StrCat(number);
    sum.kind = Kind::kBinary;
    sum.text = op;
    sum.parts = {e, one};
    return sum;
  }

  // A loop, whose body begins with the statement `body`.
  void Loop(const CppStatement& statement, size_t body, const std::string& text = "") {
    const size_t first = found_.size();
    const HostValues before = values_;
    std::optional<CppExpression> initial;
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
      const std::optional<int64_t> first_round =
          index.initial.size() == 1 ? ConstantValue(index.initial[0], {}) : std::nullopt;
      const bool below = condition.kind == Kind::kBinary && condition.parts[0].IsName(loop.index);
      if (up && first_round && below && (condition.text == "<" || condition.text == "<=")) {
        loop.plain = true;
        loop.shifted = *first_round != 0;
        loop.count = condition.parts[1];
        // for (i = 1; i <= n; ++i) makes n rounds.
        const int64_t fewer = *first_round - (condition.text == "<=" ? 1 : 0);
        if (fewer != 0) loop.count = Sum(loop.count, fewer < 0 ? "+" : "-", fewer < 0 ? -fewer : fewer);
      }
      if (index.initial.size() == 1) initial = Resolved(index.initial[0], values_);
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
      if (initial) found_[i].first_round.emplace(loop.index, *initial);
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
      any = any || tokens_[i].Is("<<<") || LaunchSyntax::IsLaunchFunction(tokens_[i].text);
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
      if (tokens_[i].Is("<<<")) Add(syntax_.Chevrons(i, end));
      if (LaunchSyntax::IsLaunchFunction(tokens_[i].text) && i + 1 < end && tokens_[i + 1].Is("("))
        Add(syntax_.Function(i));
    }
  }

  void Add(std::optional<HostLaunch> launch) {
    if (!launch) return;
    launch->conditions = conditions_;
    launch->cases = cases_;
    launch->labels = labels_;
    launch->dispatch = dispatch_;
    found_.push_back(*std::move(launch));
  }

  // auto run = [&](int n) { ... }; whose body runs where it is called. Whether the statement is one.
  bool Names(const CppStatement& statement) {
    const size_t end = std::min(statement.end, tokens_.size());
    size_t open = statement.begin;
    while (open < end && !tokens_[open].Is("[")) ++open;
    const bool named = statement.declared.size() == 1 && open > statement.begin && tokens_[open - 1].Is("=");
    const size_t body = named ? LambdaBody(open, end) : 0;
    if (body == 0) return false;
    HostLambda lambda;
    lambda.body = ParseCppBody(tokens_, body);
    const size_t list = ClosingBracket(tokens_, open) + 1;
    if (tokens_[list].Is("(")) {
      for (const auto& [from, to] : SplitAtCommas(tokens_, list + 1, ClosingBracket(tokens_, list)))
        lambda.parameters.emplace_back(tokens_[to - 1].text);
    }
    const std::string& name = statement.declared[0].name;
    bool called = false;
    const size_t behind = ClosingBracket(tokens_, host_.body);
    for (size_t i = end; i + 1 < tokens_.size() && i < behind; ++i)
      called = called || (tokens_[i].Is(name) && tokens_[i + 1].Is("("));
    variables_.AddLambda(name, std::move(lambda));
    return called;
  }

  static void AddDeclared(const std::vector<CppStatement>& body, std::set<std::string>& names) {
    for (const CppStatement& statement : body) {
      for (const CppDeclarator& declared : statement.declared) names.insert(declared.name);
      AddDeclared(statement.body, names);
    }
  }

  // What a lambda calls of itself again is not followed.
  void Run(const std::string& name, const CppExpression& call) {
    const HostLambda* lambda = variables_.Lambda(name);
    if (lambda == nullptr || !running_.insert(name).second) return;
    const HostLambda running = *lambda;
    const HostValues before = values_;
    for (size_t i = 0; i < running.parameters.size() && i + 1 < call.parts.size(); ++i) {
      CppDeclarator parameter;
      parameter.name = running.parameters[i];
      parameter.initial = {call.parts[i + 1]};
      variables_.Declare(parameter);
    }
    VisitAll(running.body);
    // What it gives the host's own variables stays.
    std::set<std::string> own(running.parameters.begin(), running.parameters.end());
    AddDeclared(running.body, own);
    for (auto& [variable, value] : values_) {
      for (CppExpression& part : value.parts) {
        const bool of_own = !own.contains(variable) &&
                            std::any_of(own.begin(), own.end(), [&](const auto& name) { return Mentions(part, name); });
        if (of_own) part = Resolved(part, values_);
      }
    }
    for (const std::string& local : own) {
      values_.erase(local);
      if (const auto outer = before.find(local); outer != before.end()) values_.insert(*outer);
    }
    running_.erase(name);
  }

  size_t LambdaBody(size_t open, size_t end) const {
    size_t at = ClosingBracket(tokens_, open) + 1;
    if (at < end && tokens_[at].Is("<")) at = SkipTemplateArguments(tokens_, at, end);  // []<typename T>()
    if (at < end && tokens_[at].Is("(")) at = ClosingBracket(tokens_, at) + 1;
    while (at < end && (tokens_[at].IsWord() || tokens_[at].Is("->"))) ++at;
    return at < end && tokens_[at].Is("{") ? at : 0;
  }

  const SourceModel& model_;
  const SourceFunction& host_;
  const std::vector<CppToken>& tokens_;
  std::vector<HostLaunch>& found_;
  std::vector<HostCall>& calls_;
  HostVariables variables_;
  HostValues& values_;
  const LaunchSyntax syntax_;
  std::set<std::string> running_;  // lambdas
  std::vector<std::pair<size_t, int>> cases_;
  std::vector<std::pair<CppExpression, std::vector<CppExpression>>> labels_;
  std::vector<std::pair<CppExpression, bool>> conditions_;
  std::string dispatch_;
};

// Whether the numbers that the first caller passes make the host launch it. Nothing: they do not tell.
std::optional<bool> Runs(const HostLaunch& launch, const std::map<std::string, int64_t>& constants) {
  std::map<std::string, int64_t> numbers = launch.host_numbers;
  for (const auto& [name, value] : constants) numbers.emplace(name, value);
  bool known = true;
  for (const auto& [condition, negative] : launch.conditions) {
    const std::optional<int64_t> holds = ConstantValue(Resolved(condition, launch.values), numbers);
    if (holds && (*holds != 0) == negative) return false;
    known = known && holds;
  }
  for (const auto& [compared, labels] : launch.labels) {
    const std::optional<int64_t> value = ConstantValue(Resolved(compared, launch.values), numbers);
    bool one_of = false;
    for (const CppExpression& label : labels) {
      const std::optional<int64_t> number = ConstantValue(label, numbers);
      one_of = one_of || (number && number == value);
      known = known && number;
    }
    if (!value || labels.empty()) {
      known = false;
    } else if (known && !one_of) {
      return false;
    }
  }
  return known && !(launch.conditions.empty() && launch.labels.empty()) ? std::optional(true) : std::nullopt;
}

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
    for (const auto& [field, value] : callers.Fields(*launch.host))
      launch.values.try_emplace(field, HostValue{{value}, false, ""});
    launch.runs = Runs(launch, ConstantValues(model));
  }
  return launches;
}

}  // namespace pawl
