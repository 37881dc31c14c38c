#include "base/hash/hash.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <cstdio>
#include <cstdlib>

#include "absl/strings/escaping.h"

namespace pawl {
namespace {

std::string Hex(const unsigned char* digest, unsigned int size) {
  return absl::BytesToHexString({reinterpret_cast<const char*>(digest), size});
}

[[noreturn]] void Die(const char* what) {
  std::fprintf(stderr, "pawl: OpenSSL could not %s; is its installation complete?\n", what);
  std::abort();
}

}  // namespace

std::string Sha256(std::string_view data) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  if (EVP_Digest(data.data(), data.size(), digest, &size, EVP_sha256(), nullptr) != 1) Die("compute SHA-256");
  return Hex(digest, size);
}

std::string KeyedHash(std::string_view key, std::string_view text) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(text.data()),
           text.size(), digest, &size) == nullptr) {
    Die("compute HMAC-SHA-256");
  }
  return Hex(digest, size);
}

bool SameBytes(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string RandomBytes(size_t size) {
  std::string bytes(size, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(size)) != 1) Die("read randomness");
  return bytes;
}

}  // namespace pawl
