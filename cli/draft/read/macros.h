// Macros of a source, expanded over its tokens.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "kernels/source/cpp_tokens.h"

namespace pawl {

// Expands macros that stand for code: those with parameters, and those that are no constant. Constants keep their
// names: they may be variables. # and ## are not expanded.
class MacroTable {
 public:
  void Read(const CppToken& directive);  // #define and #undef

  // The tokens without directives but for #pragma. An expanded token has the offset and line of the macro's name.
  std::vector<CppToken> Expand(const std::vector<CppToken>& tokens) const;

 private:
  struct Macro {
    bool function = false;
    std::vector<std::string> parameters;
    std::vector<CppToken> body;
  };
  void Expand(const std::vector<CppToken>& tokens, size_t begin, size_t end, int depth,
              std::vector<CppToken>& out) const;

  std::map<std::string, Macro, std::less<>> macros_;
};

}  // namespace pawl
