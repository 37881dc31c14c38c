// What is taken, what is refused, and how it is said.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <map>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "google/protobuf/stubs/logging.h"
#include "tests/instrumented.h"
#include "tests/orchestrator/scripted_worker.h"
#include "tests/orchestrator/world.h"
#include "tests/promises/soak.h"

namespace pawl {
namespace {

using ::testing::HasSubstr;

constexpr auto kRefused = absl::StatusCode::kInvalidArgument;

v1::SubmitCampaignRequest Request() {
  v1::SubmitCampaignRequest request;
  *request.mutable_bundle() = TinyBundle();
  return request;
}

std::string StoredBytes(World& world, const std::string& hash) {
  v1::GetBlobRequest request;
  request.set_hash(hash);
  return world.history().GetBlob(request).value().content();
}

TEST(SubmissionTest, TakesTheGoalOfTheBundleWhereNoneIsAskedFor) {
  World world;
  const v1::Campaign campaign = world.Get(world.Submit());
  EXPECT_EQ(campaign.spec().goal().size(), "main");
  EXPECT_EQ(campaign.spec().goal().speedup(), 100);
  v1::CampaignSpec spec;
  spec.mutable_goal()->set_size("small");
  spec.mutable_goal()->set_speedup(2);
  spec.mutable_budget()->set_iterations(3);
  const v1::Campaign other = world.Get(world.Submit(spec));
  EXPECT_EQ(other.spec().goal().size(), "small");
  EXPECT_EQ(other.spec().goal().speedup(), 2);
  EXPECT_EQ(other.spec().budget().iterations(), 3);
}

TEST(SubmissionTest, LimitsIterationsWhereNeitherTimeNorCostIsLimited) {
  World world;
  const auto budget = [&](int iterations, double minutes, double dollars) {
    v1::CampaignSpec spec;
    spec.mutable_budget()->set_iterations(iterations);
    spec.mutable_budget()->set_minutes(minutes);
    spec.mutable_budget()->set_dollars(dollars);
    return world.Get(world.Submit(spec)).spec().budget();
  };
  EXPECT_EQ(budget(0, 0, 0).iterations(), 50) << "nothing runs for ever by default";
  EXPECT_EQ(budget(0, 0, 0).minutes(), 60);
  EXPECT_EQ(budget(3, 0, 0).minutes(), 60);
  EXPECT_EQ(budget(0, 8, 0).iterations(), 0) << "all of the time is used";
  EXPECT_EQ(budget(0, 8, 0).minutes(), 8);
  EXPECT_EQ(budget(3, 8, 0).iterations(), 3);
  EXPECT_EQ(budget(0, 0, 2).iterations(), 0);
  EXPECT_EQ(budget(0, 0, 2).minutes(), 60) << "a GPU may have no price";
}

TEST(SubmissionTest, TakesAGoalOverSeveralSizesAndTellsWorkersOfIt) {
  World world;
  v1::SubmitCampaignRequest request = Request();
  auto& sizes = *request.mutable_spec()->mutable_goal()->mutable_sizes();
  sizes["small"] = 0.7;
  sizes["main"] = 0.3;
  request.mutable_spec()->mutable_goal()->set_worst(0.9);
  const absl::StatusOr<v1::Campaign> campaign = world->Submit(request);
  ASSERT_TRUE(campaign.ok()) << campaign.status();
  EXPECT_EQ(campaign->spec().goal().size(), "small") << "the heaviest stands for all";
  v1::Bundle stored;
  ASSERT_TRUE(stored.ParseFromString(StoredBytes(world, campaign->bundle_hash())));
  EXPECT_EQ(stored.goal().size(), "small");
  EXPECT_EQ(stored.goal().sizes().at("main"), 0.3);
  EXPECT_EQ(stored.goal().worst(), 0.9);

  // A bundle that has such a goal, and a submission that asks for one size of it.
  *request.mutable_bundle() = stored;
  request.mutable_spec()->clear_goal();
  EXPECT_EQ(world->Submit(request)->spec().goal().sizes_size(), 2);
  request.mutable_spec()->mutable_goal()->set_size("main");
  const absl::StatusOr<v1::Campaign> one = world->Submit(request);
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_TRUE(one->spec().goal().sizes().empty());
  ASSERT_TRUE(stored.ParseFromString(StoredBytes(world, one->bundle_hash())));
  EXPECT_TRUE(stored.goal().sizes().empty());
}

TEST(SubmissionTest, RefusesAGoalOverSizesThatMakesNoSense) {
  World world;
  const auto refuse = [&](const std::string& message, std::map<std::string, double> sizes, double worst = 0) {
    v1::SubmitCampaignRequest request = Request();
    v1::Goal& goal = *request.mutable_spec()->mutable_goal();
    goal.mutable_sizes()->insert(sizes.begin(), sizes.end());
    if (sizes.empty()) goal.set_size("main");
    goal.set_worst(worst);
    ExpectError(world->Submit(request).status(), kRefused, message);
  };
  refuse("the weights have the sum 0.9; expected 1", {{"small", 0.4}, {"main", 0.5}});
  refuse("the weight of main is -0.5; expected above 0", {{"small", 1.5}, {"main", -0.5}});
  refuse("tiny has no size huge", {{"huge", 0.5}, {"main", 0.5}});
  refuse("expected 0 to 1", {{"small", 0.5}, {"main", 0.5}}, 1.5);
  refuse("expected with several spec.goal.sizes only", {}, 0.9);
  refuse("expected with several spec.goal.sizes only", {{"main", 1}}, 0.9);
  v1::SubmitCampaignRequest request = Request();
  request.mutable_spec()->mutable_goal()->set_size("main");
  request.mutable_spec()->mutable_goal()->set_portfolio(2);
  ExpectError(world->Submit(request).status(), kRefused, "one size needs one variant");
  (*request.mutable_spec()->mutable_goal()->mutable_sizes())["small"] = 0.5;
  (*request.mutable_spec()->mutable_goal()->mutable_sizes())["main"] = 0.5;
  request.mutable_spec()->mutable_goal()->set_portfolio(9);
  ExpectError(world->Submit(request).status(), kRefused, "expected 0 to 8");
}

TEST(SubmissionTest, GivesTheSameCampaignForTheSameRequestId) {
  World world;
  v1::SubmitCampaignRequest request = Request();
  request.set_request_id("mine");
  EXPECT_EQ(world->Submit(request)->name(), "campaigns/1");
  EXPECT_EQ(world->Submit(request)->name(), "campaigns/1");
  world.Restart();
  EXPECT_EQ(world->Submit(request)->name(), "campaigns/1");
  ScriptedWorker(world, "a").RunAll();
  EXPECT_EQ(world->Submit(request)->state(), v1::FINISHED) << "as it is now";
  request.set_request_id("another");
  EXPECT_EQ(world->Submit(request)->name(), "campaigns/2");
  request.clear_request_id();
  EXPECT_EQ(world->Submit(request)->name(), "campaigns/3");
  EXPECT_EQ(world->Submit(request)->name(), "campaigns/4");
}

TEST(SubmissionTest, TakesNoMoreUnfinishedCampaignsThanItMay) {
  OrchestratorOptions options;
  options.max_unfinished = 2;
  World world(options);
  world.Submit();
  world.Submit();
  const absl::Status refused = world->Submit(Request()).status();
  ExpectError(refused, absl::StatusCode::kResourceExhausted, "2 unfinished campaigns");
  EXPECT_GT(DetailOf(refused).retry_after_seconds(), 0);
  ScriptedWorker(world, "a").RunAll();
  EXPECT_EQ(world.Submit(), "campaigns/3");
}

TEST(SubmissionTest, RefusesAskingForWhatIsNone) {
  World world;
  const auto refuse = [&](const std::string& field, const std::function<void(v1::SubmitCampaignRequest*)>& spoil) {
    v1::SubmitCampaignRequest request = Request();
    spoil(&request);
    const absl::Status status = world->Submit(request).status();
    ExpectError(status, kRefused, field);
    EXPECT_EQ(DetailOf(status).field(), field);
  };
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  refuse("spec.goal.size", [](auto* r) { r->mutable_spec()->mutable_goal()->set_size("huge"); });
  for (double bad : {-1.0, nan, inf}) {
    refuse("spec.goal.speedup", [&](auto* r) { r->mutable_spec()->mutable_goal()->set_speedup(bad); });
    refuse("spec.budget.minutes", [&](auto* r) { r->mutable_spec()->mutable_budget()->set_minutes(bad); });
    refuse("spec.budget.dollars", [&](auto* r) { r->mutable_spec()->mutable_budget()->set_dollars(bad); });
    refuse("spec.keep.min_gain", [&](auto* r) { r->mutable_spec()->mutable_keep()->set_min_gain(bad); });
  }
  refuse("spec.budget.iterations", [](auto* r) { r->mutable_spec()->mutable_budget()->set_iterations(-1); });
  refuse("spec.budget.reverts_in_a_row",
         [](auto* r) { r->mutable_spec()->mutable_budget()->set_reverts_in_a_row(-1); });
  refuse("spec.keep.min_gain", [](auto* r) { r->mutable_spec()->mutable_keep()->set_min_gain(2); });
  refuse("request_id", [](auto* r) { r->set_request_id(std::string(65, 'x')); });
  refuse("author", [](auto* r) { r->set_author(std::string(1001, 'x')); });
  refuse("spec.gpu", [](auto* r) { r->mutable_spec()->set_gpu(std::string(1001, 'x')); });
  EXPECT_EQ(world.Submit(), "campaigns/1") << "nothing was taken";
}

TEST(SubmissionTest, StoresNoFieldsThatItDoesNotKnow) {
  World world;
  v1::SubmitCampaignRequest request = Request();
  v1::CampaignSpec& spec = *request.mutable_spec();
  spec.GetReflection()->MutableUnknownFields(&spec)->AddLengthDelimited(1000, std::string(1'000'000, 'x'));
  ASSERT_TRUE(world->Submit(request).ok());
  EXPECT_LT(world.Get("campaigns/1").ByteSizeLong(), 10'000u) << "every list of campaigns has it";
}

TEST(SubmissionTest, RefusesTextsThatAreTooLong) {
  World world;
  const std::string campaign = world.Submit(), text(1001, 'x');
  v1::PauseCampaignRequest pause;
  pause.set_name(campaign);
  pause.set_author(text);
  ExpectError(world->Pause(pause).status(), kRefused, "author");
  pause.clear_author();
  pause.set_reason(text);
  ExpectError(world->Pause(pause).status(), kRefused, "reason");
  v1::CancelCampaignRequest cancel;
  cancel.set_name(campaign);
  cancel.set_author(text);
  ExpectError(world->Cancel(cancel).status(), kRefused, "author");
  v1::ResumeCampaignRequest resume;
  resume.set_name(campaign);
  resume.set_author(text);
  ExpectError(world->Resume(resume).status(), kRefused, "author");
}

using Spoil = std::function<void(v1::Bundle*)>;

std::vector<std::pair<std::string, Spoil>> Mistakes() {
  return {
      {"no name", [](auto* b) { b->clear_name(); }},
      {"a path for a name", [](auto* b) { b->set_name("../../etc/passwd"); }},
      {"a long name", [](auto* b) { b->set_name(std::string(1'000'000, 'a')); }},
      {"no source", [](auto* b) { b->clear_source(); }},
      {"no reference", [](auto* b) { b->clear_reference(); }},
      {"no reference launch", [](auto* b) { b->mutable_reference()->clear_launches(); }},
      {"no compiler", [](auto* b) { b->clear_compiler(); }},
      {"an unknown compiler", [](auto* b) { b->set_compiler(static_cast<v1::Compiler>(17)); }},
      {"no goal", [](auto* b) { b->clear_goal(); }},
      {"a goal at an unknown size", [](auto* b) { b->mutable_goal()->set_size("huge"); }},
      {"a goal of NaN", [](auto* b) { b->mutable_goal()->set_speedup(std::numeric_limits<double>::quiet_NaN()); }},
      {"no sizes", [](auto* b) { b->clear_sizes(); }},
      {"two sizes of one name", [](auto* b) { b->mutable_sizes(0)->set_name("main"); }},
      {"a size without values", [](auto* b) { b->mutable_sizes(0)->clear_values(); }},
      {"a size of 0", [](auto* b) { (*b->mutable_sizes(0)->mutable_values())["N"] = 0; }},
      {"a negative size", [](auto* b) { (*b->mutable_sizes(1)->mutable_values())["N"] = -5; }},
      {"no tensors", [](auto* b) { b->clear_tensors(); }},
      {"a shape that is none", [](auto* b) { b->mutable_tensors(0)->set_shape(0, "N N"); }},
      {"a shape of an unknown size", [](auto* b) { b->mutable_tensors(0)->set_shape(0, "M"); }},
      {"a shape beyond any GPU",
       [](auto* b) {
         for (int i = 0; i < 10; ++i) b->mutable_tensors(0)->add_shape("N");
       }},
      {"two tensors of one name", [](auto* b) { b->mutable_tensors(0)->set_name("out"); }},
      {"a variable without values", [](auto* b) { b->mutable_variables(0)->clear_values(); }},
      {"a value twice", [](auto* b) { b->mutable_variables(0)->add_values(16); }},
      {"a start that is no value", [](auto* b) { b->mutable_variables(0)->set_start(17); }},
      {"two variables of one name", [](auto* b) { b->mutable_variables(0)->set_name("SPLIT"); }},
      {"a space beyond counting",
       [](auto* b) {
         for (int i = 0; i < 200; ++i) {
           v1::Variable& variable = *b->add_variables();
           variable.set_name("V" + std::to_string(i));
           for (int value = 0; value < 1000; ++value) variable.add_values(value);
         }
       }},
      {"a constraint that is none", [](auto* b) { b->mutable_constraints(0)->set_that("TILE >"); }},
      {"a constraint over the unknown", [](auto* b) { b->mutable_constraints(0)->set_that("WARPS > 1"); }},
      {"a constraint that forbids the start", [](auto* b) { b->mutable_constraints(0)->set_that("TILE > 32"); }},
      {"deep parentheses",
       [](auto* b) { b->mutable_constraints(0)->set_that(std::string(900, '(') + "1" + std::string(900, ')')); }},
      {"no launches", [](auto* b) { b->clear_launches(); }},
      {"a grid that is no whole number", [](auto* b) { b->mutable_launches(0)->set_grid(0, "N / 3"); }},
      {"a grid that divides by 0", [](auto* b) { b->mutable_launches(0)->set_grid(0, "N / (SPLIT - 1)"); }},
      {"four dimensions",
       [](auto* b) {
         for (int i = 0; i < 3; ++i) b->mutable_launches(0)->add_grid("1");
       }},
      {"an unknown argument", [](auto* b) { b->mutable_launches(0)->set_arguments(0, "q"); }},
      {"no tolerance", [](auto* b) { b->clear_tolerance(); }},
      {"more launches than a call may have",
       [](auto* b) {
         while (b->launches_size() < 10'001) *b->add_launches() = b->launches(0);
       }},
  };
}

TEST(MalformedBundleTest, IsRefusedWithWhatIsWrong) {
  World world;
  int refused = 0;
  for (const auto& [what, spoil] : Mistakes()) {
    SCOPED_TRACE(what);
    v1::SubmitCampaignRequest request = Request();
    spoil(request.mutable_bundle());
    const absl::Time begin = absl::Now();
    const absl::Status status = world->Submit(request).status();
    // Parentheses as deep as these are a stack to some and an expression to others.
    if (what == "deep parentheses" && status.ok()) continue;
    ExpectError(status, kRefused, "mistake");
    EXPECT_EQ(DetailOf(status).field(), "bundle");
    EXPECT_GE(DetailOf(status).problems_size(), 1);
    EXPECT_LT(absl::Now() - begin, kSlowdown * absl::Seconds(5));
    refused += status.code() == kRefused;
  }
  ReportPromise(22, absl::StrCat(refused, " kinds of malformed bundle were refused with what is wrong"));
}

TEST(MalformedBundleTest, HasAllItsMistakesListedAsFarAsAStatusGoes) {
  World world;
  v1::SubmitCampaignRequest request = Request();
  request.mutable_bundle()->clear_source();
  request.mutable_bundle()->clear_tolerance();
  const absl::Status two = world->Submit(request).status();
  EXPECT_EQ(DetailOf(two).problems_size(), 2);
  EXPECT_THAT(std::string(two.message()), HasSubstr("2 mistakes"));

  request = Request();
  for (int i = 0; i < 250; ++i) {
    v1::Variable& variable = *request.mutable_bundle()->add_variables();
    variable.set_name("VARIABLE_WITH_A_LONG_NAME_" + std::to_string(i));
  }
  const absl::Status many = world->Submit(request).status();
  ExpectError(many, kRefused, "250 mistakes");
  // gRPC clients take 8 KB of headers, where a status travels: message and details, these in base64.
  EXPECT_LT(many.message().size() + DetailOf(many).ByteSizeLong() * 4 / 3, 7000u);
  EXPECT_GT(DetailOf(many).problems_size(), 10);
  EXPECT_THAT(DetailOf(many).problems(DetailOf(many).problems_size() - 1), HasSubstr("more"));
}

TEST(MalformedBundleTest, IsJudgedInTimeHoweverLargeItIs) {
  World world;
  v1::SubmitCampaignRequest request = Request();
  v1::Bundle& bundle = *request.mutable_bundle();
  std::string sum = "N";
  while (sum.size() < 1900) sum += " + TILE * SPLIT";
  for (int i = bundle.sizes_size(); i < 256; ++i) {
    v1::Size& size = *bundle.add_sizes();
    size.set_name("size_" + std::to_string(i));
    (*size.mutable_values())["N"] = i + 1;
  }
  for (int i = bundle.constraints_size(); i < 256; ++i) {
    bundle.add_constraints()->set_that(sum + " > " + std::to_string(-i));
  }
  for (int i = bundle.launches_size(); i < 256; ++i) {
    v1::Launch launch = bundle.launches(0);
    launch.set_grid(0, sum + " + " + std::to_string(i));
    *bundle.add_launches() = launch;
  }
  const absl::Time begin = absl::Now();
  EXPECT_TRUE(world->Submit(request).ok()) << "nothing is wrong with it";
  EXPECT_LT(absl::Now() - begin, kSlowdown * absl::Seconds(30));
}

TEST(MalformedBundleTest, NeverCrashesOnRandomBytes) {
  const google::protobuf::LogSilencer silence;  // it complains about every text that is no UTF-8
  World world;
  ScriptedWorker worker(world, "a");
  const std::string good = TinyBundle().SerializeAsString();
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  int taken = 0, parsed = 0;
  for (int i = 0; i < 10'000; ++i) {
    std::string bytes = good;
    for (int spoilt = 1 + static_cast<int>(random() % 4); spoilt > 0; --spoilt) {
      const size_t at = random() % bytes.size();
      switch (random() % 4) {
        case 0:
          bytes[at] = static_cast<char>(random());
          break;
        case 1:
          bytes[at] ^= static_cast<char>(1 << random() % 8);
          break;
        case 2:
          bytes.erase(at, 1 + random() % 8);
          break;
        default:
          bytes.insert(at, bytes.substr(random() % bytes.size(), random() % 16));
          break;
      }
      if (bytes.empty()) bytes = good;
    }
    v1::SubmitCampaignRequest request;
    if (!request.mutable_bundle()->ParseFromString(bytes)) continue;  // gRPC refuses these
    ++parsed;
    const absl::StatusOr<v1::Campaign> campaign = world->Submit(request);
    if (campaign.ok()) {
      // Those that were taken run, too, and are read again.
      if (++taken % 50 == 0) {
        worker.RunAll();
        world.Restart();
      }
    } else {
      ASSERT_EQ(campaign.status().code(), kRefused) << campaign.status();
      EXPECT_GE(DetailOf(campaign.status()).problems_size(), 1);
    }
  }
  worker.RunAll();
  EXPECT_GT(parsed, 100);
  EXPECT_GT(taken, 10);
  EXPECT_LT(taken, parsed);
}

}  // namespace
}  // namespace pawl
