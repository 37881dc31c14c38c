// The variables of a draft: constants, template arguments, unroll factors and launch bounds of a source that can be
// varied, and compile options.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cli/draft/draft.h"
#include "cli/draft/read/host_launches.h"
#include "cli/draft/read/kernel_body.h"
#include "cli/draft/tuning.h"

namespace pawl {

class DraftVariables {
 public:
  using FreeName = std::function<std::string(const std::string& wanted)>;

  // The kernels and launches of the draft, with what each kernel's body says. All must outlive it.
  DraftVariables(const SourceModel& model, std::vector<const SourceFunction*> kernels,
                 std::vector<const KernelBody*> bodies, std::vector<const HostLaunch*> launches, FreeName free_name);

  // The variable that a constant of the source is; nothing: it is fixed.
  std::optional<std::string> NameOf(const std::string& constant) const;
  // Names that expressions should keep: the constants that are variables.
  std::vector<std::string> kept() const;

  // What a variable may be, in order; empty: there is no such variable.
  std::vector<std::string> ValuesOf(const std::string& name) const;

  // What stands for a template parameter in the entry: a variable, or the argument itself. `passed` is what a caller
  // gives where the argument is a parameter of the host's own template; empty: no caller does. Without an argument the
  // parameter is the host's own.
  std::string AddTemplate(const TemplateParameter& parameter, const std::string& argument,
                          const std::string& passed = "");
  // The variable that AddTemplate made of a number that is the argument of this parameter.
  std::optional<std::string> TemplateVariable(const TemplateParameter& parameter, const std::string& argument) const;
  // Whether a variable counts warps, of 32 threads each.
  bool IsWarps(const std::string& name) const;
  // Variables that were made of a template argument that is a number.
  std::vector<std::string> literal_templates() const;
  // A variable for a block of this many threads, a number that only the launch has. Nothing: the kernel depends on it.
  std::optional<std::string> AddBlock(const std::string& wanted, const std::string& threads, const KernelBody& body);
  // A parameter of the host function that is a block's size or the like; nothing: its name says no such thing.
  std::optional<std::string> AddLaunchParameter(const std::string& name, std::optional<int64_t> passed);
  // The block of a kernel that no launch gives one.
  std::string BoundsOrBlock(const SourceFunction& kernel, const KernelBody& body);

  // All of them. Constants that look tunable and are none are added to `left_out`, with the reason.
  std::vector<DraftVariable> Finish(std::vector<std::string>* left_out);

 private:
  void ReadConstants();
  void AddConstant(const SourceConstant& constant, Tunable tunable, bool in_kernel);
  bool InKernels(const std::string& name) const;
  void AddUnrolls(const SourceFunction& kernel);
  void AddLaunchBounds(const SourceFunction& kernel);
  DraftVariable& Add(const std::string& name, Tunable tunable, int64_t start, const std::string& why);
  // "constexpr int BLOCK = {};" where that stands exactly once in the files; empty: it does not.
  std::string Replaces(const std::string& before, const std::string& value, const std::string& after) const;

  const SourceModel& model_;
  std::vector<const SourceFunction*> kernels_;
  std::vector<const KernelBody*> bodies_;
  std::vector<const HostLaunch*> launches_;
  FreeName free_name_;
  std::set<std::string> in_geometry_;              // names that launches use
  std::map<std::string, std::string> in_symbols_;  // names in the extents of variables that the host fills, to these
  std::map<std::string, std::string> constants_;   // to their variables
  std::map<std::string, std::string> templates_;   // "ITEMS=4", or a parameter of the host's template, to the variable
  std::map<std::string, std::string> blocks_;      // "BLOCK=256", to the variable
  std::vector<DraftVariable> variables_;
  std::vector<std::string> left_out_;
};

}  // namespace pawl
