#include "cli/draft/read/host_swaps.h"

#include <algorithm>

#include "absl/strings/match.h"

namespace pawl {
namespace {

using Kind = CppExpression::Kind;

void CollectCalls(const CppStatement& statement, Swaps& swaps) {
  for (const CppExpression& e : statement.expressions) {
    if (IsSwap(e)) swaps.push_back({CppText(e.parts[1]), CppText(e.parts[2])});
  }
  for (const CppStatement& inner : statement.body) CollectCalls(inner, swaps);
}

// a = b and T* a = b, in the order of the text.
void CollectAssignments(const CppStatement& statement, std::vector<std::pair<std::string, std::string>>& assigned) {
  for (const CppDeclarator& declarator : statement.declared) {
    if (declarator.initial.size() == 1 && declarator.initial[0].kind == Kind::kName)
      assigned.push_back({declarator.name, declarator.initial[0].text});
  }
  for (const CppExpression& e : statement.expressions) {
    if (e.kind == Kind::kAssign && e.text == "=" && e.parts[0].kind == Kind::kName && e.parts[1].kind == Kind::kName)
      assigned.push_back({e.parts[0].text, e.parts[1].text});
  }
  for (const CppStatement& inner : statement.body) CollectAssignments(inner, assigned);
}

}  // namespace

bool IsSwap(const CppExpression& e) {
  return e.kind == Kind::kCall && e.parts.size() == 3 && absl::EndsWith(e.parts[0].text, "swap");
}

Swaps SwapsIn(const CppStatement& statement) {
  Swaps swaps;
  CollectCalls(statement, swaps);
  std::vector<std::pair<std::string, std::string>> assigned;
  CollectAssignments(statement, assigned);
  // tmp = a; a = b; b = tmp;
  for (size_t i = 0; i + 2 < assigned.size(); ++i) {
    const auto& [temporary, a] = assigned[i];
    const auto& [to_a, b] = assigned[i + 1];
    const auto& [to_b, from] = assigned[i + 2];
    if (to_a == a && to_b == b && from == temporary && a != b) swaps.push_back({a, b});
  }
  return swaps;
}

Swaps NetSwaps(const Swaps& swaps) {
  Swaps net;
  for (const auto& [a, b] : swaps) {
    const auto again = std::find_if(net.begin(), net.end(), [&](const auto& other) {
      return other == std::pair(a, b) || other == std::pair(b, a);
    });
    if (again == net.end()) {
      net.push_back({a, b});
    } else {
      net.erase(again);
    }
  }
  return net;
}

}  // namespace pawl
