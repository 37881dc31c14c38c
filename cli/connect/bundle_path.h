#pragma once

#include <filesystem>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/read/bundle_reader.h"

namespace pawl {

// The folder of a bundle: the path itself, or, where there is none and it is a bare name, a bundle of that name that
// ships with Pawl (kernels/ of the source tree, share/pawl/kernels of a package; found upwards of the program). What is
// neither comes back as it is: the reader says what is wrong with it.
std::filesystem::path BundlePath(const std::string& text);

// The same with the place to begin at.
std::filesystem::path BundlePath(const std::string& text, const std::filesystem::path& program);

// Where there is no such bundle: "did you mean attention? ...", with the bundles that are there instead: those that
// ship with Pawl for a bare name, else those beside the path. Empty: it is there, or nothing is to be suggested.
std::string BundleMeant(const std::string& text);

// Reads it. INVALID_ARGUMENT: it has mistakes; the detail lists all.
absl::StatusOr<v1::Bundle> LoadBundle(const std::string& text);

}  // namespace pawl
