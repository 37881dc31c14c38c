#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "worker/trial/trial_device.h"
#include "worker/validate/gpu_device.h"

namespace pawl {

// A bundle that copies a vector: two hidden sizes (7 and 8), "small" and "main"; TILE of 32 (the start), 64, 2048 (a
// block that no GPU launches) and 4096 (which the constraint forbids). At "main" its roofline floor on an H200 is about
// 110 us.
v1::Bundle CopyBundle();

// The same, with scratch `spare` that the launch exchanges with `out` after each of `repeat` repetitions.
v1::Bundle ExchangingBundle(const std::string& repeat);

// A GPU without a GPU, as the trial pipeline sees it. Unless told otherwise it is healthy: everything builds, every
// output is right, candidate and parent take 200 us, and the tools find nothing. It notes what it is asked to do.
class ScriptedGpu : public GpuDevice {
 public:
  // What one runner process measures, in us.
  struct Times {
    double candidate_us = 200;
    double parent_us = 200;
    int discarded = 0;      // beside the pairs
    bool unsteady = false;  // every pair is discarded
    double witness_us = 210;
    std::string disturbance = "";  // why pairs were discarded
    bool single = false;           // a call leaves globals changed: each is timed by itself
    int calls = 0;                 // of a graph, unless more or fewer are asked for
    int most_calls = 20;
  };

  ScriptedGpu();

  // What was asked of the GPU, in order: "call small x2", "check small", "compare main 12", "compare main 36 witness",
  // "restart", "sanitize hidden hidden small", "profile main", "copy", "baseline", "restart reference".
  std::vector<std::string> log;
  // Calls and checks with other inputs than those of the bundle's own fill, which are left out of the log: "call hidden
  // EQUAL", "check hidden EQUAL".
  std::vector<std::string> other_inputs;
  // What was compiled, in order: "copy.cu -DTILE=32".
  std::vector<std::string> compiled();

  // Times of the present process and those after it; the last stands for all later ones.
  std::vector<Times> processes = {Times()};
  std::map<std::string, Times> at_size;  // what every process measures at a size, instead

  // What happens instead of a healthy answer, by what the log says of it, or "load", "load reference".
  std::map<std::string, v1::Failure> failures;       // the candidate's, or in a check the reference's
  std::map<std::string, absl::Status> faults;        // the machine's
  std::map<std::string, v1::OutputError> errors;     // of a check: what is off
  std::map<std::string, v1::Failure> repeats;        // of a call: a repeat that gave other bits
  std::map<std::string, v1::BuildReply> builds;      // by a part of what is compiled
  std::map<std::string, absl::Status> build_faults;  // the same
  std::map<std::string, v1::RunnerReply> once;       // the reply to the first such request only
  std::map<std::string, absl::Duration> deadlines;   // of the last such request
  // A kernel that is wrong for some sizes and inputs, a reference that is not finite for some, and one that is so where
  // the kernel is, too.
  std::function<bool(const v1::Plan&plan, const v1::InputDraw&draw)> wrong, overflows, both_overflow;
  // Its outputs are finite there, and their squares are not.
  std::function<bool(const v1::Plan& plan, const v1::InputDraw& draw)> squares_overflow;
  std::function<bool(const v1::InputDraw& draw)> wrong_when_timed;  // right in calls that are validated
  double wrong_by = 1;                                              // the relative error of such outputs
  int wrong_elements = 10;                                          // of such outputs, beyond the absolute limit
  int64_t module_bytes = 0;                                         // that every module takes
  int local_bytes = 0;                                              // of every entry, a thread
  std::optional<int> outputs_compared;                              // by every check, instead of all
  std::vector<std::string> lenient;                                 // what a self-test of the tolerance lets pass
  bool blind_reference = false;                                     // its outputs are the same whatever the input holds
  double baseline_us = 150;
  bool sanitizer_installed = true;
  Sanitizing sanitizing;
  std::function<absl::StatusOr<Sanitizing>(const std::vector<const BuiltSize*>& sizes)> sanitize;  // in its place
  size_t sanitizer_calls = 100;            // sizes that fit into the time of racecheck and initcheck
  int sanitizers = 0;                      // that run now
  std::optional<std::string> no_counters;  // why a profile is partial
  std::vector<v1::HandOffCheck> hand_off;  // what building and running one gives
  // What problem.py is asked for, in order, and what its own check() says; it has none.
  std::vector<std::string> problem_log;
  std::vector<std::pair<std::string, uint64_t>> made_seeds;  // of the entries of pools
  std::optional<std::string> own_check;
  double make_seconds = 0.01;  // of an entry
  // What both processes were given, in order: "runner pool 0 in", "reference pool expected 0 out".
  std::vector<std::string> provided;
  // Called after each entry of the log.
  std::function<void(const std::string&)> after;
  bool has_spare = false;  // process

  // Modules that are loaded in both processes.
  size_t loaded() const { return runner_.loaded() + reference_.loaded(); }

  const v1::GpuInfo& gpu() const override { return gpu_; }
  v1::Toolchain toolchain() const override;
  Compiler& builder() override { return compiler_; }
  ReferenceCache& references() override { return references_; }
  InputLimits& input_limits() override { return input_limits_; }
  KernelProcess& runner() override { return runner_; }
  KernelProcess& reference() override { return reference_; }
  ProblemServer& problem() override { return problem_; }
  ProvidedPools& pools() override { return pools_; }
  void StopWhen(const Stopped& stopped) override { stopped_ = stopped; }
  const Stopped& stopped() const override { return stopped_; }
  std::function<void()> settle;  // called where something is about to be timed
  void Settle() override {
    if (settle) settle();
  }
  bool has_sanitizer() const override { return sanitizer_installed; }
  absl::StatusOr<std::unique_ptr<SanitizerRun>> StartSanitizing(const std::vector<const BuiltSize*>& sizes,
                                                                SanitizerTools tools) override;
  absl::StatusOr<Profiling> Profile(const std::vector<ProfileItem>& items) override;
  const Metrics& metrics() const override { return Metrics::Default(); }
  absl::StatusOr<std::vector<v1::BaselineTime>> TimeBaseline(const v1::Bundle& bundle,
                                                             const std::filesystem::path& folder) override;
  absl::StatusOr<v1::BesideBaseline> TimeBesideBaseline(const v1::Bundle& bundle, const BuiltSize& best) override;
  absl::StatusOr<std::vector<v1::HandOffCheck>> CheckHandOff(
      const v1::Bundle& bundle, const google::protobuf::RepeatedPtrField<v1::SourceFile>& files) override;

 private:
  class ScriptedSanitizer;
  class ScriptedCompiler : public Compiler {
   public:
    explicit ScriptedCompiler(ScriptedGpu& script) : script_(script) {}
    absl::StatusOr<v1::BuildReply> Build(const v1::BuildRequest& request, const Stopped& stopped) override;
    std::vector<std::string> compiled();

   private:
    ScriptedGpu& script_;
    absl::Mutex mutex_;
    std::vector<std::string> compiled_ ABSL_GUARDED_BY(mutex_);
  };
  class ScriptedProcess : public KernelProcess {
   public:
    ScriptedProcess(ScriptedGpu& script, bool reference) : script_(script), is_reference_(reference) {}
    absl::StatusOr<v1::RunnerReply> Load(const std::string& id, const std::string& cubin,
                                         const google::protobuf::RepeatedPtrField<v1::PlanLaunch>& launches) override;
    absl::StatusOr<v1::RunnerReply> Ask(const v1::RunnerRequest& request, absl::Duration deadline) override;
    void Restart() override;
    absl::Status OpenSpare() override;
    void EndSpare() override;
    absl::StatusOr<v1::RunnerReply> Provide(const v1::ProvideRequest& request) override;
    absl::StatusOr<v1::RunnerReply> ProvideFile(const std::string& id, const std::string& content) override;
    bool HasEntry(const std::string& pool, uint32_t entry) const override { return entries_.contains({pool, entry}); }
    void UnloadAll() override {
      served_others_ = served_others_ || !loaded_.empty();
      loaded_.clear();
      entries_.clear();
    }
    bool served_others() const override { return served_others_; }
    size_t loaded() const { return loaded_.size(); }

   private:
    ScriptedGpu& script_;
    const bool is_reference_;
    bool served_others_ = false;
    std::set<std::string> loaded_;
    std::set<std::pair<std::string, uint32_t>> entries_;
  };

  // A problem.py of the copy bundle. It notes "make small", "make small EQUAL", "stage fresh 3", "own check small".
  class ScriptedProblem : public ProblemServer {
   public:
    explicit ScriptedProblem(ScriptedGpu& script) : script_(script) {}
    absl::StatusOr<StagedEntry> Make(const v1::Bundle& bundle, const v1::Plan& plan,
                                     const EntryRequest& request) override;
    absl::StatusOr<StagedEntry> Stage(const v1::Bundle& bundle, const std::string& pool, uint32_t entry,
                                      int64_t offset) override;
    void MakeAhead(const v1::Bundle&, const v1::Plan&, const EntryRequest&) override {}
    void StageAhead(const v1::Bundle&, const std::string&, uint32_t, int64_t) override {}
    void DropAhead() override {}
    void Forget(const v1::Bundle&, const std::string& pool) override {
      script_.problem_log.push_back("forget " + pool);
    }
    absl::StatusOr<bool> HasCheck(const v1::Bundle&) override { return script_.own_check.has_value(); }
    absl::StatusOr<OwnCheck> Check(const v1::Bundle& bundle, const v1::Plan& plan,
                                   const std::vector<v1::InputDraw>& draws, bool self_test) override;
    absl::StatusOr<v1::BaselineTime> TimeBaseline(const v1::Bundle& bundle, const v1::Plan& plan) override;
    absl::StatusOr<v1::BesideBaseline> TimeBesideBaseline(const v1::Bundle& bundle, const BuiltSize& best) override;

   private:
    StagedEntry Staged() const;

    ScriptedGpu& script_;
    std::set<std::pair<std::string, uint32_t>> made_;
  };

  // Notes it; a status where the script has one, or the run was stopped.
  absl::Status Note(const std::string& what, bool other = false);
  std::string SizeWord(const v1::Plan& plan) const;
  v1::RunnerReply Call(const std::string& what);
  v1::RunnerReply Compare(const v1::CompareRequest& request);
  v1::RunnerReply Check(const std::string& what, const v1::CheckRequest& request);

  v1::GpuInfo gpu_;
  ScriptedCompiler compiler_{*this};
  ScriptedProcess runner_{*this, false}, reference_{*this, true};
  ScriptedProblem problem_{*this};
  ProvidedPools pools_;
  ReferenceCache references_;
  InputLimits input_limits_;
  Stopped stopped_;
};

// The same with a problem.py in place of reference and baseline command.
v1::Bundle ProblemBundle();

// Notes what it is told, and stops when it is told to.
class ScriptedObserver : public TrialObserver {
 public:
  void Report(v1::Stage stage, int step, int steps, const std::string& text) override;
  bool stopped() const override { return stop; }

  std::vector<std::string> reports;  // "validate at small (2 of 9)"
  bool stop = false;
};

}  // namespace pawl
