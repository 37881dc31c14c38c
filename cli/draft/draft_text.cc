// KernelTomlText and ProblemText, declared in draft.h.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "cli/draft/draft.h"
#include "cli/draft/read/element_type.h"

namespace pawl {
namespace {

// A basic string of TOML.
std::string Quoted(const std::string& text) {
  return absl::StrCat(
      "\"", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}, {"\r", "\\r"}, {"\t", "\\t"}}),
      "\"");
}

std::string List(const std::vector<std::string>& texts) {
  return absl::StrCat(
      "[", absl::StrJoin(texts, ", ", [](std::string* out, const std::string& text) { *out += Quoted(text); }), "]");
}

void Todo(const std::string& text, std::string& out) {
  if (!text.empty()) absl::StrAppend(&out, "# TODO: ", text, "\n");
}
void Todos(const std::vector<std::string>& texts, std::string& out) {
  for (const std::string& text : texts) Todo(text, out);
}

void Sizes(const Draft& draft, std::string& out) {
  for (const bool main : {false, true}) {
    absl::StrAppend(&out, "\n[[size]]\nname = ", main ? "\"main\"" : "\"tiny\"", "\n");
    for (const DraftSize& size : draft.sizes) {
      absl::StrAppend(&out, size.name, " = ", main ? size.main : size.tiny);
      if (main && !size.todo.empty()) absl::StrAppend(&out, "  # TODO: ", size.todo);
      absl::StrAppend(&out, "\n");
    }
    // A size is needed to have a ladder.
    if (draft.sizes.empty()) absl::StrAppend(&out, "N = 1  # TODO: nothing in the source looks like a size\n");
  }
}

// Loose enough for a first run, and not looser than the type of the outputs justifies: `pawl check` refuses that.
struct Limits {
  const char *absolute, *relative;
};
std::optional<Limits> LimitsOf(const std::string& type) {
  static const auto& by_type = *new std::map<std::string, Limits>{
      {"f64", {"1e-6", "1e-5"}}, {"f32", {"0.001", "0.0001"}}, {"f16", {"0.02", "0.004"}},
      {"bf16", {"0.1", "0.02"}}, {"f8e4m3", {"0.5", "0.05"}},  {"f8e5m2", {"0.5", "0.05"}}};
  const auto found = by_type.find(type);
  return found == by_type.end() ? std::nullopt : std::optional(found->second);
}

bool IsResult(const DraftTensor& tensor) { return tensor.role == "output" || tensor.role == "inout"; }

// The finest type among the outputs; empty: none is of floats.
std::string FinestOutput(const Draft& draft) {
  std::string finest;
  for (const DraftTensor& tensor : draft.tensors) {
    if (!IsResult(tensor) || !LimitsOf(tensor.type)) continue;
    const bool finer =
        finest.empty() || BytesOfType(tensor.type) > BytesOfType(finest) || (tensor.type == "f16" && finest == "bf16");
    if (finer) finest = tensor.type;
  }
  return finest;
}

void Tensors(const Draft& draft, std::string& out) {
  const std::string finest = FinestOutput(draft);
  for (const DraftTensor& tensor : draft.tensors) {
    absl::StrAppend(&out, "\n");
    Todos(tensor.todos, out);
    absl::StrAppend(&out, "[[tensor]]\nname = ", Quoted(tensor.name), "\ntype = ", Quoted(tensor.type),
                    "\nshape = ", List(tensor.shape), "\n");
    if (tensor.role != "input") absl::StrAppend(&out, "role = ", Quoted(tensor.role), "\n");
    // Beside a finer output, whose limits are those of [tolerance].
    if (const std::optional<Limits> own = LimitsOf(tensor.type); own && IsResult(tensor) && tensor.type != finest) {
      absl::StrAppend(&out, "tolerance = { absolute = ", own->absolute, ", relative = ", own->relative,
                      " }  # TODO: what is right for its type?\n");
    }
    if (!tensor.symbol.empty()) absl::StrAppend(&out, "static = true\n");
    if (tensor.role != "input" && tensor.role != "inout") continue;
    if (tensor.range_high == "zeros" || tensor.range_high == "bytes") {
      absl::StrAppend(&out, "fill = ", Quoted(tensor.range_high), "\n");
    } else if (tensor.offsets) {
      absl::StrAppend(&out, "fill = { csr_offsets = ", Quoted(tensor.range_high), " }\n");
    } else if (tensor.type == "bool") {
      absl::StrAppend(&out, "fill = { integers = [0, 1] }\n");
    } else if (IsWholeType(tensor.type)) {
      absl::StrAppend(&out, "fill = { integers = [0, ", tensor.range_high.empty() ? "15" : Quoted(tensor.range_high),
                      "] }  # TODO: the values that it may hold\n");
    } else {
      absl::StrAppend(&out, "fill = \"normal\"\n");
    }
  }
}

void Variables(const Draft& draft, std::string& out) {
  for (const DraftVariable& variable : draft.variables) {
    absl::StrAppend(&out, "\n");
    Todos(variable.todos, out);
    absl::StrAppend(&out, "[[variable]]\nname = ", Quoted(variable.name), "\nvalues = [",
                    absl::StrJoin(variable.values, ", "), "]\nstart = ", variable.start, "\n");
    if (!variable.option.empty()) absl::StrAppend(&out, "option = ", Quoted(variable.option), "\n");
    if (!variable.replaces.empty()) absl::StrAppend(&out, "replaces = ", Quoted(variable.replaces), "\n");
    if (variable.affects.empty()) continue;
    std::vector<std::string> effects;
    for (const auto& [resource, direction] : variable.affects)
      effects.push_back(absl::StrCat(resource, " = ", Quoted(direction)));
    absl::StrAppend(&out, "affects = { ", absl::StrJoin(effects, ", "), " }\n");
  }
}

void Symbols(const Draft& draft, std::string& out) {
  for (const DraftTensor& tensor : draft.tensors) {
    if (tensor.symbol.empty()) continue;
    absl::StrAppend(&out, "\n[[symbol]]\nname = ", Quoted(tensor.symbol), "\ntensor = ", Quoted(tensor.name), "\n");
  }
}

void Launches(const Draft& draft, std::string& out) {
  for (const DraftLaunch& launch : draft.launches) {
    absl::StrAppend(&out, "\n");
    Todos(launch.todos, out);
    absl::StrAppend(&out, "[[launch]]\nentry = ", Quoted(launch.entry), "\n");
    if (!launch.when.empty()) absl::StrAppend(&out, "when = ", Quoted(launch.when), "\n");
    absl::StrAppend(&out, "grid = ", List(launch.grid), "\nblock = ", List(launch.block), "\n");
    if (!launch.shared.empty()) absl::StrAppend(&out, "shared = ", Quoted(launch.shared), "\n");
    absl::StrAppend(&out, "arguments = ", List(launch.arguments), "\n");
    if (!launch.loop.empty()) absl::StrAppend(&out, "loop = ", Quoted(launch.loop), "\n");
    if (!launch.repeat.empty()) absl::StrAppend(&out, "repeat = ", Quoted(launch.repeat), "\n");
    if (!launch.index.empty()) absl::StrAppend(&out, "index = ", Quoted(launch.index), "\n");
    if (!launch.swap.empty()) absl::StrAppend(&out, "swap = ", List(launch.swap), "\n");
    if (launch.cooperative) absl::StrAppend(&out, "cooperative = true\n");
    if (!launch.cluster.empty()) absl::StrAppend(&out, "cluster = ", List(launch.cluster), "\n");
  }
}

void Tolerance(const Draft& draft, std::string& out) {
  const std::string finest = FinestOutput(draft);
  if (finest.empty()) return;
  const bool all_f64 = std::all_of(draft.tensors.begin(), draft.tensors.end(), [](const DraftTensor& tensor) {
    return tensor.type == "f64" || !LimitsOf(tensor.type);
  });
  const Limits limits = all_f64 ? Limits{"1e-10", "1e-11"} : *LimitsOf(finest);
  absl::StrAppend(&out,
                  "\n# TODO: how far the outputs may be from the reference's; `pawl check` on a GPU says what the "
                  "start variant's error is\n",
                  "[tolerance]\nabsolute = ", limits.absolute, "\nrelative = ", limits.relative, "\n");
}

struct PythonFunction {
  std::string name;
  std::vector<std::string> parameters;
  std::set<std::string> optional;  // that have a default
};

// The functions at the left margin of a Python file.
std::vector<PythonFunction> FunctionsOf(const std::string& text) {
  std::vector<PythonFunction> functions;
  std::string joined;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (joined.empty() && !absl::StartsWith(line, "def ")) continue;
    absl::StrAppend(&joined, line, " ");
    const size_t open = joined.find('('), close = joined.find(')');
    if (open == std::string::npos || close == std::string::npos) continue;
    PythonFunction function;
    function.name = std::string(absl::StripAsciiWhitespace(joined.substr(4, open - 4)));
    for (absl::string_view parameter : absl::StrSplit(joined.substr(open + 1, close - open - 1), ',')) {
      const bool has_default = absl::StrContains(parameter, "=");
      parameter = absl::StripAsciiWhitespace(parameter.substr(0, parameter.find_first_of(":=")));
      if (parameter.empty() || parameter[0] == '*' || parameter[0] == '/') continue;
      function.parameters.emplace_back(parameter);
      if (has_default) function.optional.emplace(parameter);
    }
    functions.push_back(std::move(function));
    joined.clear();
  }
  return functions;
}

// Of a file of KernelBench's kind: forward() of the class Model, made with what get_init_inputs() gives.
std::optional<PythonFunction> ForwardOf(const std::string& text) {
  const size_t model = text.find("\nclass Model("), init = text.find("\ndef get_init_inputs(");
  const size_t forward = model == text.npos ? text.npos : text.find("\n    def forward(", model);
  if (forward == text.npos || init == text.npos) return std::nullopt;
  std::string plain = text.substr(forward + 5);
  const std::vector<PythonFunction> found = FunctionsOf(plain);
  if (found.empty() || found[0].name != "forward" || found[0].parameters.empty()) return std::nullopt;
  PythonFunction function = found[0];
  function.name = "Model(*get_init_inputs())";
  function.parameters.erase(function.parameters.begin());  // self
  return function;
}

std::vector<std::string> TensorsOf(const Draft& draft, std::initializer_list<const char*> roles) {
  std::vector<std::string> names;
  for (const DraftTensor& tensor : draft.tensors) {
    if (std::find(roles.begin(), roles.end(), tensor.role) != roles.end()) names.push_back(tensor.name);
  }
  return names;
}

std::string InputsFunction(const Draft& draft) {
  return absl::StrCat(
      "def inputs(sizes, seed):\n"
      "    \"\"\"Tensors by name, of the same data for the same seed. What is left out is made by its `fill` in "
      "kernel.toml.\n\n"
      "    sizes: ",
      absl::StrJoin(
          draft.sizes, ", ",
          [](std::string* out, const DraftSize& size) { absl::StrAppend(out, "sizes[\"", size.name, "\"]"); }),
      "\n    \"\"\"\n    return {}\n");
}

// What a tensor is called in Python: a C parameter may be named `in` or `lambda`.
std::string PythonName(const std::string& tensor) {
  static const std::set<std::string>& keywords = *new std::set<std::string>{
      "False", "None",   "True",     "and",    "as",      "assert", "async",  "await",  "class",
      "def",   "del",    "elif",     "except", "finally", "from",   "global", "import", "in",
      "is",    "lambda", "nonlocal", "not",    "or",      "pass",   "raise",  "with",   "yield"};
  return keywords.contains(tensor) ? tensor + "_" : tensor;
}

// The head of a function that takes these tensors by their names.
std::string FunctionHead(const std::string& name, const std::vector<std::string>& tensors) {
  std::string head = absl::StrCat("def ", name, "(");
  for (const std::string& tensor : tensors) {
    if (PythonName(tensor) == tensor) absl::StrAppend(&head, tensor, ", ");
  }
  return absl::StrCat(head, "**rest):\n");
}

// Lines that give the other tensors a name.
std::string RenamedTensors(const std::vector<std::string>& tensors) {
  std::string text;
  for (const std::string& tensor : tensors) {
    if (PythonName(tensor) != tensor) absl::StrAppend(&text, "    ", PythonName(tensor), " = rest[\"", tensor, "\"]\n");
  }
  return text;
}

// What stands for a parameter of the user's function in a call from reference(): a tensor, a scalar's number, or an
// extent of a tensor. Empty: nothing does.
std::string PythonArgument(const Draft& draft, const std::string& parameter) {
  for (const DraftTensor& tensor : draft.tensors) {
    if (tensor.name == parameter && (tensor.role == "input" || tensor.role == "inout")) return PythonName(parameter);
  }
  for (const DraftScalar& scalar : draft.scalars) {
    double number = 0;
    if (scalar.name == parameter && absl::SimpleAtod(scalar.value, &number)) return scalar.value;
  }
  std::string size = parameter;
  for (const DraftScalar& scalar : draft.scalars) {
    if (scalar.name == parameter) size = scalar.value;
  }
  for (const DraftTensor& tensor : draft.tensors) {
    if (tensor.role != "input" && tensor.role != "inout") continue;
    const auto extent = std::find(tensor.shape.begin(), tensor.shape.end(), size);
    if (extent != tensor.shape.end())
      return absl::StrCat(PythonName(tensor.name), ".shape[", extent - tensor.shape.begin(), "]");
  }
  return "";
}

// The arguments of the user's function. `unknown` gets the parameters for which None stands.
std::string PythonArguments(const Draft& draft, const PythonFunction& function, std::vector<std::string>& unknown) {
  std::vector<std::string> arguments;
  bool skipped = false;  // from here on by name
  for (const std::string& parameter : function.parameters) {
    std::string argument = PythonArgument(draft, parameter);
    if (argument.empty() && function.optional.contains(parameter)) {
      skipped = true;
      continue;
    }
    if (argument.empty()) {
      unknown.push_back(parameter);
      argument = "None";
    }
    arguments.push_back(skipped ? absl::StrCat(parameter, "=", argument) : argument);
  }
  return absl::StrJoin(arguments, ", ");
}

std::string Returned(const std::vector<std::string>& outputs, const std::string& from) {
  if (outputs.size() == 1) return absl::StrCat("    return {\"", outputs[0], "\": ", from, "}\n");
  std::string text = absl::StrCat("    results = ", from, "\n    return {");
  for (size_t i = 0; i < outputs.size(); ++i)
    absl::StrAppend(&text, i > 0 ? ", " : "", "\"", outputs[i], "\": results[", i, "]");
  return absl::StrCat(text, "}\n");
}

}  // namespace

std::string KernelTomlText(const Draft& draft) {
  std::string out = absl::StrCat("# Drafted by `pawl init` from ", draft.source,
                                 ". Every TODO is a guess with its reason: check it, then delete the comment.\n");
  Todos(draft.remarks, out);
  absl::StrAppend(&out, "name = ", Quoted(draft.name), "\nsource = ", Quoted(draft.source), "\n");
  if (!draft.files.empty()) absl::StrAppend(&out, "files = ", List(draft.files), "\n");
  if (!draft.include.empty()) absl::StrAppend(&out, "include = ", List(draft.include), "\n");
  absl::StrAppend(&out, "problem = \"problem.py\"\nsummary = ", Quoted(absl::StrCat(draft.name, " of ", draft.source)),
                  "  # TODO: what it computes, in a line\n");
  if (!draft.nvcc.empty()) absl::StrAppend(&out, "compiler = \"nvcc\"  # TODO: ", draft.nvcc, "\n");
  if (draft.skip_host_code) absl::StrAppend(&out, "host_code = \"skip\"\n");
  if (!draft.deterministic) {
    absl::StrAppend(&out, "deterministic = false  # TODO: it adds floating-point numbers atomically, in any order\n");
  }
  absl::StrAppend(&out, "\n[goal]\nsize = \"main\"\nspeedup = 1.5  # TODO: over the baseline of problem.py\n");
  Sizes(draft, out);
  Tensors(draft, out);
  for (const DraftScalar& scalar : draft.scalars) {
    absl::StrAppend(&out, "\n");
    Todo(scalar.todo, out);
    absl::StrAppend(&out, "[[scalar]]\nname = ", Quoted(scalar.name), "\ntype = ", Quoted(scalar.type),
                    "\nvalue = ", Quoted(scalar.value), "\n");
  }
  for (const DraftStruct& made : draft.structs) {
    absl::StrAppend(&out, "\n");
    Todo(made.todo, out);
    absl::StrAppend(&out, "[[struct]]\nname = ", Quoted(made.name), "\nfields = ", List(made.fields), "\n",
                    made.in_memory ? "in_memory = true\n" : "");
  }
  Variables(draft, out);
  if (!draft.constants.empty()) absl::StrAppend(&out, "\n# Constants that were not made variables:\n");
  for (const std::string& constant : draft.constants) absl::StrAppend(&out, "#   ", constant, "\n");
  for (const std::string& constraint : draft.constraints) {
    absl::StrAppend(&out, "\n[[constraint]]\nthat = ", Quoted(constraint), "\n");
  }
  if (!draft.hidden.empty()) {
    absl::StrAppend(&out,
                    "\n# TODO: further sizes at which every variant is validated: must the kernel be right at all of "
                    "them, and is it?\n[hidden]\n");
    for (const DraftRange& range : draft.hidden) {
      const std::string ends = absl::StrCat("[", range.low, ", ", range.high, "]");
      absl::StrAppend(
          &out, range.name, " = ",
          range.multiple > 1 ? absl::StrCat("{ range = ", ends, ", multiple = ", range.multiple, " }") : ends, "\n");
    }
  }
  Symbols(draft, out);
  Launches(draft, out);
  if (!draft.bytes.empty()) {
    absl::StrAppend(
        &out,
        "\n# TODO: every input read once and every output written once, as far as their shapes are understood: "
        "leave out what a call need not touch\n[work]\nbytes = ",
        Quoted(draft.bytes), "\n");
  }
  Tolerance(draft, out);
  return out;
}

std::string ProblemText(const Draft& draft, const std::string& reference) {
  const std::vector<std::string> given = TensorsOf(draft, {"input", "inout"}),
                                 outputs = TensorsOf(draft, {"output", "inout"});
  std::vector<std::string> named;
  for (const std::string& tensor : given) named.push_back(PythonName(tensor));
  const std::vector<PythonFunction> functions = FunctionsOf(reference);
  const auto has = [&](const std::string& name) {
    return std::any_of(functions.begin(), functions.end(), [&](const PythonFunction& f) { return f.name == name; });
  };
  // One that is written for Pawl stays as it is.
  if (has("inputs") && has("reference")) return reference;
  std::string text;
  if (reference.empty()) {
    text = "\"\"\"Inputs, reference and baseline. Drafted by `pawl init`.\"\"\"\n\nimport torch\n\n\n";
  } else {
    text = reference;
    while (absl::EndsWith(text, "\n")) text.pop_back();
    absl::StrAppend(&text, "\n\n\n# Drafted by `pawl init`: how the above computes what kernel.toml asks for.\n\n");
  }
  if (!has("inputs")) absl::StrAppend(&text, InputsFunction(draft), "\n\n");
  if (!has("reference")) {
    absl::StrAppend(&text, FunctionHead("reference", given),
                    "    \"\"\"The right outputs, in float32 or better inside. They are PyTorch tensors, on the "
                    "GPU where there is one.\"\"\"\n",
                    RenamedTensors(given));
    // The function that takes most of the tensors by name, or the only one.
    const PythonFunction* best = nullptr;
    const auto matching = [&](const PythonFunction& function) {
      return std::count_if(function.parameters.begin(), function.parameters.end(), [&](const std::string& parameter) {
        return std::find(given.begin(), given.end(), parameter) != given.end();
      });
    };
    const std::optional<PythonFunction> forward = ForwardOf(reference);
    for (const PythonFunction& function : functions) {
      if (best == nullptr || matching(function) > matching(*best)) best = &function;
    }
    if (forward) best = &*forward;
    if (best != nullptr) {
      std::vector<std::string> unknown;
      const std::string arguments =
          matching(*best) > 0 ? PythonArguments(draft, *best, unknown) : absl::StrJoin(named, ", ");
      absl::StrAppend(&text, "    # TODO: is this the right function, with the right arguments?\n");
      if (!unknown.empty())
        absl::StrAppend(&text, "    # TODO: say what ", absl::StrJoin(unknown, ", "), " is where None stands\n");
      absl::StrAppend(&text, Returned(outputs, absl::StrCat(best->name, "(", arguments, ")")));
    } else {
      absl::StrAppend(&text, "    # TODO: compute ", absl::StrJoin(outputs, ", "),
                      "\n    raise NotImplementedError(\"reference() in problem.py\")\n", "    return {",
                      absl::StrJoin(outputs, ", ",
                                    [](std::string* out, const std::string& name) {
                                      absl::StrAppend(out, "\"", name, "\": ", PythonName(name));
                                    }),
                      "}\n");
    }
  }
  if (!has("baseline")) {
    absl::StrAppend(&text,
                    "\n\n# What the kernel must beat is reference() unless there is a faster way: uncomment, and call "
                    "it.\n# ",
                    FunctionHead("baseline", given), "#     return torch....\n");
  }
  return text;
}

int CountTodos(const std::string& text) {
  int count = 0;
  for (size_t at = text.find("TODO"); at != std::string::npos; at = text.find("TODO", at + 1)) ++count;
  return count;
}

}  // namespace pawl
