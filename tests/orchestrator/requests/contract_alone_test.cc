// Campaigns that are submitted without device code: the first proposal that passes validation is the start.
#include "tests/kernels/contract_alone.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/hash/hash.h"
#include "kernels/bundle_message.h"
#include "kernels/read/implementation.h"
#include "orchestrator/core/stored_campaign.h"
#include "tests/orchestrator/scripted_worker.h"
#include "tests/orchestrator/world.h"

namespace pawl {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kSource[] = "extern \"C\" __global__ void copy(const float* in, float* out, int n) { /* one */ }\n";
constexpr char kToml[] =
    "source = \"copy.cu\"\n"
    "[[variable]]\nname = \"TILE\"\nvalues = [16, 32]\nstart = 16\n"
    "[[launch]]\nentry = \"copy\"\ngrid = [\"ceil_div(N, TILE)\"]\nblock = [\"TILE\"]\n"
    "arguments = [\"in\", \"out\", \"N\"]\n";

v1::Bundle Contract() { return WithoutImplementation(TinyBundle()); }

std::string StartPatch(const std::string& source = kSource, const std::string& toml = kToml) {
  return absl::StrCat(AddingFile("copy.cu", source), AddingToml(Contract(), toml));
}

absl::Status Propose(World& world, const std::string& campaign, const std::string& patch,
                     const std::string& name = "a start") {
  v1::ProposeChangeRequest request;
  request.set_campaign(campaign);
  request.set_author("an agent");
  request.set_why("because");
  request.mutable_change()->mutable_source()->set_name(name);
  request.mutable_change()->mutable_source()->set_patch(patch);
  return world->Propose(request).status();
}

v1::Situation SituationOf(World& world, const std::string& campaign) {
  v1::GetSituationRequest request;
  request.set_campaign(campaign);
  const absl::StatusOr<v1::Situation> situation = world->Situation(request);
  EXPECT_TRUE(situation.ok()) << situation.status();
  return situation.value_or(v1::Situation());
}

v1::Bundle BundleNow(World& world, const std::string& campaign) {
  v1::GetBundleRequest request;
  request.set_hash(world.Get(campaign).bundle_hash());
  const absl::StatusOr<v1::Bundle> bundle = world.history().GetBundle(request);
  EXPECT_TRUE(bundle.ok()) << bundle.status();
  return bundle.value_or(v1::Bundle());
}

v1::TrialResult WrongResult(const v1::Trial&) { return FailedCheck(v1::CHECK_TOLERANCE, "out[3] is 4, expected 5"); }

TEST(ContractAloneTest, WaitsForItsStartWithoutALimit) {
  World world;
  const std::string campaign = world.Submit({}, Contract());
  ScriptedWorker worker(world, "a");
  EXPECT_FALSE(worker.Lease()->has_trial()) << "there is nothing to run";
  const v1::Campaign before = world.Get(campaign);
  EXPECT_EQ(before.waiting_for(), v1::WAITING_FOR_PROPOSAL);
  EXPECT_EQ(before.message(), "has no device code yet, and waits for a proposal of it: pawl propose");
  EXPECT_EQ(before.spec().chooser().kind(), v1::CHOOSER_KIND_OUTSIDE);
  world.Pass(absl::Hours(100));
  world.Restart();
  world.Pass(absl::Hours(100));
  EXPECT_EQ(world.Get(campaign).state(), v1::WAITING);
  const v1::Situation situation = SituationOf(world, campaign);
  EXPECT_FALSE(situation.has_best());
  EXPECT_TRUE(situation.waits());
  EXPECT_FALSE(situation.has_deadline());
  v1::CampaignSpec tree;
  tree.mutable_chooser()->set_kind(v1::CHOOSER_KIND_TREE);
  v1::SubmitCampaignRequest request;
  *request.mutable_bundle() = Contract();
  *request.mutable_spec() = tree;
  ExpectError(world->Submit(request).status(), absl::StatusCode::kInvalidArgument, "only proposals can change it");
}

TEST(ContractAloneTest, BeginsWithTheFirstProposalThatPassesValidation) {
  for (const bool restart : {false, true}) {
    SCOPED_TRACE(restart);
    World world;
    const std::string campaign = world.Submit({}, Contract());
    const std::string contract_hash = world.Get(campaign).bundle_hash();
    ScriptedWorker worker(world, "a");
    const auto again = [&] {
      if (!restart) return;
      world.Restart();
      ASSERT_TRUE(worker.Register().ok());
    };
    ASSERT_TRUE(Propose(world, campaign, StartPatch("#define WRONG\n" + std::string(kSource)), "wrong").ok());
    again();
    world.Pass(absl::Milliseconds(200));
    const v1::LeaseTrialResponse wrong = worker.MustLease();
    EXPECT_FALSE(wrong.trial().has_parent());
    EXPECT_EQ(wrong.trial().patched_source(), "") << "its bundle has it";
    EXPECT_TRUE(wrong.trial().sanitize_start()) << "another may be proposed instead";
    EXPECT_NE(wrong.trial().bundle_hash(), contract_hash);
    EXPECT_EQ(wrong.trial().variant().values().at("TILE"), 16);
    v1::GetBundleRequest get;
    get.set_hash(wrong.trial().bundle_hash());
    ASSERT_TRUE(world.history().GetBundle(get).ok());
    EXPECT_THAT(world.history().GetBundle(get)->source().text(), HasSubstr("#define WRONG"));
    EXPECT_THAT(BundleProblems(*world.history().GetBundle(get)), IsEmpty());
    again();
    ASSERT_TRUE(worker.Complete(wrong, WrongResult).ok());

    // It is history, and the campaign goes on without a start.
    again();
    v1::Campaign now = world.Get(campaign);
    EXPECT_EQ(now.state(), v1::RUNNING);
    EXPECT_FALSE(now.has_best());
    EXPECT_EQ(now.bundle_hash(), contract_hash);
    EXPECT_EQ(now.counts().rejected(), 1);
    ASSERT_THAT(world.Iterations(campaign), SizeIs(1));
    const v1::Iteration rejected = world.Iterations(campaign)[0];
    EXPECT_EQ(rejected.number(), 1);
    EXPECT_EQ(rejected.name(), campaign + "/iterations/1");
    EXPECT_FALSE(rejected.has_parent());
    EXPECT_EQ(rejected.verdict(), v1::REJECTED);
    EXPECT_EQ(rejected.reason(), "out[3] is 4, expected 5");
    EXPECT_EQ(rejected.change().source().name(), "wrong");
    ASSERT_THAT(SituationOf(world, campaign).tried(), SizeIs(1));
    // With other comments it is the same.
    const absl::Status same = Propose(world, campaign, StartPatch("#define WRONG\n// more\n" + std::string(kSource)));
    EXPECT_THAT(std::string(same.message()), HasSubstr("tried before: iteration 1, rejected: out[3] is 4, expected 5"));

    ASSERT_TRUE(Propose(world, campaign, StartPatch()).ok());
    again();
    world.Pass(absl::Milliseconds(200));
    const v1::LeaseTrialResponse start = worker.MustLease();
    ASSERT_TRUE(worker.Complete(start).ok());
    again();
    now = world.Get(campaign);
    ASSERT_TRUE(now.has_best());
    EXPECT_EQ(now.best(), 0);
    EXPECT_EQ(now.start_us(), 100);
    EXPECT_EQ(now.bundle_hash(), start.trial().bundle_hash()) << "the bundle has its start now";
    EXPECT_EQ(BundleNow(world, campaign).source().text(), kSource);
    EXPECT_EQ(BundleNow(world, campaign).source().path(), "copy.cu");
    v1::GetBestVariantRequest best;
    best.set_campaign(campaign);
    ASSERT_TRUE(world.history().GetBestVariant(best).ok());
    EXPECT_EQ(world.history().GetBestVariant(best)->iteration().number(), 0);
    EXPECT_EQ(world.history().GetBestVariant(best)->iteration().patched_source_hash(), "");
    EXPECT_EQ(SituationOf(world, campaign).source(), kSource);

    // From here on it is a campaign like any other.
    const std::string edit = "--- a/copy.cu\n+++ b/copy.cu\n@@ -1 +1,2 @@\n+#define FAST\n " + std::string(kSource);
    ASSERT_TRUE(Propose(world, campaign, edit, "fast").ok());
    again();
    world.Pass(absl::Milliseconds(200));
    const v1::LeaseTrialResponse edited = worker.MustLease();
    EXPECT_EQ(edited.trial().bundle_hash(), start.trial().bundle_hash());
    EXPECT_THAT(edited.trial().patched_source(), HasSubstr("#define FAST"));
    EXPECT_EQ(edited.trial().parent_patched_source(), "");
    EXPECT_EQ(edited.trial().parent().values().at("TILE"), 16);
    ASSERT_TRUE(worker.Complete(edited, EverythingHelps).ok());
    again();
    EXPECT_EQ(world.Get(campaign).best(), 2);
    const std::vector<v1::Iteration> all = world.Iterations(campaign);
    ASSERT_THAT(all, SizeIs(3));
    EXPECT_EQ(all[0].number(), 0);
    EXPECT_EQ(all[0].change().source().name(), "a start");
    EXPECT_EQ(all[0].author(), "an agent");
    EXPECT_EQ(all[2].parent(), 0);
    EXPECT_EQ(all[2].verdict(), v1::KEPT);
    EXPECT_EQ(world.Get(campaign).counts().kept(), 1);
  }
}

TEST(ContractAloneTest, RefusesAFirstProposalWithOneClearReason) {
  World world;
  const std::string campaign = world.Submit({}, Contract());
  const auto refused = [&](const std::string& patch) {
    const absl::Status status = Propose(world, campaign, patch);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  const std::string launch =
      "[[launch]]\nentry = \"copy\"\ngrid = [1]\nblock = [64]\narguments = [\"in\", \"out\", \"N\"]\n";
  const std::string source = AddingFile("copy.cu", kSource);
  EXPECT_THAT(refused(StartPatch(kSource, launch)), HasSubstr("the key source is missing"));
  EXPECT_THAT(refused(StartPatch(kSource, "source = \"copy.cu\"\n")),
              HasSubstr("there is no [[launch]]; expected at least one"));
  EXPECT_THAT(refused(source), HasSubstr("the patch leaves kernel.toml as it is"));
  EXPECT_THAT(refused(AddingToml(Contract(), kToml)), HasSubstr("the edit adds no copy.cu; it adds no file"));
  EXPECT_THAT(refused(source + AddingFile("tile.cuh", "#pragma once\n") + AddingToml(Contract(), kToml)),
              HasSubstr("the edit adds tile.cuh, which neither source nor files names"));
  EXPECT_THAT(refused(StartPatch(kSource, std::string(kToml) + "[tolerance]\nabsolute = 1\n")),
              HasSubstr("\"[tolerance]\" belongs to the contract, which no edit may change"));
  EXPECT_THAT(refused(AddingFile("reference.cu", kSource) + AddingToml(Contract(), kToml)),
              HasSubstr("reference.cu belongs to the contract, which no edit may change"));
  EXPECT_THAT(refused("--- a/reference.cu\n+++ b/reference.cu\n@@ -1 +1 @@\n-a\n+b\n"),
              HasSubstr("reference.cu belongs to the contract, which no edit may change"));
  EXPECT_THAT(refused(AddingFile("../x.cu", kSource) + AddingToml(Contract(), "source = \"../x.cu\"\n" + launch)),
              HasSubstr("expected a path inside of the bundle's folder"));
  v1::ProposeChangeRequest value;
  value.set_campaign(campaign);
  value.set_author("ann");
  value.mutable_change()->set_variable("TILE");
  value.mutable_change()->set_to(32);
  EXPECT_THAT(std::string(world->Propose(value).status().message()),
              HasSubstr("there is no device code yet: propose a patch that adds it"));
  EXPECT_EQ(world.Events(campaign).size(), 1u) << "nothing of it is stored";
}

TEST(ContractAloneTest, DropsOtherStartsOnceItHasOne) {
  World world;
  const std::string campaign = world.Submit({}, Contract());
  ScriptedWorker worker(world, "a");
  ASSERT_TRUE(Propose(world, campaign, StartPatch(), "first").ok());
  const std::string other = StartPatch("#define OTHER\n" + std::string(kSource));
  ASSERT_TRUE(Propose(world, campaign, other, "second").ok());
  ASSERT_TRUE(worker.Complete(worker.MustLease()).ok());
  world.Pass(absl::Milliseconds(200));
  EXPECT_FALSE(worker.Lease()->has_trial());
  const std::vector<v1::Event> dropped = world.Events(campaign, v1::Event::kDropped);
  ASSERT_THAT(dropped, SizeIs(1));
  EXPECT_THAT(dropped[0].dropped().reason(), HasSubstr("source can't be changed"));
}

TEST(ContractAloneTest, PausesAfterAFailedStartAndFailsWithItsBudget) {
  World world;
  v1::CampaignSpec spec;
  spec.mutable_budget()->set_iterations(2);
  const std::string campaign = world.Submit(spec, Contract());
  ScriptedWorker worker(world, "a");
  ASSERT_TRUE(Propose(world, campaign, StartPatch(), "first").ok());
  ASSERT_TRUE(worker.Complete(worker.MustLease(), WrongResult).ok());
  world.Pass(absl::Seconds(301));
  EXPECT_EQ(world.Get(campaign).state(), v1::PAUSED);
  EXPECT_THAT(world.Get(campaign).message(), HasSubstr("no start was proposed within 300 s"));
  v1::ResumeCampaignRequest resume;
  resume.set_name(campaign);
  ASSERT_TRUE(world->Resume(resume).ok());
  ASSERT_TRUE(Propose(world, campaign, StartPatch("#define X\n" + std::string(kSource)), "second").ok());
  ASSERT_TRUE(worker.Complete(worker.MustLease(), WrongResult).ok());
  const v1::Campaign ended = world.Get(campaign);
  EXPECT_EQ(ended.state(), v1::FAILED);
  EXPECT_EQ(ended.stop_reason(), v1::STOP_REASON_START);
  EXPECT_FALSE(ended.has_best());
  EXPECT_THAT(ended.message(), HasSubstr("no proposal passed validation"));
  EXPECT_THAT(ended.message(), HasSubstr("all 2 iterations are used up"));
}

TEST(ContractAloneTest, PausesWhereTheBaselineIsNotWhatItWasWithAnotherStart) {
  World world;
  double baseline_us = 50;
  const Measure measure = [&](const v1::Trial& trial) {
    v1::TrialResult result = NothingHelps(trial);
    if (trial.has_parent()) return result;
    result.add_baselines()->set_size("main");
    result.mutable_baselines(0)->set_graph_us(baseline_us);
    result.mutable_baselines(0)->set_what("torch");
    return result;
  };
  ScriptedWorker worker(world, "a");
  v1::CampaignSpec spec;
  spec.mutable_chooser()->set_kind(v1::CHOOSER_KIND_MIXED);
  spec.mutable_budget()->set_iterations(1);
  const auto run = [&](const std::string& source) {
    const std::string campaign = world.Submit(spec, Contract());
    EXPECT_TRUE(Propose(world, campaign, StartPatch(source)).ok());
    worker.RunAll(measure);
    return campaign;
  };
  const std::string first = run(kSource);
  ASSERT_EQ(world.Get(first).state(), v1::FINISHED) << world.Get(first).message();
  for (const bool restart : {false, true}) {
    SCOPED_TRACE(restart);
    if (restart) {
      world.Restart();
      ASSERT_TRUE(worker.Register().ok());
    }
    baseline_us = restart ? 71 : 70;
    const std::string off = run("#define OTHER" + std::string(restart ? "2\n" : "1\n") + kSource);
    EXPECT_EQ(world.Get(off).state(), v1::PAUSED);
    EXPECT_THAT(world.Get(off).message(), HasSubstr("50.000 us"));
  }
  // A bundle with the same contract has the same baseline.
  v1::Bundle bundle = Contract();
  ASSERT_TRUE(SetImplementation(
                  PatchImplementation(bundle, {}, StartPatch("#define MORE\n" + std::string(kSource)))->text, &bundle)
                  .ok());
  const std::string whole = world.Submit(spec, bundle);
  worker.RunAll(measure);
  EXPECT_EQ(world.Get(whole).state(), v1::PAUSED);
}

// A real kernel with its headers is larger than any edit of it.
TEST(ContractAloneTest, TakesALargerPatchForAStartThanForAnEdit) {
  World world;
  const std::string campaign = world.Submit({}, Contract());
  const auto lines = [](int count, const std::string& line) {
    std::string text;
    for (int i = 0; i < count; ++i) text += line;
    return text;
  };
  const std::string comment = "// " + std::string(96, 'x') + "\n";
  ExpectError(Propose(world, campaign, StartPatch(lines(11'000, comment) + kSource)),
              absl::StatusCode::kInvalidArgument, "the patch has 11");
  ExpectError(Propose(world, campaign, StartPatch(lines(100'000, "\n") + kSource)), absl::StatusCode::kInvalidArgument,
              "lines; expected at most 50000");
  ASSERT_TRUE(Propose(world, campaign, StartPatch(lines(9'000, comment) + kSource)).ok());
  ScriptedWorker worker(world, "a");
  ASSERT_TRUE(worker.Complete(worker.MustLease()).ok());
  ASSERT_TRUE(world.Get(campaign).has_best());
  world.Restart();
  EXPECT_EQ(BundleNow(world, campaign).source().text(), lines(9'000, comment) + kSource);
  const std::string edit =
      "--- a/copy.cu\n+++ b/copy.cu\n@@ -1 +1,2001 @@\n" + lines(2'000, "+" + comment) + " " + comment;
  ExpectError(Propose(world, campaign, edit), absl::StatusCode::kInvalidArgument, "bytes; an edit has at most 100000");
}

// Everything that is asked of a campaign follows from its events: a start that they make otherwise than they say is an
// error of the database, or of a Pawl that reads implementations in another way.
TEST(ContractAloneTest, IsNotReadWithAStartThatIsNotTheRecordedOne) {
  World world;
  const std::string campaign = world.Submit({}, Contract());
  ScriptedWorker worker(world, "a");
  ASSERT_TRUE(Propose(world, campaign, StartPatch()).ok());
  ASSERT_TRUE(worker.Complete(worker.MustLease()).ok());
  ArchivedCampaign archived;
  archived.summary = world.Get(campaign);
  archived.iterations = world.Iterations(campaign);
  archived.events = world.Events(campaign);
  archived.bundle = BundleBytes(Contract());
  ASSERT_EQ(CheckReplay(1, archived, "a.pawl"), absl::OkStatus());
  const auto replayed = [&](const std::function<void(v1::TrialPlanned&)>& spoil) {
    ArchivedCampaign spoilt = archived;
    CampaignState state(campaign, Contract());
    for (v1::Event& event : spoilt.events) {
      if (event.has_planned() && !event.planned().bundle_hash().empty()) spoil(*event.mutable_planned());
      state.Apply(event);
    }
    EXPECT_EQ(CheckReplay(1, spoilt, "a.pawl").code(), absl::StatusCode::kDataLoss);
    return state.damage();
  };
  const absl::Status other = replayed([](v1::TrialPlanned& planned) {
    planned.set_patched_source(absl::StrReplaceAll(planned.patched_source(), {{"one", "two"}}));
  });
  EXPECT_EQ(other.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(other.message()), HasSubstr("its start is not the recorded one"));
  const absl::Status unreadable = replayed([](v1::TrialPlanned& planned) {
    planned.set_patched_source(absl::StrReplaceAll(planned.patched_source(), {{"[[launch]]", "[[lunch]]"}}));
  });
  EXPECT_EQ(unreadable.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(unreadable.message()), HasSubstr("its start can't be read"));
}

// The start is an edit that was kept: with this chooser its variables are tuned first.
TEST(ContractAloneTest, TunesTheVariablesOfItsStart) {
  World world;
  v1::CampaignSpec spec;
  spec.mutable_chooser()->set_kind(v1::CHOOSER_KIND_MIXED);
  const std::string campaign = world.Submit(spec, Contract());
  ScriptedWorker worker(world, "a");
  ASSERT_TRUE(Propose(world, campaign, StartPatch("#define X\n" + std::string(kSource)), "wrong").ok());
  ASSERT_TRUE(worker.Complete(worker.MustLease(), WrongResult).ok());
  ASSERT_TRUE(Propose(world, campaign, StartPatch()).ok());
  ASSERT_TRUE(worker.Complete(worker.MustLease()).ok());
  const v1::LeaseTrialResponse tuned = worker.MustLease();
  EXPECT_EQ(tuned.trial().variant().values().at("TILE"), 32);
  EXPECT_EQ(tuned.trial().patched_source(), "");
  EXPECT_EQ(tuned.trial().iteration(), campaign + "/iterations/2");
}

}  // namespace
}  // namespace pawl
