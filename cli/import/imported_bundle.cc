#include "cli/import/imported_bundle.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "cli/text/layout.h"
#include "kernels/space.h"

namespace pawl {
namespace {

int Failed(const T4File& results) {
  return static_cast<int>(std::count_if(results.results.begin(), results.results.end(),
                                        [](const T4Result& result) { return result.invalidity != "correct"; }));
}

// Safe within a TOML text.
std::string Quoted(const std::string& text) {
  return absl::StrCat("\"", absl::StrReplaceAll(OneLine(text), {{"\\", "\\\\"}, {"\"", "\\\""}}), "\"");
}

void AddVariable(const ImportedSpace::Parameter& parameter, const v1::Variable& variable, std::string* toml) {
  if (parameter.variable != parameter.name) absl::StrAppend(toml, "# ", OneLine(parameter.name), " of the results\n");
  if (parameter.indexed) {
    std::string meanings;
    for (size_t i = 0; i < parameter.values.size(); ++i) {
      absl::StrAppend(&meanings, i > 0 ? ", " : "", i, " is ", OneLine(parameter.values[i].text));
    }
    absl::StrAppend(toml, "# ", meanings, "\n");
  }
  absl::StrAppend(toml, "[[variable]]\nname   = ", Quoted(variable.name()), "\nvalues = [",
                  absl::StrJoin(variable.values(), ", "), "]\nstart  = ", variable.start(), "\n");
}

v1::Failure FailureOf(const T4Result& result) {
  static const auto& kinds = *new std::map<std::string, std::pair<v1::Stage, v1::Check>>{
      {"timeout", {v1::STAGE_MEASURE, v1::CHECK_TIMEOUT}},
      {"compile", {v1::STAGE_BUILD, v1::CHECK_COMPILE}},
      {"runtime", {v1::STAGE_VALIDATE, v1::CHECK_LAUNCH}},
      {"correctness", {v1::STAGE_VALIDATE, v1::CHECK_TOLERANCE}},
      {"constraints", {v1::STAGE_STATIC_CHECK, v1::CHECK_CONSTRAINT}}};
  v1::Failure failure;
  const auto& [stage, check] = kinds.at(result.invalidity);
  failure.set_stage(stage);
  failure.set_check(check);
  failure.set_message(absl::StrCat("the imported results say \"", result.invalidity, "\"",
                                   result.error.empty() ? "" : absl::StrCat(" (", OneLine(result.error), ")")));
  return failure;
}

// The geometric mean: a recording compares by ratios, whose logarithms it averages.
double MeanUs(const T4Result& result) {
  double sum = 0;
  for (const double us : result.runtimes_us) sum += std::log(us);
  return std::exp(sum / static_cast<double>(result.runtimes_us.size()));
}

std::string DateOf(const T4File& results) {
  std::string last;
  for (const T4Result& result : results.results) last = std::max(last, result.timestamp);
  if (last.size() < 19) return "an unknown day";
  last[10] = 'T';
  return last + "Z";
}

}  // namespace

std::string ImportedToml(const Imported& imported, const T4File& results, const ImportedSpace& space) {
  const v1::Bundle& bundle = space.bundle();
  std::string toml = absl::StrFormat(
      "# Imported by `pawl import` from %s: times of a kernel whose code is not in that file.\n"
      "# The variables and constraints are real. Tensor, launch, reference and tolerance only stand in for what a "
      "bundle\n"
      "# must have: nothing here can be built or validated. The recording in this folder answers every trial:\n"
      "#   pawl run FOLDER --device replay --recordings FOLDER\n"
      "name    = %s\n"
      "source  = \"%s\"\n"
      "summary = %s\n\n"
      "[goal]                           # no goal was given: the budget or --goal ends a campaign\n"
      "size    = \"recorded\"\n"
      "speedup = 1000\n\n"
      "[[size]]\n"
      "name = \"recorded\"\n",
      OneLine(imported.file), Quoted(imported.name), kImportedSource,
      Quoted(absl::StrFormat("Imported from %s: %d configurations, of which %d failed", imported.file,
                             results.results.size(), Failed(results))));
  const auto& values = bundle.sizes(0).values();
  const std::map<std::string, int32_t> sizes(values.begin(), values.end());
  for (const auto& [name, value] : sizes) absl::StrAppend(&toml, name, " = ", value, "\n");
  toml += "\n";
  for (int i = 0; i < bundle.variables_size(); ++i) {
    AddVariable(space.parameters()[static_cast<size_t>(i)], bundle.variables(i), &toml);
  }
  toml += "\n";
  for (const v1::Constraint& constraint : bundle.constraints()) {
    absl::StrAppend(&toml, "[[constraint]]\nthat = ", Quoted(constraint.that()), "\n");
  }
  for (const auto& [condition, why] : space.left_out()) {
    absl::StrAppend(&toml, "# No constraint: ", OneLine(condition), " (", OneLine(why), "). What it forbids was not ",
                    "recorded,\n# and is passed over.\n");
  }
  const std::string entry = imported.kernel.empty() ? "imported" : imported.kernel;
  absl::StrAppendFormat(&toml,
                        "\n[[tensor]]                       # placeholder\n"
                        "name  = \"imported_output\"\n"
                        "type  = \"f32\"\n"
                        "shape = [\"1\"]\n"
                        "role  = \"output\"\n\n"
                        "[[launch]]                       # placeholder: the geometry is not in the results\n"
                        "entry     = %s\n"
                        "grid      = [\"1\"]\n"
                        "block     = [\"1\"]\n"
                        "arguments = [\"imported_output\"]\n\n"
                        "[reference]                      # placeholder\n"
                        "source = \"%s\"\n"
                        "[[reference.launch]]\n"
                        "entry     = %s\n"
                        "grid      = [\"1\"]\n"
                        "block     = [\"1\"]\n"
                        "arguments = [\"imported_output\"]\n\n"
                        "[tolerance]                      # placeholder\n"
                        "absolute = 0.0001\n"
                        "relative = 0.0001\n",
                        Quoted(entry), kImportedSource, Quoted(entry));
  return toml;
}

std::string ImportedSource(const Imported& imported) {
  return absl::StrFormat(
      "// Imported by `pawl import` from %s, which has the times of this kernel but not its code.\n"
      "#error \"%s\"\n",
      OneLine(imported.file), kImportedCode);
}

Recording ImportedRecording(const Imported& imported, const T4File& results, const ImportedSpace& space,
                            const v1::Bundle& bundle) {
  Recording recording;
  v1::RecordingHeader& header = recording.header;
  header.set_bundle(bundle.name());
  header.set_bundle_hash(BundleHash(bundle));
  header.set_size(bundle.goal().size());
  header.set_date(DateOf(results));
  header.mutable_gpu()->set_name(imported.gpu);
  header.set_space(SpaceSize(bundle));
  header.set_allowed(CountAllowed(bundle).value_or(0));
  header.set_planned(static_cast<int64_t>(results.results.size()));
  *header.mutable_start() = StartVariant(bundle);
  *header.mutable_variables() = bundle.variables();
  const double start_us = MeanUs(results.results[space.start()]);
  for (const T4Result& result : results.results) {
    v1::RecordedVariant record;
    *record.mutable_variant() = space.VariantOf(result);
    if (result.compile_seconds > 0) (*record.mutable_stage_seconds())["build"] = result.compile_seconds;
    if (result.validate_seconds > 0) (*record.mutable_stage_seconds())["validate"] = result.validate_seconds;
    if (result.invalidity != "correct") {
      *record.mutable_failure() = FailureOf(result);
      recording.Put(record);
      continue;
    }
    double seconds = 0;
    for (const double us : result.runtimes_us) {
      // No ABBA: the start was measured at another time. Its mean stands beside each sample, whose noise is real.
      v1::PairSample* pair = record.add_pairs();
      pair->set_parent_us(start_us);
      pair->set_candidate_us(us);
      pair->set_log_ratio(std::log(start_us / us));
      seconds += us * 1e-6;
    }
    (*record.mutable_stage_seconds())["measure"] = seconds;
    record.set_warm_us(MeanUs(result));
    recording.Put(record);
  }
  return recording;
}

}  // namespace pawl
