// The keys at the top of kernel.toml, [goal], [tolerance], [work] and [baseline].
#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/names/spelling.h"
#include "base/names/utf8.h"
#include "kernels/bundle_message.h"
#include "kernels/limits.h"
#include "kernels/read/reading.h"

namespace pawl {

void ReadToleranceKeys(TomlTable& table, v1::Tolerance& tolerance) {
  if (std::optional<double> absolute = table.Number("absolute")) {
    if (*absolute < 0) {
      table.Complain(table.Line("absolute"), absl::StrCat("absolute is ", *absolute, "; expected 0 or more"));
    }
    tolerance.set_absolute(*absolute);
  }
  if (std::optional<double> relative = table.Number("relative")) {
    if (*relative >= 1) {
      table.Complain(table.Line("relative"), absl::StrCat("relative is ", *relative,
                                                          "; expected less than 1: an output of zeros has a relative "
                                                          "error of 1 and would be accepted"));
    } else if (*relative <= 0) {
      table.Complain(table.Line("relative"),
                     absl::StrCat("relative is ", *relative, "; expected more than 0 and less than 1"));
    }
    tolerance.set_relative(*relative);
  }
  table.Finish();
}

namespace {

// The weights of several sizes. The heaviest stands for all of them where one is asked for. Answers how many are named,
// wrong ones too.
size_t ReadGoalSizes(TomlTable& table, v1::Goal& goal) {
  std::optional<TomlTable> sizes = table.Table("sizes");
  if (!sizes) return 0;
  sizes->set_where("[goal]: sizes");
  double sum = 0, most = 0;
  const size_t before = sizes->Names().size();
  for (const std::string& name : sizes->Names()) {
    const std::optional<double> weight = sizes->Number(name);
    if (!weight) continue;
    if (*weight <= 0) {
      sizes->Complain(sizes->Line(name), absl::StrCat("the weight of ", Printable(name.substr(0, 80)), " is ", *weight,
                                                      "; expected more than 0"));
      continue;
    }
    (*goal.mutable_sizes())[name] = *weight;
    sum += *weight;
    if (*weight > most) goal.set_size(name);
    most = std::max(most, *weight);
  }
  if (before == 0) sizes->Complain(sizes->line(), "it is empty; expected sizes and their weights");
  if (goal.sizes().size() == before && before > 0 && std::fabs(sum - 1) > kGoalWeights) {
    sizes->Complain(sizes->line(), absl::StrCat("the weights have the sum ", sum, "; expected 1"));
  }
  return before;
}

void ReadGoal(TomlTable& root, Reading& reading) {
  std::optional<TomlTable> table = root.Table("goal");
  if (!table) return;
  v1::Goal& goal = *reading.bundle.mutable_goal();
  if (std::optional<Text> size = table->Text("size")) goal.set_size(size->value);
  if (table->Has("size") == table->Has("sizes")) {
    table->Complain(table->line(), table->Has("size") ? "size and sizes exclude each other; expected one of them"
                                                      : "the key size is missing; expected it, or sizes");
  }
  const bool one_size = ReadGoalSizes(*table, goal) < 2;
  if (std::optional<double> worst = table->Number("worst")) {
    if (!(*worst >= 0 && *worst <= 1)) {
      table->Complain(table->Line("worst"), absl::StrCat("worst is ", *worst, "; expected 0 to 1"));
    }
    if (table->Has("worst") && one_size) {
      table->Complain(table->Line("worst"),
                      "worst limits what a size of several may lose, and there is one; expected it with several sizes");
    }
    goal.set_worst(*worst);
  }
  if (std::optional<int64_t> portfolio = table->Integer("portfolio")) {
    if (*portfolio > 1 && one_size) {
      table->Complain(table->Line("portfolio"), "one size needs one variant; expected portfolio with several sizes");
    }
    if (*portfolio > 1) goal.set_portfolio(static_cast<int32_t>(*portfolio));
  }
  if (std::optional<double> speedup = table->Number("speedup")) {
    if (*speedup <= 0) {
      table->Complain(table->Line("speedup"), absl::StrCat("speedup is ", *speedup, "; expected more than 0"));
    }
    goal.set_speedup(*speedup);
  }
  reading.lines["goal size"] = table->Line(table->Has("size") ? "size" : "sizes");
  table->Finish();
}

// A word of the baseline's command that names a file of the bundle's folder: it goes wherever the bundle goes.
void AddBaselineFile(const Text& word, TomlTable& table, Reading& reading) {
  std::error_code error;
  const std::filesystem::path file = reading.folder / word.value;
  if (std::filesystem::path(word.value).is_absolute() || std::filesystem::is_directory(file, error) ||
      !std::filesystem::exists(std::filesystem::symlink_status(file, error))) {
    return;
  }
  for (const v1::SourceFile& known : reading.bundle.baseline_files()) {
    if (known.path() == word.value) return;
  }
  absl::StatusOr<std::string> text = ReadSourceFile(reading.folder, word.value);
  if (!text.ok()) {
    table.Complain(word.line, absl::StrCat("command: ", text.status().message()));
    return;
  }
  v1::SourceFile& added = *reading.bundle.add_baseline_files();
  added.set_path(word.value);
  added.set_text(*std::move(text));
}

bool ChoosesArchitecture(absl::string_view option) {
  option.remove_prefix(std::min(option.size(), option.find_first_not_of('-')));
  option = option.substr(0, option.find_first_of("= "));
  for (const char* name : {"arch", "code", "gencode", "gpu-architecture", "gpu-code", "generate-code"}) {
    if (option == name) return true;
  }
  return false;
}

}  // namespace

void CheckOption(const std::string& key, const Text& option, TomlTable& table) {
  if (!absl::StartsWith(option.value, "-")) {
    table.Complain(option.line, absl::StrCat(key, " \"", option.value, "\" does not begin with -"));
  }
  if (ChoosesArchitecture(option.value)) {
    table.Complain(option.line, absl::StrCat(key, " \"", option.value,
                                             "\": the GPU of the worker decides what is compiled for; remove it"));
  }
}

void ReadCompiling(TomlTable& root, Reading& reading) {
  const std::optional<int> compiler = root.Word("compiler");
  reading.bundle.set_compiler(static_cast<v1::Compiler>(compiler.value_or(0) + 1));
  for (const Text& option : root.Texts("options")) {
    CheckOption("options:", option, root);
    reading.bundle.add_options(option.value);
  }
}

void ReadTop(TomlTable& root, Reading& reading) {
  v1::Bundle& bundle = reading.bundle;
  if (std::optional<Text> name = root.Text("name")) {
    if (!IsBundleName(name->value)) {
      root.Complain(name->line, absl::StrCat("name is \"", name->value,
                                             "\"; expected a letter, then letters, digits, _ and -, at most 64"));
    }
    bundle.set_name(name->value);
  }
  if (std::optional<Text> summary = root.Text("summary")) bundle.set_summary(summary->value);
  ReadCompiling(root, reading);
  bundle.set_skip_host_code(root.Word("host_code").value_or(0) == 1);
  const std::optional<int> timing = root.Word("timing");
  bundle.set_timing(static_cast<v1::TimingMode>(timing.value_or(0) + 1));
  bundle.set_nondeterministic(!root.Flag("deterministic").value_or(true));
  ReadGoal(root, reading);
  if (std::optional<TomlTable> table = root.Table("baseline")) {
    for (const Text& word : table->Texts("command")) {
      bundle.add_baseline_command(word.value);
      AddBaselineFile(word, *table, reading);
    }
    table->Finish();
  }
}

void ReadTolerance(TomlTable& root, Reading& reading) {
  if (std::optional<TomlTable> table = root.Table("tolerance")) {
    ReadToleranceKeys(*table, *reading.bundle.mutable_tolerance());
  } else if (NeedsTolerance(reading.bundle) && !root.Has("tolerance")) {
    reading.problems.Add(1, "the table [tolerance] is missing; expected it, or tolerance or exact for every output");
  }
}

void ReadWork(TomlTable& root, Reading& reading) {
  std::optional<TomlTable> table = root.Table("work");
  if (!table) return;
  if (std::optional<Text> flops = table->Expression("flops")) {
    reading.Use(*table, "flops", *flops, Must::kBeNotNegative);
    reading.bundle.set_work_flops(flops->value);
  }
  if (std::optional<Text> bytes = table->Expression("bytes")) {
    reading.Use(*table, "bytes", *bytes, Must::kBeNotNegative);
    reading.bundle.set_work_bytes(bytes->value);
  }
  reading.bundle.set_work_on_tensor_cores(table->Flag("tensor_cores").value_or(false));
  table->Finish();
}

}  // namespace pawl
