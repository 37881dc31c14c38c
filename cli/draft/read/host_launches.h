// The launches that the host functions of a source make.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/draft/read/cpp_expression.h"
#include "cli/draft/read/cpp_statement.h"
#include "cli/draft/read/host_swaps.h"
#include "cli/draft/read/source_model.h"

namespace pawl {

// What a host function's variables stand for at one place: of a dim3 up to three expressions.
struct HostValue {
  std::vector<CppExpression> parts;
  bool is_dim3 = false;
  std::string type;
  bool pointer = false;  // a name in `parts` is then the variable that held the memory first
};
using HostValues = std::map<std::string, HostValue>;

struct HostLoop {
  size_t begin = 0;  // its first token
  std::string index;
  CppExpression count;   // of launches, where `plain`
  bool plain = false;    // for (i = 0; i < count; ++i)
  bool shifted = false;  // plain, and the first round is not 0
  std::string text;      // the loop as written, for a remark
  int launches = 1;      // that the loop makes in each of its turns, with this one
  std::string outer;     // the loop around it; empty: none
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
  std::vector<size_t> loops;                               // the first tokens of all loops around it, innermost first
  std::vector<std::pair<CppExpression, bool>> conditions;  // with true: it does not hold
  std::vector<std::pair<size_t, int>> cases;  // the switches around it, and which group of labels of each it is in
  // Of those switches: what is compared, and the labels of the group; with `default` none.
  std::vector<std::pair<CppExpression, std::vector<CppExpression>>> labels;
  std::optional<bool> runs;                          // in the call of the first caller, as far as its numbers tell
  std::map<std::string, CppExpression> first_round;  // what the variables of the loops around it are at first
  Swaps swaps;                                       // that a round of the loop makes
  HostValues values;
  // What the first call of the host function in the source passes: template arguments, and numbers.
  std::map<std::string, std::string> host_templates;
  std::map<std::string, int64_t> host_numbers;
  std::map<std::string, std::vector<int64_t>> other_numbers;  // of its further calls
  std::map<std::string, std::string> host_reals;              // as written: 0.5f
  std::string dispatch;                                       // the first type of an AT_DISPATCH around it: "float"
  int line = 0;
};

// All of them, in the order of the text.
std::vector<HostLaunch> FindLaunches(const SourceModel& model);

// Whether the host makes only one of two launches in a call, as far as the texts of their conditions tell.
bool Exclude(const HostLaunch& a, const HostLaunch& b);

// A name's value written out, as far as it is known: `threads` becomes 256. Names in `kept` stay.
CppExpression Resolved(const CppExpression& expression, const HostValues& values,
                       const std::map<std::string, bool>& kept = {});

// A number that an expression is, or is unless the user says otherwise: 1024 of argc > 1 ? atoi(argv[1]) : 1024.
std::optional<int64_t> LikelyValue(const CppExpression& expression, const std::map<std::string, int64_t>& names);

// Where a pointer that the host passes points to, as far as its text tells. float* b = a + n; has the tensor b, the
// root a and the offset n.
struct HostAddress {
  std::string tensor;  // the variable whose memory it is, see HostTensor
  std::string root;    // the variable that was allocated; empty: not known
  std::string offset;  // what is added to it, as text
};
HostAddress AddressOf(const CppExpression& argument, const HostValues& values);

// The variable whose memory a pointer argument is: x of x.data_ptr<float>(), d_x, (float*)d_x.data(). Empty: none.
std::string HostTensor(const CppExpression& argument, const HostValues& values);

}  // namespace pawl
