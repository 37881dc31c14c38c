#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/import/t1_file.h"
#include "cli/import/t4_file.h"
#include "pawl/v1/bundle.pb.h"

namespace pawl {

// The placeholder among the tensors of an imported bundle.
inline constexpr char kImportedOutput[] = "imported_output";

// The space of other people's results, in the terms of a bundle.
class ImportedSpace {
 public:
  struct Parameter {
    std::string name;                    // in the file
    std::vector<ParameterValue> values;  // in order
    bool indexed = false;                // they are no whole numbers: the variable has their places in the list, from 0
    std::string variable;                // its name in the bundle, where the file's can't be that
  };

  // The values are the problem's, or those that the results have. The start is the first correct result that has the
  // values in `start` (VARIABLE=VALUE, as the file has them); where none are asked for, the problem's own defaults if
  // those were correct.
  static absl::StatusOr<ImportedSpace> Make(const T4File& results, const std::optional<T1Problem>& problem,
                                            const std::vector<std::string>& start);

  const std::vector<Parameter>& parameters() const { return parameters_; }
  // Variables, constraints and one size: what spans the space.
  const v1::Bundle& bundle() const { return bundle_; }
  // The number of the start among the results.
  size_t start() const { return start_; }
  // Conditions that are no constraints of the bundle, and why: what they forbid is merely not recorded.
  const std::vector<std::pair<std::string, std::string>>& left_out() const { return left_out_; }

  v1::Variant VariantOf(const T4Result& result) const;

 private:
  absl::Status SetParameters(const T4File& results, const std::optional<T1Problem>& problem);
  absl::Status SetStart(const T4File& results, const std::optional<T1Problem>& problem,
                        const std::vector<std::string>& wanted);
  void AddConstraint(const std::string& condition, const T4File& results);
  int32_t ValueOf(const Parameter& parameter, const ParameterValue& value) const;

  std::vector<Parameter> parameters_;
  v1::Bundle bundle_;
  size_t start_ = 0;
  std::vector<std::pair<std::string, std::string>> left_out_;
};

}  // namespace pawl
