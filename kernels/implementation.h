// All files of an implementation as one text, so that what stores, compares and hands on the source of an edited kernel
// does so for every file. Of a bundle without `files` it is the source itself.
#pragma once

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pawl/v1/bundle.pb.h"

namespace pawl {

// With files, each has a line before it, "==== include/tile.cuh, 12 lines ====", the source first.
std::string ImplementationText(const v1::Bundle& bundle);

// Puts the files of such a text into the bundle. InvalidArgument: it is none of this bundle's.
absl::Status SetImplementation(const std::string& text, v1::Bundle* bundle);

// The text with a unified diff applied, which may edit several of the files. An error says what does not fit.
absl::StatusOr<std::string> PatchImplementation(const v1::Bundle& bundle, const std::string& text,
                                                const std::string& patch);

}  // namespace pawl
