// Facts about the types of elements and scalars.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/elements/element_bits.h"
#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/plan.pb.h"

namespace pawl {

// As kernel.toml writes them, in the order of v1::DataType from DATA_TYPE_F16 on.
const std::vector<std::string>& DataTypeNames();
std::string DataTypeName(v1::DataType type);

// Floating point of any width, and whole numbers of any width. A bool is neither.
bool IsFloat(v1::DataType type);
bool IsInteger(v1::DataType type);

// Bytes of one element; of the packed types the byte that holds two.
int ElementBytes(v1::DataType type);
// Bytes of so many elements one after another.
int64_t BytesOf(v1::DataType type, int64_t elements);
inline int64_t TensorBytes(const v1::PlanTensor& tensor) { return BytesOf(tensor.type(), tensor.elements()); }
// Of all tensors.
inline int64_t PlanBytes(const v1::Plan& plan) {
  int64_t bytes = 0;
  for (const v1::PlanTensor& tensor : plan.tensors()) bytes += TensorBytes(tensor);
  return bytes;
}

// The largest and the lowest value that an element holds, as far as a double can say it.
double LargestOf(v1::DataType type);
double LowestOf(v1::DataType type);
// Whether a value can be stored: within the type's range, and whole where the type is.
bool Holds(v1::DataType type, double value);

// The least value of a float type that is no less than this one, and the greatest that is no more.
double RoundedUp(v1::DataType type, double value);
double RoundedDown(v1::DataType type, double value);

// The value as its bytes in memory, rounded to the nearest that the type has. Not for the packed types.
std::string EncodedScalar(v1::DataType type, double value);
// The value of the element at `bytes`, which has ElementBytes of the type. Not for the packed types.
double DecodedScalar(v1::DataType type, const char* bytes);

}  // namespace pawl
