#include "profiles/pattern_file.h"

#include <google/protobuf/util/json_util.h>

#include <cmath>
#include <set>
#include <tuple>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "profiles/embedded.h"

namespace pawl {
namespace {

constexpr int kMostPatterns = 10000;
constexpr size_t kLongestName = 200, kLongestSource = 1000;
constexpr int kMostCounted = 1000000000;
constexpr size_t kMostMistakes = 20;  // that are told

std::string WrongVersion(double version) {
  return absl::StrCat("has version ", version, ", this Pawl reads version ", kPatternFileVersion,
                      ": export it again with the Pawl that wrote it, or use a Pawl that knows it");
}

bool IsArchitecture(const std::string& text) {
  int number = 0;
  return absl::StartsWith(text, "sm_") && text.size() > 4 && absl::SimpleAtoi(text.substr(3), &number) && number >= 10;
}

bool IsName(const std::string& text) { return !text.empty() && text.size() <= kLongestName; }

// What is wrong with it; empty: nothing.
std::string Mistake(const v1::Pattern& pattern) {
  const v1::Effect& effect = pattern.effect();
  if (!IsName(pattern.rule())) return absl::StrCat("\"rule\" must have 1 to ", kLongestName, " characters");
  if (pattern.bundle().size() > kLongestName) return absl::StrCat("\"bundle\" is over ", kLongestName, " characters");
  if (!IsArchitecture(pattern.architecture())) return "\"architecture\" must look like \"sm_90\"";
  if (!v1::Resource_IsValid(effect.resource()) || effect.resource() == v1::RESOURCE_UNSPECIFIED) {
    return "\"effect\" has no known \"resource\"";
  }
  if (!v1::Direction_IsValid(effect.direction()) || effect.direction() == v1::DIRECTION_UNSPECIFIED) {
    return "\"effect\" has no known \"direction\"";
  }
  if (pattern.tried() < 1 || pattern.tried() > kMostCounted) return "\"tried\" must be 1 to 1000000000";
  const auto within = [](int part, int whole) { return part >= 0 && part <= whole; };
  const auto beyond = [](const char* part, int value, const char* whole, int most) {
    return absl::StrCat("\"", part, "\" is ", value, ", which can't be of ", most, " ", whole);
  };
  if (!within(pattern.kept(), pattern.tried())) return beyond("kept", pattern.kept(), "tried", pattern.tried());
  if (!within(pattern.timed(), pattern.tried())) return beyond("timed", pattern.timed(), "tried", pattern.tried());
  if (!within(pattern.predictions(), pattern.tried())) {
    return beyond("predictions", pattern.predictions(), "tried", pattern.tried());
  }
  if (!within(pattern.came_true(), pattern.predictions())) {
    return beyond("cameTrue", pattern.came_true(), "predictions", pattern.predictions());
  }
  const double gain = pattern.median_gain();
  if (pattern.timed() > 0 ? !(gain > 0 && std::isfinite(gain)) : gain != 0) {
    return absl::StrCat("\"medianGain\" is ", gain, ", which can't be of ", pattern.timed(), " timed");
  }
  return "";
}

}  // namespace

absl::Status CheckPatternFile(const v1::PatternFile& file, const std::string& name) {
  std::vector<std::string> mistakes;
  if (file.version() != kPatternFileVersion) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": ", WrongVersion(file.version())));
  }
  if (file.source().empty() || file.source().size() > kLongestSource) {
    mistakes.push_back(absl::StrCat(name, ": \"source\" must say in 1 to ", kLongestSource,
                                    " characters where the campaigns ran: it identifies the file"));
  }
  if (file.patterns_size() > kMostPatterns) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": has ", file.patterns_size(), " patterns, ", kMostPatterns, " is the limit of a file"));
  }
  std::set<std::tuple<std::string, std::string, int, int, std::string>> seen;
  for (int i = 0; i < file.patterns_size(); ++i) {
    const v1::Pattern& pattern = file.patterns(i);
    std::string mistake = Mistake(pattern);
    const bool first = seen.emplace(pattern.bundle(), pattern.rule(), pattern.effect().resource(),
                                    pattern.effect().direction(), pattern.architecture())
                           .second;
    if (mistake.empty() && !first) mistake = "appears twice";
    if (mistake.empty()) continue;
    if (mistakes.size() == kMostMistakes) {
      mistakes.push_back(absl::StrCat(name, ": and more"));
      break;
    }
    mistakes.push_back(
        absl::StrCat(name, ": patterns[", i, "] (rule ", pattern.rule().substr(0, kLongestName), "): ", mistake));
  }
  if (mistakes.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(mistakes, "\n"));
}

absl::StatusOr<v1::PatternFile> ParsePatternFile(std::string_view json, const std::string& name) {
  const std::string text(json);
  const auto no_json = [&](const auto& status) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": ", std::string(status.message())));
  };
  // The version first: another one may have fields that this one does not know.
  google::protobuf::util::JsonParseOptions lenient;
  lenient.ignore_unknown_fields = true;
  v1::PatternFile any, file;
  if (const auto status = google::protobuf::util::JsonStringToMessage(text, &any, lenient); !status.ok()) {
    return no_json(status);
  }
  if (any.version() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": has no \"version\": it is not a pattern file"));
  }
  if (any.version() != kPatternFileVersion) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": ", WrongVersion(any.version())));
  }
  if (const auto status = google::protobuf::util::JsonStringToMessage(text, &file); !status.ok()) {
    return no_json(status);
  }
  if (absl::Status status = CheckPatternFile(file, name); !status.ok()) return status;
  return file;
}

std::string PatternFileText(const v1::PatternFile& file) {
  // A pattern a line, so that a change of one is a change of one line.
  v1::PatternFile head = file;
  head.clear_patterns();
  std::string text;
  (void)google::protobuf::util::MessageToJsonString(head, &text);
  std::vector<std::string> lines;
  for (const v1::Pattern& pattern : file.patterns()) {
    (void)google::protobuf::util::MessageToJsonString(pattern, &lines.emplace_back());
  }
  text.pop_back();
  if (text.size() > 1) text += ",";
  return absl::StrCat(text, "\"patterns\":[\n", absl::StrJoin(lines, ",\n"), "\n]}\n");
}

const std::vector<v1::PatternFile>& ShippedPatterns() {
  static const auto& files = *new std::vector<v1::PatternFile>{
      ParsePatternFile(embedded::kPatternsH200Json, "profiles/patterns/h200.json").value()};
  return files;
}

}  // namespace pawl
