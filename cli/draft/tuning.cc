#include "cli/draft/tuning.h"

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

namespace pawl {
namespace {

// kBlockSize, BLOCK_SIZE and blockSize are "block", "size"; BM stays "bm".
std::vector<std::string> WordsOf(const std::string& name) {
  std::string spaced;
  for (size_t i = 0; i < name.size(); ++i) {
    const bool hump = i > 0 && absl::ascii_isupper(static_cast<unsigned char>(name[i])) &&
                      absl::ascii_islower(static_cast<unsigned char>(name[i - 1]));
    if (hump) spaced += '_';
    spaced += absl::ascii_tolower(static_cast<unsigned char>(name[i]));
  }
  std::vector<std::string> words = absl::StrSplit(spaced, '_', absl::SkipEmpty());
  if (words.size() > 1 && words[0] == "k") words.erase(words.begin());
  return words;
}

bool HasAny(const std::vector<std::string>& words, const std::set<std::string>& wanted) {
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) { return wanted.contains(word); });
}

bool IsPowerOfTwo(int64_t value) { return value > 0 && (value & (value - 1)) == 0; }

std::vector<int64_t> Powers(int64_t low, int64_t high) {
  std::vector<int64_t> values;
  for (int64_t value = low; value <= high; value *= 2) values.push_back(value);
  return values;
}

}  // namespace

Tunable TunableOf(const std::string& name, int64_t value, bool is_bool) {
  const std::vector<std::string> words = WordsOf(name);
  const std::string whole = absl::AsciiStrToLower(name);
  // Facts of the hardware and of the problem.
  if (HasAny(words, {"warpsize", "max",  "min",   "eps",    "epsilon",  "log",        "mask",
                     "version",  "bits", "bytes", "arch",   "iters",    "iterations", "seed",
                     "quant",    "qk",   "head",  "hidden", "channels", "classes",    "nan"}) ||
      // HEAD_DIM is the problem's, TILE_DIM and BLOCK_DIM_X are not.
      (HasAny(words, {"dim", "dims"}) && !HasAny(words, {"tile", "block", "thread", "threads"})) ||
      (HasAny(words, {"warp"}) && HasAny(words, {"size", "sz", "threads"}))) {
    return Tunable::kNone;
  }
  const bool flag = HasAny(words, {"use", "enable", "vectorize", "vectorized", "streaming", "async", "swizzle"});
  if (is_bool || (flag && (value == 0 || value == 1))) return flag ? Tunable::kFlag : Tunable::kNone;
  if (value < 0 || value > 65536) return Tunable::kNone;
  if (HasAny(words, {"unroll", "unrolling", "ilp", "unrolled"})) return Tunable::kUnroll;
  if (HasAny(words, {"stages", "stage", "pipeline", "buffers", "prefetch"})) return Tunable::kStages;
  if (HasAny(words, {"pad", "padding", "skew"})) return Tunable::kPad;
  if (HasAny(words, {"vec", "vector", "pack", "vecsize", "vw"})) return Tunable::kVector;
  if (HasAny(words,
             {"items", "ipt", "elements", "elems", "coarsen", "coarsening", "ept", "factor", "vpt", "rows", "cols"}) &&
      (HasAny(words, {"per", "thread", "block", "warp", "coarsen", "coarsening", "factor", "ipt", "ept", "vpt"}))) {
    return Tunable::kItems;
  }
  if (HasAny(words, {"warps", "nwarps", "numwarps"}) || (HasAny(words, {"warp"}) && HasAny(words, {"count"})))
    return Tunable::kWarps;
  if (HasAny(words, {"tile",   "tiles",  "bm",     "bn",       "bk",      "tm",     "tn",    "tk",
                     "wm",     "wn",     "wk",     "tilesize", "tiledim", "mtile",  "ntile", "ktile",
                     "blockm", "blockn", "blockk", "chunk",    "chunks",  "splits", "split"})) {
    return Tunable::kTile;
  }
  if (HasAny(words, {"block", "blocksize", "threads", "threadblock", "bdimx", "bdimy", "blockx", "blocky", "nthreads",
                     "numthreads", "tpb", "blockdim", "blk", "bdim", "bs", "nt"})) {
    return value >= 2 ? Tunable::kBlock : Tunable::kNone;
  }
  return Tunable::kNone;
}

std::vector<int64_t> ValuesToTry(Tunable tunable, int64_t start) {
  std::vector<int64_t> values;
  switch (tunable) {
    case Tunable::kBlock:
      // Of one axis of a block of two the numbers are small.
      values = start >= 64 ? Powers(64, 1024) : Powers(std::max<int64_t>(2, start / 4), std::max<int64_t>(32, start));
      break;
    case Tunable::kWarps:
      values = Powers(1, std::max<int64_t>(16, start));
      break;
    case Tunable::kTile:
      values = IsPowerOfTwo(start) ? Powers(std::max<int64_t>(1, start / 4), start * 2)
                                   : std::vector<int64_t>{start / 2, start, start * 2};
      break;
    case Tunable::kUnroll:
    case Tunable::kItems:
      values = Powers(1, std::max<int64_t>(8, start));
      break;
    case Tunable::kVector:
      values = Powers(1, std::max<int64_t>(4, start));
      break;
    case Tunable::kStages:
      values = {1, 2, 3, 4};
      break;
    case Tunable::kPad:
      values = {0, 1, 2, 4, 8};
      break;
    case Tunable::kFlag:
      values = {0, 1};
      break;
    case Tunable::kNone:
      break;
  }
  values.push_back(start);
  values.erase(std::remove_if(values.begin(), values.end(),
                              [&](int64_t v) {
                                return v < 0 ||
                                       (v == 0 && start != 0 && tunable != Tunable::kPad && tunable != Tunable::kFlag);
                              }),
               values.end());
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

std::vector<std::pair<std::string, std::string>> Effects(Tunable tunable) {
  switch (tunable) {
    case Tunable::kWarps:
      return {{"parallelism", "+"}};
    case Tunable::kTile:
      return {{"parallelism", "-"}, {"reuse", "+"}, {"shared_memory", "+"}};
    case Tunable::kUnroll:
      return {{"unrolling", "+"}, {"registers", "+"}};
    case Tunable::kItems:
      return {{"parallelism", "-"}, {"unrolling", "+"}, {"registers", "+"}};
    case Tunable::kVector:
      return {{"vector_width", "+"}, {"registers", "+"}};
    case Tunable::kStages:
      return {{"pipelining", "+"}, {"shared_memory", "+"}};
    case Tunable::kPad:
      return {{"bank_spread", "+"}, {"shared_memory", "+"}};
    default:
      return {};
  }
}

bool IsLocalTo(Tunable tunable) {
  return tunable == Tunable::kUnroll || tunable == Tunable::kStages || tunable == Tunable::kPad ||
         tunable == Tunable::kFlag;
}

}  // namespace pawl
