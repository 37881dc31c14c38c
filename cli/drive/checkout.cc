#include "cli/drive/checkout.h"

#include <fstream>

#include "absl/strings/str_cat.h"
#include "agent/tools/source_text.h"
#include "google/protobuf/util/json_util.h"
#include "kernels/bundle_message.h"

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
  for (const auto& [path, text] : ContractFiles(bundle)) {
    if (absl::Status written = WriteBelow(folder, path, text); !written.ok()) return written;
  }
  v1::Bundle rest = bundle;  // without what the files have
  if (rest.has_problem()) rest.mutable_problem()->clear_text();
  if (rest.has_reference()) rest.mutable_reference()->mutable_source()->clear_text();
  if (rest.has_reference()) rest.mutable_reference()->clear_files();
  if (rest.has_setup()) rest.mutable_setup()->mutable_source()->clear_text();
  rest.clear_baseline_files();
  rest.clear_data_files();
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  std::string json;
  if (!google::protobuf::util::MessageToJsonString(rest, &json, options).ok()) {
    return absl::InternalError("the contract can't be written as JSON");
  }
  return WriteBelow(folder, "contract.json", json);
}

}  // namespace pawl
