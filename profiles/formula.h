// Arithmetic over metrics, where a missing input makes the result missing.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/expression/expression.h"

namespace pawl {

// Copies share the parsed expression. Thread-safe.
class Formula {
 public:
  static absl::StatusOr<Formula> Parse(const std::string& text);

  const std::vector<std::string>& names() const { return shared_->expression.names(); }

  // No value when a name is not in `metrics` or the result is not finite.
  std::optional<double> Evaluate(const std::map<std::string, double>& metrics) const;

 private:
  struct Shared {
    std::mutex mutex;  // guards evaluation, which writes into the parser
    Expression expression;
  };
  explicit Formula(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
  std::shared_ptr<Shared> shared_;
};

}  // namespace pawl
