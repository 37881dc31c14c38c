#pragma once

#include <cstdint>
#include <string_view>

namespace pawl {

// SplitMix64. The standard library's distributions differ between implementations, and the same history must give the
// same choice.
class SeededRandom {
 public:
  explicit SeededRandom(uint64_t seed) : state_(seed) {}
  // The seed is the FNV-1a hash of a name and a number.
  SeededRandom(std::string_view name, uint64_t number);

  uint64_t Next();
  uint64_t Below(uint64_t limit) { return Next() % limit; }
  // In (0, 1).
  double Uniform();

 private:
  uint64_t state_;
};

}  // namespace pawl
