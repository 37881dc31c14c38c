#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "pawl/v1/bundle.pb.h"
#include "worker/build/built_variant.h"

namespace pawl {

// Builds variants in order on a few threads, a bounded number ahead of who takes them.
class BuildAhead {
 public:
  using Build = std::function<absl::StatusOr<BuiltVariant>(const v1::Variant&)>;
  BuildAhead(const std::vector<v1::Variant>& variants, Build build, int threads = std::thread::hardware_concurrency());
  ~BuildAhead();

  // Puts more at the end of the list.
  void Add(const std::vector<v1::Variant>& variants);
  // The next variant of the list, in its order; may be called once for each.
  absl::StatusOr<BuiltVariant> Next();

 private:
  void Work();

  const Build build_;
  const size_t ahead_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<v1::Variant> variants_;
  std::map<size_t, absl::StatusOr<BuiltVariant>> built_;
  size_t to_build_ = 0;
  size_t to_take_ = 0;
  bool stop_ = false;

  std::vector<std::thread> threads_;
};

}  // namespace pawl
