#include "cli/draft/size_values.h"

#include <algorithm>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/expression/expression.h"

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

}  // namespace

void SetSizeValues(Draft& draft) {
  for (DraftSize& size : draft.sizes) {
    const bool stated = size.main > 0;
    if (!stated || size.main > (int64_t{1} << 30)) size.main = TypicalSize(size.name, draft.sizes.size());
    // A small one that is still a multiple of what vectors and warps need.
    size.tiny = size.main >= 512 ? std::max<int64_t>(128, size.main / 32) : size.main;
    if (!stated && size.todo.empty()) size.todo = "guessed by its name";
  }
  Shrink(draft, &DraftSize::main, kMostElements);
  Shrink(draft, &DraftSize::tiny, kTinyElements);
  for (DraftSize& size : draft.sizes) size.tiny = std::max<int64_t>(1, std::min(size.tiny, size.main));
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
