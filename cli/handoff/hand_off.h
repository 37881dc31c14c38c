// What a user takes away from a campaign: the winner as files to merge, as a program, as a PyTorch extension, as a
// cubin.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/campaign.pb.h"
#include "pawl/v1/evidence.pb.h"

namespace pawl {

struct Winner {
  v1::Bundle bundle;           // as its author has it
  bool from_contract = false;  // the author has a contract alone, and the bundle's files are those of a proposal
  std::string implementation;  // all its files and of kernel.toml what edits changed (kernels/read/implementation.h)
  v1::Variant variant;
  v1::GpuInfo gpu;
  std::string size;           // the goal's
  std::string name;           // campaigns/7/iterations/12
  std::string title;          // one line: what it is and how fast
  std::string cubin;          // of the goal's size; empty: not available
  std::optional<int> member;  // of a portfolio: its number. Names are its own then: programs link several members
};

struct HandOff {
  std::string id;  // the bundle's name as an identifier, from which the files are named
  // What the forms are built from and run by: check_FORM.sh builds and runs a form, with exit code 0 where it is right.
  std::vector<v1::SourceFile> files;
  std::vector<std::string> forms;  // program, extension, cubin: those that there are
  std::string patch;               // against the bundle's files; empty: they stay as they are
  std::string toml;                // the implementation part of kernel.toml; empty: no edit changed it
  // Of a contract alone: what makes a bundle of it, implementation.toml included. The patch adds the same.
  std::vector<v1::SourceFile> implementation;
  std::string program_build;  // the commands of build.sh, for a page
  // The same for a shared library, with its name and the namespace of its functions. No commands: the kernels are in a
  // PTX file or a cubin, which a program opens.
  std::string library_build, library, name_space;
  std::string namespace_macro;                 // which names another namespace: -DMACRO=NAME
  std::map<std::string, int32_t> fixed_sizes;  // dimensions that it is compiled for
};

// Of a portfolio: a header and a module that pick the variant for a size. The variants' own files lie beside them, each
// in the folder iteration_N.
std::vector<v1::SourceFile> MakeDispatcher(const v1::Bundle& bundle, const v1::Portfolio& portfolio,
                                           const std::string& title);

// "H = 4, S = 128".
std::string FixedText(const std::map<std::string, int32_t>& fixed_sizes);

// Works for every bundle that a campaign can run. An error says what of the bundle it could not write.
absl::StatusOr<HandOff> MakeHandOff(const Winner& winner);

}  // namespace pawl
