#include "tests/agent/fake_campaigns.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "google/protobuf/text_format.h"

namespace pawl {
namespace {

constexpr char kName[] = "campaigns/7";

template <typename Message>
Message MadeOf(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

v1::Bundle SaxpyBundle() {
  return MadeOf<v1::Bundle>(R"pb(
    name: "saxpy"
    summary: "y = a x + y"
    source { path: "saxpy.cu" text: "// line 1\n// line 2\n// line 3\n" }
    goal { size: "main" speedup: 1.5 }
    sizes {
      name: "tiny"
      values { key: "N" value: 33 }
    }
    sizes {
      name: "main"
      values { key: "N" value: 1024 }
    }
    tensors { name: "x" type: DATA_TYPE_F32 shape: "N" role: TENSOR_ROLE_INPUT }
    tensors { name: "out" type: DATA_TYPE_F32 shape: "N" role: TENSOR_ROLE_OUTPUT }
    variables {
      name: "THREADS"
      values: 64
      values: 128
      start: 64
      affects { resource: RESOURCE_PARALLELISM direction: DIRECTION_LESS }
    }
    constraints { that: "THREADS <= 1024" }
    launches { entry: "saxpy" grid: "ceil_div(N, THREADS)" block: "THREADS" arguments: "x" arguments: "out" }
    tolerance { absolute: 1e-5 relative: 1e-6 }
  )pb");
}

absl::Status NoSuchCampaign(const std::string& name) {
  v1::ErrorDetail detail;
  detail.set_fix("pawl campaigns lists them");
  return WithErrorDetail(absl::NotFoundError(absl::StrCat("there is no ", name)), detail);
}

}  // namespace

class FakeCampaigns::FakeWatch final : public CampaignWatch {
 public:
  FakeWatch(FakeCampaigns& campaigns, int64_t after) : campaigns_(campaigns), after_(after) {}

  Got Next(absl::Duration wait, v1::WatchCampaignResponse* message) override {
    absl::MutexLock lock(&campaigns_.mutex_);
    const auto deadline = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(wait);
    while (true) {
      for (; at_ < campaigns_.messages_.size(); ++at_) {
        const v1::WatchCampaignResponse& each = campaigns_.messages_[at_];
        if (each.has_event() && each.event().sequence() <= after_) continue;
        *message = each;
        ++at_;
        return Got::kMessage;
      }
      if (!campaigns_.added_.WaitUntil(&campaigns_.mutex_, deadline)) return Got::kNothingYet;
    }
  }
  absl::Status status() const override { return absl::OkStatus(); }

 private:
  FakeCampaigns& campaigns_;
  const int64_t after_;
  size_t at_ = 0;
};

FakeCampaigns::FakeCampaigns() : bundle(SaxpyBundle()) {
  campaign = MadeOf<v1::Campaign>(R"pb(
    name: "campaigns/7"
    state: RUNNING
    bundle: "saxpy"
    bundle_hash: "bundle"
    device: "NVIDIA H200"
    best: 1
    start_us: 20
    best_us: 10
    baseline_us: 15
    speedup_over_start: 2
    speedup_over_baseline: 1.5
    last_sequence: 40
    minutes: 2
    spec {
      goal { size: "main" speedup: 3 }
      budget { iterations: 50 minutes: 60 }
    }
    counts { tried: 2 kept: 1 rejected: 1 }
  )pb");
  iterations.push_back(MadeOf<v1::Iteration>(
      "name: 'campaigns/7/iterations/0' number: 0 verdict: KEPT time_us: 20 variant { key: 'THREADS' value: 64 } "
      "evidence { launches { entry: 'saxpy' metrics { key: 'waves' value: 0.5 } metrics { key: 'duration_ns' value: "
      "20000 } } }"));
  iterations.push_back(MadeOf<v1::Iteration>(R"pb(
    name: "campaigns/7/iterations/1"
    number: 1
    parent: 0
    verdict: KEPT
    reason: "faster"
    comparison: FASTER
    time_us: 10
    speedup_over_parent: 2
    speedup_over_start: 2
    speedup_over_baseline: 1.5
    author: "pawl"
    variant { key: "THREADS" value: 128 }
    change { variable: "THREADS" from: 64 to: 128 }
    interval { mean_log_ratio: 0.69 lower: 0.6 upper: 0.8 pairs: 20 processes: 2 }
    evidence {
      launches {
        entry: "saxpy"
        metrics { key: "waves" value: 1.5 }
        metrics { key: "dram_throughput" value: 61.25 }
        metrics { key: "work_bytes" value: 12288 }
        metrics { key: "duration_ns" value: 10000 }
      }
    }
  )pb"));
  iterations.push_back(MadeOf<v1::Iteration>(R"pb(
    name: "campaigns/7/iterations/2"
    number: 2
    parent: 1
    verdict: REJECTED
    reason: "out differs from the reference"
    author: "codex"
    change { source { name: "vectorise" patch: "--- a/saxpy.cu\n+++ b/saxpy.cu\n" } }
    variant { key: "THREADS" value: 128 }
    failure { stage: STAGE_VALIDATE check: CHECK_TOLERANCE size: "tiny" message: "out[32] is 0, expected 1" }
  )pb"));
  *situation.mutable_campaign() = campaign;
  situation.set_source(bundle.source().text());
  situation.set_source_path(bundle.source().path());
  *situation.mutable_variables() = bundle.variables();
  *situation.mutable_constraints() = bundle.constraints();
  *situation.mutable_best() = iterations[1];
  *situation.add_findings() = MadeOf<v1::Finding>(
      "rule: 'few-loads-in-flight' phase: PHASE_MEMORY text: 'Each thread loads 4 bytes' advice: 'Use float4' entry: "
      "'saxpy' "
      "wants { resource: RESOURCE_VECTOR_WIDTH direction: DIRECTION_MORE } seen { metric: 'load_width' operator: '<' "
      "threshold: 8 value: 4 }");
  for (const v1::Iteration& each : iterations) *situation.add_tried() = each;
  *situation.add_untried() = MadeOf<v1::RankedChange>(
      "change { variable: 'THREADS' from: 128 to: 256 } parent: 1 score { rules: 0.1 model: 0.05 } finding: "
      "'few-loads-in-flight'");
}

void FakeCampaigns::Add(v1::Event event) {
  absl::MutexLock lock(&mutex_);
  event.set_campaign(kName);
  *messages_.emplace_back().mutable_event() = std::move(event);
  added_.SignalAll();
}

void FakeCampaigns::Add(const v1::Progress& progress) {
  absl::MutexLock lock(&mutex_);
  *messages_.emplace_back().mutable_progress() = progress;
  added_.SignalAll();
}

std::vector<v1::ProposeChangeRequest> FakeCampaigns::proposals() const {
  absl::MutexLock lock(&mutex_);
  return proposals_;
}

std::vector<v1::SubmitCampaignRequest> FakeCampaigns::submits() const {
  absl::MutexLock lock(&mutex_);
  return submits_;
}

absl::StatusOr<v1::Campaign> FakeCampaigns::Submit(const v1::SubmitCampaignRequest& request) {
  absl::MutexLock lock(&mutex_);
  submits_.push_back(request);
  return campaign;
}

absl::StatusOr<v1::Campaign> FakeCampaigns::GetCampaign(const std::string& name) {
  if (name != kName) return NoSuchCampaign(name);
  return campaign;
}

absl::StatusOr<v1::ListCampaignsResponse> FakeCampaigns::ListCampaigns(const v1::ListCampaignsRequest& request) {
  if (!request.page_token().empty()) return absl::InvalidArgumentError("the page token is not from this call");
  v1::ListCampaignsResponse list;
  *list.add_campaigns() = campaign;
  for (const v1::Campaign& other : others) *list.add_campaigns() = other;
  return list;
}

absl::StatusOr<v1::ListIterationsResponse> FakeCampaigns::ListIterations(const v1::ListIterationsRequest& request) {
  ++lists;
  const auto other = of_others.find(request.campaign());
  if (request.campaign() != kName && other == of_others.end()) return NoSuchCampaign(request.campaign());
  v1::ListIterationsResponse list;
  for (const v1::Iteration& each : request.campaign() == kName ? iterations : other->second) {
    const bool wanted = request.verdict() == v1::VERDICT_UNSPECIFIED || request.verdict() == each.verdict();
    if (wanted && list.iterations_size() < request.page_size()) *list.add_iterations() = each;
  }
  return list;
}

absl::StatusOr<v1::Iteration> FakeCampaigns::GetIteration(const std::string& name) {
  for (const v1::Iteration& each : iterations) {
    if (each.name() == name) return each;
  }
  return NoSuchCampaign(name);
}

absl::StatusOr<v1::BestVariant> FakeCampaigns::GetBestVariant(const std::string& name) {
  if (name != kName) return NoSuchCampaign(name);
  v1::BestVariant best;
  *best.mutable_bundle() = bundle;
  for (const v1::Iteration& each : iterations) {
    if (each.verdict() == v1::KEPT) *best.mutable_iteration() = each;
  }
  return best;
}

absl::StatusOr<v1::Situation> FakeCampaigns::GetSituation(const std::string& name) {
  if (name != kName) return NoSuchCampaign(name);
  return situation;
}

absl::StatusOr<v1::ProposeChangeResponse> FakeCampaigns::Propose(const v1::ProposeChangeRequest& request) {
  if (!propose_fails.ok()) return propose_fails;
  absl::MutexLock lock(&mutex_);
  proposals_.push_back(request);
  v1::ProposeChangeResponse response;
  response.set_waiting(static_cast<int>(proposals_.size()) - 1);
  return response;
}

absl::StatusOr<v1::GetReportResponse> FakeCampaigns::GetReport(const v1::GetReportRequest& request) {
  if (request.campaign() != kName) return NoSuchCampaign(request.campaign());
  v1::GetReportResponse response;
  response.set_page("# Report\n");
  return response;
}

absl::StatusOr<v1::GetBlobResponse> FakeCampaigns::GetBlob(const std::string& hash) {
  v1::GetBlobResponse response;
  if (hash == "patched") {
    response.set_content(patched_source);
  } else if (hash == "bundle") {
    response.set_content(bundle.SerializeAsString());
  } else {
    return NoSuchCampaign(hash);
  }
  return response;
}

std::unique_ptr<CampaignWatch> FakeCampaigns::Watch(const std::string&, int64_t after_sequence) {
  return std::make_unique<FakeWatch>(*this, after_sequence);
}

absl::StatusOr<v1::Bundle> FakeBundles::Read(const BundleSource& source) const {
  if (!source.folder.empty() && source.folder != "saxpy") return absl::NotFoundError("there is no such folder");
  return SaxpyBundle();
}

absl::StatusOr<v1::CheckReport> FakeBundles::Check(const BundleSource& source, const std::string& gpu) const {
  return MadeOf<v1::CheckReport>(absl::StrCat(
      "bundle: 'saxpy' ok: ", source.files.empty() ? "true" : "false",
      " problems { file: 'kernel.toml' line: 3 message: 'unknown key' } space: 2 allowed: 2 warnings: 'not compiled' "
      "sizes { name: 'main' launches { entry: 'saxpy' grid { x: 16 y: 1 z: 1 } block { x: 64 y: 1 z: 1 } } } "
      "gpus { name: '",
      gpu.empty() ? "NVIDIA H200" : gpu, "' can_run: true build: CHECK_BUILD_SKIPPED }"));
}

}  // namespace pawl
