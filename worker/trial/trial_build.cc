#include "worker/trial/trial_build.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/hash/hash.h"
#include "google/protobuf/util/message_differencer.h"
#include "kernels/bundle_message.h"
#include "kernels/data_type.h"
#include "kernels/hidden_sizes.h"
#include "kernels/plan.h"
#include "kernels/read/implementation.h"
#include "kernels/read/implementation_toml.h"
#include "kernels/space.h"
#include "kernels/variable_values.h"
#include "worker/build/built_variant.h"
#include "worker/build/cubin.h"
#include "worker/validate/output_check.h"

namespace pawl {
namespace {

constexpr size_t kRecent = 256;     // variants at one of their sizes, or at those for compute-sanitizer
constexpr size_t kAheadTimes = 64;  // that wait for a result to go with

v1::Failure MakeFailure(v1::Stage stage, v1::Check check, absl::string_view message) {
  v1::Failure failure;
  failure.set_stage(stage);
  failure.set_check(check);
  failure.set_message(std::string(message));
  return failure;
}

std::string Names(const std::vector<SizeWeight>& sizes) {
  return absl::StrJoin(sizes, " ", [](std::string* out, const SizeWeight& size) { absl::StrAppend(out, size.size); });
}

constexpr size_t kMostToSanitize = 3;          // sizes of a variant
constexpr char kForSanitizer[] = "sanitizer";  // in place of a size's name in a key

// Of a variable or an edit: tried, and perhaps kept.
bool IsChange(const v1::Trial& trial) {
  return trial.has_parent() && trial.purpose() != v1::TRIAL_PURPOSE_TOTAL &&
         trial.purpose() != v1::TRIAL_PURPOSE_VERIFY;
}

// A change meets the other sizes when it is about to be kept; whatever else is tried meets all of them at once.
SizesToValidate SizesOf(const v1::Trial& trial, const v1::Bundle& bundle) {
  return IsChange(trial) ? FirstSizes(bundle, trial.variant(), TimedSizes(trial, bundle)) : AllSizes(bundle);
}

std::optional<v1::Failure> CheckAllowed(const v1::Bundle& bundle, const v1::Variant& variant) {
  const absl::StatusOr<bool> allowed = IsAllowed(bundle, variant);
  if (allowed.ok() && *allowed) return std::nullopt;
  const std::string why = allowed.ok() ? absl::StrCat("the bundle's constraints forbid ", VariantText(bundle, variant))
                                       : std::string(allowed.status().message());
  return MakeFailure(v1::STAGE_STATIC_CHECK, v1::CHECK_CONSTRAINT, why);
}

// "campaigns/7" of "campaigns/7/trials/13".
std::string CampaignPart(const std::string& trial) { return trial.substr(0, trial.rfind("/trials/")); }

}  // namespace

std::optional<v1::Failure> HeapThatRemembers(const v1::Bundle& bundle, const BuiltVariant& built) {
  const auto& tensors = bundle.tensors();
  const bool repeat =
      HasProblem(bundle) || !bundle.data_files().empty() ||
      std::any_of(tensors.begin(), tensors.end(), [](const auto& tensor) { return tensor.is_static(); });
  if (!repeat) return std::nullopt;
  for (const BuiltSize& size : built.sizes) {
    if (size.cubin == nullptr) continue;
    const absl::StatusOr<std::vector<std::string>> called = DriverFunctions(*size.cubin);
    if (!called.ok() || std::find(called->begin(), called->end(), "malloc") == called->end()) continue;
    return MakeFailure(
        v1::STAGE_BUILD, v1::CHECK_COMPILE,
        "it allocates memory on the GPU (malloc or new), which outlives the call: with inputs that repeat, as those "
        "of problem.py, of files and of static tensors do, nobody could tell computing from remembering. Use a tensor "
        "with role = \"scratch\"");
  }
  return std::nullopt;
}

std::shared_ptr<const v1::Bundle> WithSource(std::shared_ptr<const v1::Bundle> bundle, const std::string& source) {
  if (source.empty()) return bundle;
  auto patched = std::make_shared<v1::Bundle>(*bundle);
  // What is no text of this bundle can't be built either, and the build says so.
  if (!SetImplementation(source, patched.get()).ok()) patched->mutable_source()->set_text(source);
  return patched;
}

int64_t ContractBytes(const v1::Plan& plan) {
  int64_t bytes = 0;
  for (const v1::PlanTensor& tensor : plan.tensors()) {
    if (tensor.role() != v1::TENSOR_ROLE_SCRATCH) bytes += TensorBytes(tensor);
  }
  return bytes;
}

std::vector<int64_t> BytesOf(const std::vector<BuiltSize>& sizes, size_t small) {
  std::vector<int64_t> bytes;
  for (size_t i = 0; i < small; ++i) bytes.push_back(ContractBytes(sizes[i].plan));
  return bytes;
}

std::vector<size_t> PlacesToSanitize(const std::vector<int64_t>& small_bytes, HiddenToSanitize hidden) {
  std::vector<size_t> places(small_bytes.size());
  std::iota(places.begin(), places.end(), size_t{0});
  if (hidden == HiddenToSanitize::kSmaller) {
    for (const size_t larger : LargerHidden(small_bytes)) std::erase(places, larger);
  }
  while (places.size() > kMostToSanitize) places.erase(places.begin() + SecretSeed() % (places.size() - 1));
  return places;
}

std::vector<size_t> LargerHidden(const std::vector<int64_t>& small_bytes) {
  if (small_bytes.size() <= kMostToSanitize) return {};
  const size_t hidden = small_bytes.size() - 1;  // the last is of the ladder
  std::vector<size_t> places(hidden);
  std::iota(places.begin(), places.end(), size_t{0});
  std::stable_sort(places.begin(), places.end(), [&](size_t a, size_t b) { return small_bytes[a] < small_bytes[b]; });
  places.erase(places.begin(), places.begin() + static_cast<std::ptrdiff_t>(std::max(kMostToSanitize - 1, hidden / 2)));
  return places;
}

int CountSteps(const v1::Trial& trial, const v1::Bundle& bundle) {
  if (trial.purpose() == v1::TRIAL_PURPOSE_SANITIZE) return 2;
  const int sizes = static_cast<int>(SizesOf(trial, bundle).all.size());
  // Comparing and confirming, validating again, profile, and sanitizer where it is not left for later; or timing
  // alone, sanitizer, profile, baseline. Of a total gain: comparing and confirming, sanitizer at large sizes, and,
  // where it was left out before, at small ones, the ladder, the baseline.
  const int baseline = HasBaseline(bundle) ? 1 : 0;
  const int timed = static_cast<int>(TimedSizes(trial, bundle).size());
  if (trial.purpose() == v1::TRIAL_PURPOSE_TOTAL) {
    if (trial.interim()) return 1 + sizes + 2 * timed;
    return 1 + sizes + 2 + 2 * timed + trial.keep().skip_sanitizer() + baseline;
  }
  return 1 + sizes + (trial.has_parent() ? 3 + 2 * timed : 3 + timed) + (trial.hand_off().empty() ? 0 : 1);
}

std::vector<SizeWeight> TimedSizes(const v1::Trial& trial, const v1::Bundle& bundle) {
  v1::Goal goal = GoalOf(trial, bundle);
  if (!trial.size().empty()) goal.set_size(trial.size());
  if (!goal.sizes().contains(goal.size())) goal.clear_sizes();
  return GoalSizes(bundle, goal);
}

const v1::Goal& GoalOf(const v1::Trial& trial, const v1::Bundle& bundle) {
  return trial.has_goal() ? trial.goal() : bundle.goal();
}

absl::StatusOr<std::unique_ptr<TrialBuild>> TrialBuilder::Build(const v1::Trial& trial,
                                                                std::shared_ptr<const v1::Bundle> bundle,
                                                                TrialObserver& observer) {
  auto build = std::make_unique<TrialBuild>();
  build->begin = observer.seconds();
  build->trial = trial;
  if (!trial.also().empty()) {
    auto with_also = std::make_shared<v1::Bundle>(*bundle);
    with_also->mutable_sizes()->MergeFrom(trial.also());
    bundle = std::move(with_also);
  }
  build->size = trial.size().empty() ? GoalOf(trial, *bundle).size() : trial.size();
  const v1::Size* timed = FindSize(*bundle, build->size);
  if (timed == nullptr) return absl::InvalidArgumentError(absl::StrCat(bundle->name(), " has no size ", build->size));
  build->sizes = TimedSizes(trial, *bundle);
  build->bundle = WithSource(bundle, trial.patched_source());
  build->before_edits = bundle;
  if (trial.bundle_hash().empty()) build->own_hash = BundleHash(*bundle);
  build->command = BuildCommand(*build->bundle, trial.variant(), *timed, ArchitectureOf(device_.gpu()));
  if (trial.purpose() == v1::TRIAL_PURPOSE_SANITIZE) {
    const absl::Status status = BuildUnsanitized(
        bundle, [&observer] { return observer.stopped(); }, build.get());
    if (!status.ok()) return status;
    build->build_seconds = observer.seconds() - build->begin;
    return build;
  }
  build->failure = CheckAllowed(*build->bundle, trial.variant());
  if (build->failure) {
    build->check_seconds = observer.seconds() - build->begin;
    return build;
  }

  const Stopped stopped = [&observer] { return observer.stopped(); };
  if (stopped()) return absl::CancelledError("stopped");
  std::optional<AheadVariant> ahead;
  if (IsChange(trial)) {
    ahead = ahead_.Take(KeyOf(*build->bundle, trial.variant(), Names(build->sizes), trial.bundle_hash()), stopped);
  }
  build->built_ahead = ahead.has_value();
  if (!ahead) {
    // A start that was proposed has nothing but its contract to hold it against.
    const std::shared_ptr<const v1::Bundle> start =
        trial.sanitize_start() ? std::make_shared<const v1::Bundle>(ContractPartOf(*bundle)) : bundle;
    absl::StatusOr<AheadVariant> built = BuildCandidate(device_.builder(), *build->bundle, trial.variant(), *start,
                                                        SizesOf(trial, *build->bundle), stopped);
    if (!built.ok()) return built.status();
    ahead = *std::move(built);
  }
  const SizesToValidate sizes = std::move(ahead->sizes);
  build->small = sizes.small;
  build->candidate = std::move(ahead->built);
  build->failure = build->candidate.failure ? build->candidate.failure : HeapThatRemembers(*bundle, build->candidate);
  // A check that was made ahead took none of this trial's time.
  build->check_seconds = build->built_ahead ? 0 : build->candidate.check_seconds;
  if (!build->failure) {
    for (const SizeWeight& each : build->sizes) {
      Remember(KeyOf(*build->bundle, trial.variant(), each.size, trial.bundle_hash()),
               {*build->candidate.Find(each.size)});
    }
    std::vector<BuiltSize> small;
    const std::vector<int64_t> bytes = BytesOf(build->candidate.sizes, build->small);
    for (const size_t place : PlacesToSanitize(bytes, HiddenToSanitize::kSmaller)) {
      small.push_back(build->candidate.sizes[place]);
    }
    Remember(KeyOf(*build->bundle, trial.variant(), kForSanitizer, trial.bundle_hash()), std::move(small));
    if (stopped()) return absl::CancelledError("stopped");
    const std::shared_ptr<const v1::Bundle> before = WithSource(bundle, trial.parent_patched_source());
    if (absl::Status status = BuildParent(*before, *timed, stopped, build.get()); !status.ok()) return status;
    const std::shared_ptr<const v1::Bundle> earlier = WithSource(bundle, trial.witness_patched_source());
    if (absl::Status status = BuildWitness(*earlier, stopped, build.get()); !status.ok()) return status;
    if (stopped()) return absl::CancelledError("stopped");
    if (absl::Status status = BuildStart(*bundle, sizes.all, stopped, build.get()); !status.ok()) return status;
    if (absl::Status status = BuildReferences(stopped, build.get()); !status.ok()) return status;
  }
  build->build_seconds = observer.seconds() - build->begin - build->check_seconds;
  return build;
}

absl::StatusOr<AheadVariant> TrialBuilder::BuildCandidate(Compiler& compiler, const v1::Bundle& bundle,
                                                          const v1::Variant& variant, const v1::Bundle& start,
                                                          SizesToValidate sizes, const Stopped& stopped) {
  AheadVariant candidate;
  candidate.sizes = std::move(sizes);
  absl::StatusOr<BuiltVariant> built =
      BuildVariant(compiler, bundle, variant, candidate.sizes.all, device_.gpu(), stopped, &start);
  if (!built.ok()) return built.status();
  candidate.built = *std::move(built);
  return candidate;
}

void TrialBuilder::Expect(const v1::Trial& trial, std::shared_ptr<const v1::Bundle> bundle,
                          const std::vector<v1::ForeseenVariant>& foreseen) {
  const std::shared_ptr<const v1::Bundle> reverted = WithSource(bundle, trial.parent_patched_source());
  const std::shared_ptr<const v1::Bundle> kept = WithSource(bundle, trial.patched_source());
  const std::vector<SizeWeight> timed = TimedSizes(trial, *bundle);
  std::vector<std::pair<std::string, AheadBuilds::Build>> variants;
  for (v1::ForeseenVariant next : foreseen) {
    std::shared_ptr<const v1::Bundle> of = next.kept() ? kept : reverted;
    if (next.change().has_source()) {
      const std::string& base = next.kept() ? trial.patched_source() : trial.parent_patched_source();
      const absl::StatusOr<ImplementationState> edited = PatchImplementation(
          *bundle, {base.empty() ? ImplementationText(*bundle) : base, next.variant()}, next.change().source().patch());
      if (!edited.ok()) continue;  // made against an earlier one, or it does not fit this outcome
      of = WithSource(bundle, edited->text);
      *next.mutable_variant() = edited->variant;
      next.mutable_change()->mutable_source()->clear_patch();  // it is known by its name
    }
    variants.emplace_back(KeyOf(*of, next.variant(), Names(timed), trial.bundle_hash()),
                          [this, bundle, of, next, campaign = CampaignPart(trial.name()),
                           sizes = FirstSizes(*of, next.variant(), timed)](const Stopped& stopped) {
                            AheadTime time = {campaign, std::chrono::steady_clock::now(), v1::BesideTime()};
                            absl::StatusOr<AheadVariant> built =
                                BuildCandidate(few_, *of, next.variant(), *bundle, sizes, stopped);
                            if (built.ok() && !built->built.failure) {
                              for (const BuiltSize& at : built->built.sizes) {
                                if (!BuildReferenceAhead(device_, *of, at.plan, stopped).ok()) break;
                              }
                            }
                            if (!built.ok()) return built;
                            time.time.set_kind(v1::BesideTime::BUILD_AHEAD);
                            time.time.set_parent(next.parent());
                            *time.time.mutable_change() = next.change();
                            NoteAhead(std::move(time));
                            return built;
                          });
  }
  ahead_.Expect(std::move(variants));
}

void TrialBuilder::NoteAhead(AheadTime built) {
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - built.begin;
  built.time.set_seconds(took.count());
  absl::MutexLock lock(&mutex_);
  ahead_times_.push_back(std::move(built));
  if (ahead_times_.size() > kAheadTimes) ahead_times_.pop_front();
}

void TrialBuilder::AddAheadTimes(const v1::Trial& trial, const TrialObserver& observer, v1::TrialResult* result) {
  const std::string campaign = CampaignPart(trial.name());
  absl::MutexLock lock(&mutex_);
  std::erase_if(ahead_times_, [&](AheadTime& built) {
    if (built.campaign != campaign) return false;
    built.time.set_begin(observer.SecondsAt(built.begin));
    *result->add_beside() = std::move(built.time);
    return true;
  });
}

bool TrialBuild::same_as_parent() const {
  if (failure || !parent) return false;
  return std::all_of(sizes.begin(), sizes.end(), [&](const SizeWeight& each) {
    const BuiltSize& of_parent = ParentAt(each.size);
    const BuiltSize& of_candidate = *candidate.Find(each.size);
    return of_parent.module == of_candidate.module &&
           google::protobuf::util::MessageDifferencer::Equals(of_parent.plan, of_candidate.plan);
  });
}

absl::Status TrialBuilder::BuildParent(const v1::Bundle& bundle, const v1::Size& size, const Stopped& stopped,
                                       TrialBuild* build) {
  const v1::Trial& trial = build->trial;
  if (!trial.has_parent()) return absl::OkStatus();
  absl::StatusOr<BuiltSize> parent = EarlierAt(bundle, size, trial.parent(), trial.bundle_hash(), stopped);
  if (!parent.ok()) return parent.status();
  build->parent = *std::move(parent);
  for (const SizeWeight& each : build->sizes) {
    if (each.size == build->size) continue;
    absl::StatusOr<BuiltSize> at =
        EarlierAt(bundle, *FindSize(bundle, each.size), trial.parent(), trial.bundle_hash(), stopped);
    if (!at.ok()) return at.status();
    build->parents.emplace(each.size, *std::move(at));
  }
  if (trial.purpose() != v1::TRIAL_PURPOSE_TOTAL) return absl::OkStatus();
  for (const v1::Size& each : bundle.sizes()) {
    absl::StatusOr<BuiltSize> at = EarlierAt(bundle, each, trial.parent(), trial.bundle_hash(), stopped);
    if (!at.ok()) return at.status();
    build->parent_ladder.push_back(*std::move(at));
  }
  return absl::OkStatus();
}

absl::Status TrialBuilder::BuildUnsanitized(const std::shared_ptr<const v1::Bundle>& bundle, const Stopped& stopped,
                                            TrialBuild* build) {
  for (const v1::UnsanitizedVariant& kept : build->trial.unsanitized()) {
    const std::shared_ptr<const v1::Bundle> own = WithSource(bundle, kept.patched_source());
    const std::string key = KeyOf(*own, kept.variant(), kForSanitizer, build->trial.bundle_hash());
    std::vector<BuiltSize> small = Recall(key);
    if (small.empty()) {
      const SizesToValidate sizes = FirstSizes(*own, kept.variant(), build->sizes);
      std::vector<int64_t> bytes;
      for (size_t i = 0; i < sizes.small; ++i) {
        const absl::StatusOr<v1::Plan> plan = MakePlan(*own, kept.variant(), sizes.all[i], device_.gpu());
        bytes.push_back(plan.ok() ? ContractBytes(*plan) : 0);  // the build says what is wrong with it
      }
      std::vector<v1::Size> at;
      for (const size_t place : PlacesToSanitize(bytes, HiddenToSanitize::kSmaller)) at.push_back(sizes.all[place]);
      absl::StatusOr<BuiltVariant> built =
          BuildVariant(device_.builder(), *own, kept.variant(), at, device_.gpu(), stopped);
      if (!built.ok()) return built.status();
      if (built->failure) {
        return absl::InternalError(
            absl::StrCat("the variant ", VariantText(*own, kept.variant()),
                         " was kept before and does not build here: ", built->failure->message()));
      }
      small = std::move(built->sizes);
    }
    build->unsanitized.push_back(std::move(small));
  }
  return absl::OkStatus();
}

absl::Status TrialBuilder::BuildWitness(const v1::Bundle& bundle, const Stopped& stopped, TrialBuild* build) {
  const v1::Trial& trial = build->trial;
  if (!trial.has_witness()) return absl::OkStatus();
  for (const SizeWeight& each : build->sizes) {
    absl::StatusOr<BuiltSize> at =
        EarlierAt(bundle, *FindSize(bundle, each.size), trial.witness(), trial.bundle_hash(), stopped);
    if (!at.ok()) return at.status();
    build->witness.emplace(each.size, *std::move(at));
  }
  return absl::OkStatus();
}

absl::StatusOr<BuiltSize> TrialBuilder::EarlierAt(const v1::Bundle& bundle, const v1::Size& size,
                                                  const v1::Variant& variant, const std::string& bundle_hash,
                                                  const Stopped& stopped) {
  const std::string key = KeyOf(bundle, variant, size.name(), bundle_hash);
  if (std::vector<BuiltSize> recent = Recall(key); !recent.empty()) return std::move(recent.front());
  absl::StatusOr<BuiltVariant> built = BuildVariant(device_.builder(), bundle, variant, {size}, device_.gpu(), stopped);
  if (!built.ok()) return built.status();
  if (built->failure) {
    return absl::InternalError(
        absl::StrCat("the variant ", VariantText(bundle, variant),
                     " was measured before and does not build here: ", built->failure->message()));
  }
  Remember(key, {built->sizes.front()});
  return built->sizes.front();
}

absl::Status TrialBuilder::BuildStart(const v1::Bundle& bundle, const std::vector<v1::Size>& sizes,
                                      const Stopped& stopped, TrialBuild* build) {
  // A trial without a parent is the start variant's own.
  if (!build->trial.has_parent() || !LeavesRangeOpen(bundle) || device_.input_limits().Find(build->hash())) {
    return absl::OkStatus();
  }
  const std::vector<v1::Size> small(sizes.begin(), sizes.begin() + build->small);
  absl::StatusOr<BuiltVariant> start =
      BuildVariant(device_.builder(), bundle, StartVariant(bundle), small, device_.gpu(), stopped);
  if (!start.ok()) return start.status();
  if (start->failure) {
    return absl::InternalError(
        absl::StrCat("the start variant was measured before and does not build here: ", start->failure->message()));
  }
  build->start = *std::move(start);
  return absl::OkStatus();
}

// Ahead, so that the GPU does not wait for it.
absl::Status TrialBuilder::BuildReferences(const Stopped& stopped, TrialBuild* build) {
  for (const BuiltSize& at : build->candidate.sizes) {
    const absl::Status status = BuildReferenceAhead(device_, *build->bundle, at.plan, stopped);
    if (absl::IsInvalidArgument(status)) {
      build->failure = MakeFailure(v1::STAGE_BUILD, v1::CHECK_COMPILE, status.message());
      return absl::OkStatus();
    }
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

std::string TrialBuilder::KeyOf(const v1::Bundle& bundle, const v1::Variant& variant, const std::string& size,
                                const std::string& bundle_hash) const {
  return absl::StrCat(bundle_hash.empty() ? BundleHash(bundle) : bundle_hash, " ",
                      VariantHash(bundle, variant, ArchitectureOf(device_.gpu())), " ",
                      Sha256(ImplementationToml(bundle)), " ", size);  // an edit may change launches and scratch alone
}

std::vector<BuiltSize> TrialBuilder::Recall(const std::string& key) {
  absl::MutexLock lock(&mutex_);
  const auto found =
      std::find_if(recent_.begin(), recent_.end(), [&](const auto& entry) { return entry.first == key; });
  if (found == recent_.end()) return {};
  recent_.splice(recent_.begin(), recent_, found);
  return recent_.front().second;
}

void TrialBuilder::Remember(const std::string& key, std::vector<BuiltSize> built) {
  absl::MutexLock lock(&mutex_);
  recent_.remove_if([&](const auto& entry) { return entry.first == key; });
  recent_.emplace_front(key, std::move(built));
  if (recent_.size() > kRecent) recent_.pop_back();
}

}  // namespace pawl
