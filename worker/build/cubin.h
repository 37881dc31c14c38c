#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace pawl {

// The kernels of a cubin, sorted: function symbols that carry CUDA's entry flag, so device functions are left out.
// InvalidArgument: it is no cubin, or a broken one.
absl::StatusOr<std::vector<std::string>> EntrySymbols(std::string_view cubin);
// Those of the source: without what was appended to it (entry_markers.h).
absl::StatusOr<std::vector<std::string>> EntryNames(std::string_view cubin);

// The functions of the driver that it calls, sorted: malloc, vprintf, ... InvalidArgument: as above.
absl::StatusOr<std::vector<std::string>> DriverFunctions(std::string_view cubin);

// The GPUs that the code is for: 90 for sm_90 and sm_90a. InvalidArgument: as above.
absl::StatusOr<int> CubinArchitecture(std::string_view cubin);

// A symbol as C++ has it: "void steps::advance<float, 4>(float*)"; one of C as it is.
std::string Demangled(const std::string& symbol);

// The bytes of each parameter of each kernel, in order, from the cubin's .nv.info sections. A kernel whose layout is
// written in a way that is not known here is left out. InvalidArgument: as above.
absl::StatusOr<std::map<std::string, std::vector<int>>> EntryParameters(std::string_view cubin);

struct GlobalVariable {
  std::string name;
  bool zero = false;  // it holds zeros when it is loaded, and the cubin does not store them
  uint64_t bytes = 0;
  bool constant = false;  // __constant__
  bool blank = false;     // it holds zeros, stored or not
  uint64_t align = 1;     // of the largest of its section
  // Where it lies in its section, and how much that takes, gaps between variables included.
  int section = 0;
  uint64_t offset = 0, section_bytes = 0;

  bool operator==(const GlobalVariable&) const = default;
};

// The global variables of a cubin, sorted by name: what lies in GPU memory from loading to unloading, constants
// included. InvalidArgument: as above.
absl::StatusOr<std::vector<GlobalVariable>> GlobalVariables(std::string_view cubin);

// Of GPU memory that its code and globals take at most. The driver loads a kernel's code when it is first asked for,
// and other processes take memory meanwhile: how much less is free says less. A broken one: its own bytes.
int64_t LoadedBytes(std::string_view cubin);

// The variable that C++ code calls by this name, such as filter::taps, which may be static; null: there is none.
const GlobalVariable* FindVariable(const std::vector<GlobalVariable>& variables, const std::string& name);

}  // namespace pawl
