#include "cli/text/gate_text.h"

#include "absl/strings/str_cat.h"
#include "cli/text/words.h"

namespace pawl {

std::string GateText(const v1::FailedGate& gate) {
  std::string text = absl::StrCat(gate.gate(), " (", GateActionWord(gate.action()), "): ", gate.text());
  if (gate.value() != 0) absl::StrAppend(&text, "; saw ", NumberText(gate.value()));
  if (gate.threshold() != 0) absl::StrAppend(&text, ", threshold ", NumberText(gate.threshold()));
  return text;
}

}  // namespace pawl
