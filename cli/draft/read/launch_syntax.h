// The ways in which host code writes a launch: k<<<grid, block>>>(x), and the functions of the runtime.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/draft/read/host_launches.h"
#include "cli/draft/read/host_variables.h"
#include "cli/draft/read/source_model.h"

namespace pawl {

// Reads the launches of one host function where its variables have these values. All must outlive it.
class LaunchSyntax {
 public:
  LaunchSyntax(const SourceModel& model, const SourceFunction& host, const HostVariables& variables)
      : model_(model), host_(host), tokens_(host.file->tokens), variables_(variables), values_(variables.values()) {}

  static bool IsLaunchFunction(std::string_view name);

  // The launch whose <<< is the token `at`, in a statement that ends before `end`. Nothing: it is none of a kernel of
  // the source.
  std::optional<HostLaunch> Chevrons(size_t at, size_t end) const;
  // The launch by the function of the runtime whose name is the token `at`.
  std::optional<HostLaunch> Function(size_t at) const;

 private:
  std::optional<CppExpression> Parsed(std::pair<size_t, size_t> range) const;
  HostLaunch Begin(int line) const;
  std::vector<CppExpression> Extents(const CppExpression& e) const;
  const SourceFunction* KernelOf(const std::string& name, std::vector<std::string>* arguments) const;
  std::optional<CppExpression> LastName(std::pair<size_t, size_t> range) const;
  std::vector<CppExpression> ArgumentList(const CppExpression& list) const;
  void Configuration(std::pair<size_t, size_t> range, HostLaunch& launch) const;
  std::vector<std::pair<std::string, CppExpression>> ConfigurationList(const std::string& name) const;
  void Cluster(const CppExpression& e, HostLaunch& launch) const;
  void FieldsAssigned(std::string_view type, const std::string& name, size_t end,
                      const std::function<void(size_t, const CppExpression&)>& visit) const;

  const SourceModel& model_;
  const SourceFunction& host_;
  const std::vector<CppToken>& tokens_;
  const HostVariables& variables_;
  const HostValues& values_;
};

}  // namespace pawl
