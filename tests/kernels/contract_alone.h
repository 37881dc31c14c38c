#pragma once

#include <string>

#include "pawl/v1/bundle.pb.h"

namespace pawl {

// A contract alone, for the folder of the golden bundle scale_rows.
extern const char kContractToml[];

// What is left of a bundle without its implementation.
v1::Bundle WithoutImplementation(v1::Bundle bundle);

// Parts of a unified diff: a file that it makes, and lines that it adds to kernel.toml of a contract alone.
std::string AddingFile(const std::string& path, const std::string& text);
std::string AddingToml(const v1::Bundle& contract, const std::string& lines);

}  // namespace pawl
