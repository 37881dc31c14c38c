// Names of kernels as launches write them: `extern "C"` names, and C++ names with namespaces and template arguments.
#pragma once

#include <set>
#include <string>

#include "pawl/v1/bundle.pb.h"

namespace pawl {

// "combine", "vllm::norm<__nv_bfloat16, WIDTH>". Nothing in it can end the name: no ; { } or quotes.
bool IsEntryName(const std::string& entry);
// It has namespaces or template arguments: its name in the cubin is the compiler's.
bool IsCppEntry(const std::string& entry);

// "coefficients", "filter::taps": a variable of the device code, without template arguments.
bool IsSymbolName(const std::string& name);
// "round": letters, digits and _. Expressions do not use the name of a loop, so that it may be a function's.
bool IsLoopName(const std::string& name);

// The function itself, without namespaces and template arguments: "norm".
std::string FunctionName(const std::string& entry);

// The words of a name, such as WIDTH.
std::set<std::string> WordsOf(const std::string& entry);

// The entry for one variant at one size: variables and SIZE_<dimension> among the template arguments are replaced by
// their values.
std::string EntryOf(const v1::Bundle& bundle, const std::string& entry, const v1::Variant& variant,
                    const v1::Size& size);

}  // namespace pawl
