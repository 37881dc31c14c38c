#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/hash/hash.h"
#include "orchestrator/engine/search/single_change.h"
#include "orchestrator/engine/search/tree_chooser.h"
#include "tests/orchestrator/scripted_worker.h"
#include "tests/orchestrator/world.h"

namespace pawl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

v1::CampaignSpec With(v1::ChooserKind kind, v1::NoProposal then = v1::NO_PROPOSAL_TREE) {
  v1::CampaignSpec spec;
  spec.mutable_chooser()->set_kind(kind);
  spec.mutable_chooser()->set_wait_seconds(60);
  spec.mutable_chooser()->set_no_proposal(then);
  return spec;
}

v1::Bundle WithSource() {
  v1::Bundle bundle = TinyBundle();
  bundle.mutable_source()->set_text("#define ONE\n" + bundle.source().text());
  return bundle;
}

absl::Status ProposePatch(World& world, const std::string& campaign, const std::string& patch,
                          const std::string& name = "faster exponential") {
  v1::ProposeChangeRequest request;
  request.set_campaign(campaign);
  request.set_author("an agent");
  request.mutable_change()->mutable_source()->set_name(name);
  request.mutable_change()->mutable_source()->set_patch(patch);
  return world->Propose(request).status();
}

absl::Status ProposeValue(World& world, const std::string& campaign, const std::string& variable, int to) {
  v1::ProposeChangeRequest request;
  request.set_campaign(campaign);
  request.set_author("ann");
  request.mutable_change()->set_variable(variable);
  request.mutable_change()->set_to(to);
  return world->Propose(request).status();
}

TEST(SourceEditTest, IsTriedKeptAndBuiltOn) {
  World world;
  const std::string campaign = world.Submit(With(v1::CHOOSER_KIND_OUTSIDE), WithSource());
  ScriptedWorker worker(world, "a");
  ASSERT_TRUE(worker.Complete(worker.MustLease()).ok());
  ASSERT_TRUE(ProposePatch(world, campaign, "@@ -1 +1 @@\n-#define ONE\n+#define TWO\n").ok());
  const v1::LeaseTrialResponse edited = worker.MustLease();
  EXPECT_THAT(edited.trial().patched_source(), HasSubstr("#define TWO\n"));
  EXPECT_EQ(edited.trial().parent_patched_source(), "");
  EXPECT_EQ(Differences(edited.trial().variant(), edited.trial().parent()), 0);
  ASSERT_TRUE(worker.Complete(edited, EverythingHelps).ok());
  world.Restart();
  ASSERT_TRUE(worker.Register().ok());
  ASSERT_TRUE(ProposeValue(world, campaign, "SPLIT", 2).ok());
  const v1::LeaseTrialResponse next = worker.MustLease();
  EXPECT_EQ(next.trial().patched_source(), edited.trial().patched_source()) << "it is built on";
  EXPECT_EQ(next.trial().parent_patched_source(), edited.trial().patched_source());
  ASSERT_TRUE(worker.Complete(next).ok());

  const std::vector<v1::Iteration> iterations = world.Iterations(campaign);
  ASSERT_EQ(iterations.size(), 3u);
  EXPECT_EQ(iterations[1].author(), "an agent");
  EXPECT_EQ(iterations[1].change().source().name(), "faster exponential");
  EXPECT_EQ(iterations[1].patched_source_hash(), Sha256(edited.trial().patched_source()));
  EXPECT_EQ(iterations[2].patched_source_hash(), iterations[1].patched_source_hash());
  v1::GetBlobRequest blob;
  blob.set_hash(iterations[1].patched_source_hash());
  ASSERT_TRUE(world.history().GetBlob(blob).ok());
  EXPECT_EQ(world.history().GetBlob(blob)->content(), edited.trial().patched_source());
}

// Each is applied to the best variant of its time, also where it waits while that changes or across a restart.
TEST(SourceEditTest, IsAppliedAgainWhereTheBestChangesMeanwhile) {
  for (const bool restart : {false, true}) {
    SCOPED_TRACE(restart);
    World world;
    v1::Bundle bundle = TinyBundle();
    bundle.mutable_source()->set_text("#define ONE\n" + bundle.source().text() + "#define LAST\n#define END\n");
    const std::string campaign = world.Submit(With(v1::CHOOSER_KIND_OUTSIDE), bundle);
    ScriptedWorker worker(world, "a");
    ASSERT_TRUE(worker.Complete(worker.MustLease()).ok());
    ASSERT_TRUE(ProposePatch(world, campaign, "@@ -1 +1 @@\n-#define ONE\n+#define TWO\n", "first").ok());
    const v1::LeaseTrialResponse first = worker.MustLease();
    ASSERT_TRUE(ProposePatch(world, campaign, "@@ -1 +1 @@\n-#define ONE\n+#define THREE\n", "conflicts").ok());
    ASSERT_TRUE(
        ProposePatch(world, campaign, "@@ -3,2 +3,2 @@\n-#define LAST\n+#define LATER\n #define END\n", "fits").ok());
    if (restart) world.Restart();
    ASSERT_TRUE(worker.Complete(first, EverythingHelps).ok());
    ASSERT_EQ(world.Events(campaign, v1::Event::kDropped).size(), 1u);
    const v1::LeaseTrialResponse third = worker.MustLease();
    EXPECT_THAT(third.trial().patched_source(), AllOf(HasSubstr("#define TWO\n"), HasSubstr("#define LATER\n")));
  }
}

// Names need not differ: the events say which proposal is meant.
TEST(SourceEditTest, HasANumberThatItsTrialOrItsEndNames) {
  World world;
  const std::string campaign = world.Submit(With(v1::CHOOSER_KIND_OUTSIDE), WithSource());
  ScriptedWorker worker(world, "a");
  ASSERT_TRUE(worker.Complete(worker.MustLease()).ok());
  for (const char* text : {"TWO", "THREE"}) {
    const std::string patch = absl::StrCat("@@ -1 +1 @@\n-#define ONE\n+#define ", text, "\n");
    ASSERT_TRUE(ProposePatch(world, campaign, patch, "fix").ok());
  }
  world.Restart();
  ASSERT_TRUE(worker.Register().ok());
  ASSERT_TRUE(ProposeValue(world, campaign, "SPLIT", 2).ok());
  ASSERT_TRUE(worker.Complete(worker.MustLease(), EverythingHelps).ok());
  worker.MustLease();
  std::vector<int> proposed, planned, dropped;
  for (const v1::Event& event : world.Events(campaign)) {
    if (event.has_proposed()) proposed.push_back(event.proposed().number());
    if (event.has_planned()) planned.push_back(event.planned().proposal());
    if (event.has_dropped()) dropped.push_back(event.dropped().proposal());
  }
  EXPECT_THAT(proposed, ElementsAre(1, 2, 3));
  EXPECT_THAT(planned, ElementsAre(0, 1, 3)) << "the start is no proposal";
  EXPECT_THAT(dropped, ElementsAre(2)) << "the first changed its line";
}

// Whoever waits for the verdict of a proposal has it, also where Pawl's tuning took the same change before it.
TEST(SourceEditTest, IsNamedByTheTrialThatPawlChoseOfTheSameChange) {
  World world;
  const v1::Bundle bundle = WithSource();
  const std::string campaign = world.Submit(With(v1::CHOOSER_KIND_MIXED), bundle);
  ScriptedWorker worker(world, "a");
  ASSERT_TRUE(worker.Complete(worker.MustLease()).ok());
  ASSERT_TRUE(ProposePatch(world, campaign, "@@ -1 +1 @@\n-#define ONE\n+#define TWO\n").ok());
  const v1::LeaseTrialResponse edited = worker.MustLease();
  for (const v1::Variable& variable : bundle.variables()) {
    for (const int value : variable.values()) ProposeValue(world, campaign, variable.name(), value).IgnoreError();
  }
  ASSERT_TRUE(worker.Complete(edited, EverythingHelps).ok());
  worker.MustLease();
  const v1::TrialPlanned planned = world.Events(campaign, v1::Event::kPlanned).back().planned();
  EXPECT_EQ(planned.author(), "pawl");
  ASSERT_GT(planned.proposal(), 1);
  for (const v1::Event& event : world.Events(campaign, v1::Event::kProposed)) {
    if (event.proposed().number() != planned.proposal()) continue;
    EXPECT_EQ(event.proposed().change().variable(), planned.change().variable());
    EXPECT_EQ(event.proposed().change().to(), planned.change().to());
  }
}

// A reason that can't be read again would keep the orchestrator from starting, and its campaign from being watched.
TEST(SourceEditTest, IsDroppedForAReasonThatIsRead) {
  World world;
  std::string comment;
  while (comment.size() < 120) comment += "\u2192 \u5171\u4eab\u5185\u5b58";
  for (const char* blanks : {"", " ", "  "}) {  // wherever in a character a line is shortened
    const std::string line = absl::StrCat("#define ONE // ", blanks, comment);
    v1::Bundle bundle = TinyBundle();
    bundle.mutable_source()->set_text(line + "\n" + bundle.source().text());
    const std::string campaign = world.Submit(With(v1::CHOOSER_KIND_OUTSIDE), bundle);
    ScriptedWorker worker(world, "a");
    ASSERT_TRUE(worker.Complete(worker.MustLease()).ok());
    for (const char* other : {"TWO", "THREE"}) {
      const std::string patch = absl::StrCat("@@ -1 +1 @@\n-", line, "\n+#define ", other, "\n");
      ASSERT_TRUE(ProposePatch(world, campaign, patch).ok());
    }
    ASSERT_TRUE(worker.Complete(worker.MustLease(), EverythingHelps).ok());
    const std::vector<v1::Event> dropped = world.Events(campaign, v1::Event::kDropped);
    ASSERT_EQ(dropped.size(), 1u);
    EXPECT_THAT(dropped[0].dropped().reason(), HasSubstr("does not fit"));
    world.Restart();
    v1::CancelCampaignRequest cancel;
    cancel.set_name(campaign);
    ASSERT_TRUE(world->Cancel(cancel).ok());
  }
}

TEST(SourceEditTest, IsTriedAfterAPauseAndARestart) {
  World world;
  const std::string campaign = world.Submit(With(v1::CHOOSER_KIND_OUTSIDE), WithSource());
  ScriptedWorker worker(world, "a");
  ASSERT_TRUE(worker.Complete(worker.MustLease()).ok());
  v1::PauseCampaignRequest pause;
  pause.set_name(campaign);
  ASSERT_TRUE(world->Pause(pause).ok());
  ASSERT_TRUE(ProposePatch(world, campaign, "@@ -1 +1 @@\n-#define ONE\n+#define TWO\n").ok());
  world.Restart();
  v1::ResumeCampaignRequest resume;
  resume.set_name(campaign);
  ASSERT_TRUE(world->Resume(resume).ok());
  EXPECT_THAT(worker.MustLease().trial().patched_source(), HasSubstr("#define TWO\n"));
}

// A process may end after a commit, before the edit is applied without the lock and planned in a commit of its own.
TEST(SourceEditTest, IsPlannedByTheNextStartWhereTheLastOneCouldNot) {
  World world;
  const std::string campaign = world.Submit(With(v1::CHOOSER_KIND_OUTSIDE), WithSource());
  ScriptedWorker worker(world, "a");
  ASSERT_TRUE(worker.Complete(worker.MustLease()).ok());
  Writes writes;
  v1::Event& event = writes.events.emplace_back(world.Events(campaign).back());
  event.mutable_proposed()->set_author("an agent");
  event.mutable_proposed()->mutable_change()->mutable_source()->set_name("an edit");
  event.mutable_proposed()->mutable_change()->mutable_source()->set_patch("@@ -1 +1 @@\n-#define ONE\n+#define TWO\n");
  ASSERT_TRUE(world.store().Commit(&writes).ok());
  world.Restart();
  world.Pass(absl::Milliseconds(200));
  EXPECT_THAT(worker.MustLease().trial().patched_source(), HasSubstr("#define TWO\n"));
}

TEST(SourceEditTest, IsRefusedWhereItCantBeMade) {
  World world;
  const std::string campaign = world.Submit({}, WithSource());
  ScriptedWorker worker(world, "a");
  const auto invalid = absl::StatusCode::kInvalidArgument;
  ExpectError(ProposePatch(world, campaign, "@@ -1 +1 @@\n-#define ONE\n+#define TWO\n"),
              absl::StatusCode::kFailedPrecondition, "no kept variant");
  ASSERT_TRUE(worker.Complete(worker.MustLease()).ok());
  ExpectError(ProposePatch(world, campaign, "nonsense"), invalid, "no hunk");
  ExpectError(ProposePatch(world, campaign, "@@ -1 +1 @@\n-#define THREE\n+#define TWO\n"), invalid, "does not fit");
  ExpectError(ProposePatch(world, campaign, "@@ -1 +1 @@\n #define ONE\n"), invalid, "changes nothing");
  std::string all = "@@ -1,";
  const std::string source = WithSource().source().text();
  all += std::to_string(std::count(source.begin(), source.end(), '\n')) + " +0,0 @@\n";
  for (size_t begin = 0, end; (end = source.find('\n', begin)) != std::string::npos; begin = end + 1) {
    all += "-" + source.substr(begin, end - begin + 1);
  }
  ExpectError(ProposePatch(world, campaign, all), invalid, "removes the whole source");
  ExpectError(ProposePatch(world, campaign, "@@ -1 +1 @@\n-#define ONE\n+#define TWO\n", ""), invalid, "1 to 100");
  ExpectError(ProposePatch(world, campaign, std::string(2'000'000, 'x')), invalid, "at most");
  ASSERT_TRUE(ProposePatch(world, campaign, "@@ -1 +1 @@\n-#define ONE\n+#define TWO\n").ok());
  ExpectError(ProposePatch(world, campaign, "@@ -1 +1 @@\n-#define ONE\n+#define TWO\n"),
              absl::StatusCode::kAlreadyExists, "proposed before");
}

// A worker builds it while it measures, so that the GPU need not wait for the compiler.
TEST(SourceEditTest, IsToldToTheWorkerThatMeasures) {
  World world;
  const std::string campaign = world.Submit(With(v1::CHOOSER_KIND_OUTSIDE), WithSource());
  ScriptedWorker worker(world, "a");
  ASSERT_TRUE(worker.Complete(worker.MustLease()).ok());
  const std::string first = "@@ -1 +1 @@\n-#define ONE\n+#define TWO\n",
                    second = "@@ -1 +1 @@\n-#define ONE\n+#define SIX\n";
  ASSERT_TRUE(ProposePatch(world, campaign, first).ok());
  const v1::LeaseTrialResponse leased = worker.MustLease();
  EXPECT_TRUE(leased.foreseen().empty());
  std::optional<absl::StatusOr<v1::LeaseTrialResponse>> answer;
  worker.Wait(60, [&](absl::StatusOr<v1::LeaseTrialResponse> got) { answer = std::move(got); });
  ASSERT_TRUE(ProposePatch(world, campaign, second).ok());
  ASSERT_TRUE(answer && answer->ok());
  EXPECT_FALSE((*answer)->has_trial());
  EXPECT_EQ((*answer)->lease(), leased.lease()) << "what may follow that one";
  ASSERT_EQ((*answer)->foreseen_size(), 2) << "where it is reverted, and where it is kept";
  EXPECT_EQ((*answer)->foreseen(0).change().source().patch(), second);
  ASSERT_TRUE(worker.Complete(leased).ok());
  const v1::LeaseTrialResponse next = worker.MustLease();
  EXPECT_THAT(next.trial().patched_source(), HasSubstr("#define SIX"));
}

TEST(SourceEditTest, IsAnsweredWithTheEarlierVerdictWhereItWasTried) {
  World world;
  const std::string campaign = world.Submit(With(v1::CHOOSER_KIND_OUTSIDE), WithSource());
  ScriptedWorker worker(world, "a");
  ASSERT_TRUE(worker.Complete(worker.MustLease()).ok());
  ASSERT_TRUE(ProposePatch(world, campaign, "@@ -1 +1 @@\n-#define ONE\n+#define TWO\n").ok());
  const v1::LeaseTrialResponse edited = worker.MustLease();
  ExpectError(ProposePatch(world, campaign, "@@ -1 +1,2 @@\n-#define ONE\n+// mine\n+#define TWO\n"),
              absl::StatusCode::kAlreadyExists, "this variant is being tried: iteration 1");
  ASSERT_TRUE(worker.Complete(edited).ok());  // slower
  const v1::Iteration reverted = world.Iterations(campaign)[1];
  ASSERT_EQ(reverted.verdict(), v1::REVERTED);
  ExpectError(ProposePatch(world, campaign, "@@ -1 +1,2 @@\n-#define ONE\n+// mine\n+#define TWO\n", "another name"),
              absl::StatusCode::kAlreadyExists,
              "this variant was tried before: iteration 1, reverted: " + reverted.reason());
  ExpectError(ProposePatch(world, campaign, "@@ -1 +1,2 @@\n #define ONE\n+  // a comment\n"),
              absl::StatusCode::kInvalidArgument, "changes nothing but comments and blanks");
  ASSERT_TRUE(ProposeValue(world, campaign, "SPLIT", 2).ok());
  ASSERT_TRUE(worker.Complete(worker.MustLease()).ok());
  ExpectError(ProposeValue(world, campaign, "SPLIT", 2), absl::StatusCode::kAlreadyExists, "iteration 2, reverted");
}

TEST(ProposalTest, IsAnsweredWithTheIterationThatTheRecordingLacked) {
  World world;
  const std::string campaign = world.Submit(With(v1::CHOOSER_KIND_OUTSIDE));
  ScriptedWorker worker(world, "a");
  ASSERT_TRUE(worker.Complete(worker.MustLease()).ok());
  ASSERT_TRUE(ProposeValue(world, campaign, "SPLIT", 2).ok());
  const auto lacks = [](const v1::Trial&) {
    v1::TrialResult result;
    result.set_passed_over("not in the recording");
    return result;
  };
  ASSERT_TRUE(worker.Complete(worker.MustLease(), lacks).ok());
  ASSERT_TRUE(world.Iterations(campaign)[1].untried());
  ExpectError(ProposeValue(world, campaign, "SPLIT", 2), absl::StatusCode::kAlreadyExists,
              "this variant was tried before: iteration 1, rejected: passed over: not in the recording");
}

TEST(ProposalTest, IsRefusedWhereTheTreeChooses) {
  World world;
  const std::string campaign = world.Submit(With(v1::CHOOSER_KIND_TREE));
  ScriptedWorker worker(world, "a");
  ASSERT_TRUE(worker.Complete(worker.MustLease()).ok());
  ExpectError(ProposeValue(world, campaign, "SPLIT", 2), absl::StatusCode::kFailedPrecondition, "--chooser tree");
}

TEST(ProposalTest, IsWaitedForAndThenTheTreeChooses) {
  World world;
  const std::string campaign = world.Submit(With(v1::CHOOSER_KIND_OUTSIDE));
  ScriptedWorker worker(world, "a");
  ASSERT_TRUE(worker.Complete(worker.MustLease()).ok());
  EXPECT_FALSE(worker.Lease()->has_trial());
  EXPECT_THAT(world.Get(campaign).message(), HasSubstr("waits for a proposal until"));
  world.Pass(absl::Seconds(59));
  EXPECT_FALSE(worker.Lease()->has_trial());
  world.Restart();
  ASSERT_TRUE(worker.Register().ok());
  EXPECT_FALSE(worker.Lease()->has_trial()) << "a restart does not end the waiting";
  world.Pass(absl::Seconds(2));
  EXPECT_FALSE(worker.Lease()->has_trial()) << "who proposes must have a chance to find it again";
  world.Pass(absl::Seconds(29));
  ASSERT_TRUE(worker.Register().ok());
  EXPECT_TRUE(worker.MustLease().has_trial());
}

TEST(ProposalTest, IsWaitedForAndThenTheCampaignPauses) {
  World world;
  const std::string campaign = world.Submit(With(v1::CHOOSER_KIND_OUTSIDE, v1::NO_PROPOSAL_PAUSE));
  ScriptedWorker worker(world, "a");
  ASSERT_TRUE(worker.Complete(worker.MustLease()).ok());
  world.Pass(absl::Seconds(61));
  EXPECT_EQ(world.Get(campaign).state(), v1::PAUSED);
  EXPECT_THAT(world.Get(campaign).message(), HasSubstr("no change was proposed within 60 s"));
  ASSERT_TRUE(ProposeValue(world, campaign, "SPLIT", 2).ok()) << "a paused campaign takes proposals";
  v1::ResumeCampaignRequest resume;
  resume.set_name(campaign);
  ASSERT_TRUE(world->Resume(resume).ok());
  EXPECT_TRUE(worker.MustLease().has_trial());
}

v1::Bundle WithoutVariables() {
  v1::Bundle bundle = WithSource();
  bundle.clear_variables();
  bundle.clear_constraints();
  bundle.mutable_launches(0)->set_grid(0, "ceil_div(N, 32)");
  return bundle;
}

TEST(WithoutVariablesTest, WaitsForProposalsOnceTheStartIsMeasured) {
  const TreeChooser chooser(DecisionTree::Default());
  World world({}, 0, &chooser);
  const std::string campaign = world.Submit({}, WithoutVariables());
  EXPECT_EQ(world.Get(campaign).spec().chooser().kind(), v1::CHOOSER_KIND_OUTSIDE);
  ScriptedWorker worker(world, "a");
  ASSERT_TRUE(worker.Complete(worker.MustLease()).ok());
  EXPECT_FALSE(worker.Lease()->has_trial());
  EXPECT_EQ(world.Get(campaign).state(), v1::RUNNING);
  EXPECT_EQ(world.Get(campaign).waiting_for(), v1::WAITING_FOR_PROPOSAL);
  v1::GetSituationRequest request;
  request.set_campaign(campaign);
  const absl::StatusOr<v1::Situation> situation = world->Situation(request);
  ASSERT_TRUE(situation.ok()) << situation.status();
  EXPECT_TRUE(situation->waits());
  EXPECT_EQ(situation->variables_size(), 0);
  EXPECT_EQ(situation->untried_size(), 0);

  ASSERT_TRUE(ProposePatch(world, campaign, "@@ -1 +1 @@\n-#define ONE\n+#define TWO\n").ok());
  const v1::LeaseTrialResponse edited = worker.MustLease();
  EXPECT_THAT(edited.trial().patched_source(), HasSubstr("#define TWO\n"));
  ASSERT_TRUE(worker.Complete(edited, EverythingHelps).ok());
  EXPECT_EQ(world.Iterations(campaign)[1].verdict(), v1::KEPT);
  EXPECT_FALSE(worker.Lease()->has_trial()) << "and waits again";
  EXPECT_EQ(world.Get(campaign).waiting_for(), v1::WAITING_FOR_PROPOSAL);
}

TEST(WithoutVariablesTest, PausesWhereNobodyProposesAnything) {
  World world;
  const std::string campaign = world.Submit({}, WithoutVariables());
  ScriptedWorker worker(world, "a");
  ASSERT_TRUE(worker.Complete(worker.MustLease()).ok());
  world.Pass(absl::Seconds(301));
  EXPECT_EQ(world.Get(campaign).state(), v1::PAUSED);
  EXPECT_THAT(world.Get(campaign).message(),
              AllOf(HasSubstr("no change was proposed within 300 s"), HasSubstr("there are no variables")));
}

TEST(WithoutVariablesTest, CannotBeLeftToTheTree) {
  World world;
  v1::SubmitCampaignRequest request;
  *request.mutable_bundle() = WithoutVariables();
  *request.mutable_spec() = With(v1::CHOOSER_KIND_TREE);
  ExpectError(world->Submit(request).status(), absl::StatusCode::kInvalidArgument, "has no variables");
}

// SPLIT is float, half or double, and UNROLL on or off.
v1::Bundle WithWords() {
  v1::Bundle bundle = TinyBundle();
  bundle.clear_constraints();
  v1::Variable& split = *bundle.mutable_variables(1);
  split.clear_values();
  for (const char* word : {"float", "half", "double"}) {
    split.add_values(split.words_size());
    split.add_words(word);
  }
  split.set_start(0);
  v1::Variable& flag = *bundle.add_variables();
  flag.set_name("UNROLL");
  flag.set_flag(true);
  flag.add_values(0);
  flag.add_values(1);
  bundle.mutable_launches(0)->set_grid(0, "ceil_div(N, TILE)");
  return bundle;
}

TEST(WordsTest, AreNamedWhereverAChangeOrAVariantIsStored) {
  World world;
  const std::string campaign = world.Submit(With(v1::CHOOSER_KIND_OUTSIDE), WithWords());
  ScriptedWorker worker(world, "a");
  ASSERT_TRUE(worker.Complete(worker.MustLease()).ok());
  v1::ProposeChangeRequest request;
  request.set_campaign(campaign);
  request.set_author("ann");
  request.mutable_change()->set_variable("SPLIT");
  request.mutable_change()->set_to_word("hlaf");
  ExpectError(world->Propose(request).status(), absl::StatusCode::kInvalidArgument, "did you mean half?");
  request.mutable_change()->set_to_word("half");
  ASSERT_TRUE(world->Propose(request).ok());
  ASSERT_TRUE(worker.Complete(worker.MustLease(), EverythingHelps).ok());
  const std::vector<v1::Iteration> iterations = world.Iterations(campaign);
  ASSERT_EQ(iterations.size(), 2u);
  EXPECT_EQ(iterations[0].words().at("SPLIT"), "float");
  EXPECT_EQ(iterations[0].words().at("UNROLL"), "false");
  EXPECT_FALSE(iterations[0].words().contains("TILE")) << "a number needs no word";
  EXPECT_EQ(iterations[1].change().from_word(), "float");
  EXPECT_EQ(iterations[1].change().to_word(), "half");
  EXPECT_EQ(iterations[1].change().to(), 1);
  EXPECT_EQ(iterations[1].words().at("SPLIT"), "half");
}

TEST(SituationTest, HasAllThatAnAgentNeeds) {
  World world;
  const std::string campaign = world.Submit(With(v1::CHOOSER_KIND_OUTSIDE), WithSource());
  v1::GetSituationRequest request;
  request.set_campaign(campaign);
  ExpectError(world->Situation(request).status(), absl::StatusCode::kFailedPrecondition, "no kept variant yet");
  ScriptedWorker worker(world, "a");
  ASSERT_TRUE(worker
                  .Complete(worker.MustLease(),
                            [](const v1::Trial& trial) {
                              v1::TrialResult result = NothingHelps(trial);
                              v1::LaunchEvidence& launch = *result.mutable_evidence()->add_launches();
                              (*launch.mutable_metrics())["waves"] = 0.1;
                              return result;
                            })
                  .ok());
  const absl::StatusOr<v1::Situation> situation = world->Situation(request);
  ASSERT_TRUE(situation.ok()) << situation.status();
  EXPECT_EQ(situation->source(), WithSource().source().text());
  EXPECT_EQ(situation->source_path(), WithSource().source().path());
  EXPECT_EQ(situation->variables_size(), 2);
  EXPECT_EQ(situation->best().number(), 0);
  EXPECT_EQ(situation->best().evidence().launches_size(), 1);
  ASSERT_GE(situation->findings_size(), 1);
  EXPECT_EQ(situation->findings(0).rule(), "grid-too-small");
  EXPECT_EQ(situation->tried_size(), 1);
  EXPECT_GE(situation->untried_size(), 1);
  EXPECT_TRUE(situation->waits());
  request.set_campaign("campaigns/99");
  ExpectError(world->Situation(request).status(), absl::StatusCode::kNotFound, "campaigns/99");
}

}  // namespace
}  // namespace pawl
