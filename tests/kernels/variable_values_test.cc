#include "kernels/variable_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/entry_name.h"
#include "kernels/read/bundle_reader.h"
#include "kernels/space.h"
#include "tests/kernels/bundle_folder.h"

namespace pawl {
namespace {

using ::testing::HasSubstr;

v1::Bundle Graph() { return ReadBundle(BundleFolder::Golden("graph_steps")).bundle; }

TEST(VariableValuesTest, ShowsWordsAndFlagsAsTheBundleHasThem) {
  const v1::Bundle bundle = Graph();
  EXPECT_EQ(VariantText(bundle, StartVariant(bundle)), "ACC=float FAST_MATH=false STAGED=false TABLE_ROWS=4 UNROLL=1");
  v1::Variant variant = StartVariant(bundle);
  (*variant.mutable_values())["ACC"] = 1;
  (*variant.mutable_values())["FAST_MATH"] = 1;
  EXPECT_EQ(VariantText(bundle, variant), "ACC=double FAST_MATH=true STAGED=false TABLE_ROWS=4 UNROLL=1");
  EXPECT_EQ(VariantText(variant), "ACC=1 FAST_MATH=1 STAGED=0 TABLE_ROWS=4 UNROLL=1");
  EXPECT_EQ(ValueText(bundle, "NOTHING", 7), "7");
  EXPECT_EQ(ValueText(*FindVariable(bundle, "ACC"), 9), "9") << "whatever comes in a message";
  EXPECT_EQ(ValuesText(*FindVariable(bundle, "UNROLL")), "1, 2, 4");
}

TEST(VariableValuesTest, ReadsWhatUsersWrite) {
  const v1::Bundle bundle = Graph();
  EXPECT_EQ(*ReadValue(*FindVariable(bundle, "ACC"), "double"), 1);
  EXPECT_EQ(*ReadValue(*FindVariable(bundle, "ACC"), "1"), 1) << "its position";
  EXPECT_EQ(*ReadValue(*FindVariable(bundle, "STAGED"), "true"), 1);
  EXPECT_EQ(*ReadValue(*FindVariable(bundle, "UNROLL"), "4"), 4);
  EXPECT_THAT(std::string(ReadValue(*FindVariable(bundle, "ACC"), "doubel").status().message()),
              HasSubstr("\"doubel\" is not a value of ACC; expected float, double; did you mean double?"));
  EXPECT_FALSE(ReadValue(*FindVariable(bundle, "UNROLL"), "3").ok());
  EXPECT_FALSE(ReadValue(*FindVariable(bundle, "UNROLL"), "").ok());
}

TEST(VariableValuesTest, KnowsWhatCanBeAWord) {
  for (const char* word : {"float", "__nv_bfloat16", "cutlass::half_t", "Shape<64,32>", "16x16"}) {
    EXPECT_TRUE(IsValueWord(word)) << word;
  }
  for (const std::string& word : {std::string(), std::string("long double"), std::string("16"), std::string("1e5"),
                                  std::string("a\"b"), std::string("-x"), std::string("a=b"), std::string("true"),
                                  std::string("a\0b", 3), std::string(65, 'a'), std::string("a;b")}) {
    EXPECT_FALSE(IsValueWord(word)) << testing::PrintToString(word);
  }
}

TEST(VariableValuesTest, ComparesWordsInExpressions) {
  const v1::Bundle bundle = Graph();
  EXPECT_EQ(*WithoutWords(bundle, "ACC == \"double\" && UNROLL > 1"), "ACC == 1 && UNROLL > 1");
  EXPECT_EQ(*WithoutWords(bundle, "\"float\" != ACC"), "0 != ACC");
  EXPECT_EQ(*WithoutWords(bundle, "UNROLL"), "UNROLL");
  for (const char* bad : {"ACC == \"half\"", "ACC < \"float\"", "\"float\"", "UNROLL == \"float\"", "ACC == \"float",
                          "MISSING == \"float\""}) {
    EXPECT_FALSE(WithoutWords(bundle, bad).ok()) << bad;
  }
  EXPECT_EQ(*CountAllowed(bundle), 20);  // UNROLL=4 with floats only
}

TEST(EntryNameTest, TakesNamesOfCAndOfCpp) {
  for (const char* entry : {"combine", "_x1", "vllm::norm<__nv_bfloat16, WIDTH>", "::a::b", "copy<4>",
                            "k<a::B<int>, 2>", "k<(1 + 2) * 4>", "k<float*, const int&>", "k<-1, true>"}) {
    EXPECT_TRUE(IsEntryName(entry)) << entry;
  }
  for (const char* entry : {"", "a b", "a::", "a:b", "1a::b", "k<", "k<a", "k<a>>", "k<(a>)", "k<a>b", "k<a;b>",
                            "k<\"a\">", "k<{1}>", "a::b c<d>"}) {
    EXPECT_FALSE(IsEntryName(entry)) << entry;
  }
  EXPECT_FALSE(IsEntryName("k<" + std::string(600, 'a') + ">"));
  EXPECT_TRUE(IsCppEntry("a::b"));
  EXPECT_FALSE(IsCppEntry("combine"));
  EXPECT_EQ(FunctionName("a::b::norm<c::d, 4>"), "norm");
  EXPECT_EQ(FunctionName("combine"), "combine");
}

TEST(EntryNameTest, PutsValuesInPlaceOfVariablesAndSizes) {
  const v1::Bundle bundle = Graph();
  v1::Variant variant = StartVariant(bundle);
  (*variant.mutable_values())["ACC"] = 1;
  (*variant.mutable_values())["STAGED"] = 1;
  const auto entry = [&](const std::string& text) { return EntryOf(bundle, text, variant, bundle.sizes(0)); };
  EXPECT_EQ(entry("steps::advance<ACC, UNROLL, STAGED>"), "steps::advance<double, 1, true>");
  EXPECT_EQ(entry("k<SIZE_STEPS, XUNROLL, NODES>"), "k<5, XUNROLL, NODES>");
  EXPECT_EQ(entry("UNROLL"), "UNROLL") << "a function may have a variable's name";
  EXPECT_EQ(entry("UNROLL<UNROLL>"), "UNROLL<1>");
}

}  // namespace
}  // namespace pawl
