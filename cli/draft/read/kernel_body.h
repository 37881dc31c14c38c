// What the body of a kernel does with its parameters.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "cli/draft/read/cpp_expression.h"
#include "cli/draft/read/source_model.h"

namespace pawl {

struct PointerUse {
  bool read = false;
  bool written = false;
  bool read_first = false;             // before any write, in the order of the text
  bool added_to = false;               // +=, ++ or an atomic operation
  bool atomic = false;                 // of which an atomic one
  bool passed_on = false;              // to a function that is not known
  std::vector<CppExpression> indices;  // in elements of the parameter's type
};

struct KernelBody {
  std::map<std::string, PointerUse> pointers;  // by parameter, and "params.x" of a struct's field
  // Of local variables, by their first value. A name that several have is told apart: c, c#2.
  std::map<std::string, CppExpression> definitions;
  std::map<std::string, std::vector<CppExpression>> values;  // all that a variable is given: i += 4 as it stands
  std::map<std::string, CppExpression> bounds;               // what an expression stays below: "i" to n
  std::set<std::string> called;                              // names that are called: f(x)
  std::set<std::string> words;       // all names of the body and of the device functions that it calls
  std::vector<std::string> numbers;  // that stand in it
  bool grid_sync = false;
};

KernelBody ReadKernelBody(const SourceModel& model, const SourceFunction& kernel);

}  // namespace pawl
