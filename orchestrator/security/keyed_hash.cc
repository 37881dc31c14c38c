#include "orchestrator/security/keyed_hash.h"

#include "absl/strings/escaping.h"
#include "kernels/hash.h"

namespace pawl {

std::string KeyedHash(std::string_view key, std::string_view text) {
  constexpr size_t kBlock = 64;
  std::string block(key);
  if (block.size() > kBlock) block = absl::HexStringToBytes(Sha256(block));
  block.resize(kBlock, '\0');
  std::string inner = block, outer = block;
  for (char& c : inner) c ^= 0x36;
  for (char& c : outer) c ^= 0x5c;
  inner.append(text);
  return Sha256(outer + absl::HexStringToBytes(Sha256(inner)));
}

bool SameBytes(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned char difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference |= a[i] ^ b[i];
  return difference == 0;
}

}  // namespace pawl
