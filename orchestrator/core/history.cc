#include "orchestrator/core/history.h"

#include <limits>
#include <optional>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/names/resource_name.h"
#include "base/names/utf8.h"
#include "kernels/bundle_message.h"
#include "orchestrator/core/errors.h"
#include "orchestrator/core/stored_campaign.h"
#include "orchestrator/engine/state/campaign_states.h"
#include "orchestrator/security/tokens.h"
#include "profiles/diagnosis.h"

namespace pawl {
namespace {

constexpr int kDefaultPage = 100;
constexpr int kMaxPage = 1000;

absl::StatusOr<int> PageSize(int asked) {
  if (asked < 0 || asked > kMaxPage) return BadField("page_size", "expected 0 to 1000");
  return asked == 0 ? kDefaultPage : asked;
}

absl::Status ForeignToken() {
  return BadField("page_token", "it is not from this call with this filter and order; begin without one");
}

}  // namespace

absl::StatusOr<v1::Campaign> History::Campaign(const std::string& field, const std::string& name) const {
  const std::optional<int64_t> number = ParseCampaignName(name);
  if (!number) return BadField(field, "expected a campaign's name, like campaigns/7");
  absl::StatusOr<std::optional<v1::Campaign>> campaign = store_.GetCampaign(*number);
  if (!campaign.ok()) return campaign.status();
  if (*campaign) return **std::move(campaign);
  return NoSuchCampaign(store_, *number);
}

absl::StatusOr<v1::ListCampaignsResponse> History::ListCampaigns(const v1::ListCampaignsRequest& request) const {
  absl::StatusOr<int> size = PageSize(request.page_size());
  if (!size.ok()) return size.status();
  int64_t before = std::numeric_limits<int64_t>::max();
  if (!request.page_token().empty()) {
    const std::optional<std::string> place = ReadPageToken(store_.secret(), "campaigns", request.page_token());
    if (!place || !absl::SimpleAtoi(*place, &before)) return ForeignToken();
  }
  absl::StatusOr<std::vector<v1::Campaign>> campaigns = store_.ListCampaigns(before, *size + 1);
  if (!campaigns.ok()) return campaigns.status();
  v1::ListCampaignsResponse response;
  const bool more = static_cast<int>(campaigns->size()) > *size;
  if (more) campaigns->pop_back();
  if (more) {
    const int64_t last = *ParseCampaignName(campaigns->back().name());
    response.set_next_page_token(PageToken(store_.secret(), "campaigns", absl::StrCat(last)));
  }
  for (v1::Campaign& campaign : *campaigns) *response.add_campaigns() = std::move(campaign);
  return response;
}

absl::StatusOr<v1::ListIterationsResponse> History::ListIterations(const v1::ListIterationsRequest& request) const {
  absl::StatusOr<int> size = PageSize(request.page_size());
  if (!size.ok()) return size.status();
  absl::StatusOr<v1::Campaign> campaign = Campaign("campaign", request.campaign());
  if (!campaign.ok()) return campaign.status();
  if (!v1::Verdict_IsValid(request.verdict())) return BadField("verdict", "expected KEPT, REVERTED or REJECTED");
  if (!v1::IterationOrder_IsValid(request.order())) return BadField("order", "expected one of IterationOrder");
  for (const std::string& name : request.metrics()) {
    if (metrics_.Find(name) == nullptr) {
      return BadField("metrics", absl::StrCat("there is no metric ", Shortened(name, 64),
                                              "; metrics.toml lists them, pawl show those of an iteration"));
    }
  }
  IterationQuery query;
  query.campaign = *ParseCampaignName(request.campaign());
  query.verdict = request.verdict();
  query.variable = request.variable();
  query.finding = request.finding();
  query.order = request.order() == v1::ITERATION_ORDER_UNSPECIFIED ? v1::ITERATION_ORDER_NUMBER : request.order();
  query.limit = *size + 1;
  const std::string bound = absl::StrCat("iterations ", query.campaign, " ", query.verdict, " ", query.order, " ",
                                         query.variable, "\n", query.finding);
  if (!request.page_token().empty()) {
    const std::optional<std::string> place = ReadPageToken(store_.secret(), bound, request.page_token());
    if (!place) return ForeignToken();
    const std::vector<std::string> parts = absl::StrSplit(*place, ' ');
    IterationQuery::Place after;
    if (parts.size() != 2 || !absl::SimpleAtoi(parts[0], &after.number) ||
        !absl::SimpleAtod(parts[1], &after.speedup)) {
      return ForeignToken();
    }
    query.after = after;
  }
  absl::StatusOr<std::vector<v1::Iteration>> iterations = store_.ListIterations(query);
  if (!iterations.ok()) return iterations.status();
  v1::ListIterationsResponse response;
  const bool more = static_cast<int>(iterations->size()) > *size;
  if (more) iterations->pop_back();
  if (more) {
    const v1::Iteration& last = iterations->back();
    // 17 digits bring a double back exactly.
    response.set_next_page_token(
        PageToken(store_.secret(), bound, absl::StrFormat("%d %.17g", last.number(), last.speedup_over_start())));
  }
  for (v1::Iteration& iteration : *iterations) *response.add_iterations() = std::move(iteration);
  if (absl::Status status = AddMetrics(request, &response); !status.ok()) return status;
  return response;
}

absl::Status History::AddMetrics(const v1::ListIterationsRequest& request, v1::ListIterationsResponse* response) const {
  const std::set<std::string> names(request.metrics().begin(), request.metrics().end());
  if (names.empty()) return absl::OkStatus();
  const int64_t campaign = *ParseCampaignName(request.campaign());
  for (v1::Iteration& iteration : *response->mutable_iterations()) {
    const absl::StatusOr<v1::Evidence> evidence = store_.GetEvidence(campaign, iteration.number());
    if (!evidence.ok()) return evidence.status();
    const v1::LaunchEvidence* launch = LongestLaunch(*evidence);
    if (launch == nullptr) continue;
    for (const std::string& name : names) {
      const auto value = launch->metrics().find(name);
      if (value != launch->metrics().end()) (*iteration.mutable_metrics())[name] = value->second;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::Iteration> History::GetIteration(const v1::GetIterationRequest& request) const {
  const std::optional<NameInCampaign> name = ParseIterationName(request.name());
  if (!name) return BadField("name", "expected an iteration's name, like campaigns/7/iterations/12");
  absl::StatusOr<std::optional<v1::Iteration>> iteration = store_.GetIteration(name->campaign, name->number);
  if (!iteration.ok()) return iteration.status();
  if (!*iteration) return NoSuch(request.name(), "pawl history lists all iterations");
  return **std::move(iteration);
}

absl::StatusOr<v1::BestVariant> History::GetBestVariant(const v1::GetBestVariantRequest& request) const {
  absl::StatusOr<v1::Campaign> campaign = Campaign("campaign", request.campaign());
  if (!campaign.ok()) return campaign.status();
  v1::GetBundleRequest bundle;
  bundle.set_hash(campaign->bundle_hash());
  absl::StatusOr<v1::Bundle> read = GetBundle(bundle);
  if (!read.ok()) return read.status();
  if (!campaign->has_best()) {
    v1::ErrorDetail detail;
    detail.set_resource(campaign->name());
    detail.set_fix(IsFinal(campaign->state()) ? "pawl show says why it ended"
                   : IsContractAlone(*read)   ? "propose its device code; pawl situation shows the contract"
                                              : "wait for iteration 0; pawl show shows its progress");
    return Error(absl::StatusCode::kFailedPrecondition, absl::StrCat(campaign->name(), " has no kept variant yet"),
                 detail);
  }
  v1::BestVariant best;
  v1::GetIterationRequest iteration;
  iteration.set_name(absl::StrCat(campaign->name(), "/iterations/", campaign->best()));
  absl::StatusOr<v1::Iteration> found = GetIteration(iteration);
  if (!found.ok()) return found.status();
  *best.mutable_iteration() = *std::move(found);
  *best.mutable_bundle() = *std::move(read);
  return best;
}

absl::StatusOr<v1::GetBlobResponse> History::GetBlob(const v1::GetBlobRequest& request) const {
  absl::StatusOr<std::optional<StoredBlob>> blob = store_.GetBlob(request.hash());
  if (!blob.ok()) return blob.status();
  if (!*blob)
    return NoSuch(absl::StrCat("blob ", request.hash().substr(0, 64)), "pawl show lists an iteration's blobs");
  v1::GetBlobResponse response;
  *response.mutable_blob() = (*blob)->blob;
  response.set_content(std::move((*blob)->content));
  return response;
}

absl::StatusOr<v1::Bundle> History::GetBundle(const v1::GetBundleRequest& request) const {
  absl::StatusOr<std::optional<StoredBlob>> blob = store_.GetBlob(request.hash());
  if (!blob.ok()) return blob.status();
  if (!*blob || (*blob)->blob.kind() != v1::Blob::BUNDLE) {
    return NoSuch(absl::StrCat("bundle ", request.hash().substr(0, 64)), "a trial names its bundle's hash");
  }
  v1::Bundle bundle;
  if (!bundle.ParseFromString((*blob)->content)) return absl::DataLossError("a stored bundle can't be read any more");
  return bundle;
}

}  // namespace pawl
