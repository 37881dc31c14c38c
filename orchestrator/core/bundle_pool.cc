#include "orchestrator/core/bundle_pool.h"

namespace pawl {

std::shared_ptr<const v1::Bundle> BundlePool::Find(const std::string& hash) const {
  const auto found = bundles_.find(hash);
  return found == bundles_.end() ? nullptr : found->second.lock();
}

std::shared_ptr<const v1::Bundle> BundlePool::Put(const std::string& hash, v1::Bundle bundle) {
  if (std::shared_ptr<const v1::Bundle> there = Find(hash)) return there;
  std::erase_if(bundles_, [](const auto& entry) { return entry.second.expired(); });
  auto shared = std::make_shared<const v1::Bundle>(std::move(bundle));
  bundles_[hash] = shared;
  return shared;
}

}  // namespace pawl
