// The implementation part of kernel.toml as text: variables, constraints, scratch, launches and compile options. What
// edits change beside files. A bundle does not keep its kernel.toml, so the text is made from the bundle, always alike.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/source/source_patch.h"
#include "pawl/v1/bundle.pb.h"

namespace pawl {

// Whether a key at the top of kernel.toml, or a table, is the implementation's; [[tensor]] is where it is scratch.
bool IsImplementationKey(const std::string& key);
// `source` and `files`, which name files of the implementation: an edit of a contract alone states them, no other does.
bool NamesFiles(const std::string& key);
inline constexpr char kFilesStay[] =
    " can't be changed: the files of the implementation stay as they are, and the patch is against the best variant";

// `start` of each variable is the variant's value, where it has one; of a variable with `replaces` it is the bundle's,
// which its source has.
std::string ImplementationToml(const v1::Bundle& bundle, const v1::Variant& variant = {});

// implementation.toml, which lies beside the kernel.toml of a contract alone and has the whole implementation: the same
// with `source` and `files`, and the bundle's starts.
inline constexpr char kImplementationToml[] = "implementation.toml";
std::string WholeImplementationToml(const v1::Bundle& bundle, const std::string& comment);

// Puts what ImplementationToml wrote of another state of the bundle into the bundle.
absl::Status ReadStoredToml(const std::string& text, v1::Bundle* bundle);

// The same of a text that somebody edited: ImplementationToml(parent, values) was before. Gives the variant to try:
// every variable's `start`. In the bundle a variable that the parent has keeps the parent's start, so that the same
// implementation is the same text whatever variant it was edited at. An error names the lines, also those that say
// something of the contract, and leaves the bundle as it is; its files must be those of the edit.
absl::StatusOr<v1::Variant> ReadEditedToml(const std::string& text, const v1::Bundle& parent, const v1::Variant& values,
                                           v1::Bundle* bundle);

// Of a contract alone: what an edited text and the added files make of it. The text names them by `source` and `files`.
// Gives the start variant. An error names the lines and leaves the bundle as it is.
absl::StatusOr<v1::Variant> ReadStartToml(const std::string& text, const SourceFiles& added, v1::Bundle* bundle);

}  // namespace pawl
