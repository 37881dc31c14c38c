#include "base/names/resource_name.h"

#include <gtest/gtest.h>

#include <limits>

namespace pawl {
namespace {

TEST(ResourceNameTest, WritesNamesAsTheProtosDo) {
  EXPECT_EQ(CampaignName(7), "campaigns/7");
  EXPECT_EQ(IterationName(7, 12), "campaigns/7/iterations/12");
  EXPECT_EQ(TrialName(7, 13), "campaigns/7/trials/13");
}

TEST(ResourceNameTest, ReadsWhatItWrites) {
  for (const int64_t campaign : {int64_t{1}, int64_t{10}, std::numeric_limits<int64_t>::max()}) {
    EXPECT_EQ(ParseCampaignName(CampaignName(campaign)), campaign);
    for (const int32_t number : {0, 5, 120, std::numeric_limits<int32_t>::max()}) {
      EXPECT_EQ(ParseIterationName(IterationName(campaign, number)), (NameInCampaign{campaign, number}));
      EXPECT_EQ(ParseTrialName(TrialName(campaign, number)), (NameInCampaign{campaign, number}));
    }
  }
}

TEST(ResourceNameTest, RefusesWhatIsNotQuiteACampaign) {
  for (const char* name : {"",
                           "campaigns",
                           "campaigns/",
                           "campaigns/x",
                           "campaigns/07",
                           "campaigns/+7",
                           "campaigns/-7",
                           "campaigns/ 7",
                           " campaigns/7",
                           "campaigns/7 ",
                           "campaigns/7/",
                           "campaigns/7x",
                           "Campaigns/7",
                           "campaign/7",
                           "campaigns//7",
                           "campaigns/7/iterations/1",
                           "campaigns/0x7",
                           "campaigns/7.0",
                           "campaigns/9223372036854775808",
                           "campaigns/99999999999999999999999999"}) {
    EXPECT_EQ(ParseCampaignName(name), std::nullopt) << name;
  }
}

TEST(ResourceNameTest, RefusesWhatIsNotQuiteAnIterationOrATrial) {
  for (const char* name :
       {"", "campaigns/7", "campaigns/7/iterations", "campaigns/7/iterations/", "campaigns/7/iterations/012",
        "campaigns/7/iterations/-1", "campaigns/7/iterations/+1", "campaigns/7/iterations/1/",
        "campaigns/7/iterations/1 ", "campaigns/07/iterations/1", "campaigns//iterations/1",
        "campaigns/7/iterations/2147483648", "campaigns/9223372036854775808/iterations/1", "campaigns/7/trials/1"}) {
    EXPECT_EQ(ParseIterationName(name), std::nullopt) << name;
  }
  EXPECT_EQ(ParseTrialName("campaigns/7/iterations/1"), std::nullopt);
  EXPECT_EQ(ParseTrialName("campaigns/7/trials/01"), std::nullopt);
}

TEST(ResourceNameTest, DoesNotReadBeyondTheEndOfAView) {
  EXPECT_EQ(ParseCampaignName(std::string_view("campaigns/71", 11)), 7);
  EXPECT_EQ(ParseIterationName(std::string_view("campaigns/7/iterations/129", 25)), (NameInCampaign{7, 12}));
}

}  // namespace
}  // namespace pawl
