// The launches that the host functions of a source make.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/draft/read/cpp_expression.h"
#include "cli/draft/read/cpp_statement.h"
#include "cli/draft/read/source_model.h"

namespace pawl {

// What a host function's variables stand for at one place: of a dim3 up to three expressions.
struct HostValue {
  std::vector<CppExpression> parts;
  bool is_dim3 = false;
  std::string type;
};
using HostValues = std::map<std::string, HostValue>;

struct HostLoop {
  std::string index;
  CppExpression count;  // of launches, where `plain`
  bool plain = false;   // for (i = 0; i < count; ++i)
  std::string text;     // the loop as written, for a remark
};

struct HostLaunch {
  const SourceFunction* kernel = nullptr;
  const SourceFunction* host = nullptr;
  std::vector<std::string> template_arguments;
  std::vector<CppExpression> grid, block;  // one to three
  std::optional<CppExpression> shared;
  std::vector<CppExpression> arguments;
  bool cooperative = false;
  std::vector<CppExpression> cluster;
  std::optional<HostLoop> loop;
  std::vector<std::pair<CppExpression, bool>> conditions;  // with true: it does not hold
  std::vector<std::pair<std::string, std::string>> swaps;  // std::swap(a, b) behind it in the same loop
  HostValues values;
  std::string dispatch;  // the first type of an AT_DISPATCH around it: "float"
  int line = 0;
};

// All of them, in the order of the text.
std::vector<HostLaunch> FindLaunches(const SourceModel& model);

// A name's value written out, as far as it is known: `threads` becomes 256. Names in `kept` stay.
CppExpression Resolved(const CppExpression& expression, const HostValues& values,
                       const std::map<std::string, bool>& kept = {});

// The variable whose memory a pointer argument is: x of x.data_ptr<float>(), d_x, (float*)d_x.data(). Empty: none.
std::string HostTensor(const CppExpression& argument, const HostValues& values);

}  // namespace pawl
