#include "kernels/vocabulary.h"

#include <algorithm>
#include <utility>

#include "kernels/limits.h"

namespace pawl {
namespace {

Key Text(std::string name, bool required, std::string fallback, std::string meaning, std::string example) {
  return {.name = std::move(name),
          .type = KeyType::kText,
          .required = required,
          .fallback = std::move(fallback),
          .meaning = std::move(meaning),
          .example = std::move(example)};
}

Key Texts(std::string name, bool required, std::string fallback, std::string meaning, std::string example) {
  Key key = Text(std::move(name), required, std::move(fallback), std::move(meaning), std::move(example));
  key.type = KeyType::kTexts;
  return key;
}

Key Word(std::string name, bool required, std::vector<std::string> words, std::string meaning, std::string example) {
  Key key = Text(std::move(name), required, "", std::move(meaning), std::move(example));
  key.type = KeyType::kWord;
  key.words = std::move(words);
  return key;
}

Key Flag(std::string name, std::string fallback, std::string meaning, std::string example) {
  Key key = Text(std::move(name), false, std::move(fallback), std::move(meaning), std::move(example));
  key.type = KeyType::kFlag;
  return key;
}

Key Number(std::string name, bool required, std::string fallback, std::string meaning, std::string example) {
  Key key = Text(std::move(name), required, std::move(fallback), std::move(meaning), std::move(example));
  key.type = KeyType::kNumber;
  return key;
}

Key Integers(KeyType type, std::string name, int64_t low, std::string meaning, std::string example) {
  Key key = Text(std::move(name), true, "", std::move(meaning), std::move(example));
  key.type = type;
  key.low = low;
  return key;
}

Key Formula(KeyType type, std::string name, Scope scope, bool required, std::string fallback, std::string meaning,
            std::string example) {
  Key key = Text(std::move(name), required, std::move(fallback), std::move(meaning), std::move(example));
  key.type = type;
  key.scope = scope;
  return key;
}

Key Table(KeyType type, std::string name, bool required, std::string fallback, KeyTable table) {
  Key key = Text(std::move(name), required, std::move(fallback), table.meaning, "");
  key.type = type;
  key.table = std::make_shared<const KeyTable>(std::move(table));
  return key;
}

constexpr int64_t kAnyInt32 = std::numeric_limits<int32_t>::min();

KeyTable Goal() {
  return {.header = "[goal]",
          .meaning = "What the campaign optimises, and when it stops.",
          .keys = {Text("size", true, "", "The `[[size]]` whose time is optimised. `pawl run --size` overrides it.",
                        "size = \"main\""),
                   Number("speedup", false, "1",
                          "The campaign stops when the best variant is this many times as fast as the baseline; more "
                          "than 0. `--goal` overrides it.",
                          "speedup = 1.5")}};
}

KeyTable Size() {
  return {.header = "[[size]]",
          .meaning =
              "One problem size. The sizes form a ladder, smallest first: a variant is validated at each of "
              "them in this order, and timed at the goal's. Every size has the same dimensions.",
          .keys = {Text("name", true, "", "The name of the size, unique in the bundle.", "name = \"main\"")},
          .others = Integers(KeyType::kInteger, "*a dimension*", 1,
                             "The value of a dimension, at least one in every size. Expressions use it by its name, "
                             "launches may have it as an argument (`int`), and the source sees it as the macro "
                             "`SIZE_` and its name. A source that mentions this macro is compiled once for each size.",
                             "ROWS = 1024")};
}

Key Align() {
  Key key = Text("align", false, "256, as `cudaMalloc` gives",
                 "Bytes that the tensor's address is a multiple of: a power of two, at least the size of an element. "
                 "Buffers are placed at random multiples of it.",
                 "align = 16");
  key.type = KeyType::kInteger;
  key.low = 1;
  key.high = kMaxAlign;
  return key;
}

std::vector<Key> ToleranceKeys(bool inner) {
  return {Number("absolute", true, "", "The largest error of any element; more than 0.",
                 inner ? "tolerance = { absolute = 0.01, relative = 0.0006 }" : "absolute = 0.01"),
          Number("relative", true, "",
                 "The norm of the differences over the norm of the reference; more than 0 and less than 1.",
                 inner ? "tolerance = { absolute = 0.01, relative = 0.0006 }" : "relative = 0.0006")};
}

KeyTable OutputTolerance() {
  return {.header = "tensor tolerance",
          .meaning = "How far this output may be from the reference's, instead of `[tolerance]`; only for outputs.",
          .keys = ToleranceKeys(true)};
}

KeyTable Tensor() {
  return {
      .header = "[[tensor]]",
      .meaning = "An array in GPU memory that launches get as a pointer. At least one is an output.",
      .keys = {Text("name", true, "", "Its name in `arguments`.", "name = \"q\""),
               Word("type", true, {"f16", "bf16", "f32", "f64", "i32"}, "The type of an element.", "type = \"f16\""),
               Word("role", false, {"input", "output", "scratch"},
                    "An `input` is filled before each call and may not be changed by it. An `output` is compared with "
                    "the reference. `scratch` is the kernel's own; the reference does not get it. Outputs and scratch "
                    "hold random bytes before each call.",
                    "role = \"output\""),
               Word("fill", false, {"normal", "uniform"},
                    "The distribution of an input's values when it is timed; only for inputs. `normal` has mean 0 and "
                    "standard deviation 1 and no value beyond 3.5; `uniform` is from 0 to 1. An `i32` input is uniform "
                    "over its `range`, whatever its fill. Validation uses this fill and other distributions.",
                    "fill = \"uniform\""),
               Formula(KeyType::kExpressions, "range", kSizesOnly, false,
                       "floats: whatever keeps the reference finite and the start variant right",
                       "The lowest and the highest value that the contract allows in an input; only for inputs, and "
                       "required for an `i32` one. Validation uses all of it. The start variant must be right "
                       "everywhere in it.",
                       "range = [0, \"N - 1\"]"),
               Formula(KeyType::kExpressions, "shape", kSizesOnly, true, "",
                       "The extents, slowest first, each a whole number of at least 1. The shape of scratch may use "
                       "variables and GPU limits as well.",
                       "shape = [\"B\", \"H\", \"S\", \"D\"]"),
               Align(), Table(KeyType::kTable, "tolerance", false, "that of `[tolerance]`", OutputTolerance()),
               Flag("exact", "false",
                    "Every element must have the reference's value; only for outputs. An `i32` output is exact unless "
                    "it has a `tolerance`.",
                    "exact = true")}};
}

KeyTable Affects() {
  KeyTable table = {.header = "affects",
                    .meaning =
                        "What a larger value gives more (`\"+\"`) or less (`\"-\"`) of. The rules of the "
                        "decision tree ask for these resources.",
                    .keys = {}};
  for (const NamedResource& resource : Resources()) {
    table.keys.push_back(
        Word(resource.name, false, {"+", "-"}, resource.meaning, "affects = { " + resource.name + " = \"+\" }"));
  }
  return table;
}

KeyTable Variable() {
  return {
      .header = "[[variable]]",
      .meaning = "One tunable of the kernel. A campaign changes one variable at a time.",
      .keys = {Text("name", true, "",
                    "Its name in expressions, and the macro that the source sees. It may not begin with `SIZE_`.",
                    "name = \"TILE_M\""),
               Integers(KeyType::kIntegers, "values", kAnyInt32,
                        "The values that it may take, in order and without duplicates.", "values = [16, 32, 64]"),
               Integers(KeyType::kInteger, "start", kAnyInt32, "The value of the start variant, one of `values`.",
                        "start = 64"),
               Text("option", false, "a macro: `-DNAME=value`",
                    "A compile option instead of a macro; the value replaces `{}`.", "option = \"-maxrregcount={}\""),
               Table(KeyType::kTable, "affects", false, "nothing: only the model may choose it", Affects())}};
}

KeyTable Scalar() {
  return {.header = "[[scalar]]",
          .meaning = "A number that launches get by value.",
          .keys = {Text("name", true, "", "Its name in `arguments`.", "name = \"scale\""),
                   Word("type", true, {"f32", "f64", "i32"}, "The type of the parameter.", "type = \"f32\""),
                   Formula(KeyType::kExpression, "value", kSizesAndVariables, true, "",
                           "Its value; a whole number for `i32`. The reference may only use scalars whose values "
                           "depend on sizes alone.",
                           "value = \"1 / sqrt(D)\"")}};
}

KeyTable Constraint() {
  return {.header = "[[constraint]]",
          .meaning = "A condition on the variants. What it forbids is never tried.",
          .keys = {Formula(KeyType::kExpression, "that", kSizesAndVariables, true, "",
                           "Allows a variant where it is not 0. It must allow the start variant. A condition on sizes "
                           "must hold at every `[[size]]`, and may not use a dimension of `[hidden]`.",
                           "that = \"MMA == 0 || TILE_M >= 16 * WARPS\"")}};
}

KeyTable HiddenRange() {
  Key multiple = Integers(KeyType::kInteger, "multiple", 1, "Validation uses multiples of this only.",
                          "C = { range = [8, 720], multiple = 8 }");
  multiple.required = false;
  multiple.fallback = "1";
  return {.header = "*a dimension*",
          .meaning = "A range of which the kernel supports only multiples of a number.",
          .keys = {Integers(KeyType::kIntegers, "range", 1, "The lowest and the highest value.",
                            "C = { range = [8, 720], multiple = 8 }"),
                   std::move(multiple)}};
}

KeyTable Hidden() {
  KeyTable table = {.header = "[hidden]",
                    .meaning =
                        "Sizes beyond the ladder at which every variant is validated as well. Each trial draws "
                        "eight, and one that is about to be kept ten more: odd and even, multiples of 2, 4, 8 and 16, "
                        "powers of two, primes, 1, the largest, one less or more than a tile, and equal ones, as far "
                        "as the ranges hold them. The kernel must mask its tails. Dimensions that are not named keep "
                        "the values of the "
                        "smallest size.",
                    .keys = {},
                    .others = Integers(KeyType::kIntegers, "*a dimension*", 1,
                                       "The lowest and the highest value that validation may use, or a table with "
                                       "`range` and `multiple`.",
                                       "S = [1, 600]")};
  table.others.table = std::make_shared<const KeyTable>(HiddenRange());
  return table;
}

KeyTable Launch(std::string header, Scope scope, bool reference) {
  const std::string of = reference ? "the reference's source" : "the source";
  return {
      .header = std::move(header),
      .meaning = reference ? "One kernel launch of the reference, with the keys of `[[launch]]`. Its expressions "
                             "know sizes only, and its arguments are inputs, outputs, scalars and sizes."
                           : "One kernel launch. All launches of a call run in the order of the file, and the "
                             "time of a call is that of all of them.",
      .keys = {Text("entry", true, "", "The name of an `extern \"C\" __global__` function of " + of + ".",
                    "entry = \"attention_forward\""),
               Formula(KeyType::kExpression, "when", scope, false, "always",
                       "Skips the launch where it is 0. At least one launch must remain.", "when = \"KV_SPLITS > 1\""),
               Formula(KeyType::kExpressions, "grid", scope, true, "",
                       "Blocks in x, y and z, each a whole number of at least 1; missing ones are 1.",
                       "grid = [\"ceil_div(S, TILE_M)\", \"B*H\"]"),
               Formula(KeyType::kExpressions, "block", scope, true, "",
                       "Threads of a block in x, y and z; missing ones are 1.", "block = [\"WARPS * 32\"]"),
               Formula(KeyType::kExpression, "shared", scope, false, "0", "Dynamic shared memory of a block, in bytes.",
                       "shared = \"4 * TILE_M * D\""),
               Texts("arguments", true, "",
                     "The parameters of the function in order: tensors (pointers), scalars, and dimensions "
                     "(`int`). Variables are macros and no arguments. Every output must be an argument of a "
                     "launch.",
                     "arguments = [\"q\", \"out\", \"S\", \"scale\"]")}};
}

KeyTable Work() {
  return {.header = "[work]",
          .meaning =
              "What a call must do at least. It places the kernel on the roofline, and a time shorter than the "
              "GPU needs for this work is rejected.",
          .keys = {Formula(KeyType::kExpression, "flops", kSizesOnly, false, "0: no floor by arithmetic",
                           "Floating-point operations of a call.", "flops = \"4*B*H*S*S*D\""),
                   Formula(KeyType::kExpression, "bytes", kSizesOnly, false, "0: no floor by bytes",
                           "Bytes that a call must read and write.", "bytes = \"2*4*B*H*S*D\""),
                   Flag("tensor_cores", "false", "The operations are matrix products that tensor cores can do.",
                        "tensor_cores = true")}};
}

KeyTable Reference() {
  return {.header = "[reference]",
          .meaning =
              "The kernel that computes the expected outputs, in another process than the candidate. Write it "
              "to be obviously right; it may be slow.",
          .keys = {Text("source", true, "", "Its `.cu` file, a path inside the bundle's folder.",
                        "source = \"reference.cu\""),
                   Table(KeyType::kTables, "launch", true, "", Launch("[[reference.launch]]", kSizesOnly, true))}};
}

KeyTable Tolerance() {
  return {.header = "[tolerance]",
          .meaning = "How far an output of floats may be from the reference's. Both limits must hold.",
          .keys = ToleranceKeys(false)};
}

KeyTable Baseline() {
  return {.header = "[baseline]",
          .meaning = "What the kernel must beat. Without it, speedups are over the start variant.",
          .keys = {Texts("command", true, "",
                         "Program and arguments, run in the sandbox. For each line of JSON that names a size it "
                         "prints a line of JSON with the times. Files of the bundle's folder that it names are sent "
                         "to the worker.",
                         "command = [\"python3\", \"baseline.py\"]")}};
}

KeyTable Top() {
  return {
      .header = "",
      .meaning = "The keys before the first table.",
      .keys = {
          Text("name", true, "", "The name of the bundle: a letter, then letters, digits, `_` and `-`.",
               "name = \"attention\""),
          Text("source", true, "", "The `.cu` file with the device code, a path inside the bundle's folder.",
               "source = \"attention.cu\""),
          Text("summary", false, "none", "One line that says what the kernel computes.",
               "summary = \"Scaled dot-product attention, forward, fp16\""),
          Word("compiler", false, {"nvrtc", "nvcc"},
               "The compiler of the source. NVRTC is faster; `nvcc` (with `-cubin`) is for code that NVRTC can't "
               "compile.",
               "compiler = \"nvcc\""),
          Texts("options", false, "none", "Compile options of every variant, each beginning with `-`.",
                "options = [\"--use_fast_math\"]"),
          Word("timing", false, {"warm", "cold"},
               "Which time decides: calls that follow each other, or single calls after the L2 was flushed. Both are "
               "stored.",
               "timing = \"cold\""),
          Flag("deterministic", "true",
               "The same inputs give the same bits. Set it to false for kernels that use floating-point atomics.",
               "deterministic = false"),
          Table(KeyType::kTable, "goal", true, "", Goal()),
          Table(KeyType::kTables, "size", true, "", Size()),
          Table(KeyType::kTables, "tensor", true, "", Tensor()),
          Table(KeyType::kTables, "scalar", false, "none", Scalar()),
          Table(KeyType::kTables, "variable", true, "", Variable()),
          Table(KeyType::kTables, "constraint", false, "every variant is allowed", Constraint()),
          Table(KeyType::kTable, "hidden", false, "validation at the ladder only", Hidden()),
          Table(KeyType::kTables, "launch", true, "", Launch("[[launch]]", kEverything, false)),
          Table(KeyType::kTable, "work", false, "no roofline and no floor", Work()),
          Table(KeyType::kTable, "reference", true, "", Reference()),
          Table(KeyType::kTable, "tolerance", true, "", Tolerance()),
          Table(KeyType::kTable, "baseline", false, "the start variant", Baseline()),
      }};
}

}  // namespace

const Key* KeyTable::Find(const std::string& name) const {
  const auto it = std::find_if(keys.begin(), keys.end(), [&](const Key& key) { return key.name == name; });
  if (it != keys.end()) return &*it;
  return others.name.empty() ? nullptr : &others;
}

const KeyTable& KernelToml() {
  static const auto& table = *new KeyTable(Top());
  return table;
}

const std::vector<NamedResource>& Resources() {
  static const auto& resources = *new std::vector<NamedResource>{
      {"parallelism", "Blocks or warps that can run at the same time."},
      {"registers", "Registers of a thread."},
      {"shared_memory", "Shared memory of a block."},
      {"vector_width", "Bytes that a load or store of a thread moves at once."},
      {"coalescing", "The share of each memory sector that a warp's access uses."},
      {"bank_spread", "How evenly shared-memory accesses spread over the banks."},
      {"reuse", "How often a value is used after it was loaded."},
      {"pipelining", "Loads that overlap with arithmetic, such as stages of `cp.async`."},
      {"tensor_cores", "The part of the arithmetic that tensor cores do."},
      {"unrolling", "Independent instructions of a thread."},
      {"launches", "Launches of a call."}};
  return resources;
}

}  // namespace pawl
