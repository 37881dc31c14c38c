// Numbers of a launch that follow variables: blocks, grids that divide by them, and shared memory (declared in
// drafting.h). Where it is not certain what a number is made of, it stays, and what it may depend on is not varied.
#include <algorithm>
#include <functional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/draft/drafting.h"
#include "cli/draft/read/constants.h"
#include "cli/draft/read/translation.h"
#include "cli/draft/tuning.h"

namespace pawl {
namespace {

using Kind = CppExpression::Kind;

// Whether the number `at` is the second argument of ceil_div: in min(ceil_div(n, 256), 1024) 256 alone.
bool IsRoundedDivisor(const std::vector<CppToken>& tokens, size_t at) {
  if (!tokens[at - 1].Is(",") || at + 1 >= tokens.size() || !tokens[at + 1].Is(")")) return false;
  int open = 0;
  for (size_t i = at - 1; i-- > 0;) {
    open += tokens[i].Is("(") ? 1 : tokens[i].Is(")") ? -1 : 0;
    if (open > 0) return i > 0 && tokens[i - 1].Is("ceil_div");
  }
  return false;
}

// The numbers by which an extent divides, ceil_div(n, 256) and floor(n / 256), as `replaced` has them; empty: as it is.
std::string WithDivisors(const std::string& extent, const std::function<std::string(int64_t)>& replaced) {
  return Rewritten(extent, [&](size_t i, const std::vector<CppToken>& tokens) -> std::string {
    if (i == 0 || tokens[i].kind != CppToken::Kind::kNumber) return "";
    const bool over = tokens[i - 1].Is("/");
    const std::optional<int64_t> number = NumberIn(std::string(tokens[i].text));
    if (!number || *number < 2 || (!over && !IsRoundedDivisor(tokens, i))) return "";
    const std::string text = replaced(*number);
    return over && absl::StrContains(text, " ") ? absl::StrCat("(", text, ")") : text;
  });
}

constexpr int64_t kMostTied = 1 << 20;  // numbers beyond are no count of threads or elements of a block

// A template argument of a launch, of which a number of the geometry may be made.
struct Factor {
  size_t parameter = 0;
  int64_t number = 0;
  std::string text;  // a variable, or the number
  bool varies = false;
  Tunable tunable = Tunable::kNone;
};

struct Product {
  std::vector<std::string> factors;
  bool varies = false, ambiguous = false;

  std::string Text() const { return absl::StrJoin(factors, " * "); }
  bool IsCertain() const { return varies && !ambiguous; }
};

// The product of the fewest arguments that is this number, each argument once, as `best`.
void FindProduct(const std::vector<Factor>& factors, size_t from, int64_t number, const Product& made, Product& best) {
  constexpr size_t kMostFactors = 3;
  if (number == 1 && !made.factors.empty()) {
    const bool as_few = made.factors.size() == best.factors.size();
    if (best.factors.empty() || made.factors.size() < best.factors.size()) best = made;
    if (as_few && made.Text() != best.Text()) best.ambiguous = true;  // BM and BN of 64 both
    return;
  }
  for (size_t i = from; i < factors.size() && made.factors.size() < kMostFactors; ++i) {
    if (number % factors[i].number != 0) continue;
    Product longer = made;
    longer.factors.push_back(factors[i].text);
    longer.varies = made.varies || factors[i].varies;
    size_t next = i + 1;
    while (next < factors.size() && factors[next].parameter == factors[i].parameter) ++next;
    FindProduct(factors, next, number / factors[i].number, longer, best);
  }
}

Product ProductOf(const std::vector<Factor>& factors, int64_t number) {
  Product best;
  if (number <= kMostTied) FindProduct(factors, 0, number, {}, best);
  return best;
}

// Bytes of shared memory with the block's variable where they count its threads: a number in a product, 256 *
// sizeof(float), or a name that the block has as well. Another name of the same worth is another count.
CppExpression WithBlock(const CppExpression& e, const HostLaunch& host, int64_t threads, const std::string& variable,
                        int steps = 0) {
  const auto text = [](const std::vector<CppExpression>& list) {
    return absl::StrJoin(list, ", ", [](std::string* out, const CppExpression& own) { *out += CppText(own); });
  };
  CppExpression block;
  block.kind = Kind::kName;
  block.text = variable;
  const bool is_axis = e.kind == Kind::kMember && e.parts[0].kind == Kind::kName && e.text == "x";
  if (e.kind == Kind::kName || is_axis) {
    const auto value = host.values.find(is_axis ? e.parts[0].text : e.text);
    const bool own =
        is_axis ? value != host.values.end() && value->second.is_dim3 && text(value->second.parts) == text(host.block)
                : host.block.size() == 1 && host.block[0].IsName(e.text);
    if (own && ConstantValue(Resolved(e, host.values), {}) == threads) return block;
    if (is_axis || value == host.values.end() || value->second.parts.size() != 1 || steps > 8) return e;
    // size_t bytes = 256 * sizeof(float);
    const CppExpression made = WithBlock(value->second.parts[0], host, threads, variable, steps + 1);
    return CppText(made) == CppText(value->second.parts[0]) ? e : made;
  }
  CppExpression result = e;
  for (size_t i = e.kind == Kind::kCall ? 1 : 0; i < e.parts.size(); ++i) {
    const bool counts = e.kind == Kind::kBinary && (e.text == "*" || (e.text == "/" && i == 0)) &&
                        e.parts[i].kind == Kind::kNumber && ConstantValue(e.parts[i], {}) == threads;
    result.parts[i] = counts ? block : WithBlock(e.parts[i], host, threads, variable, steps);
  }
  return result;
}

// Whether the host makes the expression of the block's extents: block.x, or the variable that the block is.
bool IsMadeOfBlock(const CppExpression& e, const HostLaunch& host, int steps = 0) {
  constexpr int kMaxSteps = 8;
  const auto text = [](const std::vector<CppExpression>& list) {
    return absl::StrJoin(list, ", ", [](std::string* out, const CppExpression& own) { *out += CppText(own); });
  };
  const bool member = e.kind == Kind::kMember && e.parts[0].kind == Kind::kName;
  if (member || e.kind == Kind::kName) {
    const auto value = host.values.find(member ? e.parts[0].text : e.text);
    if (value != host.values.end() && value->second.is_dim3 && text(value->second.parts) == text(host.block))
      return true;
    if (std::any_of(host.block.begin(), host.block.end(),
                    [&](const CppExpression& own) { return !member && own.IsName(e.text); })) {
      return true;
    }
    return !member && value != host.values.end() && value->second.parts.size() == 1 && steps < kMaxSteps &&
           IsMadeOfBlock(value->second.parts[0], host, steps + 1);
  }
  return std::any_of(e.parts.begin(), e.parts.end(),
                     [&](const CppExpression& part) { return IsMadeOfBlock(part, host, steps); });
}

}  // namespace

bool Drafting::HasNumber(const PlannedKernel& planned, int64_t number) const {
  const KernelBody& body = planned.body;
  return std::any_of(body.numbers.begin(), body.numbers.end(),
                     [&](const std::string& own) { return WholeNumber(own) == number; }) ||
         std::any_of(model_.constants.begin(), model_.constants.end(),
                     [&](const SourceConstant& constant) {
                       return constant.value == number && body.words.contains(constant.name) &&
                              (!constant.local || body.definitions.contains(constant.name));
                     }) ||
         std::any_of(planned.templates.begin(), planned.templates.end(), [&](const auto& bound) {
           const SourceConstant* constant = model_.FindConstant(bound.second);
           const std::optional<int64_t> worth =
               constant == nullptr ? NumberIn(bound.second) : std::optional(constant->value);
           return worth == number && body.words.contains(bound.first);
         });
}

void Drafting::TieGeometry(const PlannedKernel& planned, DraftLaunch& launch) {
  constexpr size_t kMostArguments = 16;
  std::vector<Factor> factors, of_block;
  for (size_t i = 0; i < planned.kernel->templates.size() && i < kMostArguments; ++i) {
    const TemplateParameter& parameter = planned.kernel->templates[i];
    const std::string& argument = planned.templates.at(parameter.name);
    const std::optional<int64_t> number = parameter.is_type ? std::nullopt : NumberIn(argument);
    if (!number || *number < 2 || *number > kMostTied) continue;
    const std::optional<std::string> variable = variables_->TemplateVariable(parameter, argument);
    const Tunable tunable = TunableOf(parameter.name, *number, false);
    factors.push_back({i, *number, variable.value_or(argument), variable.has_value(), tunable});
    if (tunable == Tunable::kWarps) {
      factors.push_back({i, *number * 32, absl::StrCat(factors.back().text, " * 32"), variable.has_value(), tunable});
    }
  }
  // What a block is made of. A tile is a whole axis of a block of several, and no other block is made of tiles.
  for (const Factor& factor : factors) {
    if (factor.tunable == Tunable::kBlock || factor.tunable == Tunable::kWarps ||
        (factor.tunable == Tunable::kTile && launch.block.size() > 1)) {
      of_block.push_back(factor);
    }
  }
  const auto taken = [&](int64_t number, const std::string& what, const std::string& text) {
    const std::string todo = absl::StrCat("geometry: ", number, " is taken for ", what, text);
    if (std::find(launch.todos.begin(), launch.todos.end(), todo) == launch.todos.end()) launch.todos.push_back(todo);
    return text;
  };
  const auto tied = [&](int64_t number, const Product& product) -> std::string {
    if (!product.IsCertain()) return "";
    return taken(number, product.factors.size() > 1 ? "the template arguments " : "the template argument ",
                 product.Text());
  };
  for (std::string& extent : launch.grid) {
    extent = WithDivisors(extent, [&](int64_t number) { return tied(number, ProductOf(factors, number)); });
  }
  for (size_t axis = 0; axis < launch.block.size(); ++axis) {
    const std::optional<int64_t> threads = NumberIn(launch.block[axis]);
    if (!threads || *threads < 2 || *threads > kMostTied) continue;
    // Numbers that stay, and may be made of the block: of several products, or as many as the block has groups.
    bool hidden = false;
    const auto own = [&](size_t i) { return launch.block.size() == 1 || i == axis; };
    for (size_t i = 0; i < launch.grid.size(); ++i) {
      bool by_block = false, by_groups = false;
      WithDivisors(launch.grid[i], [&](int64_t divisor) {
        by_block = by_block || divisor % *threads == 0;
        if (!own(i) || HasNumber(planned, divisor)) return "";
        hidden = hidden || ProductOf(factors, divisor).ambiguous;
        by_groups = by_groups || (*threads % divisor == 0 && divisor * 8 <= *threads);
        return "";
      });
      hidden = hidden || (by_groups && !by_block);
      // (768 + block.x - 1) / block.x is a number here.
      hidden = hidden || (NumberIn(launch.grid[i]) && i < planned.launch->grid.size() &&
                          IsMadeOfBlock(planned.launch->grid[i], *planned.launch));
    }
    if (hidden) continue;
    const Product product = ProductOf(of_block, *threads);
    std::string text = launch.block.size() > 1 && product.factors.size() > 1 ? "" : tied(*threads, product);
    if (product.factors.empty() && !HasNumber(planned, *threads)) {
      const std::string wanted =
          launch.block.size() == 1 ? "BLOCK" : absl::StrCat("BLOCK_", std::string(1, "XYZ"[axis % 3]));
      text = variables_->AddBlock(wanted, launch.block[axis], planned.body).value_or("");
    }
    if (text.empty()) continue;
    launch.block[axis] = text;
    for (size_t i = 0; i < launch.grid.size(); ++i) {
      launch.grid[i] = WithDivisors(launch.grid[i], [&](int64_t divisor) -> std::string {
        if (!own(i) || divisor % *threads != 0) return "";
        if (divisor == *threads) return text;
        if (HasNumber(planned, divisor)) return "";
        return taken(divisor, "", absl::StrCat(text, " * ", divisor / *threads));
      });
    }
  }
}

void Drafting::Shared(const PlannedKernel& planned, const std::vector<std::string>& numbers, DraftLaunch& launch) {
  const HostLaunch& host = *planned.launch;
  CppExpression bytes = *host.shared;
  const bool tied = numbers.size() == 1 && numbers != launch.block && IsName(launch.block[0]);
  if (tied) bytes = WithBlock(bytes, host, *NumberIn(numbers[0]), launch.block[0]);
  std::string missing;
  std::optional<std::string> text = HostText(bytes, planned, &missing);
  if (!text) launch.todos.push_back(absl::StrCat("shared: `", CppText(*host.shared), "` uses ", missing));
  if (!text || *text == "0") return;
  launch.shared = *text;
}

void Drafting::NoteFixed(const PlannedKernel& planned, DraftLaunch& launch) {
  const HostLaunch& host = *planned.launch;
  const std::map<std::string, int64_t> constants = ConstantValues(model_);
  for (size_t axis = 0; axis < launch.block.size() && axis < host.block.size(); ++axis) {
    const std::vector<CppToken> block = CppTokens(launch.block[axis]), shared = CppTokens(launch.shared);
    const bool varies = std::any_of(block.begin(), block.end(), [&](const CppToken& token) {
      return token.IsWord() && !variables_->ValuesOf(std::string(token.text)).empty();
    });
    const std::optional<int64_t> threads = ConstantValue(Resolved(host.block[axis], host.values), constants);
    if (!varies || !threads || *threads < 2) continue;
    const auto note = [&](const char* where, const std::string& what) {
      const std::string todo = absl::StrCat(where, ": ", launch.block[axis], " is varied and `", what,
                                            "` does not follow it: does it depend on the block?");
      if (std::find(launch.todos.begin(), launch.todos.end(), todo) == launch.todos.end()) launch.todos.push_back(todo);
    };
    for (size_t i = 0; i < launch.grid.size(); ++i) {
      if (launch.block.size() > 1 && i != axis) continue;
      WithDivisors(launch.grid[i], [&](int64_t divisor) {
        if (divisor % *threads == 0) note("grid", absl::StrCat(divisor));
        return "";
      });
    }
    const bool named = std::any_of(shared.begin(), shared.end(), [](const CppToken& token) { return token.IsWord(); });
    const bool multiple = std::any_of(shared.begin(), shared.end(), [&](const CppToken& token) {
      return NumberIn(std::string(token.text)).value_or(1) % *threads == 0;
    });
    if (!shared.empty() && (!named || multiple)) note("shared", CppText(*host.shared));
  }
}

}  // namespace pawl
