#include "orchestrator/engine/state/campaign.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/bundle_message.h"
#include "kernels/read/implementation.h"
#include "kernels/read/implementation_toml.h"
#include "orchestrator/engine/state/campaign_states.h"
#include "profiles/gpus.h"
#include "profiles/keep_rule.h"

namespace pawl {
absl::Time TimeOf(const google::protobuf::Timestamp& timestamp) {
  return absl::FromUnixSeconds(timestamp.seconds()) + absl::Nanoseconds(timestamp.nanos());
}

void SetTime(absl::Time time, google::protobuf::Timestamp* timestamp) {
  const int64_t micros = absl::ToUnixMicros(time);
  timestamp->set_seconds(micros / 1'000'000);
  timestamp->set_nanos(static_cast<int32_t>(micros % 1'000'000) * 1000);
}

CampaignState::CampaignState(std::string name, std::shared_ptr<const BundleSpace> space)
    : bundle_(space->shared_bundle()) {
  spaces_.push_back(std::move(space));
  if (!bundle_->files().empty()) own_source_ = ImplementationText(*bundle_);
  summary_.set_name(std::move(name));
}

CampaignState::CampaignState(std::string name, v1::Bundle bundle)
    : CampaignState(std::move(name),
                    std::make_shared<const BundleSpace>(std::make_shared<const v1::Bundle>(std::move(bundle)))) {}

std::shared_ptr<CampaignState> CampaignState::Copy() const {
  return std::shared_ptr<CampaignState>(new CampaignState(*this));
}

int CampaignState::open_iterations() const {
  return static_cast<int>(std::count_if(open_.begin(), open_.end(), [](const auto& open) {
    return open.second.planned.purpose() == v1::TRIAL_PURPOSE_ITERATION;
  }));
}

const v1::FailedGate* PausingGate(const v1::Iteration& iteration) {
  for (const v1::FailedGate& gate : iteration.failed_gates()) {
    if (gate.action() == v1::GATE_ACTION_PAUSE) return &gate;
  }
  return nullptr;
}

const v1::Comparison* BesideBaselineOf(const v1::Campaign& campaign) {
  const v1::TotalGain& total = campaign.total_gain();
  const bool measured = campaign.has_best() && total.iteration() == campaign.best() && !total.has_failure() &&
                        total.beside_baseline().interval().pairs() > 1;
  return measured ? &total.beside_baseline().interval() : nullptr;
}

bool CampaignState::IsComparedWithBest(int iteration) const {
  return std::any_of(open_.begin(), open_.end(), [&](const auto& open) {
    const v1::TrialPlanned& planned = open.second.planned;
    return planned.purpose() == v1::TRIAL_PURPOSE_END && planned.iteration() == iteration;
  });
}

std::set<int> CampaignState::DescendedFrom(int iteration) const {
  std::set<int> descended = {iteration};
  for (const v1::Iteration& other : iterations_) {  // a parent was judged before
    if (other.has_parent() && descended.contains(other.parent())) descended.insert(other.number());
  }
  return descended;
}

std::set<int> CampaignState::BuiltOn(int iteration) const {
  std::set<int> built = {iteration};
  // What a variant was compared with may have been judged after it.
  for (size_t before = 0; before != built.size();) {
    before = built.size();
    for (const v1::Iteration& other : iterations_) {
      const bool descends = other.has_parent() && built.contains(other.parent());
      const bool by_comparison = other.has_over_best() && built.contains(other.compared_with());
      if (descends || by_comparison) built.insert(other.number());
    }
  }
  return built;
}

const v1::Iteration* CampaignState::UncomparedEnd() const {
  const v1::Iteration* best = this->best();
  if (best == nullptr) return nullptr;
  // Several steps that gain too little by themselves may be faster together.
  const double least = SpeedupOf(*best) * (1 + KeepRuleOf(summary_.spec().keep()).min_gain);
  for (auto iteration = iterations_.rbegin(); iteration != iterations_.rend(); ++iteration) {
    const bool stopped = std::any_of(iteration->failed_gates().begin(), iteration->failed_gates().end(),
                                     [](const v1::FailedGate& gate) { return gate.action() != v1::GATE_ACTION_MARK; });
    const bool may_be_faster = !stopped && &CodeOf(*iteration) == &*iteration;  // what has its code is compared instead
    if (iteration->leg() == leg_ && iteration->expedition() && iteration->verdict() == v1::REVERTED && may_be_faster &&
        !iteration->has_over_best() && SpeedupOf(*iteration) > least && !IsComparedWithBest(iteration->number())) {
      return &*iteration;
    }
  }
  return nullptr;
}

absl::Duration Between(const Moment& before, const Moment& after) {
  const bool served = before.served && after.served;
  return served ? *after.served - *before.served : after.time - before.time;
}

absl::Duration CampaignState::Running(const Moment& now) const {
  if (!clock_since_) return ran_;
  absl::Duration since;
  if (clock_since_->served && now.served) since = *now.served - *clock_since_->served;
  if (!clock_since_->served && !now.served) since = now.time - clock_since_->time;
  return ran_ + std::max(since, absl::ZeroDuration());
}

bool CampaignState::start_rejected() const {
  const v1::Iteration* start = Find(0);
  return start != nullptr && start->verdict() == v1::REJECTED;
}

bool CampaignState::awaits_start() const { return !summary_.has_best() && IsContractAlone(*bundle_); }

bool CampaignState::ended() const { return IsFinal(summary_.state()); }

bool CampaignState::leasable() const { return summary_.state() != v1::PAUSED; }

const v1::Iteration* CampaignState::Find(int number) const {
  const auto place = places_.find(number);
  return place == places_.end() ? nullptr : &iterations_[place->second];
}

v1::ProcessNoise CampaignState::NoiseFor(int parent) const {
  return noise_.Noise(NoiseOf(gpu_.name()), iterations_, parent);
}

bool CampaignState::IsUntried(int iteration) const {
  const v1::Iteration* found = Find(iteration);
  return found != nullptr && found->untried();
}

const v1::Iteration* CampaignState::best() const { return summary_.has_best() ? Find(summary_.best()) : nullptr; }

const v1::Evidence* CampaignState::EvidenceOf(int iteration) const {
  const auto evidence = evidence_.find(iteration);
  return evidence == evidence_.end() ? nullptr : &evidence->second;
}

const v1::Evidence& CampaignState::best_evidence() const {
  const v1::Evidence* evidence = summary_.has_best() ? EvidenceOf(summary_.best()) : nullptr;
  return evidence == nullptr ? v1::Evidence::default_instance() : *evidence;
}

std::string CampaignState::BeyondLimits(const v1::Variant& variant, int source_id) const {
  if (gpu_.name().empty()) return "";
  for (const v1::Size& size : bundle_->sizes()) {
    const bool timed = std::any_of(goal_sizes_.begin(), goal_sizes_.end(),
                                   [&](const SizeWeight& one) { return one.size == size.name(); });
    if (!timed) continue;
    std::string why = SpaceOf(source_id).BeyondLimits(variant, size, gpu_, gpu_model_);
    if (!why.empty()) return why;
  }
  return "";
}

const std::string& CampaignState::GpuOf(int iteration) const {
  static const std::string& unknown = *new std::string;
  const auto found = gpu_uuids_.find(iteration);
  return found == gpu_uuids_.end() ? unknown : found->second;
}

int CampaignState::SourceIdOf(int iteration) const {
  const auto source = source_ids_.find(iteration);
  return source == source_ids_.end() ? 0 : source->second;
}

const std::string& CampaignState::SourceOf(int iteration) const {
  const int id = SourceIdOf(iteration);
  return id == 0 ? OwnSource() : sources_[static_cast<size_t>(id - 1)].text;
}

int CampaignState::SpaceIdOf(int source_id) const {
  return source_id == 0 ? 0 : sources_[static_cast<size_t>(source_id - 1)].space;
}

int CampaignState::AddSource(const std::string& text) {
  Source source{text, "", 0};
  for (const Proposal& waiting : proposals_) {
    if (waiting.patched.patched.ok() && waiting.patched.patched->text == text)
      source.normalized = waiting.patched.normalized;
  }
  if (source.normalized.empty()) source.normalized = NormalizedHash(*bundle_, text);
  if (ChangesToml(*bundle_, text)) {
    auto edited = std::make_shared<v1::Bundle>(*bundle_);
    // A text that can't be read was not written by this program: the trial's build says so.
    if (SetImplementation(text, edited.get()).ok()) {
      const std::string toml = ImplementationToml(*edited);
      const auto known = std::find_if(
          spaces_.begin(), spaces_.end(),
          [&](const std::shared_ptr<const BundleSpace>& space) { return ImplementationToml(space->bundle()) == toml; });
      source.space = static_cast<int>(known - spaces_.begin());
      if (known == spaces_.end()) spaces_.push_back(std::make_shared<const BundleSpace>(std::move(edited)));
    }
  }
  sources_.push_back(std::move(source));
  return static_cast<int>(sources_.size());
}

bool CampaignState::Tried(const v1::Variant& variant, int source_id) const {
  return tried_.contains({source_id, VariantText(variant)});
}

const std::string& CampaignState::OwnSource() const {
  return bundle_->files().empty() ? bundle_->source().text() : own_source_;
}

int CampaignState::FindSource(const std::string& source) const {
  if (source == OwnSource()) return 0;
  const auto found =
      std::find_if(sources_.begin(), sources_.end(), [&](const Source& known) { return known.text == source; });
  return found == sources_.end() ? -1 : static_cast<int>(found - sources_.begin()) + 1;
}

int CampaignState::FindAlike(const PatchedBest& patched, const v1::Variant& variant) const {
  std::set<int> alike;
  if (patched.own_normalized == patched.normalized) alike.insert(0);
  for (size_t i = 0; i < sources_.size(); ++i) {
    if (sources_[i].normalized == patched.normalized) alike.insert(static_cast<int>(i) + 1);
  }
  return FindIteration(alike, variant);
}

int CampaignState::FindSame(int source_id, const v1::Variant& variant) const {
  int untried = -1;
  for (const v1::Iteration& judged : iterations_) {
    const bool same =
        SourceIdOf(judged.number()) == source_id && VariantText(VariantOf(judged)) == VariantText(variant);
    if (same && !judged.untried()) return judged.number();
    if (same) untried = judged.number();
  }
  const int open = FindIteration({source_id}, variant);
  return open >= 0 ? open : untried;
}

int CampaignState::FindIteration(const std::set<int>& source_ids, const v1::Variant& variant) const {
  const std::string text = VariantText(variant);
  for (const auto& [iteration, source_id] : source_ids_) {
    if (!source_ids.contains(source_id)) continue;
    if (const v1::Iteration* judged = Find(iteration)) {
      // Neither tells what it would be worth now.
      if (judged->untried() || (judged->verdict() == v1::REVERTED && judged->comparison() == v1::FASTER)) continue;
      if (VariantText(VariantOf(*judged)) == text) return iteration;
    }
    for (const auto& [trial, open] : open_) {
      const bool same = open.planned.purpose() == v1::TRIAL_PURPOSE_ITERATION && open.planned.iteration() == iteration;
      if (same && VariantText(open.planned.variant()) == text) return iteration;
    }
  }
  return -1;
}

bool IsProduct(const v1::Iteration& iteration) {
  const bool by_comparison = iteration.over_best().pairs() > 0;
  return by_comparison ? iteration.compared_with() != 0 : iteration.parent() != 0;
}

v1::Variant VariantOf(const v1::Iteration& iteration) {
  v1::Variant variant;
  *variant.mutable_values() = iteration.variant();
  return variant;
}

}  // namespace pawl
