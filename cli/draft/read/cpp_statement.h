// The statements of a function's body, read from tokens.
#pragma once

#include <string>
#include <vector>

#include "cli/draft/read/cpp_expression.h"

namespace pawl {

struct CppDeclarator {
  std::string type;  // "const float"
  std::string name;
  bool pointer = false;
  bool reference = false;
  bool array = false;
  std::vector<CppExpression> initial;  // of = e one, of (a, b) and {a, b} all
  bool assigned = false;               // = e
};

struct CppStatement {
  // kCase is a label of a switch; its value is the expression, `default` has none.
  enum class Kind { kBlock, kIf, kFor, kWhile, kSwitch, kReturn, kJump, kCase, kDeclaration, kExpression, kOther };

  Kind kind = Kind::kOther;
  size_t begin = 0, end = 0;  // tokens
  int line = 0;
  std::vector<CppDeclarator> declared;     // kDeclaration
  std::vector<CppExpression> expressions;  // the condition, the value, the expression; of kFor: condition and step
  // kBlock: its statements. kIf: then, else. kFor: first statement, body. kWhile, kSwitch: body.
  std::vector<CppStatement> body;
  bool has_condition = false;  // of kFor
};

// The statements between the { at `open` and its }.
std::vector<CppStatement> ParseCppBody(const std::vector<CppToken>& tokens, size_t open);

}  // namespace pawl
