// Calls of host functions by others, and what they pass.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/draft/read/host_launches.h"
#include "cli/draft/read/source_model.h"

namespace pawl {

// A call of a host function by another.
struct HostCall {
  const SourceFunction* callee = nullptr;
  const SourceFunction* caller = nullptr;
  std::vector<std::string> template_arguments;
  std::vector<CppExpression> arguments;
  HostValues values;
};

// What the callers of a host function pass: the first call counts. The calls must outlive it.
class Callers {
 public:
  Callers(const SourceModel& model, const std::vector<HostCall>& calls);

  // The arguments of the host's own template; those that are the caller's are the caller's arguments.
  std::map<std::string, std::string> Templates(const SourceFunction& host, int depth = 0) const;
  // Whole numbers, by the host's parameters.
  std::map<std::string, int64_t> Numbers(const SourceFunction& host, int depth = 0) const;
  // What the calls behind the first pass as whole numbers, by the host's parameters; each number once, of many
  // the first.
  std::map<std::string, std::vector<int64_t>> OtherNumbers(const SourceFunction& host) const;
  // Numbers as they are written: 0.5 of scale(x, 0.5).
  std::map<std::string, std::string> Reals(const SourceFunction& host) const;
  // What the first call passes in the fields of structs, by PARAMETER.FIELD: numbers, and what is made of names that
  // the host does not have.
  std::map<std::string, CppExpression> Fields(const SourceFunction& host, int depth = 0) const;

 private:
  const HostCall* CallOf(const SourceFunction& host) const;

  const std::map<std::string, int64_t> constants_;
  const std::vector<HostCall>& calls_;
};

}  // namespace pawl
