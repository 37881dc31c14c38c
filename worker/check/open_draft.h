// What `pawl init` left to a person and nobody has done yet, as the text of the files says: nothing is run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/problem.h"

namespace pawl {

// One file of the bundle.
struct OpenFile {
  std::string path;  // as messages name it
  std::string text;
};

// "14 TODOs are left: kernel.toml:5, kernel.toml:11, kernel.toml:18 and 11 more": comments that begin with TODO. Empty:
// there are none.
std::string OpenTodos(const std::vector<OpenFile>& files);

// The line where reference() of problem.py raises NotImplementedError whatever it is given, as a draft does.
std::optional<Problem> OpenReference(const OpenFile& problem);

}  // namespace pawl
