#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "pawl/v1/bundle.pb.h"
#include "worker/build/source_tree.h"

namespace pawl {

struct CompilerError {
  std::string file;  // empty: the message names none
  int line = 0;      // 0: the message names none
  std::string text;
};

// The first error among what NVRTC, nvcc, the host's preprocessor or ptxas wrote; warnings before it are passed over.
std::optional<CompilerError> FirstError(absl::string_view log);

// "attention.cu(12): error: ..." and below it the line of the source, where the error is in the source called `name`.
std::string ErrorText(const CompilerError& error, absl::string_view name, absl::string_view source);

// Line `line` (from 1) of a text; empty: there is none.
absl::string_view LineOf(absl::string_view text, int line);

// The file that an error says could not be opened; empty: it is another error.
std::string UnopenedFile(const CompilerError& error);

// What to write in kernel.toml where NVRTC lacks what nvcc has: host functions, and most of the standard library.
// Empty: it is another error.
std::string NvrtcHint(const CompilerError& error);

// What to write there for norm<float> of a kernel that is vllm::norm.
std::string NamespaceHint(const SourceTexts& texts, const std::string& entry);

// ::norm is also a function of CUDA's; by its plain name the kernel is found in the cubin.
std::string OverloadHint(const CompilerError& error, const std::string& entry);

// The compiler sees a variable of the bundle as a macro, and the error's line has it: that line declares something of
// its name, or a template of the file has a parameter of its name.
std::string MacroHint(const v1::Bundle& bundle, const v1::Variant& variant, const SourceTexts& texts,
                      const CompilerError& error);

}  // namespace pawl
