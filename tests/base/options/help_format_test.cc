#include "base/options/help_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace pawl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class HelpFormatTest : public testing::Test {
 protected:
  HelpFormatTest() { UseHelpFormat(app_); }

  CLI::App app_{"Does something.", "program"};
};

TEST_F(HelpFormatTest, AnOptionHasOneWordForItsTypeAndItsDefaultBehindItsText) {
  int trials = 7;
  std::string level = "info";
  app_.add_option("--trials", trials, "Number of trials")
      ->check(CLI::Range(1, 1 << 30))
      ->envname("PAWL_TRIALS")
      ->capture_default_str();
  app_.add_option("--level", level, "What is logged")->check(CLI::IsMember({"debug", "info"}));
  const std::string help = app_.help();
  EXPECT_THAT(help, HasSubstr("  --trials N                Number of trials (default: 7)\n"));
  EXPECT_THAT(help, HasSubstr("  --level debug|info        What is logged\n"));
}

TEST_F(HelpFormatTest, UsageMarksWhatCanBeGivenSeveralTimesWithDots) {
  std::string one, maybe;
  std::vector<std::string> two, many;
  app_.add_option("ONE", one)->required();
  app_.add_option("MAYBE", maybe);
  app_.add_option("TWO", two)->expected(0, 2);
  app_.add_option("MANY", many);
  EXPECT_THAT(app_.help(), HasSubstr("Usage: program [OPTIONS] ONE [MAYBE] [TWO...] [MANY...]\n"));
}

TEST_F(HelpFormatTest, WrapsTheFootersProseAndNoExample) {
  const std::string example = "Example: program " + std::string(90, 'x');
  app_.footer(example + "\nA sentence that is too long for one line of a terminal, because it goes on for a while.");
  EXPECT_THAT(app_.help(), HasSubstr(example + "\nA sentence that is too long for one line of a terminal, because it "
                                               "goes on for a\nwhile.\n"));
}

TEST_F(HelpFormatTest, SubcommandsInheritIt) {
  int number = 0;
  app_.add_subcommand("command", "Does it")->add_option("--number", number, "A number")->check(CLI::PositiveNumber);
  EXPECT_THAT(app_.get_subcommand("command")->help(), HasSubstr("--number N "));
  EXPECT_THAT(app_.get_subcommand("command")->help(), Not(HasSubstr("POSITIVE")));
}

}  // namespace
}  // namespace pawl
