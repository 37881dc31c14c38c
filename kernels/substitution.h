// Variables whose values are written into the source (`replaces` of [[variable]]), and the files of a bundle as a
// compiler gets them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pawl/v1/bundle.pb.h"

namespace pawl {

// Where a value stands in a text.
struct TextPlace {
  size_t begin = 0, end = 0;
};

// The places where `pattern` stands with `value` for its {}: not in the middle of a longer word or number.
std::vector<TextPlace> PlacesOf(std::string_view pattern, std::string_view value, std::string_view text);

// Whether `replaces` may hold this text: lines of text with tabs, and no other control characters.
bool IsReplacedText(std::string_view text);

// An error where the text that the variable replaces does not stand exactly once in the source and its files.
absl::Status CheckReplaced(const v1::Bundle& bundle, const v1::Variable& variable);

struct CompiledFiles {
  v1::SourceFile source;
  std::vector<v1::SourceFile> files;
  std::vector<std::string> options;  // that the files need beside the variant's own
};

// Whether a compiler gets other texts than the bundle has.
bool ChangesFiles(const v1::Bundle& bundle);

// The source and the further files of a variant: values written in, host code blanked where the bundle says so. Lines
// stay where they are. InvalidArgument: the text that a variable replaces does not stand exactly once.
absl::StatusOr<CompiledFiles> FilesToCompile(const v1::Bundle& bundle, const v1::Variant& variant);

}  // namespace pawl
