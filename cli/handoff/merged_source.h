// The files of an implementation as a user merges a winner: edits applied, values of variables in the text.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pawl/v1/bundle.pb.h"

namespace pawl {

struct MergedSource {
  std::vector<v1::SourceFile> files;  // the source first, by the bundle's paths
  // What a compiler gets where that differs (host code blanked), the source first, and stand-ins for headers of hosts;
  // empty: it gets `files`.
  std::vector<v1::SourceFile> device_files;
  // `files` with the macros of variables left to the bundle that they are of.
  std::vector<v1::SourceFile> bundle_files;
  std::string patch;                           // from the bundle's files to `files`, for `patch -p1`; empty: equal
  std::map<std::string, int32_t> fixed_sizes;  // dimensions that the source has as SIZE_<name>, with their values
};

// `implementation` is the winner's text (kernels/read/implementation.h), the bundle's own where it was not edited.
// Macros of variables become the defaults that the files have (#ifndef NAME, #define NAME ...) or #define lines at the
// top of the source, with `comment` above them. In `#pragma unroll NAME`, where nvcc expands no macros, the value
// itself is written.
absl::StatusOr<MergedSource> MergeSource(const v1::Bundle& bundle, const std::string& implementation,
                                         const v1::Variant& variant, const v1::Size& size, const std::string& comment);

}  // namespace pawl
