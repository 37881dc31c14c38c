// A bundle as `pawl init` would write it, with the reason of every guess.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/draft/read/source_model.h"

namespace pawl {

struct DraftSize {
  std::string name;
  int64_t tiny = 0, main = 0;
  std::string todo;
  bool stated = false;   // the source says how large it is
  bool stride = false;   // of a tensor; nothing says of which extents it is made
  bool unknown = false;  // an extent that nothing in the source tells
};

// A dimension of [hidden].
struct DraftRange {
  std::string name;
  int64_t low = 1, high = 1, multiple = 1;
};

struct DraftTensor {
  std::string name;
  std::string type;
  std::string role;  // input, output, inout, scratch
  std::vector<std::string> shape;
  std::vector<std::string> todos;
  std::string range_high;  // of an integer input; or a fill's name
  bool offsets = false;    // row offsets, which rise from 0 to range_high
  bool by_data = false;    // other tensors' values say which elements are used
  bool guessed = false;    // nothing tells its shape
  std::string symbol;      // the variable of the source that it fills; empty: none
  int64_t allocated = 0;   // elements that the host allocates; 0: not known
};

struct DraftScalar {
  std::string name;
  std::string type;
  std::string value;
  std::string todo;
};

struct DraftStruct {
  std::string name;
  std::vector<std::string> fields;
  bool in_memory = false;
  std::string todo;
};

struct DraftVariable {
  std::string name;
  std::vector<std::string> values;  // as TOML has them
  std::string start;
  std::string option;
  std::string replaces;
  std::vector<std::pair<std::string, std::string>> affects;
  std::vector<std::string> todos;
};

struct DraftLaunch {
  std::string entry;
  std::string when;
  std::vector<std::string> grid, block, cluster, arguments, swap;
  std::string shared, loop, repeat, index;
  std::string only_where;  // the host's condition for the only launch of a call; empty: none
  bool cooperative = false;
  std::vector<std::string> todos;
};

struct Draft {
  std::string name;
  std::string source;
  std::vector<std::string> files;
  std::vector<std::string> include;
  std::string nvcc;  // why NVRTC can't compile it; empty: it can
  bool skip_host_code = false;
  bool deterministic = true;
  std::vector<DraftSize> sizes;
  std::vector<DraftTensor> tensors;
  std::vector<DraftScalar> scalars;
  std::vector<DraftStruct> structs;
  std::vector<DraftVariable> variables;
  std::vector<std::string> constraints;
  std::vector<DraftRange> hidden;
  std::string bytes;  // that a call must move at least; empty: not known
  std::vector<DraftLaunch> launches;
  std::vector<std::string> remarks;    // at the top of kernel.toml, each a TODO
  std::vector<std::string> constants;  // that were not offered as variables, with the reason
};

// `entry` is a kernel, or a host function whose launches are taken, or several of them, separated by commas; empty: the
// source's only kernel. An error is one line for the user.
absl::StatusOr<Draft> MakeDraft(const SourceModel& model, const std::string& entry);

std::string KernelTomlText(const Draft& draft);
// `reference`: a Python file that computes the same, whose text becomes part of it; empty: none.
std::string ProblemText(const Draft& draft, const std::string& reference);

// How many TODOs a file has.
int CountTodos(const std::string& text);

}  // namespace pawl
