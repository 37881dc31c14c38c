#pragma once

#include "agent/tools/bundles.h"

namespace pawl {

// Bundles that a caller over HTTP sends file by file. No folder of this machine is read for it, and nothing is compiled
// here: that is the workers' part.
class SentBundles final : public Bundles {
 public:
  absl::StatusOr<v1::Bundle> Read(const BundleSource& source) const override;
  absl::StatusOr<v1::CheckReport> Check(const BundleSource& source, const std::string& gpu) const override;
};

}  // namespace pawl
