#include "profiles/formula.h"

#include <cmath>
#include <utility>

namespace pawl {

absl::StatusOr<Formula> Formula::Parse(const std::string& text) {
  absl::StatusOr<Expression> expression = Expression::Parse(text);
  if (!expression.ok()) return expression.status();
  return Formula(std::make_shared<Shared>(*std::move(expression)));
}

std::optional<double> Formula::Evaluate(const std::map<std::string, double>& metrics) const {
  std::vector<double> values;
  for (const std::string& name : names()) {
    const auto at = metrics.find(name);
    if (at == metrics.end()) return std::nullopt;
    values.push_back(at->second);
  }
  absl::MutexLock lock(&shared_->mutex);
  const absl::StatusOr<double> result = shared_->expression.Evaluate(values);
  if (!result.ok() || !std::isfinite(*result)) return std::nullopt;
  return *result;
}

}  // namespace pawl
