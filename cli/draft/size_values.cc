#include "cli/draft/size_values.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/expression/expression.h"
#include "cli/draft/read/element_type.h"

namespace pawl {
namespace {

constexpr int64_t kMostElements = int64_t{1} << 26;  // of a tensor at the main size
constexpr int64_t kTinyElements = int64_t{1} << 16;

int64_t TypicalSize(const std::string& name, size_t count) {
  const std::string lower = absl::AsciiStrToLower(name);
  const auto has = [&](std::initializer_list<const char*> words) {
    return std::any_of(words.begin(), words.end(), [&](const char* word) { return absl::StrContains(lower, word); });
  };
  const auto is = [&](std::initializer_list<const char*> words) {
    return std::any_of(words.begin(), words.end(), [&](const char* word) { return lower == word; });
  };
  if (has({"batch"}) || is({"b", "bs"})) return 8;
  if (has({"head"}) && (has({"dim", "size"}))) return 128;
  if (has({"head"}) || is({"nh", "h"})) return 16;
  if (has({"seq", "tokens", "length"}) || is({"t", "s", "l"})) return 1024;
  if (has({"vocab"}) || is({"v"})) return 32000;
  if (has({"hidden", "dim", "channel", "features"}) || is({"c", "d"})) return 1024;
  if (has({"group", "expert"}) || is({"g"})) return 32;
  if (has({"topk", "top_k"})) return 4;
  if (has({"_rows"})) return 32000;
  if (has({"iter", "steps", "passes"})) return 16;
  if (is({"m", "k"}) || (is({"n"}) && count > 1)) return 2048;
  if (has({"row", "col", "width", "height"}) || is({"w", "nx", "ny"})) return 4096;
  if (is({"nz"})) return 64;
  if (has({"nnz"})) return 1 << 20;
  return count == 1 ? int64_t{1} << 24 : 1024;
}

int64_t ElementsOf(const DraftTensor& tensor, const std::map<std::string, double>& values) {
  double elements = 1;
  for (const std::string& extent : tensor.shape) elements *= Evaluate(extent, values).value_or(1);
  return elements > 1e15 ? int64_t{1} << 50 : static_cast<int64_t>(elements);
}

// Halves the largest size until every tensor has at most so many elements.
void Shrink(Draft& draft, int64_t DraftSize::*value, int64_t most) {
  for (int step = 0; step < 200; ++step) {
    std::map<std::string, double> values;
    for (const DraftSize& size : draft.sizes) values[size.name] = static_cast<double>(size.*value);
    const auto too_large = std::find_if(draft.tensors.begin(), draft.tensors.end(),
                                        [&](const DraftTensor& tensor) { return ElementsOf(tensor, values) > most; });
    if (too_large == draft.tensors.end()) return;
    DraftSize* largest = nullptr;
    for (DraftSize& size : draft.sizes) {
      const bool used = std::any_of(too_large->shape.begin(), too_large->shape.end(), [&](const std::string& extent) {
        const auto names = NamesIn(extent);
        return names.ok() && names->contains(size.name);
      });
      if (used && size.*value > 1 && (largest == nullptr || size.*value > largest->*value)) largest = &size;
    }
    if (largest == nullptr) return;
    largest->*value /= 2;
  }
}

void KeepQuotients(const std::string& text, Draft& draft) {
  for (DraftSize& over : draft.sizes) {
    for (DraftSize& by : draft.sizes) {
      if (!absl::StrContains(text, absl::StrCat("floor(", over.name, " / ", by.name, ")"))) continue;
      by.tiny = std::max<int64_t>(1, std::min(by.tiny, over.tiny / 4));
      by.main = std::max<int64_t>(1, std::min(by.main, over.main / 4));
    }
  }
}

// Notes by what numbers sizes are divided in an expression, and which are divided otherwise.
void Divisions(const std::string& text, std::map<std::string, int64_t>& multiples, std::set<std::string>& fixed) {
  const auto fix = [&](const std::string& part) {
    if (const auto names = NamesIn(part); names.ok()) fixed.insert(names->begin(), names->end());
  };
  if (absl::StrContains(text, "%")) fix(text);
  for (size_t at = text.find("floor("); at != std::string::npos; at = text.find("floor(", at + 1)) {
    size_t end = at + 6;
    for (int depth = 1; end < text.size(); ++end) {
      if (text[end] == '(') ++depth;
      if (text[end] == ')' && --depth == 0) break;
    }
    const std::string inner = text.substr(at + 6, end - at - 6);
    const size_t slash = inner.find(" / ");
    int64_t number = 0;
    const bool plain = slash != std::string::npos && IsName(inner.substr(0, slash)) &&
                       absl::SimpleAtoi(inner.substr(slash + 3), &number) && number > 0;
    if (!plain) {
      fix(inner);
      continue;
    }
    int64_t& multiple = multiples[inner.substr(0, slash)];
    multiple = std::lcm(std::max<int64_t>(1, multiple), number);
  }
}

// By what numbers sizes are divided in the draft and in `divided`. `fixed` gets those that are divided by something
// else.
std::map<std::string, int64_t> MultiplesOf(const Draft& draft, const std::vector<std::string>& divided,
                                           std::set<std::string>& fixed) {
  std::vector<std::string> texts = divided;
  for (const DraftLaunch& launch : draft.launches) {
    for (const std::vector<std::string>* extents : {&launch.grid, &launch.block}) {
      texts.insert(texts.end(), extents->begin(), extents->end());
    }
    texts.insert(texts.end(), {launch.shared, launch.repeat});
  }
  for (const DraftScalar& scalar : draft.scalars) texts.push_back(scalar.value);
  for (const DraftTensor& tensor : draft.tensors) texts.insert(texts.end(), tensor.shape.begin(), tensor.shape.end());
  std::map<std::string, int64_t> multiples;
  for (const std::string& text : texts) Divisions(text, multiples, fixed);
  return multiples;
}

}  // namespace

void SetSizeValues(Draft& draft) {
  for (DraftSize& size : draft.sizes) {
    const bool stated = size.main > 0;
    size.stated = stated;
    if (!stated || size.main > (int64_t{1} << 30)) size.main = TypicalSize(size.name, draft.sizes.size());
    // A small one that is still a multiple of what vectors and warps need.
    size.tiny = size.main >= 512 ? std::max<int64_t>(128, size.main / 32) : size.main;
    if (!stated && size.todo.empty()) size.todo = "guessed by its name";
  }
  Shrink(draft, &DraftSize::main, kMostElements);
  Shrink(draft, &DraftSize::tiny, kTinyElements);
  for (DraftSize& size : draft.sizes) size.tiny = std::max<int64_t>(1, std::min(size.tiny, size.main));
  // floor(channels / groups): a size that divides another is not larger.
  for (const DraftScalar& scalar : draft.scalars) KeepQuotients(scalar.value, draft);
  for (const DraftTensor& tensor : draft.tensors) {
    for (const std::string& extent : tensor.shape) KeepQuotients(extent, draft);
  }
}

void RoundSizes(Draft& draft, const std::vector<std::string>& divided) {
  std::set<std::string> fixed;
  std::map<std::string, int64_t> multiples = MultiplesOf(draft, divided, fixed);
  for (DraftSize& size : draft.sizes) {
    const int64_t multiple = std::max<int64_t>(1, multiples[size.name]);
    for (int64_t* value : {&size.tiny, &size.main}) *value = (*value + multiple - 1) / multiple * multiple;
  }
}

void SetSizeRanges(Draft& draft, const std::vector<std::string>& divided) {
  std::vector<std::string> positive;
  for (const DraftLaunch& launch : draft.launches) {
    for (const std::vector<std::string>* extents : {&launch.grid, &launch.block}) {
      positive.insert(positive.end(), extents->begin(), extents->end());
    }
  }
  std::set<std::string> in_shapes, fixed;
  for (const DraftTensor& tensor : draft.tensors) {
    for (const std::string& extent : tensor.shape) {
      if (const auto names = NamesIn(extent); names.ok()) in_shapes.insert(names->begin(), names->end());
    }
  }
  std::map<std::string, int64_t> multiples = MultiplesOf(draft, divided, fixed);
  // Of sizes that the source gives the same number one may be another's: they do not vary apart.
  for (const DraftSize& size : draft.sizes) {
    for (const DraftSize& other : draft.sizes) {
      if (&size != &other && size.stated && other.stated && size.main == other.main) fixed.insert(size.name);
    }
  }
  for (const DraftSize& size : draft.sizes) {
    if (size.unknown || size.stride || fixed.contains(size.name) || !in_shapes.contains(size.name)) continue;
    DraftRange range;
    range.name = size.name;
    range.multiple = std::max<int64_t>(1, multiples[size.name]);
    range.low = range.multiple;
    range.high = (size.tiny + size.tiny / 4) / range.multiple * range.multiple;
    if (range.high > range.low) draft.hidden.push_back(range);
  }
  // At the lowest values every grid must have a block.
  std::map<std::string, double> values = {{"SM_COUNT", 1}};
  for (const DraftSize& size : draft.sizes) values[size.name] = static_cast<double>(size.tiny);
  for (const DraftRange& range : draft.hidden) values[range.name] = static_cast<double>(range.low);
  for (const DraftVariable& variable : draft.variables) {
    double start = variable.start == "true" ? 1 : 0;
    if (variable.start == "true" || variable.start == "false" || absl::SimpleAtod(variable.start, &start))
      values[variable.name] = start;
  }
  for (const std::string& text : positive) {
    const auto value = Evaluate(text, values);
    if (value.ok() && *value >= 1) continue;
    const auto names = NamesIn(text);
    std::erase_if(draft.hidden, [&](const DraftRange& range) { return !names.ok() || names->contains(range.name); });
  }
}

void SetLeastBytes(Draft& draft) {
  std::vector<std::string> terms;
  for (const DraftTensor& tensor : draft.tensors) {
    const bool unknown = std::any_of(draft.sizes.begin(), draft.sizes.end(), [&](const DraftSize& size) {
      return size.unknown && std::find(tensor.shape.begin(), tensor.shape.end(), size.name) != tensor.shape.end();
    });
    // A call need not read all of a symbol.
    if (tensor.role == "scratch" || tensor.by_data || tensor.guessed || unknown || !tensor.symbol.empty()) continue;
    // Of two that the launches exchange one is read and the other written.
    const bool exchanged = std::any_of(draft.launches.begin(), draft.launches.end(), [&](const DraftLaunch& launch) {
      return std::find(launch.swap.begin(), launch.swap.end(), tensor.name) != launch.swap.end();
    });
    int64_t number = BytesOfType(tensor.type) * (tensor.role == "inout" && !exchanged ? 2 : 1);
    std::string factors;
    for (const std::string& extent : tensor.shape) {
      int64_t count = 0;
      if (absl::SimpleAtoi(extent, &count)) {
        number *= count;
        continue;
      }
      const bool atom = IsName(extent) || (absl::StartsWith(extent, "floor(") && extent.find(')') == extent.size() - 1);
      absl::StrAppend(&factors, " * ", atom ? extent : absl::StrCat("(", extent, ")"));
    }
    terms.push_back(number == 1 && !factors.empty() ? factors.substr(3) : absl::StrCat(number, factors));
  }
  draft.bytes = absl::StrJoin(terms, " + ");
  // A few single numbers are no traffic.
  if (const auto names = NamesIn(draft.bytes); !names.ok() || names->empty()) draft.bytes.clear();
}

std::string TypicalValue(const std::string& name, const std::string& type) {
  const std::string lower = absl::AsciiStrToLower(name);
  const auto has = [&](const char* word) { return absl::StrContains(lower, word); };
  if (type[0] != 'f' && type[0] != 'b') return has("stride") ? "1" : "0";
  if (type == "bool") return "1";
  if (has("eps")) return "1e-5";
  if (has("beta1") || has("momentum")) return "0.9";
  if (has("beta2")) return "0.999";
  if (has("lr") || has("learning")) return "0.001";
  if (has("decay")) return "0.01";
  if (has("dropout") || lower == "p") return "0";
  return "1";
}

}  // namespace pawl
