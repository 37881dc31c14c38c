#include "kernels/space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "kernels/read/bundle_reader.h"
#include "tests/kernels/bundle_folder.h"

namespace pawl {
namespace {

using ::testing::HasSubstr;

v1::Bundle Golden() { return ReadBundle(BundleFolder::Golden()).bundle; }

void AddVariable(const std::string& name, int values, v1::Bundle& bundle) {
  v1::Variable& variable = *bundle.add_variables();
  variable.set_name(name);
  variable.set_start(1);
  for (int i = 1; i <= values; ++i) variable.add_values(i);
}

TEST(SpaceTest, StartsWhereTheBundleSays) {
  EXPECT_EQ(VariantText(StartVariant(Golden())), "MAX_REGISTERS=255 SPLITS=1 TILE=64");
}

TEST(SpaceTest, ListsWhatTheConstraintsAllowInAFixedOrder) {
  const v1::Bundle bundle = Golden();
  EXPECT_EQ(SpaceSize(bundle), 18);
  EXPECT_EQ(*CountAllowed(bundle), 14);  // 128 goes with one split only
  const std::vector<v1::Variant> variants = *AllowedVariants(bundle);
  ASSERT_EQ(variants.size(), 14u);
  EXPECT_EQ(VariantText(variants[0]), "MAX_REGISTERS=64 SPLITS=1 TILE=64");
  EXPECT_EQ(VariantText(variants[1]), "MAX_REGISTERS=255 SPLITS=1 TILE=64");
  EXPECT_EQ(VariantText(variants[2]), "MAX_REGISTERS=64 SPLITS=1 TILE=32");
  EXPECT_EQ(VariantText(variants[13]), "MAX_REGISTERS=255 SPLITS=4 TILE=32");
  std::set<std::string> texts;
  for (const v1::Variant& variant : variants) {
    texts.insert(VariantText(variant));
    EXPECT_TRUE(*IsAllowed(bundle, variant));
  }
  EXPECT_EQ(texts.size(), 14u);
}

TEST(SpaceTest, SaysWhatIsForbiddenAndWhatIsNoVariant) {
  const v1::Bundle bundle = Golden();
  v1::Variant variant = StartVariant(bundle);
  EXPECT_TRUE(*IsAllowed(bundle, variant));
  (*variant.mutable_values())["SPLITS"] = 2;
  (*variant.mutable_values())["TILE"] = 128;
  EXPECT_FALSE(*IsAllowed(bundle, variant));
  (*variant.mutable_values())["TILE"] = 100;
  EXPECT_THAT(std::string(IsAllowed(bundle, variant).status().message()),
              HasSubstr("TILE=100 is not among its values"));
  variant.mutable_values()->erase("TILE");
  EXPECT_THAT(std::string(IsAllowed(bundle, variant).status().message()), HasSubstr("no value for TILE"));
  variant = StartVariant(bundle);
  (*variant.mutable_values())["OTHER"] = 1;
  EXPECT_FALSE(IsAllowed(bundle, variant).ok());
}

TEST(SpaceTest, HoldsAConstraintOverSizesAtEverySize) {
  v1::Bundle bundle = Golden();
  bundle.add_constraints()->set_that("COLS % TILE == 0");  // tiny has 32 columns
  EXPECT_EQ(*CountAllowed(bundle), 6);
  EXPECT_FALSE(*IsAllowed(bundle, StartVariant(bundle)));
}

TEST(SpaceTest, ABundleWithoutVariablesHasOneVariant) {
  v1::Bundle bundle;
  EXPECT_EQ(SpaceSize(bundle), 1);
  EXPECT_EQ(AllowedVariants(bundle)->size(), 1u);
  EXPECT_EQ(VariantText(StartVariant(bundle)), "");
  bundle.add_constraints()->set_that("0");
  EXPECT_EQ(AllowedVariants(bundle)->size(), 0u);
}

TEST(SpaceTest, RefusesSpacesThatAreTooLargeWithoutListingThem) {
  v1::Bundle bundle;
  for (int i = 0; i < 80; ++i) AddVariable("V" + std::to_string(i), 10, bundle);
  EXPECT_EQ(SpaceSize(bundle), INT64_MAX);
  EXPECT_EQ(AllowedVariants(bundle).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(CountAllowed(bundle).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(SpaceTest, GivesUpWhereConstraintsAllowNothingForLong) {
  v1::Bundle bundle;
  for (int i = 0; i < 9; ++i) AddVariable("V" + std::to_string(i), 10, bundle);
  bundle.add_constraints()->set_that("V8 == 1000");
  const absl::Status status = VisitAllowed(
      bundle, [](const std::vector<int32_t>&) { return true; }, 10'000);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_EQ(CountAllowed(bundle, 10'000).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(SpaceTest, CountsWhatItWillNotHold) {
  v1::Bundle bundle;
  AddVariable("A", 500, bundle);
  AddVariable("B", 500, bundle);
  EXPECT_EQ(*CountAllowed(bundle), 250'000);
  EXPECT_EQ(AllowedVariants(bundle).status().code(), absl::StatusCode::kResourceExhausted);
  bundle.add_constraints()->set_that("A == B");
  EXPECT_EQ(AllowedVariants(bundle)->size(), 500u);
}

TEST(SpaceTest, ABundlesHashFollowsWhatIsMeasured) {
  const v1::Bundle bundle = Golden();
  const std::string hash = BundleHash(bundle);
  EXPECT_EQ(hash.size(), 64u);
  EXPECT_EQ(BundleHash(Golden()), hash);
  const auto differs = [&](auto change) {
    v1::Bundle changed = bundle;
    change(changed);
    return BundleHash(changed) != hash;
  };
  EXPECT_TRUE(differs([](v1::Bundle& b) { b.mutable_source()->mutable_text()->push_back(' '); }));
  EXPECT_TRUE(differs([](v1::Bundle& b) { b.mutable_reference()->mutable_source()->mutable_text()->push_back(' '); }));
  EXPECT_TRUE(differs([](v1::Bundle& b) { (*b.mutable_sizes(0)->mutable_values())["ROWS"] = 9; }));
  EXPECT_TRUE(differs([](v1::Bundle& b) { b.mutable_variables(0)->add_values(3); }));
  EXPECT_TRUE(differs([](v1::Bundle& b) { b.mutable_variables(0)->set_start(2); }));
  EXPECT_TRUE(differs([](v1::Bundle& b) { b.mutable_constraints(0)->set_that("1"); }));
  EXPECT_TRUE(differs([](v1::Bundle& b) { b.mutable_launches(0)->set_shared("0"); }));
  EXPECT_TRUE(differs([](v1::Bundle& b) { b.add_options("-G"); }));
  EXPECT_TRUE(differs([](v1::Bundle& b) { b.mutable_tensors(0)->set_align(32); }));
  EXPECT_TRUE(differs([](v1::Bundle& b) { b.mutable_tensors(3)->set_high("7"); })) << "what is timed depends on it";
  EXPECT_TRUE(differs([](v1::Bundle& b) { b.mutable_tensors(1)->mutable_tolerance()->set_relative(0.1); }));
  EXPECT_TRUE(differs([](v1::Bundle& b) { (*b.mutable_hidden())["COLS"].set_multiple(32); }));
  EXPECT_FALSE(differs([](v1::Bundle& b) { b.mutable_tensors(0)->set_high("2000"); })) << "of floats";
  EXPECT_FALSE(differs([](v1::Bundle& b) { b.set_summary("other"); }));
  EXPECT_FALSE(differs([](v1::Bundle& b) { b.mutable_goal()->set_speedup(9); }));
  EXPECT_FALSE(differs([](v1::Bundle& b) { b.mutable_variables(0)->clear_affects(); }));
}

TEST(SpaceTest, AVariantsHashFollowsWhatIsCompiled) {
  const v1::Bundle bundle = Golden();
  const v1::Variant start = StartVariant(bundle);
  const std::string hash = VariantHash(bundle, start, "sm_90");
  EXPECT_EQ(VariantHash(bundle, start, "sm_90"), hash);
  EXPECT_NE(VariantHash(bundle, start, "sm_89"), hash);
  v1::Variant other = start;
  (*other.mutable_values())["TILE"] = 32;
  EXPECT_NE(VariantHash(bundle, other, "sm_90"), hash);
  v1::Bundle changed = bundle;
  changed.mutable_source()->mutable_text()->push_back(' ');
  EXPECT_NE(VariantHash(changed, start, "sm_90"), hash);
  changed = bundle;
  changed.set_summary("other");
  EXPECT_EQ(VariantHash(changed, start, "sm_90"), hash);
}

// Databases and recordings hold them.
TEST(SpaceTest, HashesStayAsTheyWere) {
  EXPECT_EQ(VariantHash(Golden(), StartVariant(Golden()), "sm_90"),
            "6aa3bca1042ef6d8a1eab5841e7aa10e251624f818bb28d6908ed244c64d826a");
}

TEST(SpaceTest, HashesFollowFilesWordsAndLaunchesToo) {
  const v1::Bundle bundle = ReadBundle(BundleFolder::Golden("graph_steps")).bundle;
  const std::string hash = BundleHash(bundle), variant_hash = VariantHash(bundle, StartVariant(bundle), "sm_90");
  const auto differs = [&](auto change) {
    v1::Bundle changed = bundle;
    change(changed);
    return BundleHash(changed) != hash;
  };
  const auto variant_differs = [&](auto change) {
    v1::Bundle changed = bundle;
    change(changed);
    return VariantHash(changed, StartVariant(changed), "sm_90") != variant_hash;
  };
  const std::function<void(v1::Bundle&)> of_the_cubin[] = {
      [](v1::Bundle& b) { b.mutable_files(0)->mutable_text()->push_back(' '); },
      [](v1::Bundle& b) { b.mutable_files(0)->set_path("include/other.cuh"); },
      [](v1::Bundle& b) { b.add_include("cub"); },
      [](v1::Bundle& b) { b.mutable_variables(0)->set_words(0, "half"); },
      [](v1::Bundle& b) { b.mutable_source()->set_binary("x"); },
      [](v1::Bundle& b) { b.mutable_launches(0)->set_entry("steps::advance<ACC, UNROLL, true>"); }};
  for (const auto& change : of_the_cubin) {
    EXPECT_TRUE(differs(change));
    EXPECT_TRUE(variant_differs(change));
  }
  EXPECT_TRUE(differs([](v1::Bundle& b) { b.mutable_problem()->mutable_text()->push_back(' '); }));
  EXPECT_TRUE(differs([](v1::Bundle& b) { b.mutable_data_files(0)->mutable_data()->push_back(' '); }));
  EXPECT_TRUE(differs([](v1::Bundle& b) { b.mutable_tensors(7)->set_is_static(false); }));
  EXPECT_TRUE(differs([](v1::Bundle& b) { b.mutable_tensors(3)->set_high("NODES - 2"); }));
  EXPECT_TRUE(differs([](v1::Bundle& b) { b.mutable_structs(0)->mutable_fields(0)->push_back('x'); }));
  EXPECT_TRUE(differs([](v1::Bundle& b) { b.mutable_structs(0)->set_in_memory(true); }));
  EXPECT_TRUE(differs([](v1::Bundle& b) { b.mutable_launches(0)->set_repeat("1"); }));
  EXPECT_TRUE(differs([](v1::Bundle& b) { b.mutable_launches(0)->set_loop("step"); }));
  EXPECT_TRUE(differs([](v1::Bundle& b) { b.add_symbols()->set_name("table"); }));
  EXPECT_TRUE(differs([](v1::Bundle& b) { b.mutable_reference()->add_symbols()->set_name("table"); }));
  EXPECT_TRUE(differs([](v1::Bundle& b) { b.mutable_reference()->add_files()->set_text("x"); }));
  EXPECT_TRUE(differs([](v1::Bundle& b) { b.clear_problem_files(); }));
  EXPECT_TRUE(differs([](v1::Bundle& b) { b.mutable_tensors(7)->set_file_holds(v1::FILL_SORTED); }));
  EXPECT_TRUE(differs([](v1::Bundle& b) { b.mutable_launches(0)->set_index("i"); }));
  EXPECT_TRUE(differs([](v1::Bundle& b) { b.mutable_launches(0)->clear_swap(); }));
  EXPECT_TRUE(differs([](v1::Bundle& b) { b.mutable_launches(0)->clear_cluster(); }));
  EXPECT_TRUE(differs([](v1::Bundle& b) { b.mutable_launches(1)->set_cooperative(false); }));
  EXPECT_TRUE(differs([](v1::Bundle& b) { b.mutable_setup()->mutable_source()->mutable_text()->push_back(' '); }));
  EXPECT_TRUE(differs([](v1::Bundle& b) { b.mutable_setup()->mutable_launches(0)->set_grid(0, "2"); }));
  EXPECT_FALSE(variant_differs([](v1::Bundle& b) { b.mutable_launches(0)->set_repeat("1"); }));
  EXPECT_FALSE(variant_differs([](v1::Bundle& b) { b.mutable_problem()->mutable_text()->push_back(' '); }));
}

}  // namespace
}  // namespace pawl
