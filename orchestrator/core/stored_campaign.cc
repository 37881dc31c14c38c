#include "orchestrator/core/stored_campaign.h"

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/names/resource_name.h"
#include "orchestrator/core/errors.h"
#include "spdlog/spdlog.h"

namespace pawl {
namespace {

constexpr int kEventsAtOnce = 200;  // a source edit may be in each

absl::StatusOr<std::shared_ptr<const BundleSpace>> ReadBundleBlob(Store& store, const std::string& hash,
                                                                  const std::string& campaign, BundlePool* pool) {
  if (pool != nullptr) {
    if (std::shared_ptr<const BundleSpace> shared = pool->Find(hash)) return shared;
  }
  absl::StatusOr<std::optional<StoredBlob>> blob = store.GetBlob(hash);
  if (!blob.ok()) return blob.status();
  v1::Bundle bundle;
  if (!*blob || !bundle.ParseFromString((*blob)->content)) {
    return absl::DataLossError(absl::StrCat(campaign, " has lost its bundle; restore from a backup"));
  }
  if (pool != nullptr) return pool->Put(hash, std::move(bundle));
  return std::make_shared<const BundleSpace>(std::make_shared<const v1::Bundle>(std::move(bundle)));
}

}  // namespace

std::shared_ptr<const BundleSpace> BundlePool::Find(const std::string& hash) {
  absl::MutexLock lock(&mutex_);
  return FindLocked(hash);
}

std::shared_ptr<const BundleSpace> BundlePool::Put(const std::string& hash, v1::Bundle bundle) {
  absl::MutexLock lock(&mutex_);
  if (std::shared_ptr<const BundleSpace> there = FindLocked(hash)) return there;
  std::erase_if(bundles_, [](const auto& entry) { return entry.second.expired(); });
  auto shared = std::make_shared<const BundleSpace>(std::make_shared<const v1::Bundle>(std::move(bundle)));
  bundles_[hash] = shared;
  return shared;
}

std::shared_ptr<const BundleSpace> BundlePool::FindLocked(const std::string& hash) {
  const auto found = bundles_.find(hash);
  return found == bundles_.end() ? nullptr : found->second.lock();
}

absl::Status NoSuchCampaign(Store& store, int64_t number) {
  const std::string name = CampaignName(number);
  const absl::StatusOr<std::string> archive = store.ArchiveOf(number);
  if (!archive.ok()) return archive.status();
  if (archive->empty()) return NoSuch(name, "pawl campaigns lists all campaigns");
  v1::ErrorDetail detail;
  detail.set_resource(name);
  detail.set_fix(absl::StrCat("pawl restore ", *archive, " brings it back"));
  return Error(absl::StatusCode::kNotFound, absl::StrCat("there is no ", name, " here: it was archived to ", *archive),
               detail);
}

absl::StatusOr<StoredCampaign> ReadCampaign(Store& store, int64_t number, BundlePool* pool) {
  StoredCampaign campaign;
  while (true) {
    absl::StatusOr<std::vector<v1::Event>> events = store.Events(number, campaign.last_sequence, kEventsAtOnce);
    if (!events.ok()) return events.status();
    if (events->empty()) break;
    for (const v1::Event& event : *events) {
      if (campaign.state == nullptr) {
        absl::StatusOr<std::shared_ptr<const BundleSpace>> bundle =
            ReadBundleBlob(store, event.submitted().bundle_hash(), CampaignName(number), pool);
        if (!bundle.ok()) return bundle.status();
        campaign.state = std::make_unique<CampaignState>(CampaignName(number), *std::move(bundle));
      }
      campaign.state->Apply(event);
      if (!campaign.state->damage().ok()) return campaign.state->damage();
      campaign.last_sequence = event.sequence();
    }
  }
  if (campaign.state == nullptr) return NoSuchCampaign(store, number);
  return campaign;
}

absl::Status CheckReplay(int64_t number, const ArchivedCampaign& archived, const std::string& file) {
  const auto refuse = [&](const std::string& why) {
    return absl::DataLossError(
        absl::StrCat(CampaignName(number), " in ", file, " can't be replayed: ", why, "; nothing was changed"));
  };
  v1::Bundle bundle;
  if (archived.events.empty() || !archived.events.front().has_submitted()) return refuse("it has no submission");
  if (archived.bundle.empty() || !bundle.ParseFromString(archived.bundle)) return refuse("its bundle is missing");
  CampaignState replayed(CampaignName(number), std::move(bundle));
  int64_t last = 0;
  for (const v1::Event& event : archived.events) {
    if (event.campaign() != CampaignName(number) || event.sequence() <= last) {
      return refuse(absl::StrCat("event ", event.sequence(), " is not in its place"));
    }
    last = event.sequence();
    replayed.Apply(event);
    if (!replayed.damage().ok()) return refuse(std::string(replayed.damage().message()));
  }
  const v1::Campaign& stored = archived.summary;
  const v1::Campaign& made = replayed.summary();
  if (stored.name() != made.name() || stored.state() != made.state() || stored.bundle_hash() != made.bundle_hash() ||
      stored.device() != made.device() || stored.has_best() != made.has_best() || stored.best() != made.best()) {
    return refuse("its events make another campaign than its row says");
  }
  std::map<int, v1::Verdict> rows;
  for (const v1::Iteration& row : archived.iterations) rows[row.number()] = row.verdict();
  for (const v1::Iteration& iteration : replayed.iterations()) {
    const auto row = rows.find(iteration.number());
    if (row == rows.end() || row->second != iteration.verdict()) {
      return refuse(absl::StrCat("its events make another iteration ", iteration.number(), " than its row says"));
    }
  }
  if (rows.size() != replayed.iterations().size()) return refuse("it has iterations that no event made");
  return absl::OkStatus();
}

absl::Status BringRowsUpToDate(Store& store) {
  const absl::StatusOr<bool> outdated = store.RowsOutdated();
  if (!outdated.ok() || !*outdated) return outdated.status();
  const absl::StatusOr<int64_t> last = store.LastCampaign();
  if (!last.ok()) return last.status();
  for (int64_t number = 1; number <= *last; ++number) {
    const absl::StatusOr<StoredCampaign> campaign = ReadCampaign(store, number);
    if (absl::IsNotFound(campaign.status()) || absl::IsDataLoss(campaign.status())) {
      spdlog::warn("{}: the rows of an older Pawl could not be updated: {}", CampaignName(number),
                   std::string(campaign.status().message()));
      continue;
    }
    if (!campaign.ok()) return campaign.status();
    v1::Campaign summary = campaign->state->summary();
    summary.set_last_sequence(campaign->last_sequence);
    absl::Status status = store.ReplaceRows(summary, campaign->state->iterations());
    if (!status.ok()) return status;
  }
  return store.SetRowsUpToDate();
}

}  // namespace pawl
