// Files with the data of inputs: NumPy's .npy, .safetensors, and raw bytes.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/plan.pb.h"

namespace pawl {

// The elements of `tensor` in the file, as they lie in memory: row-major, little-endian. The file must have the
// tensor's type and shape; it may have more rows (the first extent), of which the first ones are taken, so that one
// file serves every size of the ladder. Types that NumPy lacks are unsigned integers of their width there, and the
// packed types are u8 with half the last extent. Of raw bytes the first are taken. Of a .safetensors file with several
// tensors, the one with the tensor's name. The view is into `file`. Errors name the file, what it has and what was
// expected.
absl::StatusOr<absl::string_view> DataOf(const v1::DataFile& file, const v1::PlanTensor& tensor);

// Whether every value is within the tensor's range, where it states one, and all of them are what `file_holds` states:
// CSR offsets, rising numbers, a permutation, whole numbers. The error names the first that is not.
absl::Status CheckDataValues(const v1::DataFile& file, const v1::PlanTensor& tensor, absl::string_view data);

// Whether a file of this name holds nothing but elements, so that only its size can tell that it is another tensor's.
bool IsRawData(const std::string& path);

// Where problem.py finds a file of `data`: its path from the folder of problem.py.
std::string BesideProblem(const v1::Bundle& bundle, const std::string& path);

// The bundle's data file of this path; null: there is none.
const v1::DataFile* FindDataFile(const v1::Bundle& bundle, const std::string& path);

}  // namespace pawl
