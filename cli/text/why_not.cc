#include "cli/text/why_not.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/names/spelling.h"
#include "cli/text/explanation.h"
#include "cli/text/layout.h"
#include "cli/text/ranking_table.h"
#include "cli/text/words.h"
#include "kernels/space.h"
#include "kernels/variable_values.h"

namespace pawl {

absl::StatusOr<v1::Change> KnownChange(const std::string& text,
                                       const google::protobuf::RepeatedPtrField<v1::Variable>& variables,
                                       const std::string& of) {
  const std::pair<std::string, std::string> asked = absl::StrSplit(text, absl::MaxSplits('=', 1));
  std::vector<std::string> names;
  for (const v1::Variable& known : variables) names.push_back(known.name());
  const auto variable = std::find_if(variables.begin(), variables.end(),
                                     [&](const v1::Variable& candidate) { return candidate.name() == asked.first; });
  if (variable == variables.end()) {
    return absl::InvalidArgumentError(absl::StrCat(of, " has no variable ", asked.first, Expected(asked.first, names)));
  }
  const absl::StatusOr<int32_t> value = ReadValue(*variable, asked.second);
  if (!value.ok()) return value.status();
  v1::Change change;
  change.set_variable(variable->name());
  change.set_to(*value);
  return change;
}

namespace {

// What the decision started from.
v1::Variant ParentOf(const v1::Iteration& decision) {
  v1::Variant parent;
  *parent.mutable_values() = decision.variant();
  if (decision.change().has_from()) {
    (*parent.mutable_values())[decision.change().variable()] = decision.change().from();
  }
  return parent;
}

bool SameValues(const google::protobuf::Map<std::string, int32_t>& a,
                const google::protobuf::Map<std::string, int32_t>& b) {
  return a.size() == b.size() && std::all_of(a.begin(), a.end(), [&](const auto& value) {
           const auto other = b.find(value.first);
           return other != b.end() && other->second == value.second;
         });
}

// The constraints that a variant breaks, one by one: together they only say that one of them does.
std::vector<std::string> Forbidding(const v1::Bundle& bundle, const v1::Variant& variant) {
  std::vector<std::string> broken;
  for (const v1::Constraint& constraint : bundle.constraints()) {
    v1::Bundle alone = bundle;
    alone.clear_constraints();
    *alone.add_constraints() = constraint;
    const absl::StatusOr<bool> allowed = IsAllowed(alone, variant);
    if (allowed.ok() && !*allowed) broken.push_back(absl::StrCat("\"", constraint.that(), "\""));
  }
  return broken;
}

std::string IterationSentence(const v1::Iteration& iteration) {
  std::string text = absl::StrCat("iteration ", iteration.number(), ", ", VerdictText(iteration));
  if (iteration.speedup_over_parent() > 0) {
    absl::StrAppend(&text, " (", SpeedupText(iteration.speedup_over_parent()), " over its parent)");
  }
  return text;
}

class Answer {
 public:
  Answer(const v1::Iteration& decision, int width) : decision_(decision), width_(width) {}

  void Say(const std::string& sentence) { text_ += Paragraph("", sentence, width_); }

  void PassedOver(const v1::PassedOver& passed) {
    Say(absl::StrCat("It was not chosen: ", passed.reason(), "."));
    if (!passed.has_score()) return;
    std::vector<RankedRow> rows = {{ChangeText(passed.change()), passed.score(), "asked about"}};
    if (decision_.has_score()) {
      rows.insert(rows.begin(), {ChangeText(decision_.change()), decision_.score(), "chosen"});
    }
    text_ += RankingTable(rows, "", 0, width_);
    const v1::Score &asked = passed.score(), &chosen = decision_.score();
    if (!decision_.has_score() || !(asked.seconds() > 0) || Rate(chosen) <= Rate(asked)) return;
    Say(absl::StrFormat("Its expected improvement for each second was %.2g of that of the chosen change.",
                        Rate(asked) / Rate(chosen)));
  }

  std::string Take() { return std::move(text_); }

 private:
  const v1::Iteration& decision_;
  const int width_;
  std::string text_;
};

}  // namespace

absl::StatusOr<std::string> WhyNot(const std::string& asked, const v1::Iteration& decision,
                                   const std::vector<v1::Iteration>& iterations, const v1::Bundle& bundle, int width) {
  const absl::StatusOr<v1::Change> known = KnownChange(asked, bundle.variables(), bundle.name());
  if (!known.ok()) return known.status();
  const v1::Variant parent = ParentOf(decision);
  v1::Variant wanted = parent;
  (*wanted.mutable_values())[known->variable()] = known->to();
  const auto is_asked = [&](const v1::Change& change) {
    return change.variable() == known->variable() && change.to() == known->to();
  };

  Answer answer(decision, width);
  if (is_asked(decision.change())) {
    answer.Say(absl::StrCat(asked, " was chosen: ", IterationSentence(decision), "."));
    return answer.Take();
  }
  answer.Say(absl::StrCat("Iteration ", decision.number(), " chose ", ChangeText(decision.change()), " from iteration ",
                          decision.parent(), ", not ", asked, "."));
  bool answered = false;
  const auto passed = std::find_if(decision.passed_over().begin(), decision.passed_over().end(),
                                   [&](const v1::PassedOver& one) { return is_asked(one.change()); });
  if (SameValues(wanted.values(), parent.values())) {
    answer.Say(absl::StrCat("No change: ", known->variable(), " is ", ValueText(bundle, known->variable(), known->to()),
                            " in iteration ", decision.parent(), " already."));
    return answer.Take();
  }
  if (passed != decision.passed_over().end()) {
    answer.PassedOver(*passed);
    answered = true;
  }
  if (const std::vector<std::string> broken = Forbidding(bundle, wanted); !broken.empty()) {
    answer.Say(absl::StrCat(broken.size() == 1 ? "The constraint " : "The constraints ", absl::StrJoin(broken, " and "),
                            broken.size() == 1 ? " forbids" : " forbid", " it from there."));
    answered = true;
  }
  std::vector<std::string> elsewhere;
  for (const v1::Iteration& iteration : iterations) {
    if (iteration.number() == decision.number()) continue;
    const std::string when = iteration.number() < decision.number() ? "before" : "later";
    if (SameValues(iteration.variant(), wanted.values()) && iteration.patched_source_hash().empty()) {
      answer.Say(absl::StrCat("The same variant was tried ", when, ": ", IterationSentence(iteration), "."));
      answered = true;
    } else if (is_asked(iteration.change())) {
      elsewhere.push_back(absl::StrCat(
          iteration.number(), " (", VerdictWord(iteration.verdict()),
          iteration.speedup_over_parent() > 0 ? absl::StrCat(", ", SpeedupText(iteration.speedup_over_parent())) : "",
          ")"));
    }
  }
  if (!elsewhere.empty()) {
    answer.Say(absl::StrCat("From other parents it was tried in iteration", elsewhere.size() == 1 ? " " : "s ",
                            absl::StrJoin(elsewhere, ", "), "."));
  }
  if (!answered) {
    answer.Say(decision.has_score()
                   ? "It was not among the changes that were ranked."
                   : absl::StrCat("Nothing was ranked: the change was proposed by ", decision.author(), "."));
  }
  return answer.Take();
}

}  // namespace pawl
