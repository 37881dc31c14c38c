#pragma once

#include <cstdint>
#include <string_view>

namespace pawl {

// SplitMix64: the standard library's distributions differ between libraries, and the same history must give the same
// choice.
class SeededRandom {
 public:
  explicit SeededRandom(uint64_t seed) : state_(seed) {}
  // Of a name and a number: FNV-1a.
  SeededRandom(std::string_view name, uint64_t number);

  uint64_t Next();
  uint64_t Below(uint64_t limit) { return Next() % limit; }
  // In (0, 1).
  double Uniform();
  // Mean 0, standard deviation 1.
  double Normal();

 private:
  uint64_t state_;
};

}  // namespace pawl
