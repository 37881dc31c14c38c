#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/check.pb.h"

namespace pawl {

// A bundle as a caller of a tool names it: a folder, or the files themselves, by their paths in the folder. One of both
// is empty.
struct BundleSource {
  std::string folder;
  std::map<std::string, std::string> files;
};

// Reads bundles for tools. Thread-safe.
class Bundles {
 public:
  virtual ~Bundles() = default;
  // INVALID_ARGUMENT: it has mistakes, which the ErrorDetail lists.
  virtual absl::StatusOr<v1::Bundle> Read(const BundleSource& source) const = 0;
  // `gpu` by name; empty: every known one. Mistakes of the bundle are in the report.
  virtual absl::StatusOr<v1::CheckReport> Check(const BundleSource& source, const std::string& gpu) const = 0;
};

// Files from a caller in a folder of their own, which goes with this object.
class GivenBundle {
 public:
  // INVALID_ARGUMENT: a path is absolute, leaves the folder, or is no plain name; or there are too many files.
  static absl::StatusOr<std::unique_ptr<GivenBundle>> Write(const std::map<std::string, std::string>& files);
  ~GivenBundle();

  const std::filesystem::path& path() const { return path_; }

 private:
  explicit GivenBundle(std::filesystem::path path) : path_(std::move(path)) {}
  const std::filesystem::path path_;
};

}  // namespace pawl
