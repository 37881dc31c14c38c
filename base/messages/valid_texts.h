#pragma once

#include "google/protobuf/message.h"

namespace pawl {

// A protobuf string that is not valid UTF-8, half a character at the end of a shortened text say, can be written but
// not read again: replaces every byte that is no part of it by '?', in fields at any depth. Keys of maps are names,
// which are checked where they are read.
void MakeTextsValid(google::protobuf::Message* message);

}  // namespace pawl
