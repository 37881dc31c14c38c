#include "base/channel/tls_files.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace pawl {
namespace {

absl::Status CheckPem(const std::string& text, const char* kind, const std::string& path, const char* flag) {
  if (absl::StrContains(text, absl::StrCat(kind, "-----"))) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(path, " of ", flag, " has no \"-----BEGIN ", kind, "-----\": expected a PEM file"));
}

// The first PEM block of the text as OpenSSL has it; null: it is damaged.
template <typename Thing>
std::unique_ptr<Thing, void (*)(Thing*)> Parse(const std::string& text,
                                               Thing* (*read)(BIO*, Thing**, pem_password_cb*, void*),
                                               void (*release)(Thing*)) {
  const std::unique_ptr<BIO, int (*)(BIO*)> memory(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())),
                                                   BIO_free);
  // A key with a passphrase would ask the terminal for it.
  pem_password_cb* const no_passphrase = [](char*, int, int, void*) { return 0; };
  return {read(memory.get(), nullptr, no_passphrase, nullptr), release};
}

absl::Status CheckPair(const TlsTexts& texts, const TlsFiles& files) {
  const auto cert = Parse<X509>(texts.cert, PEM_read_bio_X509, X509_free);
  const auto key = Parse<EVP_PKEY>(texts.key, PEM_read_bio_PrivateKey, EVP_PKEY_free);
  const bool same = cert != nullptr && key != nullptr && X509_check_private_key(cert.get(), key.get()) == 1;
  ERR_clear_error();
  if (cert == nullptr) return absl::InvalidArgumentError(absl::StrCat(files.cert, " of --tls-cert is damaged"));
  if (key == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(files.key, " of --tls-key is damaged or has a passphrase"));
  }
  if (same) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the key ", files.key, " of --tls-key does not belong to the certificate ", files.cert, " of --tls-cert"));
}

}  // namespace

absl::StatusOr<TlsTexts> ReadTlsFiles(const TlsFiles& files) {
  if (files.cert.empty() != files.key.empty()) {
    return absl::InvalidArgumentError(files.key.empty() ? "--tls-cert needs its key: --tls-key FILE"
                                                        : "--tls-key needs its certificate: --tls-cert FILE");
  }
  TlsTexts texts;
  const struct {
    const std::string& path;
    const char* flag;
    const char* kind;
    std::string* text;
  } all[] = {{files.cert, "--tls-cert", "CERTIFICATE", &texts.cert},
             {files.key, "--tls-key", "PRIVATE KEY", &texts.key},
             {files.ca, "--tls-ca", "CERTIFICATE", &texts.ca}};
  for (const auto& file : all) {
    if (file.path.empty()) continue;
    const std::string what = absl::StrCat("the file of ", file.flag);
    absl::StatusOr<std::string> text =
        file.text == &texts.key ? ReadSecretFile(file.path, what) : ReadSmallFile(file.path, what);
    if (!text.ok()) return text.status();
    if (absl::Status status = CheckPem(*text, file.kind, file.path, file.flag); !status.ok()) return status;
    *file.text = *std::move(text);
  }
  if (!texts.cert.empty()) {
    if (absl::Status status = CheckPair(texts, files); !status.ok()) return status;
  }
  return texts;
}

}  // namespace pawl
