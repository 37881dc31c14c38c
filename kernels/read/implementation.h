// All files of an implementation as one text, so that what stores, compares and hands on an edited implementation does
// so for every file, and for the part of kernel.toml that an edit may change.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/source/source_patch.h"
#include "pawl/v1/bundle.pb.h"

namespace pawl {

inline constexpr char kKernelToml[] = "kernel.toml";

// Of a contract alone it is empty. Of a bundle without `files` it is the source itself. With files, each has a line
// before it, "==== include/tile.cuh, 12 lines ====", the source first. What an edit made of kernel.toml comes last,
// under such a line; here it is missing, since it is the bundle's own.
std::string ImplementationText(const v1::Bundle& bundle);

// Puts the files of such a text, and what it has of kernel.toml, into the bundle. InvalidArgument: it is none of this
// bundle's.
absl::Status SetImplementation(const std::string& text, v1::Bundle* bundle);

// Whether the text has more than files: variables, launches or scratch differ from the bundle's.
bool ChangesToml(const v1::Bundle& bundle, const std::string& text);

// What an edit may change: the source, the other files, and last the implementation part of kernel.toml, as of the
// variant. The bundle is the campaign's; the text says what edits made of it.
absl::StatusOr<SourceFiles> EditableFiles(const v1::Bundle& bundle, const std::string& text,
                                          const v1::Variant& variant);

// A state of the implementation, and the variant of it.
struct ImplementationState {
  std::string text;
  v1::Variant variant;
};

// What a unified diff makes of EditableFiles, of which it may change several. An error says what does not fit, or which
// line of the contract it touches. Of a contract alone, whatever the parent: the diff adds the files that it names by
// `source` and `files` in kernel.toml, and the text has kernel.toml and every file with its path.
absl::StatusOr<ImplementationState> PatchImplementation(const v1::Bundle& bundle, const ImplementationState& parent,
                                                        const std::string& patch);
// The same of a patch that was made against an earlier state, where the parent does not differ from that in the lines
// that the patch touches. Aborted: it does, and the message has the hunk.
absl::StatusOr<ImplementationState> RebaseImplementation(const v1::Bundle& bundle, const ImplementationState& earlier,
                                                         const ImplementationState& parent, const std::string& patch);

// The same for texts that differ in comments and blanks only.
std::string NormalizedHash(const v1::Bundle& bundle, const std::string& text);

}  // namespace pawl
