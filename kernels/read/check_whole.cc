// What only shows when the tables of a bundle are put together.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "base/expression/expression.h"
#include "base/names/spelling.h"
#include "base/names/utf8.h"
#include "kernels/data_file.h"
#include "kernels/data_type.h"
#include "kernels/plan.h"
#include "kernels/read/reading.h"
#include "kernels/space.h"
#include "kernels/variable_values.h"

namespace pawl {
namespace {

void CheckGoal(Reading& reading) {
  const v1::Goal& goal = reading.bundle.goal();
  std::vector<std::string> names;
  for (const v1::Size& size : reading.bundle.sizes()) names.push_back(size.name());
  std::set<std::string> wanted;
  for (const auto& [name, weight] : goal.sizes()) wanted.insert(name);
  if (wanted.empty() && !goal.size().empty()) wanted.insert(goal.size());
  for (const std::string& name : wanted) {
    if (names.empty() || std::find(names.begin(), names.end(), name) != names.end()) continue;
    reading.problems.Add(reading.lines["goal size"],
                         absl::StrCat("[goal]: size is \"", Printable(name.substr(0, 80)),
                                      "\", which is not a [[size]]", Expected(name, names)));
  }
}

// The ladder, and the ends of the hidden ranges.
std::vector<v1::Size> SizesToJudge(const v1::Bundle& bundle) {
  std::vector<v1::Size> sizes(bundle.sizes().begin(), bundle.sizes().end());
  if (bundle.hidden().empty()) return sizes;
  const std::map<std::string, v1::HiddenRange> ranges(bundle.hidden().begin(), bundle.hidden().end());
  for (const bool low : {true, false}) {
    v1::Size size = bundle.sizes(0);
    std::string name = "hidden";
    for (const auto& [dimension, range] : ranges) {
      const int64_t multiple = std::max(1, range.multiple());
      const auto value =
          static_cast<int32_t>((low ? (range.low() + multiple - 1) / multiple : range.high() / multiple) * multiple);
      (*size.mutable_values())[dimension] = value;
      absl::StrAppend(&name, " ", dimension, "=", value);
    }
    size.set_name(name);
    sizes.push_back(size);
  }
  for (v1::Size& size : HiddenSizes(bundle, 1)) sizes.push_back(std::move(size));
  return sizes;
}

std::string Complaint(double value, Must must) {
  const bool whole = value == std::floor(value);
  const double max = std::numeric_limits<int32_t>::max();
  switch (must) {
    case Must::kBeAnExtent:
      if (!whole || value < 1) return "expected a whole number of at least 1";
      break;
    case Must::kBeBytes:
      if (!whole || value < 0 || value > max) return "expected a whole number of bytes";
      break;
    case Must::kBeAnInt32:
      if (!whole || std::fabs(value) > max) return "expected a whole number that fits into an i32";
      break;
    case Must::kBeWhole:
      if (!whole) return "expected a whole number";
      break;
    case Must::kBeACount:
      if (!whole || value < 0 || value > max) return "expected a whole number of 0 or more";
      break;
    case Must::kBeNotNegative:
      if (value < 0) return "expected 0 or more";
      break;
    case Must::kBeFinite:
      break;
  }
  return "";
}

// Further sizes at which so many expressions are judged, in milliseconds; plans would take too long.
std::vector<v1::Size> MoreSizesToJudge(const v1::Bundle& bundle, size_t expressions) {
  constexpr size_t kMostEvaluations = 50'000, kMostSizes = 500;
  return HiddenSpread(bundle, std::min(kMostSizes, kMostEvaluations / std::max<size_t>(1, expressions)));
}

void CheckExpressions(const std::vector<v1::Size>& sizes, Reading& reading) {
  std::map<std::string, Expression> parsed;  // thousands of launches may share a few
  const auto evaluate = [&](const std::string& text, const std::map<std::string, double>& values) {
    auto it = parsed.find(text);
    if (it != parsed.end()) return it->second.Evaluate(values);
    absl::StatusOr<Expression> expression = Expression::Parse(text);
    if (!expression.ok()) return absl::StatusOr<double>(expression.status());
    return parsed.emplace(text, *std::move(expression)).first->second.Evaluate(values);
  };
  std::map<std::string, double> values = GpuLimits(TypicalGpu());
  for (const v1::Variable& variable : reading.bundle.variables()) values[variable.name()] = variable.start();
  using Same = std::tuple<std::string, std::string, Must>;
  std::set<Same> distinct;
  for (const UsedExpression& used : reading.expressions) {
    const absl::StatusOr<std::set<std::string>> names = NamesIn(used.text.value);
    const bool varies = names.ok() && std::any_of(names->begin(), names->end(), [&](const std::string& name) {
                          return reading.bundle.hidden().contains(name);
                        });
    if (varies) distinct.insert({used.text.value, used.guard, used.must});
  }
  const std::vector<v1::Size> more = MoreSizesToJudge(reading.bundle, distinct.size());
  for (const UsedExpression& used : reading.expressions) {
    std::vector<const v1::Size*> judged;
    for (const v1::Size& size : sizes) judged.push_back(&size);
    // Of launches that share an expression the first is named.
    if (distinct.erase({used.text.value, used.guard, used.must}) > 0) {
      for (const v1::Size& size : more) judged.push_back(&size);
    }
    for (const v1::Size* at_size : judged) {
      const v1::Size& size = *at_size;
      for (const auto& [name, value] : size.values()) values[name] = value;
      if (!used.guard.empty() && evaluate(used.guard, values).value_or(0) == 0) continue;
      absl::StatusOr<double> value = evaluate(used.text.value, values);
      const std::string at = absl::StrCat(" for the start variant at size ", size.name());
      if (!value.ok()) {
        reading.problems.Add(used.text.line, absl::StrCat(used.where, ": ", value.status().message(), at));
        break;
      }
      if (std::string complaint = Complaint(*value, used.must); !complaint.empty()) {
        reading.problems.Add(used.text.line,
                             absl::StrCat(used.where, " \"", used.text.value, "\" is ", *value, at, "; ", complaint));
        break;
      }
    }
  }
}

void CheckConstraints(Reading& reading) {
  const v1::Bundle& bundle = reading.bundle;
  const v1::Variant start = StartVariant(bundle);
  bool start_allowed = true;
  for (const Text& that : reading.constraints) {
    v1::Bundle alone = bundle;
    alone.clear_constraints();
    alone.add_constraints()->set_that(that.value);
    absl::StatusOr<bool> allowed = IsAllowed(alone, start);
    if (allowed.ok() && *allowed) continue;
    start_allowed = false;
    reading.problems.Add(
        that.line,
        absl::StrCat("[[constraint]] \"", that.value, "\" ",
                     allowed.ok() ? absl::StrCat("forbids the start variant (", VariantText(bundle, start), ")")
                                  : absl::StrCat("can't be judged: ", allowed.status().message())));
  }
  if (SpaceSize(bundle) > kMaxSpace) {
    reading.problems.Add(reading.lines["variables"],
                         absl::StrCat("the space has more than ", kMaxSpace,
                                      " variants before constraints; expected fewer: remove values or variables"));
    return;
  }
  int64_t allowed = 0;
  // One is enough, but each must be judged: a constraint that divides by zero somewhere is a mistake too.
  constexpr int64_t kJudged = 100'000, kSteps = 2'000'000;
  const absl::Status status = VisitAllowed(
      bundle, [&](const std::vector<int32_t>&) { return ++allowed < kJudged; }, kSteps);
  if (absl::IsResourceExhausted(status)) return;  // as far as it was judged, and the start is allowed or was told
  const int line = reading.constraints.empty() ? 1 : reading.constraints.front().line;
  if (!status.ok() && start_allowed) {
    int at = line;
    for (const Text& that : reading.constraints) {
      if (absl::StrContains(status.message(), absl::StrCat("\"", that.value, "\""))) at = that.line;
    }
    reading.problems.Add(at, absl::StrCat("[[constraint]]: ", status.message()));
  } else if (status.ok() && allowed == 0) {
    reading.problems.Add(line, "the constraints forbid every variant of the space");
  }
}

// One tensor that a raw file fills, at one of the sizes.
struct RawUse {
  v1::PlanTensor tensor;
  std::string size;

  int64_t Rows() const { return tensor.shape().empty() ? 1 : tensor.shape(0); }
  std::string RowText() const {
    return absl::StrCat(
        "[", absl::StrJoin(absl::MakeSpan(tensor.shape()).subspan(std::min(1, tensor.shape_size())), ", "), "]");
  }
};

// A raw file tells neither type nor shape. As of an .npy file, its first rows are taken at sizes that have fewer; other
// rows at another size would be other elements at each, whatever its bytes are.
void CheckRaw(const std::string& name, const std::vector<RawUse>& uses, Reading& reading) {
  const RawUse* largest = &uses[0];
  for (const RawUse& use : uses) {
    if (use.Rows() > largest->Rows()) largest = &use;
  }
  const v1::DataFile* file = FindDataFile(reading.bundle, largest->tensor.file());
  if (file == nullptr) return;
  const int line = reading.lines[absl::StrCat("tensor ", name)];
  const std::string where = absl::StrCat("[[tensor]] ", name, ": fill: ", file->path());
  for (const RawUse& use : uses) {
    if (use.RowText() == largest->RowText()) continue;
    reading.problems.Add(
        line, absl::StrCat(where, " is raw bytes, and its rows are ", use.RowText(), " at size ", use.size, ", ",
                           largest->RowText(), " at size ", largest->size,
                           ": its elements would mean something else at each size; expected the same rows "
                           "at every size, or let problem.py read the file (data)"));
    return;
  }
  const int64_t found = static_cast<int64_t>(file->data().size()), bytes = TensorBytes(largest->tensor);
  const int64_t row = std::max<int64_t>(1, bytes / std::max<int64_t>(1, largest->Rows()));
  if (found == bytes) return;
  const std::string has =
      absl::StrCat(where, " has ", found, " bytes, and ", DataTypeName(largest->tensor.type()), " [",
                   absl::StrJoin(largest->tensor.shape(), ", "), "] at size ", largest->size, ", the largest, ");
  if (found % row != 0) {
    reading.problems.Add(
        line, absl::StrCat(has, "takes ", bytes, ": expected that, or further whole rows of ", row, " bytes"));
  } else {
    reading.warnings.Add(
        line, absl::StrCat(has, "takes ", bytes, ": the rest is not used. If that is a mistake, is the type right?"));
  }
}

// Sums over several expressions, such as the elements of a tensor.
void CheckPlans(const std::vector<v1::Size>& sizes, Reading& reading) {
  const v1::GpuInfo gpu = TypicalGpu();
  Planner planner(reading.bundle);
  const v1::Variant start = StartVariant(reading.bundle);
  std::map<std::string, std::vector<RawUse>> raw;  // of each tensor that a raw file fills
  for (const v1::Size& size : sizes) {
    if (const absl::StatusOr<v1::Plan> plan = planner.MakeReferencePlan(size, gpu); plan.ok()) {
      for (const v1::PlanTensor& tensor : plan->tensors()) {
        if (tensor.fill() == v1::FILL_FILE && IsRawData(tensor.file())) {
          raw[tensor.name()].push_back({tensor, size.name()});
        }
      }
    }
    for (const absl::Status& status :
         {planner.MakePlan(start, size, gpu).status(), planner.MakeReferencePlan(size, gpu).status()}) {
      if (status.ok()) continue;
      int line = reading.lines["launches"];
      for (const auto& [what, at] : reading.lines) {
        if (absl::StartsWith(status.message(), absl::StrCat(what, " at size"))) line = at;
      }
      reading.problems.Add(line, absl::StrCat(status.message(), " (start variant)"));
      return;
    }
  }
  for (const auto& [name, uses] : raw) CheckRaw(name, uses, reading);
}

}  // namespace

void CheckWhole(Reading& reading) {
  CheckGoal(reading);
  if (!reading.names_complete || reading.bundle.sizes().empty()) return;
  // A size or a variable without values has been complained about; what depends on it can't be judged.
  const size_t dimensions = reading.bundle.sizes(0).values_size();
  for (const v1::Size& size : reading.bundle.sizes()) {
    if (size.values().empty() || static_cast<size_t>(size.values_size()) != dimensions) return;
  }
  for (const v1::Variable& variable : reading.bundle.variables()) {
    if (std::find(variable.values().begin(), variable.values().end(), variable.start()) == variable.values().end()) {
      return;
    }
  }
  const std::vector<v1::Size> sizes = SizesToJudge(reading.bundle);
  CheckExpressions(sizes, reading);
  CheckConstraints(reading);
  if (reading.problems.empty()) CheckPlans(sizes, reading);
}

}  // namespace pawl
