#include "agent/tools/source_text.h"

#include <algorithm>

#include "google/protobuf/util/json_util.h"
#include "kernels/bundle_message.h"
#include "kernels/read/implementation.h"

namespace pawl {

absl::StatusOr<v1::Bundle> BundleOf(Campaigns& campaigns, const v1::Campaign& campaign) {
  absl::StatusOr<v1::GetBlobResponse> blob = campaigns.GetBlob(campaign.bundle_hash());
  if (!blob.ok()) return blob.status();
  v1::Bundle bundle;
  if (!bundle.ParseFromString(blob->content())) return absl::DataLossError("a stored bundle can't be read");
  return bundle;
}

absl::StatusOr<std::string> SourceOf(Campaigns& campaigns, const v1::Bundle& bundle, const v1::Iteration& iteration) {
  if (iteration.patched_source_hash().empty()) return ImplementationText(bundle);
  absl::StatusOr<v1::GetBlobResponse> blob = campaigns.GetBlob(iteration.patched_source_hash());
  if (!blob.ok()) return blob.status();
  return std::move(*blob->mutable_content());
}

absl::StatusOr<SourceFiles> FilesOf(Campaigns& campaigns, const v1::Bundle& bundle, const v1::Iteration& iteration) {
  const absl::StatusOr<std::string> text = SourceOf(campaigns, bundle, iteration);
  if (!text.ok()) return text.status();
  v1::Variant variant;
  *variant.mutable_values() = iteration.variant();
  return EditableFiles(bundle, *text, variant);
}

absl::StatusOr<SourceFiles> FilesToEdit(Campaigns& campaigns, const v1::Campaign& campaign) {
  if (!campaign.has_best()) {
    const absl::StatusOr<v1::Bundle> bundle = BundleOf(campaigns, campaign);
    if (bundle.ok() && IsContractAlone(*bundle)) return FilesOf(campaigns, *bundle, v1::Iteration());
  }
  const absl::StatusOr<v1::BestVariant> best = campaigns.GetBestVariant(campaign.name());
  if (!best.ok()) return best.status();
  return FilesOf(campaigns, best->bundle(), best->iteration());
}

SourceFiles ContractToStartFrom(const v1::Bundle& bundle) {
  SourceFiles files;
  if (!IsContractAlone(bundle)) return files;
  for (const auto& [path, text] : ContractFiles(bundle)) files.emplace_back(path, text);
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
  if (google::protobuf::util::MessageToJsonString(rest, &json, options).ok()) files.emplace_back("contract.json", json);
  return files;
}

int LinesOf(const std::string& text) {
  const auto ends = std::count(text.begin(), text.end(), '\n');
  return static_cast<int>(ends) + (text.empty() || text.back() == '\n' ? 0 : 1);
}

SourcePage PageOf(const std::string& text, int first, int last, size_t bytes) {
  SourcePage page;
  page.lines = LinesOf(text);
  page.first = std::max(1, first);
  page.last = page.first - 1;
  size_t at = 0;
  for (int line = 1; at < text.size() && line <= last; ++line) {
    const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    if (line >= page.first) {
      if (!page.text.empty() && page.text.size() + (end - at) > bytes) break;
      page.text.append(text, at, end - at);
      page.last = line;
    }
    at = end;
  }
  return page;
}

}  // namespace pawl
