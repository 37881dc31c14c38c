#pragma once

#include "pawl/v1/bundle.pb.h"

namespace pawl {

// Of one element; 4 for the packed types, of which two share a byte.
inline int ElementBits(v1::DataType type) {
  switch (type) {
    case v1::DATA_TYPE_I4:
    case v1::DATA_TYPE_U4:
      return 4;
    case v1::DATA_TYPE_F8E4M3:
    case v1::DATA_TYPE_F8E5M2:
    case v1::DATA_TYPE_I8:
    case v1::DATA_TYPE_U8:
    case v1::DATA_TYPE_BOOL:
      return 8;
    case v1::DATA_TYPE_F16:
    case v1::DATA_TYPE_BF16:
    case v1::DATA_TYPE_I16:
    case v1::DATA_TYPE_U16:
      return 16;
    case v1::DATA_TYPE_F64:
    case v1::DATA_TYPE_I64:
    case v1::DATA_TYPE_U64:
      return 64;
    default:
      return 32;
  }
}

}  // namespace pawl
