// What a host function's variables are worth, followed from statement to statement.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/draft/read/cpp_statement.h"
#include "cli/draft/read/host_launches.h"
#include "cli/draft/read/source_model.h"

namespace pawl {

// dim3(a, b), dim3{a, b}, {a, b}; nothing: a plain value.
std::optional<std::vector<CppExpression>> Dim3Parts(const CppExpression& e);

// A function of the host's that a variable holds: auto blocks = [&](int n) { return dim3(n / 32); };
struct HostLambda {
  std::vector<std::string> parameters;
  std::vector<CppStatement> body;
};

class HostVariables {
 public:
  // Both must outlive it.
  HostVariables(const SourceModel& model, const SourceFunction& host) : model_(model), host_(host) {}

  HostValues& values() { return values_; }
  const HostValues& values() const { return values_; }

  void Declare(const CppDeclarator& declarator);
  // An assignment, an exchange, a step: whatever else is an expression changes nothing.
  void Assign(const CppExpression& e);
  // int sms = 0; query(&sms): what a call gives a variable is not what it held before. A number other than 0 is what it
  // is unless the user says otherwise: int n = 1024; parse(argv, &n).
  void Filled(const CppExpression& call);

  void AddLambda(const std::string& name, HostLambda lambda) { lambdas_[name] = std::move(lambda); }
  const HostLambda* Lambda(const std::string& name) const;  // null: none has this name

  // The expression with what its calls return in their place, where that is one expression: of the host's own functions
  // all, of the source's those that return a dim3.
  CppExpression Written(const CppExpression& e, int depth = 0) const;

 private:
  void Fields(const CppDeclarator& declarator);
  void Exchange(const std::string& a, const std::string& b);
  bool IsPointerParameter(const std::string& name) const;

  const SourceModel& model_;
  const SourceFunction& host_;
  HostValues values_;
  std::map<std::string, HostLambda> lambdas_;
};

}  // namespace pawl
