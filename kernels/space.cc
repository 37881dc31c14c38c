#include "kernels/space.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/expression/expression.h"
#include "kernels/variable_values.h"

namespace pawl {
namespace {

// A constraint at one size, with the places its values come from.
struct BoundConstraint {
  std::shared_ptr<Expression> expression;            // parsed once for all sizes
  std::vector<double> values;                        // in the order of the expression's names; sizes are filled in
  std::vector<std::pair<size_t, size_t>> variables;  // index into values, index of the variable
  size_t last = 0;                                   // the last variable it reads: it can be evaluated from there on
  int place = 0;                                     // in the bundle's list

  absl::StatusOr<bool> Holds(const std::vector<int32_t>& assignment) {
    for (const auto& [to, from] : variables) values[to] = assignment[from];
    absl::StatusOr<double> result = expression->Evaluate(values);
    if (!result.ok()) return result.status();
    return *result != 0;
  }
};

absl::StatusOr<std::vector<BoundConstraint>> BindConstraints(const v1::Bundle& bundle) {
  std::map<std::string, size_t> index;
  for (int i = 0; i < bundle.variables_size(); ++i) index[bundle.variables(i).name()] = i;
  std::vector<BoundConstraint> bound;
  for (int place = 0; place < bundle.constraints_size(); ++place) {
    const absl::StatusOr<std::string> plain = WithoutWords(bundle, bundle.constraints(place).that());
    if (!plain.ok()) return plain.status();
    absl::StatusOr<Expression> parsed = Expression::Parse(*plain);
    if (!parsed.ok()) return parsed.status();
    const auto expression = std::make_shared<Expression>(*std::move(parsed));
    std::set<std::vector<double>> seen;  // sizes that look the same to this constraint are one
    for (int s = 0; s < std::max(1, bundle.sizes_size()); ++s) {
      BoundConstraint b{expression, {}, {}, 0, place};
      for (const std::string& name : expression->names()) {
        if (auto it = index.find(name); it != index.end()) {
          b.variables.emplace_back(b.values.size(), it->second);
          b.last = std::max(b.last, it->second);
          b.values.push_back(0);
        } else if (s < bundle.sizes_size() && bundle.sizes(s).values().contains(name)) {
          b.values.push_back(bundle.sizes(s).values().at(name));
        } else {
          return absl::InvalidArgumentError(absl::StrCat("constraint \"", bundle.constraints(place).that(), "\" uses ",
                                                         name, ", which is neither a variable nor a size"));
        }
      }
      const bool uses_sizes = b.variables.size() < b.values.size();
      if (seen.insert(b.values).second) bound.push_back(std::move(b));
      if (!uses_sizes) break;
    }
  }
  return bound;
}

std::string AssignmentText(const v1::Bundle& bundle, const std::vector<int32_t>& assignment, size_t count) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < count; ++i) {
    parts.push_back(absl::StrCat(bundle.variables(i).name(), "=", ValueText(bundle.variables(i), assignment[i])));
  }
  return absl::StrJoin(parts, " ");
}

}  // namespace

v1::Variant StartVariant(const v1::Bundle& bundle) {
  v1::Variant variant;
  for (const v1::Variable& variable : bundle.variables()) {
    (*variant.mutable_values())[variable.name()] = variable.start();
  }
  return variant;
}

int64_t SpaceSize(const v1::Bundle& bundle) {
  int64_t size = 1;
  for (const v1::Variable& variable : bundle.variables()) {
    if (__builtin_mul_overflow(size, static_cast<int64_t>(variable.values_size()), &size)) {
      return std::numeric_limits<int64_t>::max();
    }
  }
  return size;
}

absl::Status VisitAllowed(const v1::Bundle& bundle, const std::function<bool(const std::vector<int32_t>&)>& visit,
                          int64_t most) {
  if (SpaceSize(bundle) > kMaxSpace) {
    return absl::ResourceExhaustedError(absl::StrCat("the space has more than ", kMaxSpace,
                                                     " variants: remove values or variables, constraints don't help"));
  }
  absl::StatusOr<std::vector<BoundConstraint>> constraints = BindConstraints(bundle);
  if (!constraints.ok()) return constraints.status();
  const size_t count = bundle.variables_size();
  std::vector<int32_t> assignment(count);
  std::vector<int> position(count, -1);
  int64_t steps = 0;
  // A prefix that a constraint forbids is not extended.
  const auto allowed = [&](size_t depth) -> absl::StatusOr<bool> {
    if (++steps > most) {
      return absl::ResourceExhaustedError(absl::StrCat("there are more combinations than can be looked at in ", most,
                                                       " steps: remove values or variables"));
    }
    for (BoundConstraint& constraint : *constraints) {
      if (constraint.last != depth) continue;
      ++steps;
      absl::StatusOr<bool> holds = constraint.Holds(assignment);
      if (!holds.ok()) {
        return absl::InvalidArgumentError(absl::StrCat(holds.status().message(), " at ",
                                                       AssignmentText(bundle, assignment, std::min(count, depth + 1))));
      }
      if (!*holds) return false;
    }
    return true;
  };
  if (count == 0) {
    absl::StatusOr<bool> good = allowed(0);
    if (!good.ok()) return good.status();
    if (*good) visit(assignment);
    return absl::OkStatus();
  }
  for (size_t depth = 0;;) {
    if (++position[depth] == bundle.variables(depth).values_size()) {
      position[depth] = -1;
      if (depth == 0) return absl::OkStatus();
      --depth;
      continue;
    }
    assignment[depth] = bundle.variables(depth).values(position[depth]);
    absl::StatusOr<bool> good = allowed(depth);
    if (!good.ok()) return good.status();
    if (!*good) continue;
    if (depth + 1 < count) {
      ++depth;
    } else if (!visit(assignment)) {
      return absl::OkStatus();
    }
  }
}

absl::StatusOr<int64_t> CountAllowed(const v1::Bundle& bundle, int64_t most) {
  int64_t allowed = 0;
  absl::Status status = VisitAllowed(
      bundle,
      [&](const std::vector<int32_t>&) {
        ++allowed;
        return true;
      },
      most);
  if (!status.ok()) return status;
  return allowed;
}

absl::StatusOr<std::vector<v1::Variant>> AllowedVariants(const v1::Bundle& bundle) {
  std::vector<v1::Variant> variants;
  bool full = false;
  absl::Status status = VisitAllowed(bundle, [&](const std::vector<int32_t>& assignment) {
    if (static_cast<int64_t>(variants.size()) == kMaxListed) {
      full = true;
      return false;
    }
    v1::Variant& variant = variants.emplace_back();
    for (size_t i = 0; i < assignment.size(); ++i) {
      (*variant.mutable_values())[bundle.variables(i).name()] = assignment[i];
    }
    return true;
  });
  if (!status.ok()) return status;
  if (full) {
    return absl::ResourceExhaustedError(absl::StrCat("the constraints allow more than ", kMaxListed,
                                                     " variants, too many to list: remove values or add constraints"));
  }
  return variants;
}

struct AllowedSpace::Bound {
  absl::StatusOr<std::vector<BoundConstraint>> constraints;
};

AllowedSpace::AllowedSpace(const v1::Bundle& bundle)
    : bundle_(bundle), bound_(std::make_unique<Bound>(Bound{BindConstraints(bundle)})) {}

AllowedSpace::~AllowedSpace() = default;

absl::StatusOr<bool> AllowedSpace::Has(const v1::Variant& variant) {
  absl::StatusOr<std::string> forbidding = Forbidding(variant);
  if (!forbidding.ok()) return forbidding.status();
  return forbidding->empty();
}

absl::StatusOr<std::string> AllowedSpace::Forbidding(const v1::Variant& variant) {
  std::vector<int32_t> assignment;
  for (const v1::Variable& variable : bundle_.variables()) {
    const auto it = variant.values().find(variable.name());
    if (it == variant.values().end()) {
      return absl::InvalidArgumentError(absl::StrCat("the variant has no value for ", variable.name()));
    }
    if (std::find(variable.values().begin(), variable.values().end(), it->second) == variable.values().end()) {
      return absl::InvalidArgumentError(
          absl::StrCat(variable.name(), "=", it->second, " is not among its values ", ValuesText(variable)));
    }
    assignment.push_back(it->second);
  }
  if (variant.values_size() != bundle_.variables_size()) {
    return absl::InvalidArgumentError(absl::StrCat("the variant \"", VariantText(bundle_, variant),
                                                   "\" has variables that bundle ", bundle_.name(), " lacks"));
  }
  if (!bound_->constraints.ok()) return bound_->constraints.status();
  for (BoundConstraint& constraint : *bound_->constraints) {
    absl::StatusOr<bool> holds = constraint.Holds(assignment);
    if (!holds.ok()) return holds.status();
    if (!*holds) return bundle_.constraints(constraint.place).that();
  }
  return std::string();
}

absl::StatusOr<bool> IsAllowed(const v1::Bundle& bundle, const v1::Variant& variant) {
  return AllowedSpace(bundle).Has(variant);
}

std::string VariantText(const v1::Variant& variant) {
  const std::map<std::string, int32_t> sorted(variant.values().begin(), variant.values().end());
  return absl::StrJoin(sorted, " ", absl::PairFormatter("="));
}

}  // namespace pawl
