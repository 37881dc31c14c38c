// Arithmetic over metrics, where a missing input makes the result missing.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/expression/expression.h"

namespace pawl {

// Copies share the parsed expression. Thread-safe.
class Formula {
 public:
  static absl::StatusOr<Formula> Parse(const std::string& text);

  const std::vector<std::string>& names() const { return shared_->names; }

  // No value when a name is not in `metrics` or the result is not finite.
  std::optional<double> Evaluate(const std::map<std::string, double>& metrics) const;

 private:
  struct Shared {
    explicit Shared(Expression parsed) : names(parsed.names()), expression(std::move(parsed)) {}
    const std::vector<std::string> names;
    absl::Mutex mutex;
    Expression expression ABSL_GUARDED_BY(mutex);  // evaluation writes into it
  };
  explicit Formula(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
  std::shared_ptr<Shared> shared_;
};

}  // namespace pawl
