// The shape of a tensor from the indices at which a kernel uses it.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cli/draft/read/cpp_expression.h"
#include "cli/draft/read/kernel_body.h"
#include "cli/draft/read/translation.h"

namespace pawl {

// What is known where a shape is derived.
struct ShapeScope {
  const SourceModel* model = nullptr;
  const KernelBody* body = nullptr;
  LeafText size;  // of a name that is a size in kernel.toml, or made of sizes; nothing: it is no size
  std::vector<std::string> grid, block;  // of the launch, in kernel.toml's words; empty where they are not known
};

// Which extent the values of an integer parameter index: of x[index[i] * cols + c], "index" has the first of x. "?":
// that of the "?" in the shape.
using IndexedExtents = std::map<std::string, std::string>;

// ["nnz"] is "?offsets" where k < offsets[row + 1]: how far the values of that parameter reach.
// ["rows", "cols"] for x[row * cols + c] where row < rows and c < cols. Nothing: the indices do not tell. An extent
// that only data decide (x[index[i] * cols + c]) is "?".
std::optional<std::vector<std::string>> ShapeOf(const std::vector<CppExpression>& indices, const ShapeScope& scope,
                                                IndexedExtents* indexed = nullptr);

// What a stride must be at least, and is for a contiguous tensor: cols of x[row * stride + c] with c < cols. `strides`
// are all parameters of this kind. Nothing: no index tells.
std::optional<std::string> StrideOf(const std::vector<CppExpression>& indices, const ShapeScope& scope,
                                    const std::string& parameter, const std::set<std::string>& strides, int steps = 0);

}  // namespace pawl
