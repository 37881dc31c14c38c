#include "base/channel/tls_files.h"

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/channel/secret_file.h"

namespace pawl {
namespace {

absl::Status CheckPem(const std::string& text, const char* kind, const std::string& path, const char* flag) {
  if (absl::StrContains(text, absl::StrCat(kind, "-----"))) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(path, " of ", flag, " has no \"-----BEGIN ", kind, "-----\": expected a PEM file"));
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
  return texts;
}

}  // namespace pawl
