// What a draft says in two places that exclude each other (declared in drafting.h). Each guess is made on its own: of a
// name, a block, a grid, a range. Where one contradicts another, the weaker one goes, with a TODO.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/expression/expression.h"
#include "cli/draft/drafting.h"
#include "cli/draft/read/element_type.h"
#include "cli/draft/read/translation.h"
#include "cli/draft/tuning.h"
#include "kernels/source/cpp_tokens.h"

namespace pawl {
namespace {

constexpr int kRounds = 64;  // of doubling or halving
constexpr double kMostThreads = 1024, kMostBlocksX = 2147483647, kMostBlocksYZ = 65535;

using Values = std::map<std::string, double>;

void AddStarts(const Draft& draft, Values& values) {
  for (const DraftVariable& variable : draft.variables) {
    double start = variable.start == "true" ? 1 : 0;
    if (variable.start == "true" || variable.start == "false" || absl::SimpleAtod(variable.start, &start)) {
      values[variable.name] = start;
    }
  }
}

Values ValuesAt(const Draft& draft, int64_t DraftSize::*size) {
  Values values = {{"SM_COUNT", 1}};
  for (const DraftSize& own : draft.sizes) values[own.name] = static_cast<double>(own.*size);
  AddStarts(draft, values);
  return values;
}

std::set<std::string> NamesOf(const std::string& text) {
  const absl::StatusOr<std::set<std::string>> names = NamesIn(text);
  return names.ok() ? *names : std::set<std::string>();
}

// Everything in which kernel.toml may name a variable.
void ForEachText(Draft& draft, const std::function<void(std::string&)>& visit) {
  for (DraftLaunch& launch : draft.launches) {
    for (std::vector<std::string>* list : {&launch.grid, &launch.block, &launch.cluster, &launch.arguments}) {
      std::for_each(list->begin(), list->end(), visit);
    }
    for (std::string* text : {&launch.entry, &launch.when, &launch.shared, &launch.repeat}) visit(*text);
  }
  for (DraftScalar& scalar : draft.scalars) visit(scalar.value);
  for (DraftTensor& tensor : draft.tensors) std::for_each(tensor.shape.begin(), tensor.shape.end(), visit);
}

std::set<std::string> WordsIn(const std::vector<std::string>& texts) {
  std::set<std::string> words;
  for (const std::string& text : texts) {
    for (const CppToken& token : CppTokens(text)) {
      if (token.IsWord()) words.emplace(token.text);
    }
  }
  return words;
}

// Another variable, or a number, in the place of a variable. What the launches' TODOs say of it holds no longer.
void ReplaceVariable(Draft& draft, const std::string& name, const std::string& other) {
  ForEachText(draft, [&](std::string& text) { text = WithNames(text, {{name, other}}); });
  for (DraftLaunch& launch : draft.launches) {
    std::erase_if(launch.todos, [&](const std::string& todo) {
      const bool own = absl::StartsWith(todo, "geometry: ") || absl::StartsWith(todo, "grid: ") ||
                       absl::StartsWith(todo, "shared: ");
      return own && WordsIn({todo}).contains(name);
    });
  }
}

// The variable that is the whole block of every launch whose entry has this one, with the same start; empty: none is.
std::string SameBlock(const Draft& draft, const DraftVariable& variable) {
  std::string same;
  for (const DraftLaunch& launch : draft.launches) {
    if (!WordsIn({launch.entry}).contains(variable.name)) continue;
    const auto block = std::find_if(draft.variables.begin(), draft.variables.end(), [&](const DraftVariable& other) {
      return launch.block.size() == 1 && other.name == launch.block[0] && other.start == variable.start;
    });
    if (block == draft.variables.end() || block->name == variable.name || (!same.empty() && same != block->name))
      return "";
    same = block->name;
  }
  return same;
}

// The largest number that an integer type holds; nothing: it holds whatever a size can be.
std::optional<double> MostOf(const std::string& type) {
  static const auto& most =
      *new std::map<std::string, double>{{"bool", 1}, {"i8", 127}, {"u8", 255}, {"i16", 32767}, {"u16", 65535}};
  const auto found = most.find(type);
  return found == most.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace

void Drafting::DropVariables() {
  std::set<std::string> taken;
  for (const DraftSize& size : draft_.sizes) taken.insert(size.name);
  for (const DraftTensor& tensor : draft_.tensors) taken.insert(tensor.name);
  for (const DraftScalar& scalar : draft_.scalars) taken.insert(scalar.name);
  for (const DraftStruct& made : draft_.structs) taken.insert(made.name);
  std::vector<std::string> texts;
  ForEachText(draft_, [&](const std::string& text) { texts.push_back(text); });
  const std::set<std::string> used = WordsIn(texts);
  std::erase_if(draft_.variables, [&](const DraftVariable& variable) {
    const std::string what = absl::StrCat(variable.name, " = ", variable.start);
    if (taken.contains(variable.name)) {
      draft_.constants.push_back(absl::StrCat(what, ": the launch passes it under this name"));
      return true;
    }
    const bool written = !variable.option.empty() || !variable.replaces.empty();
    if (written || used.contains(variable.name) || words_.contains(variable.name)) return false;
    draft_.constants.push_back(absl::StrCat(what, ": neither the kernel nor the launch uses it"));
    return true;
  });
}

void Drafting::DropUntied() {
  const auto has_number = [](const std::string& extent) {
    const std::vector<CppToken> tokens = CppTokens(extent);
    return std::any_of(tokens.begin(), tokens.end(), [](const CppToken& token) {
      return token.kind == CppToken::Kind::kNumber && NumberIn(std::string(token.text)).value_or(0) > 1;
    });
  };
  for (const std::string& name : variables_->literal_templates()) {
    const auto variable = std::find_if(draft_.variables.begin(), draft_.variables.end(),
                                       [&](const DraftVariable& own) { return own.name == name; });
    if (variable == draft_.variables.end()) continue;
    const Tunable tunable = TunableOf(name, NumberIn(variable->start).value_or(0), false);
    const bool threads = tunable == Tunable::kBlock || tunable == Tunable::kWarps;
    if (!threads && tunable != Tunable::kTile && tunable != Tunable::kItems && tunable != Tunable::kVector) continue;
    // k<256><<<blocks, threads>>> with threads = 256: both are one.
    if (const std::string same = threads ? SameBlock(draft_, *variable) : ""; !same.empty()) {
      ReplaceVariable(draft_, name, same);
      draft_.variables.erase(variable);
      continue;
    }
    // Where the geometry has numbers, one of them may be made of the argument.
    const bool untied = std::any_of(draft_.launches.begin(), draft_.launches.end(), [&](const DraftLaunch& launch) {
      if (!WordsIn({launch.entry}).contains(name)) return false;
      // A block that is a number may be made of the argument, wherever else the argument's name is.
      if (WordsIn(launch.block).contains(name)) return false;
      if (std::any_of(launch.block.begin(), launch.block.end(),
                      [](const std::string& extent) { return NumberIn(extent).value_or(0) > 1; })) {
        return true;
      }
      std::vector<std::string> geometry = launch.grid, numbers = threads ? launch.block : launch.grid;
      geometry.push_back(launch.shared);
      if (WordsIn(geometry).contains(name)) return false;
      numbers.push_back(launch.shared);
      return std::any_of(numbers.begin(), numbers.end(), has_number);
    });
    if (!untied) continue;
    ReplaceVariable(draft_, name, variable->start);
    draft_.constants.push_back(absl::StrCat(
        name, " = ", variable->start, ", a template argument: the grid and block have numbers that may depend on it"));
    draft_.variables.erase(variable);
  }
}

void Drafting::CompareAllocations() {
  const Values values = ValuesAt(draft_, &DraftSize::main);
  for (DraftTensor& tensor : draft_.tensors) {
    double elements = tensor.allocated > 0 ? 1 : 0;
    for (const std::string& extent : tensor.shape) {
      for (const std::string& name : NamesOf(extent)) {
        const bool stated = std::any_of(draft_.sizes.begin(), draft_.sizes.end(),
                                        [&](const DraftSize& size) { return size.name == name && size.stated; });
        if (!stated) elements = 0;
      }
      elements *= Evaluate(extent, values).value_or(0);
    }
    if (elements <= 0 || elements == static_cast<double>(tensor.allocated)) continue;
    tensor.todos.push_back(absl::StrCat("shape: the host allocates ", tensor.allocated, " elements, and these are ",
                                        static_cast<int64_t>(elements), " at the main size: which is right?"));
  }
}

void Drafting::ObeyConditions() {
  for (const DraftLaunch& launch : draft_.launches) {
    if (launch.only_where.empty()) continue;
    const std::set<std::string> names = NamesOf(launch.only_where);
    const auto holds = [&](const std::string& name, int64_t DraftSize::*size, int64_t number) {
      Values values = ValuesAt(draft_, size);
      values[name] = static_cast<double>(number);
      return Evaluate(launch.only_where, values).value_or(1) != 0;
    };
    // The nearest number at which it holds, of those that are a power of two away.
    const auto nearest = [&](const std::string& name, int64_t DraftSize::*size, int64_t number) {
      for (int64_t low = number, high = number; low >= 1 || high <= int64_t{1} << 24; low /= 2, high *= 2) {
        if (low >= 1 && holds(name, size, low)) return low;
        if (high <= int64_t{1} << 24 && holds(name, size, high)) return high;
        if (low == 0 && high > int64_t{1} << 24) break;
      }
      return number;
    };
    for (DraftSize& own : draft_.sizes) {
      if (!names.contains(own.name) || own.stated) continue;
      const int64_t before = own.main;
      own.main = nearest(own.name, &DraftSize::main, own.main);
      own.tiny = nearest(own.name, &DraftSize::tiny, own.tiny);
      if (own.main != before)
        absl::StrAppend(&own.todo, own.todo.empty() ? "" : "; ", "so that the host's ", launch.only_where, " holds");
    }
    for (DraftRange& range : draft_.hidden) {
      if (!names.contains(range.name) || holds(range.name, &DraftSize::main, range.high)) continue;
      range.high = std::max(range.low, nearest(range.name, &DraftSize::main, range.high));
    }
  }
}

void Drafting::LowerStarts() {
  const Values sizes = ValuesAt(draft_, &DraftSize::main);
  std::erase_if(draft_.constraints, [&](const std::string& constraint) {
    Values values = sizes;
    AddStarts(draft_, values);
    if (Evaluate(constraint, values).value_or(0) != 0) return false;
    // Those whose start is a guess: nothing in the source has it.
    std::vector<DraftVariable*> free;
    const std::set<std::string> names = NamesOf(constraint);
    for (DraftVariable& variable : draft_.variables) {
      const bool guess = variable.replaces.empty() && variable.option.empty();
      if (guess && names.contains(variable.name)) free.push_back(&variable);
    }
    for (int64_t start = 512; start >= 1 && !free.empty(); start /= 2) {
      for (const DraftVariable* variable : free) values[variable->name] = static_cast<double>(start);
      if (Evaluate(constraint, values).value_or(0) == 0) continue;
      for (DraftVariable* variable : free) {
        variable->values.clear();
        for (int64_t value = std::max<int64_t>(1, start / 4); value <= start; value *= 2) {
          variable->values.push_back(absl::StrCat(value));
        }
        variable->start = absl::StrCat(start);
        variable->todos.push_back("start: with more, the block would have more than 1024 threads");
      }
      return false;
    }
    draft_.remarks.push_back(absl::StrCat("the start variant has blocks of more than 1024 threads (", constraint,
                                          " does not hold): what does the host launch?"));
    return true;
  });
}

void Drafting::LowerUntil(const std::vector<std::string>& factors, double most, const std::string& why) {
  std::set<std::string> names;
  for (const std::string& factor : factors) names.merge(NamesOf(factor));
  for (int64_t DraftSize::*size : {&DraftSize::tiny, &DraftSize::main}) {
    for (int round = 0; round < kRounds; ++round) {
      const Values values = ValuesAt(draft_, size);
      double product = 1;
      for (const std::string& factor : factors) product *= Evaluate(factor, values).value_or(1);
      DraftSize* largest = nullptr;
      for (DraftSize& own : draft_.sizes) {
        if (names.contains(own.name) && own.*size > 1 && (largest == nullptr || own.*size > largest->*size)) {
          largest = &own;
        }
      }
      if (product <= most || largest == nullptr) break;
      largest->*size /= 2;
      if (!absl::StrContains(largest->todo, why)) {
        absl::StrAppend(&largest->todo, largest->todo.empty() ? "" : "; ", why);
      }
    }
  }
}

void Drafting::LowerSizes() {
  for (const DraftLaunch& launch : draft_.launches) {
    LowerUntil(launch.block, kMostThreads, "a block has at most 1024 threads");
    for (size_t i = 0; i < launch.grid.size(); ++i) {
      LowerUntil({launch.grid[i]}, i == 0 ? kMostBlocksX : kMostBlocksYZ, "a grid has no more blocks");
    }
  }
}

void Drafting::RaiseSizes() {
  for (int64_t DraftSize::*size : {&DraftSize::tiny, &DraftSize::main}) {
    for (DraftLaunch& launch : draft_.launches) {
      for (const std::string& extent : launch.grid) {
        const std::set<std::string> names = NamesOf(extent);
        for (int round = 0;; ++round) {
          const auto blocks = Evaluate(extent, ValuesAt(draft_, size));
          if (!blocks.ok() || *blocks >= 1) break;
          bool raised = false;
          for (DraftSize& own : draft_.sizes) {
            if (!names.contains(own.name) || own.*size > (int64_t{1} << 28)) continue;
            // Not what divides: floor(n / stride).
            Values far = ValuesAt(draft_, size);
            far[own.name] *= 1 << 20;
            if (Evaluate(extent, far).value_or(0) <= *blocks) continue;
            own.*size *= 2;
            raised = true;
          }
          if (raised && round < kRounds) continue;
          launch.todos.push_back(absl::StrCat("grid: \"", extent, "\" is ", *blocks, " at the drafted sizes"));
          break;
        }
      }
    }
  }
  for (DraftSize& own : draft_.sizes) own.main = std::max(own.main, own.tiny);
}

void Drafting::LimitRanges() {
  Values values = ValuesAt(draft_, &DraftSize::main);
  for (const DraftRange& range : draft_.hidden) {
    values[range.name] = std::max(values[range.name], static_cast<double>(range.high));
  }
  for (DraftTensor& tensor : draft_.tensors) {
    const std::optional<double> most = MostOf(tensor.type);
    if (!most || tensor.range_high.empty() || tensor.range_high == "zeros" || tensor.range_high == "bytes") continue;
    if (Evaluate(tensor.range_high, values).value_or(0) <= *most) continue;
    tensor.todos.push_back(absl::StrCat("fill: it indexes up to ", tensor.range_high, ", which ", tensor.type,
                                        " can't hold at the main size"));
    tensor.range_high = absl::StrCat(static_cast<int64_t>(*most));
  }
  // A block of the hidden sizes is no larger than any other.
  std::erase_if(draft_.hidden, [&](const DraftRange& range) {
    Values highest = ValuesAt(draft_, &DraftSize::tiny);
    for (const DraftRange& other : draft_.hidden) highest[other.name] = static_cast<double>(other.high);
    return std::any_of(draft_.launches.begin(), draft_.launches.end(), [&](const DraftLaunch& launch) {
      double threads = 1;
      bool named = false;
      for (const std::string& extent : launch.block) {
        threads *= Evaluate(extent, highest).value_or(1);
        named = named || NamesOf(extent).contains(range.name);
      }
      return named && threads > kMostThreads;
    });
  });
}

void Drafting::FindOutput() {
  const bool found = std::any_of(draft_.tensors.begin(), draft_.tensors.end(), [](const DraftTensor& tensor) {
    return tensor.role == "output" || tensor.role == "inout";
  });
  if (found || draft_.tensors.empty()) return;
  for (DraftTensor& tensor : draft_.tensors) {
    const auto unsure = std::find_if(tensor.todos.begin(), tensor.todos.end(), [](const std::string& todo) {
      return absl::StartsWith(todo, "role: it is never written");
    });
    if (unsure == tensor.todos.end()) continue;
    tensor.role = "inout";
    *unsure = "role: no output was found, and its pointer is not const: does the kernel write it?";
  }
}

}  // namespace pawl
