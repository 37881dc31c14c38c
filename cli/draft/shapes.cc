#include "cli/draft/shapes.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/draft/constants.h"

namespace pawl {
namespace {

using Kind = CppExpression::Kind;

constexpr int kMaxSteps = 16;
constexpr size_t kMaxTerms = 64;

// A product: a number, sizes, and what runs (a thread's index, a loop's variable).
struct Term {
  int64_t number = 1;
  std::vector<std::string> sizes;  // in kernel.toml's words, in the order of the text
  std::vector<CppExpression> running;
};

class Indexing {
 public:
  explicit Indexing(const ShapeScope& scope) : scope_(scope) {}

  // The sum of products that an index is; empty: it is too large a one.
  std::vector<Term> Terms(const CppExpression& e, int steps = 0) {
    if (const std::optional<int64_t> number = ConstantValue(e, {})) return {Term{*number, {}, {}}};
    if (steps > kMaxSteps) return {Running(e)};
    switch (e.kind) {
      case Kind::kCast:
        return Terms(e.parts[0], steps + 1);
      case Kind::kName:
        return Name(e, steps);
      case Kind::kBinary:
        return Binary(e, steps);
      case Kind::kCall:
        if (e.parts.size() == 2 && e.parts[0].kind == Kind::kName && IsCastName(e.parts[0].text)) {
          return Terms(e.parts[1], steps + 1);
        }
        return {Running(e)};
      default:
        if (std::optional<std::string> size = Size(e)) return {Term{1, {*size}, {}}};
        return {Running(e)};
    }
  }

  // What an index that runs stays below; "?": only data tell.
  std::string Bound(const CppExpression& e, int steps = 0) {
    if (steps > kMaxSteps) return "?";
    if (const auto found = scope_.body->bounds.find(CppText(e)); found != scope_.body->bounds.end()) {
      if (std::optional<std::string> size = Size(found->second)) return *size;
      const std::string inner = Bound(found->second, steps + 1);
      if (inner != "?") return inner;
    }
    if (e.kind == Kind::kMember && e.parts[0].kind == Kind::kName) {
      const std::string axes = "xyz";
      const size_t axis = axes.find(e.text);
      const bool grid = e.parts[0].text == "blockIdx", block = e.parts[0].text == "threadIdx";
      if ((grid || block) && axis != std::string::npos) {
        const std::vector<std::string>& extents = grid ? scope_.grid : scope_.block;
        return axis < extents.size() ? extents[axis] : extents.empty() ? "?" : "1";
      }
    }
    if (e.kind == Kind::kBinary && e.text == "%") {
      if (std::optional<std::string> size = Size(e.parts[1])) return *size;
    }
    if (e.kind == Kind::kBinary && e.text == "/") {
      const std::string over = Bound(e.parts[0], steps + 1);
      std::optional<std::string> by = Size(e.parts[1]);
      if (over != "?" && by) return Quotient(over, *by);
    }
    if (e.kind == Kind::kName) {
      const auto made = scope_.body->definitions.find(e.text);
      if (made != scope_.body->definitions.end()) return Bound(made->second, steps + 1);
    }
    return "?";
  }

  // B * T / T is B.
  static std::string Quotient(const std::string& over, const std::string& by) {
    const std::string tail = absl::StrCat(" * ", by), head = absl::StrCat(by, " * ");
    if (over == by) return "1";
    if (absl::EndsWith(over, tail)) return over.substr(0, over.size() - tail.size());
    if (absl::StartsWith(over, head)) return over.substr(head.size());
    return absl::StrCat("ceil_div(", over, ", ", by, ")");
  }

  std::optional<std::string> Size(const CppExpression& e) const {
    std::optional<std::string> text = Translate(e, *scope_.model, scope_.size);
    return text;
  }

 private:
  static bool IsCastName(const std::string& name) {
    return name == "int" || name == "size_t" || name == "int64_t" || name == "uint32_t" || name == "unsigned" ||
           name == "long" || name == "__ldg" || name == "uint64_t";
  }

  static Term Running(const CppExpression& e) {
    Term term;
    term.running.push_back(e);
    return term;
  }

  std::vector<Term> Name(const CppExpression& e, int steps) {
    if (scope_.body->bounds.contains(e.text)) return {Running(e)};
    if (std::optional<std::string> size = scope_.size(e)) return {Term{1, {*size}, {}}};
    const auto made = scope_.body->definitions.find(e.text);
    if (made != scope_.body->definitions.end()) return Terms(made->second, steps + 1);
    return {Running(e)};
  }

  std::vector<Term> Binary(const CppExpression& e, int steps) {
    if (e.text == "+" || e.text == "-") {
      if (scope_.body->bounds.contains(CppText(e))) return {Running(e)};
      std::vector<Term> terms = Terms(e.parts[0], steps + 1);
      for (Term& term : Terms(e.parts[1], steps + 1)) {
        if (e.text == "-") term.number = -term.number;
        terms.push_back(std::move(term));
      }
      return Limited(std::move(terms), e);
    }
    if (e.text == "*") {
      std::vector<Term> product;
      for (const Term& a : Terms(e.parts[0], steps + 1)) {
        for (const Term& b : Terms(e.parts[1], steps + 1)) {
          Term term = a;
          term.number *= b.number;
          term.sizes.insert(term.sizes.end(), b.sizes.begin(), b.sizes.end());
          term.running.insert(term.running.end(), b.running.begin(), b.running.end());
          product.push_back(std::move(term));
        }
      }
      return Limited(std::move(product), e);
    }
    if (e.text == "<<") {
      if (const std::optional<int64_t> shift = ConstantValue(e.parts[1], {}); shift && *shift >= 0 && *shift < 31) {
        std::vector<Term> terms = Terms(e.parts[0], steps + 1);
        for (Term& term : terms) term.number *= int64_t{1} << *shift;
        return terms;
      }
    }
    if (std::optional<std::string> size = Size(e)) return {Term{1, {*size}, {}}};
    return {Running(e)};
  }

  static std::vector<Term> Limited(std::vector<Term> terms, const CppExpression& e) {
    if (terms.size() > kMaxTerms) return {Running(e)};
    return terms;
  }

  const ShapeScope& scope_;
};

// Removes each of `less` from `more` once; false: one is not there.
bool Subtract(std::vector<std::string>& more, const std::vector<std::string>& less) {
  for (const std::string& size : less) {
    const auto found = std::find(more.begin(), more.end(), size);
    if (found == more.end()) return false;
    more.erase(found);
  }
  return true;
}

std::optional<std::vector<std::string>> ShapeOfIndex(const CppExpression& index, Indexing& indexing) {
  std::vector<Term> terms = indexing.Terms(index);
  terms.erase(std::remove_if(terms.begin(), terms.end(), [](const Term& term) { return term.running.empty(); }),
              terms.end());
  // x[0]; x[n - 1 - i] has i as its only term that runs.
  if (terms.empty()) return std::nullopt;
  // blockIdx.x * blockDim.x + threadIdx.x without a bound: the threads of the grid.
  for (Term& term : terms) {
    if (term.number > 1) term.sizes.push_back(absl::StrCat(term.number));
    if (term.running.size() > 1) return std::nullopt;
  }
  std::stable_sort(terms.begin(), terms.end(),
                   [](const Term& a, const Term& b) { return a.sizes.size() > b.sizes.size(); });
  std::vector<std::string> shape = {indexing.Bound(terms[0].running[0])};
  std::vector<std::string> current = terms[0].sizes;
  for (size_t i = 1; i < terms.size() && !current.empty(); ++i) {
    if (terms[i].sizes.size() == current.size()) continue;
    std::vector<std::string> extent = current;
    if (!Subtract(extent, terms[i].sizes)) continue;
    shape.push_back(absl::StrJoin(extent, " * "));
    current = terms[i].sizes;
  }
  for (const std::string& size : current) shape.push_back(size);
  // A term of the leading kind that another one joins, x[(b + k) * C]: the bound of the first is a guess that stands.
  return shape;
}

}  // namespace

std::optional<std::vector<std::string>> ShapeOf(const std::vector<CppExpression>& indices, const ShapeScope& scope) {
  Indexing indexing(scope);
  std::optional<std::vector<std::string>> best;
  const auto unknown = [](const std::vector<std::string>& shape) {
    return std::count_if(shape.begin(), shape.end(),
                         [](const std::string& extent) { return absl::StrContains(extent, "?"); });
  };
  for (const CppExpression& index : indices) {
    std::optional<std::vector<std::string>> shape = ShapeOfIndex(index, indexing);
    if (!shape) continue;
    const bool better = !best || unknown(*shape) < unknown(*best) ||
                        (unknown(*shape) == unknown(*best) && shape->size() > best->size());
    if (better) best = std::move(shape);
  }
  return best;
}

}  // namespace pawl
