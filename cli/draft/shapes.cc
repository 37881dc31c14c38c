#include "cli/draft/shapes.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cli/draft/read/constants.h"

namespace pawl {
namespace {

using Kind = CppExpression::Kind;

constexpr int kMaxShapeSteps = 16;
constexpr size_t kMaxTerms = 64;
constexpr size_t kMaxValues = 8;  // of a variable that is assigned again

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
    if (steps > kMaxShapeSteps) return {Running(e)};
    switch (e.kind) {
      case Kind::kCast:
        return Terms(e.parts[0], steps + 1);
      case Kind::kName:
        return Name(e, steps);
      case Kind::kBinary:
        return Binary(e, steps);
      case Kind::kCall:
        if (e.parts.size() == 3 && (e.parts[0].IsName("__mul24") || e.parts[0].IsName("__umul24"))) {
          CppExpression product;
          product.kind = Kind::kBinary;
          product.text = "*";
          product.parts = {e.parts[1], e.parts[2]};
          return Binary(product, steps);
        }
        if (e.parts.size() == 2 && e.parts[0].kind == Kind::kName && IsCastName(e.parts[0].text)) {
          return Terms(e.parts[1], steps + 1);
        }
        if (const std::optional<CppExpression> made = Inlined(e, *scope_.model)) return Terms(*made, steps + 1);
        return {Running(e)};
      default:
        if (std::optional<std::string> size = Size(e)) return {OfSize(*size)};
        return {Running(e)};
    }
  }

  // gridDim.x where that is a size: (blockIdx.y * gridDim.x + blockIdx.x) * dim
  std::optional<std::string> OfGrid(const CppExpression& e) const {
    const bool grid = e.kind == Kind::kMember && e.parts[0].IsName("gridDim") && e.text.size() == 1;
    const size_t axis = grid ? std::string("xyz").find(e.text) : std::string::npos;
    if (axis == std::string::npos || scope_.grid.empty()) return std::nullopt;
    const std::string extent = axis < scope_.grid.size() ? scope_.grid[axis] : "1";
    return extent.find_first_of("(?+-/%") == std::string::npos ? std::optional(extent) : std::nullopt;
  }

  // What an index that runs stays below; "?": only data tell.
  std::string Bound(const CppExpression& e, int steps = 0) {
    if (steps > kMaxShapeSteps) return "?";
    if (const auto found = scope_.body->bounds.find(CppText(e)); found != scope_.body->bounds.end()) {
      const std::string inner = Limit(found->second, steps);
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
      if (!absl::StrContains(over, "?") && by) return Quotient(over, *by);
    }
    // slot & (capacity - 1)
    if (e.kind == Kind::kBinary && e.text == "&") {
      if (const std::optional<int64_t> mask = ConstantValue(e.parts[1], {}); mask && *mask > 0)
        return absl::StrCat(*mask + 1);
      const CppExpression& by = e.parts[1];
      if (by.kind == Kind::kBinary && by.text == "-" && ConstantValue(by.parts[1], {}) == 1) {
        if (std::optional<std::string> size = Size(by.parts[0])) return *size;
      }
    }
    if (e.kind == Kind::kName) return BoundOfValues(e.text, steps);
    if (e.kind == Kind::kCall && e.parts.size() == 3 && absl::EndsWith(e.parts[0].text, "min"))
      return Limit(e, steps + 1);
    if (const std::optional<CppExpression> made = Inlined(e, *scope_.model)) return Bound(*made, steps + 1);
    return "?";
  }

  // The bound that all values of a variable have.
  std::string BoundOfValues(const std::string& name, int steps) {
    const auto values = scope_.body->values.find(name);
    if (values == scope_.body->values.end() || values->second.size() > kMaxValues) return "?";
    std::string bound;
    for (const CppExpression& value : values->second) {
      const std::string own = ConstantValue(value, {}) && values->second.size() > 1 ? bound : Bound(value, steps + 1);
      if (own == "?" || (!bound.empty() && own != bound)) return "?";
      bound = own;
    }
    return bound.empty() ? "?" : bound;
  }

  // The only value that a variable ever has; null: it is not known, or changes.
  const CppExpression* OnlyValue(const std::string& name) const {
    const auto values = scope_.body->values.find(name);
    return values == scope_.body->values.end() || values->second.size() != 1 ? nullptr : &values->second[0];
  }

  // What stands on the other side of i < ...: a size, the smaller of two, or something that has a bound itself.
  std::string Limit(const CppExpression& e, int steps) {
    if (e.kind == Kind::kCall && e.parts.size() == 3 && (e.parts[0].IsName("min") || e.parts[0].IsName("std::min"))) {
      for (const size_t part : {1, 2}) {
        const std::string limit = Limit(e.parts[part], steps + 1);
        if (!absl::StrContains(limit, "?")) return limit;
      }
      return "?";
    }
    if (std::optional<std::string> size = Size(e)) {
      // y < ny - 1 leaves a border, which the tensor has.
      const size_t minus = size->rfind(" - ");
      if (minus == std::string::npos || !NumberIn(size->substr(minus + 3))) return *size;
      border_ = true;
      return size->substr(0, minus);
    }
    // k < offsets[row + 1]: how far the data reach.
    if (const std::string data = DataOf(e); !data.empty()) return absl::StrCat("?", data);
    return Bound(e, steps + 1);
  }

  // The parameter whose element an index is: index[i], or a variable that holds it. Empty: none.
  std::string DataOf(const CppExpression& e, int steps = 0) const {
    if (steps > kMaxShapeSteps) return "";
    if (e.kind == Kind::kSubscript && scope_.body->pointers.contains(CppText(e.parts[0]))) return CppText(e.parts[0]);
    if (e.kind == Kind::kCast || e.kind == Kind::kPrefix) return DataOf(e.parts[0], steps + 1);
    if (e.kind == Kind::kBinary && (e.text == "/" || e.text == "%" || e.text == "+" || e.text == "-"))
      return DataOf(e.parts[0], steps + 1);
    if (e.kind == Kind::kCall && e.parts.size() == 2) return DataOf(e.parts[1], steps + 1);  // __ldg(&index[i])
    if (e.kind == Kind::kName) {
      if (const CppExpression* made = OnlyValue(e.text)) return DataOf(*made, steps + 1);
    }
    return "";
  }

  // Whether a bound since the last call left out a border: y < ny - 1.
  bool TakeBorder() { return std::exchange(border_, false); }

  // Of a product those at its top; all of it where it is a sum.
  static std::vector<std::string> Factors(const std::string& product) {
    std::vector<std::string> factors(1);
    int depth = 0;
    for (size_t i = 0; i < product.size(); ++i) {
      if (product[i] == '(') ++depth;
      if (product[i] == ')') --depth;
      if (depth == 0 && absl::StrContains("+-/%?<>", product.substr(i, 1))) return {product};
      if (depth == 0 && product.compare(i, 3, " * ") == 0) {
        factors.emplace_back();
        i += 2;
      } else {
        factors.back() += product[i];
      }
    }
    return factors;
  }

  // B * T / T is B.
  static std::string Quotient(const std::string& over, const std::string& by) {
    std::vector<std::string> factors = Factors(over);
    const auto found = std::find(factors.begin(), factors.end(), by);
    if (found == factors.end()) return absl::StrCat("ceil_div(", over, ", ", by, ")");
    factors.erase(found);
    return factors.empty() ? "1" : absl::StrJoin(factors, " * ");
  }

  // An expression of sizes, through variables that hold one: int vectors = cols / 4.
  std::optional<std::string> Size(const CppExpression& e, int steps = 0) const {
    return Translate(e, *scope_.model, [&](const CppExpression& leaf) -> std::optional<std::string> {
      if (std::optional<std::string> size = scope_.size(leaf)) return size;
      if (std::optional<std::string> size = OfGrid(leaf)) return size;
      const CppExpression* made = leaf.kind == Kind::kName ? OnlyValue(leaf.text) : nullptr;
      return made == nullptr || steps > kMaxShapeSteps ? std::nullopt : Size(*made, steps + 1);
    });
  }

 private:
  static bool IsCastName(const std::string& name) {
    return name == "int" || name == "size_t" || name == "int64_t" || name == "uint32_t" || name == "unsigned" ||
           name == "long" || name == "__ldg" || name == "uint64_t";
  }

  // A stride is a product of sizes: heads * dim.
  static Term OfSize(const std::string& size) {
    Term term;
    if (size.find_first_of("+-(/%?") != std::string::npos) {
      term.sizes = {size};
      return term;
    }
    for (const absl::string_view factor : absl::StrSplit(size, " * ")) {
      if (const std::optional<int64_t> number = NumberIn(std::string(factor))) {
        term.number *= *number;
      } else {
        term.sizes.emplace_back(factor);
      }
    }
    return term;
  }

  static Term Running(const CppExpression& e) {
    Term term;
    term.running.push_back(e);
    return term;
  }

  std::vector<Term> Name(const CppExpression& e, int steps) {
    if (scope_.body->bounds.contains(e.text)) return {Running(e)};
    if (std::optional<std::string> size = scope_.size(e)) return {OfSize(*size)};
    if (const CppExpression* made = OnlyValue(e.text)) return Terms(*made, steps + 1);
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
  bool border_ = false;
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

std::optional<std::vector<std::string>> ShapeOfIndex(const CppExpression& index, Indexing& indexing,
                                                     IndexedExtents& indexed) {
  std::vector<Term> terms = indexing.Terms(index);
  // x[0], x[2]
  if (terms.size() == 1 && terms[0].running.empty() && terms[0].sizes.empty() && terms[0].number >= 0) {
    return std::vector<std::string>{absl::StrCat(terms[0].number + 1)};
  }
  int64_t constant = 0;
  for (const Term& term : terms) {
    if (term.running.empty()) constant += term.sizes.empty() ? term.number : std::numeric_limits<int32_t>::min();
  }
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
  indexing.TakeBorder();
  std::vector<std::string> shape = {indexing.Bound(terms[0].running[0])};
  // offsets[row + 1] with row < rows
  if (terms.size() == 1 && terms[0].sizes.empty() && terms[0].number == 1 && constant > 0 && !indexing.TakeBorder() &&
      !absl::StrContains(shape[0], "?") && !NumberIn(shape[0])) {
    shape[0] = absl::StrCat(shape[0], " + ", constant);
  }
  std::vector<std::string> current = terms[0].sizes;
  const auto note = [&](const Term& term, const std::string& extent) {
    if (const std::string data = indexing.DataOf(term.running[0]); !data.empty()) indexed.emplace(data, extent);
  };
  note(terms[0], shape[0]);
  for (size_t i = 1; i < terms.size() && !current.empty(); ++i) {
    if (terms[i].sizes.size() == current.size()) continue;
    std::vector<std::string> extent = current;
    if (!Subtract(extent, terms[i].sizes)) continue;
    shape.push_back(absl::StrJoin(extent, " * "));
    note(terms[i], shape.back());
    current = terms[i].sizes;
  }
  for (const std::string& size : current) shape.push_back(size);
  // The tiles of a loop, t * 32 + i with t < ceil_div(k, 32): k of them.
  for (size_t i = 0; i + 1 < shape.size(); ++i) {
    // Vectors of a row, c * 4 with c < floor(cols / 4), likewise.
    for (const auto& [head, tail] :
         {std::pair<std::string, std::string>("ceil_div(", absl::StrCat(", ", shape[i + 1], ")")),
          std::pair<std::string, std::string>("floor(", absl::StrCat(" / ", shape[i + 1], ")"))}) {
      if (!absl::StartsWith(shape[i], head) || !absl::EndsWith(shape[i], tail)) continue;
      shape[i] = shape[i].substr(head.size(), shape[i].size() - head.size() - tail.size());
      shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      break;
    }
  }
  // A term of the leading kind that another one joins, x[(b + k) * C]: the bound of the first is a guess that stands.
  return shape;
}

}  // namespace

std::optional<std::string> StrideOf(const std::vector<CppExpression>& indices, const ShapeScope& scope,
                                    const std::string& parameter, const std::set<std::string>& strides, int steps) {
  constexpr int kMaxStrides = 4;  // in each other
  if (steps > kMaxStrides) return std::nullopt;
  ShapeScope with = scope;
  with.size = [&](const CppExpression& e) -> std::optional<std::string> {
    const std::string text = CppText(e);
    return text == parameter || strides.contains(text) ? text : scope.size(e);
  };
  Indexing indexing(with);
  for (const CppExpression& index : indices) {
    const std::vector<Term> terms = indexing.Terms(index);
    const auto used = std::find_if(terms.begin(), terms.end(), [&](const Term& term) {
      return term.sizes == std::vector<std::string>{parameter} && term.number == 1 && term.running.size() == 1;
    });
    if (used == terms.end()) continue;
    // Inner terms are written behind outer ones.
    const auto has_stride = [&](const Term& term) {
      return std::any_of(term.sizes.begin(), term.sizes.end(),
                         [&](const std::string& size) { return strides.contains(size) && size != parameter; });
    };
    const Term* inner = nullptr;
    for (auto term = terms.begin(); term != terms.end(); ++term) {
      if (term == used || term->running.size() != 1 || (term < used && has_stride(*term))) continue;
      const bool larger = inner == nullptr || (has_stride(*term) && !has_stride(*inner)) ||
                          (has_stride(*term) == has_stride(*inner) && term->sizes.size() > inner->sizes.size());
      if (larger) inner = &*term;
    }
    // Of several inner terms one that is not understood may be the larger.
    const bool unknown = std::any_of(terms.begin(), terms.end(), [&](const Term& term) {
      if (&term == &*used || term.running.empty() || (&term < &*used && has_stride(term))) return false;
      return term.running.size() > 1 || absl::StrContains(indexing.Bound(term.running[0]), "?");
    });
    if (inner == nullptr || unknown) continue;
    std::vector<std::string> factors = {indexing.Bound(inner->running[0])};
    for (const std::string& size : inner->sizes) {
      if (!strides.contains(size)) {
        factors.push_back(size);
        continue;
      }
      factors.push_back(StrideOf(indices, scope, size, strides, steps + 1).value_or("?"));
    }
    if (inner->number > 1) factors.push_back(absl::StrCat(inner->number));
    // floor(cols / 4) vectors of 4 are cols.
    if (factors.size() > 1 && absl::StartsWith(factors[0], "floor(")) {
      const std::string tail = absl::StrCat(" / ", factors.back(), ")");
      if (absl::EndsWith(factors[0], tail)) {
        factors[0] = factors[0].substr(6, factors[0].size() - 6 - tail.size());
        factors.pop_back();
      }
    }
    const std::string extent = absl::StrJoin(factors, " * ");
    if (absl::StrContains(extent, "?") || extent.find_first_of("+-") != std::string::npos) continue;
    return extent;
  }
  return std::nullopt;
}

std::optional<std::vector<std::string>> ShapeOf(const std::vector<CppExpression>& indices, const ShapeScope& scope,
                                                IndexedExtents* indexed) {
  Indexing indexing(scope);
  IndexedExtents found;
  std::optional<std::vector<std::string>> best;
  const auto unknown = [](const std::vector<std::string>& shape) {
    return std::count_if(shape.begin(), shape.end(),
                         [](const std::string& extent) { return absl::StrContains(extent, "?"); });
  };
  for (const CppExpression& index : indices) {
    std::optional<std::vector<std::string>> shape = ShapeOfIndex(index, indexing, found);
    if (!shape) continue;
    const auto number = [](const std::vector<std::string>& s) { return s.size() == 1 ? NumberIn(s[0]) : std::nullopt; };
    if (best && number(*shape) && (!number(*best) || *number(*best) >= *number(*shape))) continue;
    const bool longer = best && best->size() == 1 && shape->size() == 1 &&
                        absl::StartsWith((*shape)[0], absl::StrCat((*best)[0], " + "));
    const bool better = !best || longer || number(*best) || unknown(*shape) < unknown(*best) ||
                        (unknown(*shape) == unknown(*best) && shape->size() > best->size());
    if (better) best = std::move(shape);
  }
  if (indexed != nullptr) *indexed = std::move(found);
  return best;
}

}  // namespace pawl
