#include "cli/compare/verdict_text.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/text/differences.h"
#include "cli/text/failure.h"
#include "cli/text/json_line.h"
#include "cli/text/layout.h"
#include "cli/text/words.h"
#include "kernels/variable_values.h"

namespace pawl {
namespace {

using Json = nlohmann::ordered_json;

bool IsWrong(const SideBySide& compared) { return compared.base_failure || compared.candidate_failure; }

// "wrong: outputs differ ... (tolerance, at small)".
std::string RightText(const std::optional<v1::Failure>& failure, bool examined) {
  if (!failure) return examined ? "right: passed every check" : "not examined";
  return absl::StrCat("wrong: ", failure->message(), " (", CheckWord(failure->check()),
                      failure->size().empty() ? "" : absl::StrCat(", at ", failure->size()), ")");
}

std::string IntervalText(const v1::Comparison& comparison) {
  if (comparison.processes() == 0) return "-";
  return absl::StrFormat("%.3fx to %.3fx", std::exp(comparison.lower()), std::exp(comparison.upper()));
}

std::string SizesText(const SideBySide& compared, int width, bool color) {
  using Align = Table::Align;
  Table table({{"size"},
               {"verdict"},
               {"base", Align::kRight},
               {"candidate", Align::kRight},
               {"speedup", Align::kRight},
               {"99 % interval", Align::kRight},
               {"pairs", Align::kRight, 1},
               {"processes", Align::kRight, 2}});
  for (const ComparedSize& at : compared.sizes) {
    const v1::Comparison& comparison = at.comparison;
    const bool timed = comparison.processes() > 0;
    table.Add({at.size, ComparisonWord(comparison.result()), timed ? TimeText(at.base_us) : "-",
               timed ? TimeText(at.candidate_us) : "-",
               timed ? SpeedupText(std::exp(comparison.mean_log_ratio())) : "-", IntervalText(comparison),
               absl::StrCat(comparison.pairs()), absl::StrCat(comparison.processes())});
  }
  return table.Text(width, color);
}

std::string CountersText(const NamedSides& sides, const ComparedSize& at, int width, bool color) {
  Differences differences;
  differences.Evidence(at.base, at.candidate);
  if (differences.empty()) return absl::StrCat("\ncounters at ", at.size, ": nothing differs\n");
  return absl::StrCat("\ncounters at ", at.size, " that differ\n",
                      differences.TableText(sides.base.name, sides.candidate.name, width, color));
}

Json MessageOf(const google::protobuf::Message& message, bool every_field) {
  return Json::parse(JsonLine(message, every_field), nullptr, /*allow_exceptions=*/false);
}

Json SideJson(const NamedSide& side, const std::optional<v1::Failure>& failure) {
  Json variant = Json::object();
  for (const v1::Variable& variable : side.side.bundle->variables()) {
    variant[variable.name()] = ValueText(variable, side.side.variant.values().at(variable.name()));
  }
  Json json = {{"name", side.name}, {"variant", variant}, {"right", !failure.has_value()}};
  if (failure) json["failure"] = MessageOf(*failure, true);
  return json;
}

}  // namespace

int ExitCodeOf(const SideBySide& compared) {
  if (IsWrong(compared)) return kWrong;
  switch (Overall(compared)) {
    case v1::FASTER:
      return kDone;
    case v1::SLOWER:
      return kSlower;
    case v1::SAME:
      return kSame;
    default:
      return kUnclear;
  }
}

std::string VerdictWordOf(const SideBySide& compared) {
  return IsWrong(compared) ? "wrong" : ComparisonWord(Overall(compared));
}

std::string ComparisonText(const NamedSides& sides, const SideBySide& compared, int width, bool color) {
  const bool examined = !compared.base_failure || compared.candidate_failure;
  std::string text = absl::StrCat(sides.base.side.bundle->name(), " on ", compared.device, "\n");
  text += Paragraph("base       ", absl::StrCat(sides.base.name, ": ", RightText(compared.base_failure, true)), width);
  text += Paragraph("candidate  ",
                    absl::StrCat(sides.candidate.name, ": ", RightText(compared.candidate_failure, examined)), width);
  if (!compared.sizes.empty()) text += absl::StrCat("\n", SizesText(compared, width, color));
  for (const ComparedSize& at : compared.sizes) {
    text += Paragraph(absl::StrCat(at.size, ": "), at.comparison.reason(), width);
  }
  for (const ComparedSize& at : compared.sizes) text += CountersText(sides, at, width, color);
  for (const std::string& note : compared.notes) text += Paragraph("note: ", note, width);
  return absl::StrCat(text, VerdictWordOf(compared), "\n");
}

std::string ComparisonJson(const NamedSides& sides, const SideBySide& compared) {
  Json json = {{"verdict", VerdictWordOf(compared)},
               {"bundle", sides.base.side.bundle->name()},
               {"device", compared.device},
               {"base", SideJson(sides.base, compared.base_failure)},
               {"candidate", SideJson(sides.candidate, compared.candidate_failure)},
               {"sizes", Json::array()},
               {"notes", compared.notes}};
  for (const ComparedSize& at : compared.sizes) {
    const v1::Comparison& comparison = at.comparison;
    json["sizes"].push_back(
        {{"size", at.size},
         {"verdict", ComparisonWord(comparison.result())},
         {"speedup", std::exp(comparison.mean_log_ratio())},
         {"low", std::exp(comparison.lower())},
         {"high", std::exp(comparison.upper())},
         {"baseUs", at.base_us},
         {"candidateUs", at.candidate_us},
         {"comparison", MessageOf(comparison, true)},
         {"evidence", {{"base", MessageOf(at.base, false)}, {"candidate", MessageOf(at.candidate, false)}}}});
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace pawl
