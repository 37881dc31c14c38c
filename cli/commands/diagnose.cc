// `pawl diagnose`: findings for ncu output that people have, without a campaign.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/names/spelling.h"
#include "cli/commands/commands.h"
#include "cli/text/failure.h"
#include "cli/text/iteration_text.h"
#include "cli/text/json_line.h"
#include "cli/text/layout.h"
#include "profiles/ncu/csv_diagnosis.h"

namespace pawl {
namespace {

constexpr char kMakeOne[] =
    "ncu --set full --csv --page raw --print-units base --log-file FILE.csv PROGRAM, "
    "or from a report: ncu --import REPORT.ncu-rep --csv --page raw --print-units base > FILE.csv";

struct DiagnoseFlags {
  std::string file, details, profiles, gpu, kernel;
  bool json = false;
};

absl::StatusOr<std::string> ReadAll(const std::string& file) {
  std::stringstream text;
  if (file == "-") {
    text << std::cin.rdbuf();
    return text.str();
  }
  std::ifstream in(file, std::ios::binary);
  if (in) text << in.rdbuf();
  // A folder opens, and then gives nothing.
  if (!in || (in.peek(), in.bad())) return absl::NotFoundError(absl::StrCat(file, ": ", std::strerror(errno)));
  return text.str();
}

// Lines of one label under another, nothing where there is no text.
void Add(std::string* out, const std::string& head, const std::string& text, int width) {
  if (!text.empty()) *out += Paragraph(head, text, width);
}

std::string AdviceLine(const v1::Advice& advice) {
  std::string line = advice.rule();
  if (advice.estimated_speedup_percent() > 0) {
    absl::StrAppendFormat(&line, " (%.3g %%, %s)", advice.estimated_speedup_percent(), advice.estimate_scope());
  }
  return absl::StrCat(line, ": ", advice.text());
}

std::string DiagnosisText(const KernelDiagnosis& diagnosis, int width) {
  std::string text;
  Add(&text, "",
      absl::StrCat(diagnosis.launch.entry(), ": grid ", diagnosis.grid, ", block ", diagnosis.block, ", ",
                   diagnosis.gpu.name().empty() ? "unknown GPU (name it with --gpu)" : diagnosis.gpu.name()),
      width);
  if (diagnosis.findings.empty()) text += "  no findings\n";
  std::vector<std::string> roofs;
  for (v1::Finding finding : diagnosis.findings) {
    finding.clear_entry();  // the kernel's name stands above
    std::string note;
    for (const RuleGap& gap : diagnosis.gaps) {
      if (gap.found && gap.rule == finding.rule()) {
        note = absl::StrCat("these metrics are missing and could contradict it: ", absl::StrJoin(gap.missing, ", "));
      }
    }
    text += FindingText(finding, note, width);
    if (finding.roof()) roofs.push_back(finding.rule());
  }
  if (!roofs.empty()) {
    Add(&text, "  roof ",
        absl::StrCat("at a limit of the GPU (", absl::StrJoin(roofs, ", "),
                     "): further tuning is unlikely to help, unless its advice applies"),
        width);
  }
  for (const v1::Advice& advice : diagnosis.launch.advice()) Add(&text, "  ncu says ", AdviceLine(advice), width);
  for (const RuleGap& gap : diagnosis.gaps) {
    if (gap.found) continue;
    Add(&text, "  not evaluated ", absl::StrCat(gap.rule, ": missing ", absl::StrJoin(gap.missing, ", ")), width);
  }
  if (!diagnosis.beyond_ncu.empty()) {
    Add(&text, "  not from ncu ",
        absl::StrCat(absl::StrJoin(diagnosis.beyond_ncu, ", "), ": known only from a bundle or the compiler"), width);
  }
  if (!diagnosis.missing_columns.empty()) {
    Add(&text, "  for more findings ", absl::StrCat("--metrics ", absl::StrJoin(diagnosis.missing_columns, ",")),
        width);
  }
  return text;
}

nlohmann::ordered_json MessageJson(const google::protobuf::Message& message) {
  return nlohmann::ordered_json::parse(JsonLine(message), nullptr, /*allow_exceptions=*/false);
}

std::string DiagnosisJson(const KernelDiagnosis& diagnosis) {
  nlohmann::ordered_json json = {{"id", diagnosis.id},
                                 {"kernel", diagnosis.launch.entry()},
                                 {"grid", diagnosis.grid},
                                 {"block", diagnosis.block},
                                 {"gpu", diagnosis.gpu.name()},
                                 {"findings", nlohmann::ordered_json::array()},
                                 {"gaps", nlohmann::ordered_json::array()},
                                 {"missingColumns", diagnosis.missing_columns},
                                 {"beyondNcu", diagnosis.beyond_ncu},
                                 {"launch", MessageJson(diagnosis.launch)}};
  for (const v1::Finding& finding : diagnosis.findings) json["findings"].push_back(MessageJson(finding));
  for (const RuleGap& gap : diagnosis.gaps) {
    json["gaps"].push_back({{"rule", gap.rule}, {"missing", gap.missing}, {"found", gap.found}});
  }
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

// What is wrong with the file, and how to make a better one.
absl::Status FileError(const std::string& file, const absl::Status& status) {
  v1::ErrorDetail detail;
  if (!absl::IsFailedPrecondition(status)) detail.set_fix(kMakeOne);
  return WithDetail(absl::Status(status.code(), absl::StrCat(file, ": ", std::string(status.message()))), detail);
}

int Diagnose(const DiagnoseFlags& flags) {
  CsvDiagnosisRequest request{.raw = {}, .details = {}, .gpu = nullptr, .kernel = flags.kernel};
  if (!flags.gpu.empty()) {
    request.gpu = FindGpu(flags.gpu);
    if (request.gpu == nullptr) {
      std::vector<std::string> known;
      for (const GpuSpec& gpu : KnownGpus()) known.push_back(gpu.file);
      std::fprintf(stderr, "pawl diagnose: unknown GPU %s%s\n", flags.gpu.c_str(), Expected(flags.gpu, known).c_str());
      return kWrongUsage;
    }
  }
  absl::StatusOr<ProfileSet> profiles =
      flags.profiles.empty() ? ProfileSet::Default() : ProfileSet::Load(flags.profiles);
  if (!profiles.ok()) return Fail("diagnose", profiles.status());
  const absl::StatusOr<std::string> raw = ReadAll(flags.file);
  if (!raw.ok()) return Fail("diagnose", raw.status());
  const absl::StatusOr<std::string> details = flags.details.empty() ? std::string() : ReadAll(flags.details);
  if (!details.ok()) return Fail("diagnose", details.status());
  request.raw = *raw;
  request.details = *details;
  const absl::StatusOr<std::vector<KernelDiagnosis>> diagnoses = DiagnoseCsv(request, *profiles);
  if (!diagnoses.ok()) return Fail("diagnose", FileError(flags.file, diagnoses.status()));
  for (const KernelDiagnosis& diagnosis : *diagnoses) {
    if (flags.json) {
      std::printf("%s\n", DiagnosisJson(diagnosis).c_str());
    } else {
      std::printf("%s%s", &diagnosis == &diagnoses->front() ? "" : "\n",
                  DiagnosisText(diagnosis, ReadingWidth(STDOUT_FILENO)).c_str());
    }
  }
  return kDone;
}

}  // namespace

void AddDiagnose(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<DiagnoseFlags>();
  CLI::App* command =
      app.add_subcommand("diagnose", "Find what limits kernels in an ncu CSV file; needs no campaign, no GPU");
  command->group(kPreparing)
      ->footer(absl::StrCat("Example: pawl diagnose kernels.csv --kernel transpose\nTo make such a file: ", kMakeOne));
  command->add_option("FILE", flags->file, "Output of ncu --csv --page raw; - reads standard input")->required();
  command
      ->add_option("--details", flags->details,
                   "Output of ncu --csv --page details of the same run, to include ncu's own advice")
      ->type_name("FILE");
  command
      ->add_option("--profiles", flags->profiles,
                   "Folder whose metrics.toml and decision_tree.toml replace the built-in ones")
      ->type_name("FOLDER");
  command->add_option("--gpu", flags->gpu, "GPU, if the file does not name it: h200 or \"NVIDIA H200\", for example");
  command->add_option("--kernel", flags->kernel, "Show only kernels whose name contains this");
  command->add_flag("--json", flags->json, "Print JSON for programs: one object per kernel and line");
  command->callback([flags, exit_code] { *exit_code = Diagnose(*flags); });
}

}  // namespace pawl
