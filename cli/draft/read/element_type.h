// C++ types as kernel.toml has them.
#pragma once

#include <optional>
#include <string>

namespace pawl {

struct ElementType {
  std::string type;  // "f16"
  int width = 1;     // elements of a vector type: 4 of float4
};

// Nothing: it is none of them.
std::optional<ElementType> ElementTypeOf(const std::string& cpp);

bool IsWholeType(const std::string& type);  // i8 to u64, not bool
int BytesOfType(const std::string& type);

}  // namespace pawl
