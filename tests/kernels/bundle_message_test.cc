#include "kernels/bundle_message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>

#include "kernels/read/bundle_reader.h"
#include "tests/kernels/bundle_folder.h"

namespace pawl {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

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

TEST(BundleMessageTest, RefusesDimensionsThatSizesLack) {
  EXPECT_THAT(ProblemsOf([](v1::Bundle& bundle) {
                v1::HiddenRange& range = (*bundle.mutable_hidden())["Z"];
                range.set_low(1);
                range.set_high(2);
              }),
              Contains(HasSubstr("hidden: Z is no dimension of the sizes")));
  EXPECT_THAT(ProblemsOf([](v1::Bundle& bundle) { (*bundle.mutable_sizes(0)->mutable_values())["Z"] = 1; }),
              Contains(HasSubstr("expected the same dimensions in all of them")));
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

TEST(BundleMessageTest, RefusesWhatTheReaderWouldNotMakeOfTheNewerKeys) {
  const v1::Bundle graph = ReadBundle(BundleFolder::Golden("graph_steps")).bundle;
  ASSERT_THAT(BundleProblems(graph), IsEmpty());
  const auto refuses = [&](const char* why, const std::function<void(v1::Bundle&)>& change) {
    v1::Bundle bundle = graph;
    change(bundle);
    EXPECT_THAT(BundleProblems(bundle), Contains(HasSubstr(why)));
  };
  refuses("files: expected a path", [](v1::Bundle& b) { b.mutable_files(0)->set_path("../x.cuh"); });
  refuses("files: expected a path", [](v1::Bundle& b) { b.mutable_files(0)->set_path("/etc/x.cuh"); });
  refuses("files: a path is there twice", [](v1::Bundle& b) { b.mutable_files(0)->set_path("steps.cu"); });
  refuses("files: its text has a NUL", [](v1::Bundle& b) { b.mutable_files(0)->mutable_text()->push_back('\0'); });
  refuses("files: expected at most 256", [](v1::Bundle& b) {
    for (int i = 0; i < 256; ++i) b.add_files()->set_path("f" + std::to_string(i));
  });
  refuses("files: expected at most", [](v1::Bundle& b) { b.mutable_files(0)->set_text(std::string(3 << 20, ' ')); });
  refuses("data files: expected at most",
          [](v1::Bundle& b) { b.mutable_data_files(0)->set_data(std::string((16 << 20) + 1, ' ')); });
  refuses("data files: expected a path", [](v1::Bundle& b) { b.mutable_data_files(0)->set_path("../t.npy"); });
  refuses("there is no data file", [](v1::Bundle& b) { b.mutable_data_files()->DeleteSubrange(1, 1); });
  refuses("data: one of its files is not there", [](v1::Bundle& b) { b.mutable_data_files()->DeleteSubrange(0, 1); });
  refuses("include: not the name", [](v1::Bundle& b) { b.add_include("../cub"); });
  refuses("include: expected at most 16", [](v1::Bundle& b) {
    while (b.include_size() < 17) b.add_include("l" + std::to_string(b.include_size()));
  });
  refuses("problem: it is empty", [](v1::Bundle& b) { b.mutable_problem()->clear_text(); });
  refuses("problem: it has the reference", [](v1::Bundle& b) { b.mutable_reference(); });
  refuses("reference: there is no source", [](v1::Bundle& b) { b.clear_problem(); });
  refuses("setup: there is no launch", [](v1::Bundle& b) { b.mutable_setup()->clear_launches(); });
  refuses("source: expected bytes of a cubin", [](v1::Bundle& b) { b.mutable_source()->set_binary("x"); });
  refuses("source: a cubin of more than", [](v1::Bundle& b) {
    b.mutable_source()->set_path("k.cubin");
    b.mutable_source()->set_binary(std::string((8 << 20) + 1, ' '));
  });
  v1::Bundle largest = graph;
  largest.mutable_source()->set_path("k.cubin");
  largest.mutable_source()->set_binary(std::string(8 << 20, ' '));
  EXPECT_THAT(BundleProblems(largest), Not(Contains(HasSubstr("a cubin of more than"))));
  refuses("its type, role or fill is unknown",
          [](v1::Bundle& b) { b.mutable_tensors(0)->set_type(static_cast<v1::DataType>(99)); });
  refuses("its type, role or fill is unknown",
          [](v1::Bundle& b) { b.mutable_tensors(0)->set_role(v1::TENSOR_ROLE_UNSPECIFIED); });
  refuses("its type, role or fill is unknown",
          [](v1::Bundle& b) { b.mutable_tensors(0)->set_fill(static_cast<v1::Fill>(99)); });
  refuses("tensor columns: an i64 input must state its range", [](v1::Bundle& b) {
    b.mutable_tensors(3)->clear_low();
    b.mutable_tensors(3)->clear_high();
  });
  refuses("tensor bias: its fill needs values", [](v1::Bundle& b) {
    b.mutable_tensors(6)->clear_low();
    b.mutable_tensors(6)->clear_high();
  });
  refuses("tensor visits: only inputs are filled",
          [](v1::Bundle& b) { b.mutable_tensors(10)->set_fill(v1::FILL_ZEROS); });
  refuses("tensor visits: an output can't be static",
          [](v1::Bundle& b) { b.mutable_tensors(10)->set_is_static(true); });
  refuses("scalar damping: no parameter", [](v1::Bundle& b) { b.mutable_scalars(0)->set_type(v1::DATA_TYPE_U4); });
  refuses("struct graph: expected 1 to 64 fields", [](v1::Bundle& b) { b.mutable_structs(0)->clear_fields(); });
  refuses("field nothing: it is neither", [](v1::Bundle& b) { b.mutable_structs(0)->set_fields(0, "nothing"); });
  refuses("variable ACC: expected different words", [](v1::Bundle& b) { b.mutable_variables(0)->set_words(0, "a b"); });
  refuses("variable ACC: expected different words",
          [](v1::Bundle& b) { b.mutable_variables(0)->set_words(0, "double"); });
  refuses("variable ACC: expected different words", [](v1::Bundle& b) { b.mutable_variables(0)->add_words("int"); });
  refuses("variable STAGED: a flag is 0 or 1", [](v1::Bundle& b) { b.mutable_variables(2)->set_values(1, 2); });
  refuses("variable UNROLL: its option has no {}", [](v1::Bundle& b) { b.mutable_variables(1)->set_option("-x"); });
  refuses("goal: expected weights", [](v1::Bundle& b) { (*b.mutable_goal()->mutable_sizes())["small"] = 0.5; });
  refuses("goal: expected weights", [](v1::Bundle& b) { (*b.mutable_goal()->mutable_sizes())["other"] = 0.5; });
  refuses("goal: expected worst", [](v1::Bundle& b) { b.mutable_goal()->set_worst(2); });
  refuses("goal: expected worst with sizes only", [](v1::Bundle& b) {
    b.mutable_goal()->clear_sizes();
    b.mutable_goal()->set_worst(0.9);
  });
  refuses("launches: index is not", [](v1::Bundle& b) { b.mutable_launches(0)->set_index("a b"); });
  refuses("repeat", [](v1::Bundle& b) { b.mutable_launches(0)->set_repeat("10001"); });
  refuses("more than 10000 launches", [](v1::Bundle& b) { b.mutable_launches(0)->set_repeat("10000"); });
  refuses("swap: expected two tensors", [](v1::Bundle& b) { b.mutable_launches(0)->add_swap("state"); });
  refuses("swap: weight may not be written", [](v1::Bundle& b) { b.mutable_launches(0)->set_swap(0, "weight"); });
  refuses("swap: state and state must be two", [](v1::Bundle& b) { b.mutable_launches(0)->set_swap(1, "state"); });
  refuses("cluster: expected one to three", [](v1::Bundle& b) {
    for (int i = 0; i < 3; ++i) b.mutable_launches(0)->add_cluster("1");
  });
  refuses("the setup", [](v1::Bundle& b) { b.mutable_setup()->mutable_launches(0)->set_arguments(0, "weight"); });
  refuses("launches: found 10001", [](v1::Bundle& b) {
    while (b.launches_size() < 10001) *b.add_launches() = b.launches(1);
  });
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
      {"summary: found", 4000, [](v1::Bundle& bundle, int to) { bundle.set_summary(std::string(to, 'a')); }},
      {"option: found", 4000,
       [](v1::Bundle& bundle, int to) { bundle.mutable_variables(0)->set_option("{}" + std::string(to - 2, 'a')); }},
      {"the expression has 2001", 2000,
       [](v1::Bundle& bundle, int to) { bundle.add_constraints()->set_that(std::string(to - 1, ' ') + "1"); }},
      {"source: found", 1 << 20,
       [](v1::Bundle& bundle, int to) {
         std::string& text = *bundle.mutable_source()->mutable_text();
         text += "//";
         text.resize(to, 'x');
       }},
      {"baseline: found", 1 << 20,
       [](v1::Bundle& bundle, int to) {
         v1::SourceFile& added = *bundle.add_baseline_files();
         added.set_path("baseline.py");
         added.set_text(std::string(to, '#'));
       }},
      {"baseline: expected at most 1000 files", 1000,
       [](v1::Bundle& bundle, int to) {
         while (bundle.baseline_files_size() < to) {
           bundle.add_baseline_files()->set_path("b" + std::to_string(bundle.baseline_files_size()));
         }
       }},
      {"files: expected at most 256 files", 256,
       [](v1::Bundle& bundle, int to) {
         while (bundle.files_size() < to) bundle.add_files()->set_path("f" + std::to_string(bundle.files_size()));
       }},
      {"files: expected at most 256 files and 2097152 bytes", 2 << 20,
       [](v1::Bundle& bundle, int to) {
         for (int left = to; left > 0; left -= 1 << 19) {
           v1::SourceFile& added = *bundle.add_files();
           added.set_path("f" + std::to_string(bundle.files_size()) + ".cuh");
           added.set_text(std::string(std::min(left, 1 << 19), '\n'));
         }
       }},
      {"shape: expected at most 8", 8,
       [](v1::Bundle& bundle, int to) {
         while (bundle.tensors(0).shape_size() < to) bundle.mutable_tensors(0)->add_shape("1");
       }},
      {"include: expected at most 16", 16,
       [](v1::Bundle& bundle, int to) {
         while (bundle.include_size() < to) bundle.add_include("lib" + std::to_string(bundle.include_size()));
       }},
      {"align: expected a power of two", 4096,
       [](v1::Bundle& bundle, int to) { bundle.mutable_tensors(0)->set_align(to > 4096 ? 8192 : to); }},
      {"an entry is not a kernel's name", 512,
       [](v1::Bundle& bundle, int to) {
         bundle.mutable_launches(0)->set_entry("kernel<" + std::string(to - 8, '1') + ">");
       }},
      {"expected different words", 64,
       [](v1::Bundle& bundle, int to) {
         v1::Variable& added = *bundle.add_variables();
         added.set_name("WORDS");
         for (int i = 0; i < 2; ++i) added.add_values(i);
         added.add_words("word");
         added.add_words(std::string(to, 'w'));
       }},
      {"expected 1 to 64 fields", 64,
       [](v1::Bundle& bundle, int to) {
         v1::StructArgument& added = *bundle.add_structs();
         added.set_name("fields");
         for (int i = 0; i < to; ++i) added.add_fields(bundle.tensors(0).name());
       }},
      {"launches", 10'000,
       [](v1::Bundle& bundle, int to) {
         while (bundle.launches_size() < to) *bundle.add_launches() = bundle.launches(0);
       }},
      {"the space is over 10000000 variants", 10'000'000,
       [](v1::Bundle& bundle, int to) {
         for (v1::Variable& variable : *bundle.mutable_variables()) {
           variable.clear_values();
           variable.add_values(variable.start());
         }
         for (const int values : {1000, 1000, to > 10'000'000 ? 11 : 10}) {
           v1::Variable& added = *bundle.add_variables();
           added.set_name("V" + std::to_string(bundle.variables_size()));
           for (int i = 0; i < values; ++i) added.add_values(i);
         }
       }},
      {"goal: expected worst from 0 to 1", 1,
       [](v1::Bundle& bundle, int to) {
         (*bundle.mutable_goal()->mutable_sizes())[bundle.goal().size()] = 1;
         bundle.mutable_goal()->set_worst(to > 1 ? 1.000001 : 1);
       }},
      {"goal: expected worst from 0 to 1", 0,
       [](v1::Bundle& bundle, int to) {
         (*bundle.mutable_goal()->mutable_sizes())[bundle.goal().size()] = 1;
         bundle.mutable_goal()->set_worst(to > 0 ? -0.000001 : 0);
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
