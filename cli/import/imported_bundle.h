// The files of an imported bundle.
#pragma once

#include <string>

#include "cli/import/imported_space.h"
#include "cli/import/t4_file.h"
#include "pawl/v1/bundle.pb.h"
#include "worker/replay/recording.h"

namespace pawl {

// What is said of results beside the results themselves.
struct Imported {
  std::string name;    // of the bundle
  std::string file;    // that they come from
  std::string kernel;  // the entry's name; may be empty
  std::string gpu;     // may be empty
};

inline constexpr char kImportedSource[] = "imported.cu";

// kernel.toml. The space is real; what else a bundle must have is a placeholder, and says so.
std::string ImportedToml(const Imported& imported, const T4File& results, const ImportedSpace& space);

// The source, which can't be compiled: the code is not in the results.
std::string ImportedSource(const Imported& imported);

// The results as a recording without counters. `bundle` is what the reader makes of the folder: a recording is of one
// bundle only.
Recording ImportedRecording(const Imported& imported, const T4File& results, const ImportedSpace& space,
                            const v1::Bundle& bundle);

}  // namespace pawl
