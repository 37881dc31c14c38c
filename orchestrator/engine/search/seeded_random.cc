#include "orchestrator/engine/search/seeded_random.h"

namespace pawl {

SeededRandom::SeededRandom(std::string_view name, uint64_t number) : state_(0xcbf29ce484222325) {
  for (const char c : name) state_ = (state_ ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  state_ = (state_ ^ number) * 0x100000001b3;
}

uint64_t SeededRandom::Next() {
  state_ += 0x9e3779b97f4a7c15;
  uint64_t z = state_;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

double SeededRandom::Uniform() { return (static_cast<double>(Next() >> 11) + 0.5) * 0x1p-53; }

}  // namespace pawl
