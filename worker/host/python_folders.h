#pragma once

#include <string>
#include <vector>

namespace pawl {

struct PythonFolders {
  std::string program;               // the interpreter itself, where a name or a shim led to it; empty: it is no Python
  std::vector<std::string> folders;  // its library and packages, those of a virtual environment and the user's too
};

// Asks an interpreter where its parts are. Of another program: the folder that it is in.
PythonFolders FindPythonFolders(const std::string& program);

}  // namespace pawl
