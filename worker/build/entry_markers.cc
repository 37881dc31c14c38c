#include "worker/build/entry_markers.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "worker/build/cubin.h"

namespace pawl {
namespace {

constexpr char kFilePrefix[] = "entry ";
constexpr char kMangled[] = "_ZN18pawl_entry_markers4markILi";  // then the number of the entry, E and the entry

// A function without its parameters: "a::plain" of "a::plain(float*)".
std::string WithoutParameters(const std::string& function) {
  int open = 0;
  for (size_t i = function.size(); i-- > 0;) {
    if (function[i] == ')') ++open;
    if (function[i] == '(' && --open == 0) return function.substr(0, i);
  }
  return function;
}

// Whether a marker, as C++ writes it, is of this kernel. Mangled names can't be compared: their abbreviations depend on
// what stands before them.
bool Marks(const std::string& marker, const std::string& kernel) {
  return absl::EndsWith(marker, absl::StrCat(", &(", kernel, ")>()")) ||
         absl::EndsWith(marker, absl::StrCat(", &", WithoutParameters(kernel), ">()"));
}

}  // namespace

std::string MarkersFor(const std::vector<std::string>& entries) {
  if (entries.empty()) return "";
  std::string text = "\nnamespace pawl_entry_markers {\ntemplate <int, auto> __global__ void mark() {}\n";
  for (size_t i = 0; i < entries.size(); ++i) {
    absl::StrAppend(&text, "#line 1 \"", kFilePrefix, entries[i], "\"\ntemplate __global__ void mark<", i, ", &",
                    absl::StartsWith(entries[i], "::") ? " " : "::", entries[i], ">();\n");
  }
  return text + "}\n";
}

bool IsMarker(const std::string& symbol) { return absl::StartsWith(symbol, kMangled); }

std::map<std::string, std::string> MarkedNames(const std::vector<std::string>& entries,
                                               const std::vector<std::string>& symbols) {
  std::map<std::string, std::string> names;
  for (size_t i = 0; i < entries.size(); ++i) {
    const std::string prefix = absl::StrCat(kMangled, i, "E");
    for (const std::string& marker : symbols) {
      if (!absl::StartsWith(marker, prefix)) continue;
      const std::string shown = Demangled(marker);
      for (const std::string& symbol : symbols) {
        if (!IsMarker(symbol) && Marks(shown, Demangled(symbol))) names[entries[i]] = symbol;
      }
    }
  }
  return names;
}

std::string MarkedEntry(const std::string& file) {
  return absl::StartsWith(file, kFilePrefix) ? file.substr(sizeof(kFilePrefix) - 1) : "";
}

}  // namespace pawl
