#include "kernels/vocabulary.h"

#include <algorithm>
#include <utility>

#include "kernels/data_type.h"
#include "kernels/limits.h"

namespace pawl {
namespace {

TomlKey Text(std::string name, bool required, std::string fallback, std::string meaning, std::string example) {
  return {.name = std::move(name),
          .type = KeyType::kText,
          .required = required,
          .fallback = std::move(fallback),
          .meaning = std::move(meaning),
          .example = std::move(example)};
}

TomlKey Texts(std::string name, bool required, std::string fallback, std::string meaning, std::string example) {
  TomlKey key = Text(std::move(name), required, std::move(fallback), std::move(meaning), std::move(example));
  key.type = KeyType::kTexts;
  return key;
}

TomlKey Word(std::string name, bool required, std::vector<std::string> words, std::string meaning,
             std::string example) {
  TomlKey key = Text(std::move(name), required, "", std::move(meaning), std::move(example));
  key.type = KeyType::kWord;
  key.words = std::move(words);
  return key;
}

TomlKey Flag(std::string name, std::string fallback, std::string meaning, std::string example) {
  TomlKey key = Text(std::move(name), false, std::move(fallback), std::move(meaning), std::move(example));
  key.type = KeyType::kFlag;
  return key;
}

TomlKey Number(std::string name, bool required, std::string fallback, std::string meaning, std::string example) {
  TomlKey key = Text(std::move(name), required, std::move(fallback), std::move(meaning), std::move(example));
  key.type = KeyType::kNumber;
  return key;
}

TomlKey Integers(KeyType type, std::string name, int64_t low, std::string meaning, std::string example) {
  TomlKey key = Text(std::move(name), true, "", std::move(meaning), std::move(example));
  key.type = type;
  key.low = low;
  return key;
}

TomlKey Formula(KeyType type, std::string name, Scope scope, bool required, std::string fallback, std::string meaning,
                std::string example) {
  TomlKey key = Text(std::move(name), required, std::move(fallback), std::move(meaning), std::move(example));
  key.type = type;
  key.scope = scope;
  return key;
}

TomlKey Table(KeyType type, std::string name, bool required, std::string fallback, KeyTable table) {
  TomlKey key = Text(std::move(name), required, std::move(fallback), table.meaning, "");
  key.type = type;
  key.table = std::make_shared<const KeyTable>(std::move(table));
  return key;
}

KeyTable GoalSizes() {
  return {.header = "goal sizes",
          .meaning =
              "The weights of several sizes. Each is more than 0, and their sum is 1. `pawl run --sizes` overrides "
              "them.",
          .keys = {},
          .others = Number("*a size*", false, "not optimised",
                           "The weight of the speedup at this `[[size]]` in the geometric mean that is optimised.",
                           "sizes = { decode = 0.6, prefill = 0.4 }")};
}

KeyTable Goal() {
  TomlKey portfolio =
      Integers(KeyType::kInteger, "portfolio", 1,
               "With `sizes` only: the campaign ends with at most so many variants, and a rule that picks "
               "one of them by size. `--portfolio` overrides it.",
               "portfolio = 3");
  portfolio.required = false;
  portfolio.high = kMaxPortfolio;
  portfolio.fallback = "1";
  return {.header = "[goal]",
          .meaning = "What the campaign optimises, and when it stops. It has `size` or `sizes`.",
          .keys = {Text("size", false, "the one of `sizes` with the largest weight",
                        "The `[[size]]` whose time is optimised. `pawl run --size` overrides it.", "size = \"main\""),
                   Table(KeyType::kTable, "sizes", false, "`size` alone", GoalSizes()),
                   Number("worst", false, "0",
                          "With `sizes` only: no size may fall below this share of the best speed that was kept there; "
                          "from 0, which means no limit, to 1. `--worst` overrides it.",
                          "worst = 0.98"),
                   portfolio,
                   Number("speedup", false, "1",
                          "The campaign stops when the best variant is this many times as fast as the baseline; more "
                          "than 0. To tune for a time, a number that nothing reaches, such as 1000, and a budget. "
                          "`--goal` overrides it.",
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

TomlKey Align() {
  TomlKey key =
      Text("align", false, "256, as `cudaMalloc` gives",
           "Bytes that the tensor's address is a multiple of: a power of two, at least the size of an element. "
           "Buffers are placed at random multiples of it.",
           "align = 16");
  key.type = KeyType::kInteger;
  key.low = 1;
  key.high = kMaxAlign;
  return key;
}

std::vector<TomlKey> ToleranceKeys(bool inner) {
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

KeyTable FillTable() {
  const auto ends = [](std::string name, std::string meaning, std::string example) {
    return Formula(KeyType::kExpressions, std::move(name), kSizesOnly, false, "another fill", std::move(meaning),
                   std::move(example));
  };
  return {
      .header = "fill",
      .meaning =
          "A fill with what it needs. It has exactly one of these keys; or `file` with one of `integers`, `sorted`, "
          "`csr_offsets` and `permutation`, which state what the file holds. The data are checked for that when the "
          "bundle is read.",
      .keys = {
          ends("integers", "Whole numbers from the lowest to the highest, each as likely.",
               "fill = { integers = [0, \"V - 1\"] }"),
          ends("uniform", "Numbers from the lowest to the highest, each as likely.", "fill = { uniform = [-1, 1] }"),
          ends("sorted", "Rising numbers from the lowest to the highest.", "fill = { sorted = [0, \"N - 1\"] }"),
          Formula(KeyType::kExpression, "constant", kSizesOnly, false, "another fill", "This number everywhere.",
                  "fill = { constant = 0.5 }"),
          Formula(KeyType::kExpression, "csr_offsets", kSizesOnly, false, "another fill",
                  "Row offsets of a sparse matrix: rising from 0 to this number of non-zeros. A matrix of N "
                  "rows has N + 1 of them.",
                  "fill = { csr_offsets = \"NNZ\" }"),
          Text("file", false, "another fill",
               "The data of this file in the bundle's folder: `.npy`, `.safetensors` (the tensor of this name, "
               "or the only one), or raw bytes. It has the tensor's type and shape; where it has more rows, the "
               "first are taken. Raw bytes tell neither: they are whole rows, at least as many as the largest size "
               "has, and a row has the same shape at every size.",
               "fill = { file = \"offsets.npy\", csr_offsets = \"NNZ\" }"),
          Flag("permutation", "false",
               "With `file` only: the file has each of 0 to elements - 1 once. Without a file, write "
               "`fill = \"permutation\"`.",
               "fill = { file = \"order.npy\", permutation = true }")}};
}

TomlKey FillKey() {
  TomlKey key =
      Word("fill", false, {"normal", "uniform", "zeros", "ones", "iota", "permutation", "bytes"},
           "What an `input` or `inout` holds when it is timed. `normal` has mean 0 and standard deviation 1 and no "
           "value beyond 3.5; `uniform` is from 0 to 1; `iota` is 0, 1, 2, ...; `permutation` has each of 0 to "
           "elements - 1 once; `bytes` are random bits. Or a table: `{ integers = [0, \"V - 1\"] }` and others, "
           "below. Integers are uniform over their range. With `problem`, an input without `fill` and `range` "
           "comes from `problem.py`, which may give others as well. Validation uses this fill and, for `normal` and "
           "`uniform`, other "
           "distributions.",
           "fill = \"uniform\"");
  key.table = std::make_shared<const KeyTable>(FillTable());
  return key;
}

KeyTable Tensor() {
  return {
      .header = "[[tensor]]",
      .meaning = "An array in GPU memory that launches get as a pointer. At least one is an output or an inout.",
      .keys = {
          Text("name", true, "", "Its name in `arguments`.", "name = \"q\""),
          Word("type", true, DataTypeNames(),
               "The type of an element. `bool` is a byte, 0 or 1. `i4` and `u4` are packed two a byte, the first in "
               "the low half, and their last extent is even.",
               "type = \"f16\""),
          Word("role", false, {"input", "output", "scratch", "inout"},
               "An `input` is filled before each call and may not be changed by it. An `output` is compared with "
               "the reference. `scratch` is the kernel's own; the reference does not get it. Outputs and scratch "
               "hold random bytes before each call. An `inout` is filled before each call, outside the timed "
               "region, and compared after it.",
               "role = \"output\""),
          FillKey(),
          Formula(KeyType::kExpressions, "range", kSizesOnly, false,
                  "floats: whatever keeps the reference finite and the start variant right",
                  "The lowest and the highest value that the contract allows in an input. An integer input must "
                  "state it, here or by its `fill`, unless the fill leaves no choice. Validation uses all of it. "
                  "The start variant must be right everywhere in it.",
                  "range = [0, \"N - 1\"]"),
          Formula(KeyType::kExpressions, "shape", kSizesOnly, true, "",
                  "The extents, slowest first, each a whole number of at least 1. The shape of scratch may use "
                  "variables and GPU limits as well.",
                  "shape = [\"B\", \"H\", \"S\", \"D\"]"),
          Align(), Table(KeyType::kTable, "tolerance", false, "that of `[tolerance]`", OutputTolerance()),
          Flag("exact", "false",
               "Every element must have the reference's value; only for outputs. An output of integers or bools is "
               "exact unless it has a `tolerance`.",
               "exact = true"),
          Flag("static", "false",
               "It has the same content in every call, such as the weights of a layer; only for inputs, and for "
               "scratch that `[setup]` writes.",
               "static = true")}};
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

TomlKey ValuesKey() {
  TomlKey key =
      Text("values", false, "`[false, true]` where `start` is one of them",
           "The values that it may take, in order and without duplicates: whole numbers; words, which the macro "
           "stands for (`[\"float\", \"half\"]`); or `[false, true]`, for which the macro is 0 or 1. An expression "
           "compares a word in quotes, `ACC == \"half\"`.",
           "values = [16, 32, 64]");
  key.type = KeyType::kValues;
  return key;
}

TomlKey StartKey() {
  TomlKey key = Text("start", true, "", "The value of the start variant, one of `values`.", "start = 64");
  key.type = KeyType::kValue;
  return key;
}

TomlKey ReplacesKey() {
  TomlKey key =
      Text("replaces", false, "a macro: `-DNAME=value`",
           "A place in the source that holds the value, instead of a macro: the text around it with `{}` where "
           "the value is. With `start` for `{}` it must stand exactly once in the source and `files`. It may "
           "have several lines (`\\n`). The files stay as they are; the value is written in for each build.",
           "replaces = \"constexpr int BLOCK = {};\"");
  key.lines = true;
  return key;
}

KeyTable Variable() {
  return {
      .header = "[[variable]]",
      .meaning = "One tunable of the kernel. A campaign changes one variable at a time.",
      .keys = {Text("name", true, "",
                    "Its name in expressions, and the macro that the source sees. It may not begin with `SIZE_`.",
                    "name = \"TILE_M\""),
               ValuesKey(), StartKey(),
               Text("option", false, "a macro: `-DNAME=value`",
                    "A compile option instead of a macro; the value replaces `{}`. Without `{}` the option is on or "
                    "off: `values` are `false` and `true`.",
                    "option = \"-maxrregcount={}\""),
               ReplacesKey(),
               Table(KeyType::kTable, "affects", false, "nothing: only the model may choose it", Affects())}};
}

// All that a parameter can be: the packed types have no size of their own.
std::vector<std::string> ScalarTypes() {
  std::vector<std::string> names = {"f32", "f64", "i32"};
  for (size_t i = 0; i < DataTypeNames().size(); ++i) {
    const std::string& name = DataTypeNames()[i];
    if (ElementBits(static_cast<v1::DataType>(i + 1)) == 4 || std::count(names.begin(), names.end(), name) > 0)
      continue;
    names.push_back(name);
  }
  return names;
}

KeyTable Scalar() {
  return {.header = "[[scalar]]",
          .meaning = "A number that launches get by value.",
          .keys = {Text("name", true, "", "Its name in `arguments`.", "name = \"scale\""),
                   Word("type", true, ScalarTypes(), "The type of the parameter.", "type = \"f32\""),
                   Formula(KeyType::kExpression, "value", kSizesAndVariables, true, "",
                           "Its value; a whole number for integers. The reference may only use scalars whose values "
                           "depend on sizes alone.",
                           "value = \"1 / sqrt(D)\"")}};
}

KeyTable Struct() {
  return {
      .header = "[[struct]]",
      .meaning =
          "A parameter made of others: a struct that the kernel takes by value, or an array of pointers. Its fields "
          "lie as in C.",
      .keys = {Text("name", true, "", "Its name in `arguments`.", "name = \"params\""),
               Texts("fields", true, "", "Tensors (pointers), scalars and dimensions (`int`), in order.",
                     "fields = [\"q\", \"k\", \"scale\"]"),
               Flag("in_memory", "false", "The kernel gets a pointer to it in GPU memory, as for `float** rows`.",
                    "in_memory = true")}};
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
  TomlKey multiple = Integers(KeyType::kInteger, "multiple", 1, "Validation uses multiples of this only.",
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

enum class LaunchOf { kKernel, kReference, kSetup };

std::string MeaningOf(LaunchOf of) {
  switch (of) {
    case LaunchOf::kReference:
      return "One kernel launch of the reference, with the keys of `[[launch]]`. Its expressions know sizes only, and "
             "its arguments are inputs, outputs, scalars, structs and sizes.";
    case LaunchOf::kSetup:
      return "One kernel launch of the setup, with the keys of `[[launch]]`. Its expressions know sizes only, and its "
             "arguments are static tensors, scalars, structs and sizes.";
    case LaunchOf::kKernel:
      break;
  }
  return "One kernel launch. All launches of a call run in the order of the file, and the time of a call is that of "
         "all "
         "of them.";
}

KeyTable Launch(std::string header, Scope scope, LaunchOf of) {
  const std::string source = of == LaunchOf::kReference ? "the reference's source"
                             : of == LaunchOf::kSetup   ? "the setup's source"
                                                        : "the source";
  return {.header = std::move(header),
          .meaning = MeaningOf(of),
          .keys = {
              Text("entry", true, "",
                   "A `__global__` function of " + source +
                       ": an `extern \"C\"` name, or a C++ name with namespaces and template arguments, in which "
                       "variables and `SIZE_` macros stand for their values.",
                   "entry = \"vllm::norm<__nv_bfloat16, WIDTH>\""),
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
                    "The parameters of the function in order: tensors (pointers), scalars, structs, dimensions "
                    "(`int`), and the launch's `index` (`int`). Variables are macros and no arguments. Every output "
                    "must be an argument of a launch. A null pointer is a scalar of type `u64` with the value 0.",
                    "arguments = [\"q\", \"out\", \"S\", \"scale\"]"),
              Formula(KeyType::kExpression, "repeat", scope, false, "1",
                      "Number of launches in a row, with the same geometry; 0: none.", "repeat = \"NODES\""),
              Text("index", false, "none", "The name by which `arguments` gets the number of the launch, from 0.",
                   "index = \"pass\""),
              Texts("swap", false, "none",
                    "Two tensors of the same type and shape, neither an input, whose names are exchanged after each of "
                    "these launches. Afterwards each name means the buffer that it was exchanged for.",
                    "swap = [\"ping\", \"pong\"]"),
              Text("loop", false, "it is repeated alone",
                   "The name of a loop around several launches: those that follow each other with the same name run in "
                   "turn, `repeat` times. `repeat`, `index` and `swap` stand in the first of them and are those of "
                   "the loop: every launch of it may have the index as an argument, and the tensors are exchanged "
                   "after the last launch of each round.",
                   "loop = \"step\""),
              Flag("cooperative", "false",
                   "A cooperative launch, as `grid.sync()` needs it: all blocks must fit on the GPU at once.",
                   "cooperative = true"),
              Formula(KeyType::kExpressions, "cluster", scope, false, "no clusters",
                      "Blocks of a thread block cluster in x, y and z, which the grid is a multiple of.",
                      "cluster = [2]")}};
}

TomlKey LaunchTables(std::string header, Scope scope, LaunchOf of, bool required) {
  TomlKey key = Table(KeyType::kTables, "launch", required, "", Launch(std::move(header), scope, of));
  key.most = kMaxLaunches;
  return key;
}

KeyTable SymbolTable(std::string header, bool reference) {
  return {
      .header = std::move(header),
      .meaning = std::string("A `__constant__` or `__device__` variable of ") +
                 (reference ? "the reference's source" : "the source") +
                 " that the program's host code fills, as by `cudaMemcpyToSymbol`. It gets the content of an input "
                 "before each call, outside the timed region, and no call may change it.",
      .keys = {
          Text("name", true, "", "The variable, with its namespaces; it may be `static`.", "name = \"coefficients\""),
          Text("tensor", true, "",
               std::string("The input whose content it gets") + (reference ? "" : ", which has `static = true`") +
                   ". It has as many bytes as the variable at every size; no launch needs it as an argument.",
               "tensor = \"taps\"")}};
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
              "to be obviously right, with sums in double; it may be slow.",
          .keys = {Text("source", true, "", "Its `.cu` file, a path inside the bundle's folder.",
                        "source = \"reference.cu\""),
                   Texts("files", false, "none",
                         "Further files, which `#include \"...\"` of its source finds, named as those of the top are. "
                         "They belong to the contract. The implementation's `files` are not found from here: they "
                         "may be edited.",
                         "files = [\"reference/*.cuh\"]"),
                   Table(KeyType::kTables, "symbol", false, "none", SymbolTable("[[reference.symbol]]", true)),
                   LaunchTables("[[reference.launch]]", kSizesOnly, LaunchOf::kReference, true)}};
}

KeyTable Setup() {
  return {
      .header = "[setup]",
      .meaning =
          "Launches before the calls, outside the timed region, that prepare static tensors, such as the repacked "
          "weights of a layer. It is part of the contract: no edit changes it.",
      .keys = {Text("source", true, "", "Its `.cu` file, a path inside the bundle's folder.", "source = \"setup.cu\""),
               LaunchTables("[[setup.launch]]", kSizesOnly, LaunchOf::kSetup, true)}};
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
          Text("source", true, "",
               "The file with the device code, a path inside the bundle's folder: CUDA C++ (`.cu`), or what another "
               "compiler made, `.ptx` or `.cubin`.",
               "source = \"attention.cu\""),
          Texts(
              "files", false, "none",
              "Further files of the implementation, which `#include \"...\"` finds: paths inside the bundle's folder, "
              "in which `*` stands for part of a name and `**` for any folders.",
              "files = [\"include/**/*.cuh\"]"),
          Texts(
              "include", false, "none",
              "Header libraries by name. `cub`, `thrust`, `libcudacxx`, `cooperative_groups` and others come with the "
              "toolkit; the worker's administrator allows more (`pawl-worker --include NAME=FOLDER`).",
              "include = [\"cub\"]"),
          Text("problem", false, "`[reference]` and fills",
               "A Python file with the inputs, the reference and, optionally, the baseline, in place of `[reference]` "
               "and `[baseline]`.",
               "problem = \"problem.py\""),
          Texts("data", false, "none",
                "Files that `problem.py` finds beside it, to read or to import, named as `files` are: "
                "`np.load(Path(__file__).parent / \"degrees.npy\")`, `import graphs`. They belong to the contract, and "
                "count as data files.",
                "data = [\"*.npy\", \"graphs.py\"]"),
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
          Word("host_code", false, {"keep", "skip"},
               "`skip` leaves host functions, host variables, bindings for Python, and headers of PyTorch and of the "
               "standard library out of the build, so that a source that has them can be compiled as it is. Every line "
               "keeps its number. What carries `__global__`, `__device__` or `__constant__`, types, templates, "
               "constants "
               "and `constexpr` functions stay.",
               "host_code = \"skip\""),
          Flag("deterministic", "true",
               "The same inputs give the same bits. Set it to false for kernels that use floating-point atomics.",
               "deterministic = false"),
          Table(KeyType::kTable, "goal", true, "", Goal()),
          Table(KeyType::kTables, "size", true, "", Size()),
          Table(KeyType::kTables, "tensor", true, "", Tensor()),
          Table(KeyType::kTables, "scalar", false, "none", Scalar()),
          Table(KeyType::kTables, "struct", false, "none", Struct()),
          Table(KeyType::kTables, "variable", false, "only edits that are proposed are tried", Variable()),
          Table(KeyType::kTables, "constraint", false, "every variant is allowed", Constraint()),
          Table(KeyType::kTable, "hidden", false, "validation at the ladder only", Hidden()),
          LaunchTables("[[launch]]", kEverything, LaunchOf::kKernel, true),
          Table(KeyType::kTables, "symbol", false, "none", SymbolTable("[[symbol]]", false)),
          Table(KeyType::kTable, "setup", false, "nothing is prepared", Setup()),
          Table(KeyType::kTable, "work", false, "no roofline and no floor", Work()),
          Table(KeyType::kTable, "reference", false, "`problem` has the reference", Reference()),
          Table(KeyType::kTable, "tolerance", false, "every output is exact or has its own", Tolerance()),
          Table(KeyType::kTable, "baseline", false, "the start variant", Baseline()),
      }};
}

}  // namespace

const TomlKey* KeyTable::Find(const std::string& name) const {
  const auto it = std::find_if(keys.begin(), keys.end(), [&](const TomlKey& key) { return key.name == name; });
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
      {"launches", "Launches of a call."},
      {"atomics", "Atomic operations that meet at the same addresses."},
      {"instructions", "Instructions for the same work, such as those that compute addresses."}};
  return resources;
}

}  // namespace pawl
