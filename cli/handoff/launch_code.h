// Host code in C++ that launches kernels as a bundle says, for any size.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pawl/v1/bundle.pb.h"

namespace pawl {

// Which launches of a bundle: what their expressions may name, and where the kernels are.
struct LaunchUnit {
  enum class Kind { kImplementation, kReference, kSetup };
  Kind kind = Kind::kImplementation;
  std::string function;                          // Launch, LaunchReference, LaunchSetup
  std::string include;                           // what to #include; empty: the kernels are in a library
  std::map<std::string, std::string> renamed;    // macros around the #include
  std::map<std::string, int32_t> fixed_sizes;    // dimensions that the code is compiled for
  std::map<std::string, std::string> symbols;    // entries to their names in a library; of those that are known
  std::map<std::string, std::string> variables;  // of [[symbol]], in the same way
};

// Writes the parts of a hand-off that depend on the bundle. The bundle and the variant must outlive it.
class LaunchCode {
 public:
  LaunchCode(const v1::Bundle& bundle, const v1::Variant& variant, std::string name_space);

  // SizeNames(), TensorInfos() and ShapeOf(), for the header.
  absl::StatusOr<std::string> Tables();
  // Range, RangeOf() and Ladder(), for the program.
  absl::StatusOr<std::string> ProgramTables();
  // The function of a unit, with its kernels.
  absl::StatusOr<std::string> Unit(const LaunchUnit& unit);

  const std::vector<std::string>& sizes() const { return sizes_; }

 private:
  std::string Number(const std::string& expression, LaunchUnit::Kind kind);
  std::string Whole(const std::string& expression, LaunchUnit::Kind kind);
  std::string Dimensions(const google::protobuf::RepeatedPtrField<std::string>& extents, LaunchUnit::Kind kind);
  std::string SizeValues() const;
  // The C++ type and value of an argument that is no struct.
  struct Value {
    std::string type, text;
  };
  Value ValueOf(const std::string& name, LaunchUnit::Kind kind);
  // `first`: of its loop; the launch itself where it has none.
  std::string LaunchText(const v1::Launch& launch, const v1::Launch& first, int entry, LaunchUnit::Kind kind);
  // FillSymbols(), and the function that finds a variable, which stands behind the #include.
  std::string FillText(const google::protobuf::RepeatedPtrField<v1::Symbol>& symbols, bool own) const;
  std::string VariableText(const google::protobuf::RepeatedPtrField<v1::Symbol>& symbols, const LaunchUnit& unit) const;
  int TensorNumber(const std::string& name) const;
  std::string EntryText(const std::string& entry, LaunchUnit::Kind kind) const;

  const v1::Bundle& bundle_;
  const v1::Variant& variant_;
  const std::string namespace_;
  std::vector<std::string> sizes_;  // names, sorted
  absl::Status status_;             // the first thing that went wrong
};

// A C++ string literal.
std::string CppLiteral(const std::string& text);

// "f16", "input", "csr_offsets": as kernel.toml has them.
std::string RoleWord(v1::TensorRole role);
std::string FillWord(v1::Fill fill);

}  // namespace pawl
