#include "tests/worker/trial/scripted_gpu.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "worker/build/plan_arguments.h"

namespace pawl {
namespace {

void AddTensor(v1::Bundle* bundle, const std::string& name, v1::TensorRole role) {
  v1::Tensor& tensor = *bundle->add_tensors();
  tensor.set_name(name);
  tensor.set_type(v1::DATA_TYPE_F32);
  tensor.add_shape("N");
  tensor.set_role(role);
  if (role != v1::TENSOR_ROLE_INPUT) return;
  tensor.set_fill(v1::FILL_NORMAL);
  tensor.set_low("-1000");
  tensor.set_high("1000");
}

void FillLaunch(v1::Launch* launch, const std::string& entry, const std::string& block) {
  launch->set_entry(entry);
  launch->add_grid("ceil_div(N, 32)");
  launch->add_block(block);
  for (const char* argument : {"in", "out", "N"}) launch->add_arguments(argument);
}

}  // namespace

v1::Bundle CopyBundle() {
  v1::Bundle bundle;
  bundle.set_name("copy");
  bundle.mutable_source()->set_path("copy.cu");
  bundle.mutable_source()->set_text("extern \"C\" __global__ void copy(const float* in, float* out, int n) {}\n");
  bundle.set_compiler(v1::COMPILER_NVRTC);
  bundle.mutable_goal()->set_size("main");
  for (const auto& [name, n] : {std::pair{"small", 1000}, std::pair{"main", 1 << 26}}) {
    v1::Size& size = *bundle.add_sizes();
    size.set_name(name);
    (*size.mutable_values())["N"] = n;
  }
  AddTensor(&bundle, "in", v1::TENSOR_ROLE_INPUT);
  AddTensor(&bundle, "out", v1::TENSOR_ROLE_OUTPUT);
  v1::Variable& tile = *bundle.add_variables();
  tile.set_name("TILE");
  for (const int value : {32, 64, 2048, 4096}) tile.add_values(value);
  tile.set_start(32);
  bundle.add_constraints()->set_that("TILE < 4096");
  (*bundle.mutable_hidden())["N"].set_low(7);
  (*bundle.mutable_hidden())["N"].set_high(8);
  FillLaunch(bundle.add_launches(), "copy", "TILE");
  bundle.set_work_flops("0");
  bundle.set_work_bytes("8 * N");
  bundle.mutable_reference()->mutable_source()->set_path("reference.cu");
  bundle.mutable_reference()->mutable_source()->set_text("extern \"C\" __global__ void copy_reference() {}\n");
  FillLaunch(bundle.mutable_reference()->add_launches(), "copy_reference", "32");
  bundle.mutable_tolerance()->set_absolute(0.01);
  bundle.mutable_tolerance()->set_relative(0.01);
  bundle.set_timing(v1::TIMING_MODE_WARM);
  bundle.add_baseline_command("peer");
  return bundle;
}

v1::Bundle ExchangingBundle(const std::string& repeat) {
  v1::Bundle bundle = CopyBundle();
  AddTensor(&bundle, "spare", v1::TENSOR_ROLE_SCRATCH);
  v1::Launch& launch = *bundle.mutable_launches(0);
  launch.set_repeat(repeat);
  launch.add_swap("out");
  launch.add_swap("spare");
  return bundle;
}

v1::Bundle ProblemBundle() {
  v1::Bundle bundle = CopyBundle();
  bundle.mutable_problem()->set_path("problem.py");
  bundle.mutable_problem()->set_text("def inputs(sizes, seed): ...");
  bundle.clear_reference();
  bundle.clear_baseline_command();
  bundle.mutable_tensors(0)->set_fill(v1::FILL_PROBLEM);
  return bundle;
}

ScriptedGpu::ScriptedGpu() {
  gpu_.set_name("NVIDIA H200");
  gpu_.set_uuid("GPU-scripted");
  gpu_.set_compute_major(9);
  gpu_.set_sm_count(132);
  gpu_.set_memory_bytes(int64_t{1} << 37);
  gpu_.set_max_threads_per_sm(2048);
  gpu_.set_max_threads_per_block(1024);
  gpu_.set_max_blocks_per_sm(32);
  gpu_.set_registers_per_sm(65536);
  gpu_.set_shared_per_sm(233472);
  gpu_.set_shared_per_block_optin(232448);
  gpu_.set_l2_bytes(50 << 20);
}

v1::Toolchain ScriptedGpu::toolchain() const {
  v1::Toolchain toolchain;
  toolchain.set_ncu("scripted");
  return toolchain;
}

std::vector<std::string> ScriptedGpu::compiled() { return compiler_.compiled(); }

absl::Status ScriptedGpu::Note(const std::string& what, bool other) {
  if (stopped_ && stopped_()) return absl::CancelledError("stopped");
  (other ? other_inputs : log).push_back(what);
  if (after) after(what);
  if (const auto fault = faults.find(what); fault != faults.end()) return fault->second;
  // A caller that waits for a process learns of the stop.
  if (stopped_ && stopped_()) return absl::CancelledError("stopped");
  return absl::OkStatus();
}

std::string ScriptedGpu::SizeWord(const v1::Plan& plan) const {
  for (const char* drawn : {"hidden", "beside"}) {
    if (absl::StartsWith(plan.size(), drawn)) return drawn;
  }
  return plan.size();
}

absl::StatusOr<v1::BuildReply> ScriptedGpu::ScriptedCompiler::Build(const v1::BuildRequest& request, const Stopped&) {
  const std::string what = absl::StrCat(request.name(), " ", absl::StrJoin(request.options(), " "));
  {
    absl::MutexLock lock(&mutex_);
    compiled_.push_back(std::string(absl::StripTrailingAsciiWhitespace(what)));
  }
  for (const auto& [part, fault] : script_.build_faults) {
    if (absl::StrContains(what, part)) return fault;
  }
  for (const auto& [part, reply] : script_.builds) {
    if (absl::StrContains(what, part)) return reply;
  }
  v1::BuildReply reply;
  reply.set_cubin(absl::StrCat("cubin of ", what, request.source()));
  reply.set_log("ptxas info");
  return reply;
}

std::vector<std::string> ScriptedGpu::ScriptedCompiler::compiled() {
  absl::MutexLock lock(&mutex_);
  return compiled_;
}

absl::StatusOr<v1::RunnerReply> ScriptedGpu::ScriptedProcess::Load(
    const std::string& id, const std::string&, const google::protobuf::RepeatedPtrField<v1::PlanLaunch>& launches) {
  const std::string what = is_reference_ ? "load reference" : "load";
  if (const auto fault = script_.faults.find(what); fault != script_.faults.end()) return fault->second;
  v1::RunnerReply reply;
  if (const auto failure = script_.failures.find(what); failure != script_.failures.end()) {
    *reply.mutable_failure() = failure->second;
    return reply;
  }
  if (const auto once = script_.once.find(what); once != script_.once.end()) {
    reply = once->second;
    script_.once.erase(once);
    return reply;
  }
  loaded_.insert(id);
  reply.mutable_load()->set_module_bytes(script_.module_bytes);
  for (const v1::PlanLaunch& launch : launches) {
    v1::ResourceUse& use = *reply.mutable_load()->add_resources();
    use.set_entry(launch.entry());
    use.set_registers(32);
    use.set_local_bytes(script_.local_bytes);
    use.set_blocks_per_sm(8);
  }
  return reply;
}

absl::StatusOr<v1::RunnerReply> ScriptedGpu::ScriptedProcess::Provide(const v1::ProvideRequest& request) {
  if (request.drop()) {
    std::erase_if(entries_, [&](const auto& entry) { return entry.first == request.pool(); });
    return v1::RunnerReply();
  }
  std::string what = absl::StrCat(is_reference_ ? "reference " : "runner ", request.pool(), " ", request.entry());
  for (const v1::ProvideRequest::Part& part : request.parts()) absl::StrAppend(&what, " ", part.tensor());
  script_.provided.push_back(what);
  entries_.insert({request.pool(), request.entry()});
  return v1::RunnerReply();
}

absl::StatusOr<v1::RunnerReply> ScriptedGpu::ScriptedProcess::ProvideFile(const std::string& id,
                                                                          const std::string& content) {
  if (HasEntry(id, 0)) return v1::RunnerReply();
  entries_.insert({id, 0});
  script_.provided.push_back(
      absl::StrCat(is_reference_ ? "reference " : "runner ", "file of ", content.size(), " bytes"));
  return v1::RunnerReply();
}

StagedEntry ScriptedGpu::ScriptedProblem::Staged() const {
  StagedEntry staged;
  staged.inputs.emplace_back().set_tensor("in");
  staged.expected.emplace_back().set_tensor("out");
  staged.make_seconds = script_.make_seconds;
  return staged;
}

absl::StatusOr<StagedEntry> ScriptedGpu::ScriptedProblem::Make(const v1::Bundle&, const v1::Plan& plan,
                                                               const EntryRequest& request) {
  std::string what = absl::StrCat(request.strict ? "check " : "make ", script_.SizeWord(plan));
  if (request.distribution != v1::DISTRIBUTION_UNSPECIFIED) {
    absl::StrAppend(&what, " ", v1::Distribution_Name(request.distribution));
  }
  script_.problem_log.push_back(what);
  if (const auto fault = script_.faults.find(what); fault != script_.faults.end()) return fault->second;
  made_.insert({request.pool, request.entry});
  script_.made_seeds.emplace_back(request.pool, request.seed);
  return Staged();
}

absl::StatusOr<StagedEntry> ScriptedGpu::ScriptedProblem::Stage(const v1::Bundle&, const std::string& pool,
                                                                uint32_t entry, int64_t) {
  script_.problem_log.push_back(absl::StrCat("stage ", pool, " ", entry));
  if (!made_.contains({pool, entry})) return absl::NotFoundError("it is gone");
  return Staged();
}

absl::StatusOr<OwnCheck> ScriptedGpu::ScriptedProblem::Check(const v1::Bundle&, const v1::Plan& plan,
                                                             const std::vector<v1::InputDraw>& draws, bool self_test) {
  script_.problem_log.push_back(absl::StrCat("own check ", script_.SizeWord(plan)));
  OwnCheck check;
  check.verdicts.assign(draws.size(), *script_.own_check);
  if (self_test) check.lenient = script_.lenient;
  return check;
}

absl::StatusOr<v1::BaselineTime> ScriptedGpu::ScriptedProblem::TimeBaseline(const v1::Bundle&, const v1::Plan& plan) {
  v1::BaselineTime time;
  time.set_size(plan.size());
  time.set_graph_us(script_.baseline_us);
  return time;
}

absl::StatusOr<v1::BesideBaseline> ScriptedGpu::ScriptedProblem::TimeBesideBaseline(const v1::Bundle&,
                                                                                    const BuiltSize& best) {
  v1::BesideBaseline beside;
  beside.set_size(best.plan.size());
  return beside;
}

void ScriptedGpu::ScriptedProcess::Restart() {
  served_others_ = false;
  loaded_.clear();
  entries_.clear();
  script_.log.push_back(is_reference_ ? "restart reference" : "restart");
  if (!is_reference_ && script_.processes.size() > 1) script_.processes.erase(script_.processes.begin());
}

void ScriptedGpu::ScriptedProcess::EndSpare() { script_.has_spare = false; }

absl::Status ScriptedGpu::ScriptedProcess::OpenSpare() {
  script_.has_spare = true;
  if (script_.after) script_.after("spare");
  return absl::OkStatus();
}

v1::RunnerReply ScriptedGpu::Call(const std::string& what) {
  v1::RunnerReply reply;
  reply.mutable_call()->set_staged(1);
  if (const auto repeat = repeats.find(what); repeat != repeats.end()) {
    *reply.mutable_call()->mutable_repeat_failure() = repeat->second;
  }
  return reply;
}

v1::RunnerReply ScriptedGpu::Compare(const v1::CompareRequest& request) {
  if (sanitizers > 0) log.push_back("TIMED BESIDE compute-sanitizer");
  const auto own = at_size.find(request.candidate_plan().size());
  const Times& times = own != at_size.end() ? own->second : processes.front();
  v1::RunnerReply reply;
  v1::CompareReply& compare = *reply.mutable_compare();
  const auto sure = [&] {
    const auto& pairs = compare.pairs();
    return request.sure_pairs() > 0 && pairs.size() >= request.sure_pairs() &&
           std::all_of(pairs.begin(), pairs.end(),
                       [&](const v1::PairSample& pair) { return pair.log_ratio() < request.sure_below(); });
  };
  for (int i = 0; i < request.pairs() && !times.unsteady && !sure(); ++i) {
    v1::PairSample& pair = *compare.add_pairs();
    pair.set_parent_us(times.parent_us * std::exp(0.0004 * (i % 3 - 1)));
    pair.set_candidate_us(times.candidate_us);
    pair.set_log_ratio(std::log(pair.parent_us() / pair.candidate_us()));
    pair.set_anchor_us(10);
    if (!request.witness().empty()) pair.set_witness_us(times.witness_us);
    pair.set_single(times.single || request.single());
    pair.set_calls(request.calls() > 0 ? request.calls() : times.calls);
  }
  compare.set_most_calls(times.most_calls);
  compare.set_discarded(times.unsteady ? 10 : times.discarded);
  if (!times.disturbance.empty()) compare.add_disturbances(times.disturbance);
  // A call with a cold L2 takes half as long again.
  compare.set_candidate_warm_us(times.candidate_us);
  compare.set_candidate_cold_us(1.5 * times.candidate_us);
  compare.set_parent_warm_us(times.parent_us);
  compare.set_parent_cold_us(1.5 * times.parent_us);
  for (int i = 0; i < request.checked_calls(); ++i) {
    v1::InputDraw& checked = *compare.add_checked();
    checked.set_pool(request.pool());
    if (request.entries() > 0) checked.set_entry(request.entries() - 1);
  }
  for (const v1::OtherInputs& other : request.others()) {
    v1::InputDraw& checked = *compare.add_checked();
    checked.set_distribution(other.distribution());
    checked.set_magnitude(other.magnitude());
  }
  return reply;
}

v1::RunnerReply ScriptedGpu::Check(const std::string& what, const v1::CheckRequest& request) {
  v1::RunnerReply reply;
  v1::CheckReply& check = *reply.mutable_check();
  const int outputs = outputs_compared.value_or(request.draws_size());  // the bundle has one output
  for (int i = 0; i < outputs; ++i) {
    v1::OutputError& error = *check.add_errors();
    if (const auto scripted = errors.find(what); scripted != errors.end()) error = scripted->second;
    if (absl::StartsWith(what, "reference") && !blind_reference) error.set_wrong(900);
    const v1::InputDraw& draw = request.draws(std::min(i, request.draws_size() - 1));
    const bool overflow = overflows && overflows(request.plan(), draw);
    const bool when_timed = wrong_when_timed && absl::StartsWith(what, "check timed") && wrong_when_timed(draw);
    if (overflow || when_timed || (wrong && wrong(request.plan(), draw))) {
      error.set_wrong(wrong_elements);
      error.set_first_wrong(-1);
      error.set_relative(wrong_by);
    }
    error.set_tensor("out");
    error.set_elements(1000);
    const bool squares = squares_overflow && squares_overflow(request.plan(), draw);
    check.add_references()->set_rms(squares ? INFINITY : 1);
    const bool both = both_overflow && both_overflow(request.plan(), draw);
    if (overflow || both) check.mutable_references()->rbegin()->set_non_finite(3);
  }
  if (request.self_test()) check.mutable_lenient()->Assign(lenient.begin(), lenient.end());
  return reply;
}

namespace {

// " EQUAL", or nothing for the bundle's own fill.
std::string InputWord(const v1::InputDraw& draw) {
  if (draw.distribution() == v1::DISTRIBUTION_UNSPECIFIED) return "";
  return absl::StrCat(" ", absl::StripPrefix(v1::Distribution_Name(draw.distribution()), "DISTRIBUTION_"));
}

}  // namespace

absl::StatusOr<v1::RunnerReply> ScriptedGpu::ScriptedProcess::Ask(const v1::RunnerRequest& request,
                                                                  absl::Duration deadline) {
  std::string what, module, other;
  if (request.has_call()) {
    other = InputWord(request.call().draw());
    what = absl::StrCat(is_reference_ ? "reference " : "", "call ", script_.SizeWord(request.call().plan()),
                        other.empty() ? absl::StrCat(" x", request.call().repeats()) : other);
    module = request.call().module();
  } else if (request.has_compare()) {
    what = absl::StrCat("compare ", script_.SizeWord(request.compare().candidate_plan()), " ",
                        request.compare().pairs(), request.compare().witness().empty() ? "" : " witness",
                        request.compare().single() ? " single" : "");
    module = request.compare().candidate();
  } else if (request.has_check()) {
    // Right after a comparison it is the timed outputs that are checked.
    const bool timed = !script_.log.empty() && absl::StartsWith(script_.log.back(), "compare");
    // Right after a call of the reference it is that call's.
    const bool own = !script_.log.empty() && absl::StartsWith(script_.log.back(), "reference");
    if (request.check().draws_size() > 0) other = InputWord(request.check().draws(0));
    what =
        absl::StrCat(own ? "reference " : "", "check ", timed ? "timed " : "", script_.SizeWord(request.check().plan()),
                     other, request.check().self_test() ? " self-test" : "");
    module = request.check().module();
  } else {
    what = "copy";
  }
  for (const v1::Plan* plan : {&request.call().plan(), &request.compare().candidate_plan(),
                               &request.compare().parent_plan(), &request.check().plan()}) {
    if (absl::Status status = CheckPlan(*plan); !status.ok()) return status;  // as the runner does
  }
  if (absl::Status status = script_.Note(what, !other.empty()); !status.ok()) return status;
  if (!module.empty() && !loaded_.contains(module)) return absl::InternalError(absl::StrCat(what, ": not loaded"));
  script_.deadlines[what] = deadline;
  v1::RunnerReply reply;
  if (const auto once = script_.once.find(what); once != script_.once.end()) {
    reply = once->second;
    script_.once.erase(once);
    return reply;
  }
  if (const auto failure = script_.failures.find(what); failure != script_.failures.end()) {
    *reply.mutable_failure() = failure->second;
    return reply;
  }
  if (request.has_call()) return script_.Call(what);
  if (request.has_compare()) return script_.Compare(request.compare());
  if (request.has_check()) return script_.Check(what, request.check());
  reply.mutable_copy()->set_gb_s(4000);
  return reply;
}

class ScriptedGpu::ScriptedSanitizer : public SanitizerRun {
 public:
  ScriptedSanitizer(ScriptedGpu& script, absl::StatusOr<Sanitizing> end) : script_(script), end_(std::move(end)) {
    ++script_.sanitizers;
  }
  ~ScriptedSanitizer() override { --script_.sanitizers; }
  absl::StatusOr<Sanitizing> Wait() override { return end_; }

 private:
  ScriptedGpu& script_;
  const absl::StatusOr<Sanitizing> end_;
};

absl::StatusOr<std::unique_ptr<SanitizerRun>> ScriptedGpu::StartSanitizing(const std::vector<const BuiltSize*>& sizes,
                                                                           SanitizerTools tools) {
  std::string what = tools == SanitizerTools::kAll        ? "sanitize"
                     : tools == SanitizerTools::kMemcheck ? "memcheck"
                                                          : "racecheck and initcheck";
  for (const BuiltSize* size : sizes) absl::StrAppend(&what, " ", SizeWord(size->plan));
  absl::StatusOr<Sanitizing> end = Sanitizing{
      .failure = sanitizing.failure, .called = std::min(sizes.size(), sanitizer_calls), .seconds = sanitizing.seconds};
  if (absl::Status status = Note(what); absl::IsDeadlineExceeded(status)) {
    end = status;
  } else if (!status.ok()) {
    return status;
  }
  if (const auto failure = failures.find(what); failure != failures.end()) end = Sanitizing{.failure = failure->second};
  if (sanitize) end = sanitize(sizes);
  return std::make_unique<ScriptedSanitizer>(*this, std::move(end));
}

absl::StatusOr<Profiling> ScriptedGpu::Profile(const std::vector<ProfileItem>& items) {
  std::string what = "profile";
  for (const ProfileItem& item : items) absl::StrAppend(&what, " ", SizeWord(item.built->plan));
  if (absl::Status status = Note(what); !status.ok()) return status;
  Profiling profiling;
  for (const ProfileItem& item : items) {
    v1::Evidence& evidence = profiling.evidence.emplace_back();
    evidence.add_launches()->set_entry(item.built->plan.launches(0).entry());
    evidence.set_partial(no_counters.has_value());
    evidence.set_partial_reason(no_counters.value_or(""));
  }
  if (!no_counters) profiling.raw = "ncu's raw page";
  return profiling;
}

absl::StatusOr<std::vector<v1::BaselineTime>> ScriptedGpu::TimeBaseline(const v1::Bundle& bundle,
                                                                        const std::filesystem::path&) {
  if (absl::Status status = Note("baseline"); !status.ok()) return status;
  std::vector<v1::BaselineTime> times;
  for (const v1::Size& size : bundle.sizes()) {
    v1::BaselineTime& time = times.emplace_back();
    time.set_size(size.name());
    time.set_graph_us(baseline_us);
  }
  return times;
}

absl::StatusOr<v1::BesideBaseline> ScriptedGpu::TimeBesideBaseline(const v1::Bundle&, const BuiltSize& best) {
  if (absl::Status status = Note(absl::StrCat("baseline beside ", SizeWord(best.plan))); !status.ok()) return status;
  v1::BesideBaseline beside;
  beside.set_size(best.plan.size());
  beside.set_baseline_us(baseline_us);
  beside.set_best_us(100);
  for (int i = 0; i < 24; ++i) beside.add_log_ratios(std::log(baseline_us / 100));
  return beside;
}

absl::StatusOr<std::vector<v1::HandOffCheck>> ScriptedGpu::CheckHandOff(
    const v1::Bundle&, const google::protobuf::RepeatedPtrField<v1::SourceFile>& files) {
  if (absl::Status status = Note(absl::StrCat("hand-off of ", files.size())); !status.ok()) return status;
  return hand_off;
}

void ScriptedObserver::Report(v1::Stage, int, int, const std::string& text) { reports.push_back(text); }

}  // namespace pawl
