#include "cli/drive/checkout.h"

#include <fstream>

#include "absl/strings/str_cat.h"
#include "agent/tools/source_text.h"

namespace pawl {

absl::Status WriteBelow(const std::filesystem::path& folder, const std::string& path, const std::string& text) {
  const std::filesystem::path file = folder / path;
  const std::filesystem::path below = std::filesystem::path(path).lexically_normal();
  if (below.is_absolute() || below.empty() || *below.begin() == "..") {
    return absl::InvalidArgumentError(absl::StrCat(path, " is not a path in a folder"));
  }
  std::error_code error;
  std::filesystem::create_directories(file.parent_path(), error);
  std::ofstream out(file, std::ios::binary);
  if (!out.write(text.data(), static_cast<std::streamsize>(text.size())).flush()) {
    return absl::UnavailableError(absl::StrCat("can't write ", file.string()));
  }
  return absl::OkStatus();
}

absl::Status WriteCheckout(Campaigns& campaigns, const v1::Campaign& campaign, const std::filesystem::path& folder) {
  const absl::StatusOr<SourceFiles> files = FilesToEdit(campaigns, campaign);
  if (!files.ok()) return files.status();
  for (const auto& [path, text] : *files) {
    if (absl::Status written = WriteBelow(folder, path, text); !written.ok()) return written;
  }
  return absl::OkStatus();
}

absl::Status WriteContract(const v1::Bundle& bundle, const std::filesystem::path& folder) {
  for (const auto& [path, text] : ContractToStartFrom(bundle)) {
    if (absl::Status written = WriteBelow(folder, path, text); !written.ok()) return written;
  }
  return absl::OkStatus();
}

}  // namespace pawl
