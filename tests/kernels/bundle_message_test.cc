#include "kernels/bundle_message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "kernels/bundle_reader.h"
#include "tests/kernels/bundle_folder.h"

namespace pawl {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

v1::Bundle Golden() { return ReadBundle(BundleFolder::Golden()).bundle; }

std::vector<std::string> ProblemsOf(const std::function<void(v1::Bundle&)>& change) {
  v1::Bundle bundle = Golden();
  change(bundle);
  return BundleProblems(bundle);
}

TEST(BundleMessageTest, AllowsWhatTheReaderMakes) { EXPECT_THAT(BundleProblems(Golden()), IsEmpty()); }

TEST(BundleMessageTest, RefusesPathsThatLeadOutOfTheBundleOrAreNone) {
  const std::string bad[] = {
      "",        "..",          "../kernel.cu", "a/../../kernel.cu",      "/etc/passwd",        "folder/", "a\nb.cu",
      "a\rb.cu", "a\x1b[2J.cu", "a\x7f.cu",     std::string("a\0.cu", 5), std::string(257, 'a')};
  for (const std::string& path : bad) {
    SCOPED_TRACE(testing::PrintToString(path));
    EXPECT_THAT(ProblemsOf([&](v1::Bundle& bundle) { bundle.mutable_source()->set_path(path); }),
                Contains(HasSubstr("source: expected a path")));
    EXPECT_THAT(ProblemsOf([&](v1::Bundle& bundle) { bundle.mutable_reference()->mutable_source()->set_path(path); }),
                Contains(HasSubstr("reference: expected a path")));
    EXPECT_THAT(ProblemsOf([&](v1::Bundle& bundle) { bundle.add_baseline_files()->set_path(path); }),
                Contains(HasSubstr("baseline: expected a path")));
  }
  for (const std::string& path :
       {std::string("kernel.cu"), std::string("folder/kernel.cu"), std::string("a..b.cu"), std::string(256, 'a')}) {
    SCOPED_TRACE(path);
    EXPECT_THAT(ProblemsOf([&](v1::Bundle& bundle) { bundle.mutable_source()->set_path(path); }), IsEmpty());
  }
}

TEST(BundleMessageTest, RefusesTensorsThatTheReaderWouldNotMake) {
  const auto refuses = [](const char* why, const std::function<void(v1::Bundle&)>& change) {
    EXPECT_THAT(ProblemsOf(change), Contains(HasSubstr(why)));
  };
  refuses("tensor first: an i32 input must state its range", [](v1::Bundle& bundle) {
    bundle.mutable_tensors(3)->clear_low();
    bundle.mutable_tensors(3)->clear_high();
  });
  refuses("tensor in: a range has a lowest", [](v1::Bundle& bundle) { bundle.mutable_tensors(0)->clear_low(); });
  refuses("tensor out: a range has a lowest", [](v1::Bundle& bundle) {
    bundle.mutable_tensors(1)->set_low("0");
    bundle.mutable_tensors(1)->set_high("1");
  });
  for (const int align : {-16, 1, 3, 24, 8192}) {
    refuses("tensor in: align", [&](v1::Bundle& bundle) { bundle.mutable_tensors(0)->set_align(align); });
  }
  refuses("tensor in: only an output has a tolerance",
          [](v1::Bundle& bundle) { bundle.mutable_tensors(0)->mutable_tolerance()->set_exact(true); });
  refuses("tensor out: expected absolute > 0",
          [](v1::Bundle& bundle) { bundle.mutable_tensors(1)->mutable_tolerance()->set_relative(1); });
  refuses("hidden: expected 1 or more",
          [](v1::Bundle& bundle) { (*bundle.mutable_hidden())["COLS"].set_multiple(1000); });
  refuses("hidden: expected 1 or more", [](v1::Bundle& bundle) { (*bundle.mutable_hidden())["ROWS"].set_low(0); });
}

TEST(BundleMessageTest, RefusesSourceTextWithANul) {
  EXPECT_THAT(ProblemsOf([](v1::Bundle& bundle) { bundle.mutable_source()->mutable_text()->push_back('\0'); }),
              Contains(HasSubstr("source: its text has a NUL")));
}

TEST(BundleMessageTest, RefusesAnEntryThatIsNoNameOfAKernel) {
  for (const std::string& entry :
       {std::string(), std::string("two words"), std::string("a\nb"), std::string("a|b"), std::string(".*"),
        std::string("1st"), std::string("a\0b", 3), std::string("copy<float"), std::string("copy<float>()"),
        std::string("copy<a;b>"), std::string("a::"), std::string("a:b"), std::string(65, 'a')}) {
    SCOPED_TRACE(testing::PrintToString(entry));
    EXPECT_THAT(ProblemsOf([&](v1::Bundle& bundle) { bundle.mutable_launches(0)->set_entry(entry); }),
                Contains(HasSubstr("launches: an entry is not a kernel's name")));
    EXPECT_THAT(
        ProblemsOf([&](v1::Bundle& bundle) { bundle.mutable_reference()->mutable_launches(0)->set_entry(entry); }),
        Contains(HasSubstr("reference: an entry is not a kernel's name")));
  }
  EXPECT_THAT(ProblemsOf([](v1::Bundle& bundle) { bundle.mutable_launches(0)->set_entry(std::string(64, 'a')); }),
              IsEmpty());
}

TEST(BundleMessageTest, AllowsEveryLimitAndNothingBeyondIt) {
  const struct {
    const char* what;
    int limit;
    std::function<void(v1::Bundle&, int)> set;
  } limits[] = {
      {"name:", 64, [](v1::Bundle& bundle, int to) { bundle.set_name(std::string(to, 'a')); }},
      {"sizes: expected names", 64,
       [](v1::Bundle& bundle, int to) {
         for (v1::Size& size : *bundle.mutable_sizes()) {
           if (size.name() == bundle.goal().size()) size.set_name(std::string(to, 'a'));
         }
         bundle.mutable_goal()->set_size(std::string(to, 'a'));
       }},
      {"variables:", 256,
       [](v1::Bundle& bundle, int to) {
         while (bundle.variables_size() < to) {
           v1::Variable& added = *bundle.add_variables();
           added.set_name("V" + std::to_string(bundle.variables_size()));
           added.add_values(1);
           added.set_start(1);
         }
       }},
      {"different values", 1000,
       [](v1::Bundle& bundle, int to) {
         v1::Variable& added = *bundle.add_variables();
         added.set_name("MANY");
         added.set_start(1);
         for (int i = 1; i <= to; ++i) added.add_values(i);
       }},
      {"constraints, scalars, structs", 256,
       [](v1::Bundle& bundle, int to) {
         while (bundle.constraints_size() < to) bundle.add_constraints()->set_that("1");
       }},
  };
  for (const auto& [what, limit, set] : limits) {
    SCOPED_TRACE(what);
    EXPECT_THAT(ProblemsOf([&, &set = set, &limit = limit](v1::Bundle& bundle) { set(bundle, limit); }), IsEmpty());
    EXPECT_THAT(ProblemsOf([&, &set = set, &limit = limit](v1::Bundle& bundle) { set(bundle, limit + 1); }),
                Contains(HasSubstr(what)));
  }
}

}  // namespace
}  // namespace pawl
