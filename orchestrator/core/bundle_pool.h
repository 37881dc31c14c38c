#pragma once

#include <map>
#include <memory>
#include <string>

#include "pawl/v1/bundle.pb.h"

namespace pawl {

// Bundles in memory once, however many campaigns run them: by the hash of the blob, as long as one of them does. Not
// thread-safe.
class BundlePool {
 public:
  std::shared_ptr<const v1::Bundle> Find(const std::string& hash) const;  // null: nobody has it
  std::shared_ptr<const v1::Bundle> Put(const std::string& hash, v1::Bundle bundle);

 private:
  std::map<std::string, std::weak_ptr<const v1::Bundle>> bundles_;
};

}  // namespace pawl
