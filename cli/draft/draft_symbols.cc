// Variables of the device that the host fills, as [[symbol]] tables with their tensors (declared in drafting.h).
#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "cli/draft/drafting.h"
#include "cli/draft/read/constants.h"

namespace pawl {
namespace {

// =, +=, ++ and their kin.
bool Assigns(const CppToken& token) {
  static const auto& compares = *new std::set<std::string_view>{"==", "!=", "<=", ">="};
  return token.Is("++") || token.Is("--") || (token.text.ends_with('=') && !compares.contains(token.text));
}

}  // namespace

void Drafting::Symbols() {
  for (const SourceSymbol& symbol : model_.symbols) {
    const bool used = std::any_of(planned_.begin(), planned_.end(), [&](const PlannedKernel& planned) {
      return planned.body.words.contains(symbol.name);
    });
    if (!used || (symbol.filled == 0 && symbol.initialised)) continue;
    const std::string why_not = WhyNoSymbol(symbol);
    if (why_not.empty()) {
      AddSymbol(symbol);
      continue;
    }
    draft_.remarks.push_back(
        absl::StrCat("the kernel uses ", symbol.name, " (", symbol.declaration, "), which ",
                     symbol.filled != 0 ? absl::StrCat("the host fills by cudaMemcpyToSymbol in line ", symbol.filled)
                                        : "has no initial value and which a host fills by cudaMemcpyToSymbol",
                     ": nothing in this draft fills it, since ", why_not));
  }
}

std::string Drafting::WhyNoSymbol(const SourceSymbol& symbol) const {
  if (symbol.pointer) return "it is a pointer: let the kernel take the memory as a parameter";
  if (IsWritten(symbol)) return "the kernel writes it, and a [[symbol]] holds the same in every call";
  SourceType type;
  type.element = symbol.type;
  if (!TypeOf(type, planned_[0]) && !model_.record_bytes.contains(symbol.type))
    return absl::StrCat("the type ", symbol.type, " is not known");
  return "";
}

bool Drafting::IsWritten(const SourceSymbol& symbol) const {
  for (const SourceFunction& function : model_.functions) {
    if (!function.kernel && !function.device) continue;
    const std::vector<CppToken>& tokens = function.file->tokens;
    const size_t end = std::min(ClosingBracket(tokens, function.body), tokens.size());
    for (size_t i = function.body + 2; i < end; ++i) {
      if (!tokens[i].Is(symbol.name)) continue;
      size_t behind = i + 1;  // a[i].x
      while (behind < end && (tokens[behind].Is("[") || tokens[behind].Is(".")))
        behind = tokens[behind].Is("[") ? ClosingBracket(tokens, behind) + 1 : behind + 2;
      const size_t open = tokens[i - 1].Is("&") ? i - 2 : i - 1;  // atomicAdd(&a[i], 1)
      const bool atomic = tokens[open].Is("(") && open > 0 && tokens[open - 1].text.starts_with("atomic");
      if (atomic || tokens[i - 1].Is("++") || tokens[i - 1].Is("--") || (behind < end && Assigns(tokens[behind])))
        return true;
    }
  }
  return false;
}

void Drafting::AddSymbol(const SourceSymbol& symbol) {
  DraftTensor tensor;
  tensor.name = FreeName(symbol.name);
  tensor.symbol = symbol.qualified;
  tensor.role = "input";
  SourceType type;
  type.element = symbol.type;
  const std::optional<ElementType> element = TypeOf(type, planned_[0]);
  tensor.type = element ? element->type : "u8";
  const int64_t width = element ? element->width : model_.record_bytes.at(symbol.type);
  if (!element) {
    tensor.range_high = "bytes";
    tensor.todos.push_back(absl::StrCat("type: bytes of ", symbol.type, ", ", width, " each"));
  } else if (width > 1) {
    tensor.todos.push_back(absl::StrCat("shape: ", width, " elements for each ", symbol.type));
  }
  SetSymbolShape(symbol, width, tensor);
  tensor.todos.push_back(absl::StrCat("fill: the values are the host's, which ",
                                      symbol.filled != 0
                                          ? absl::StrCat("copies them to ", symbol.name, " in line ", symbol.filled)
                                          : "is not in this source",
                                      ": make them in inputs() of problem.py"));
  draft_.tensors.push_back(std::move(tensor));
}

void Drafting::SetSymbolShape(const SourceSymbol& symbol, int64_t width, DraftTensor& tensor) {
  const std::map<std::string, int64_t> constants = ConstantValues(model_);
  const std::optional<int64_t> copied = symbol.copied ? ConstantValue(*symbol.copied, constants) : std::nullopt;
  const int64_t each = BytesOfType(tensor.type) * width;
  int64_t bytes = each;
  std::string unknown;
  for (const CppExpression& extent : symbol.extents) {
    const std::optional<int64_t> value = ConstantValue(extent, constants);
    if (!value || *value < 1) {
      unknown = CppText(extent);
      break;
    }
    tensor.shape.push_back(absl::StrCat(*value));
    bytes *= *value;
  }
  if (!unknown.empty()) {
    if (copied && *copied >= each && *copied % each == 0) {
      tensor.shape = {absl::StrCat(*copied / each)};
      tensor.todos.push_back(absl::StrCat("shape: from the bytes that the host copies; `", unknown, "` is not known"));
    } else {
      const std::string why = absl::StrCat("`", unknown, "` is not known");
      tensor.shape = {AddSize(absl::StrCat("?", tensor.name),
                              absl::StrCat(absl::AsciiStrToUpper(tensor.name), "_EXTENT"), std::nullopt,
                              absl::StrCat("elements of ", symbol.name, ": ", why))};
      tensor.todos.push_back(absl::StrCat("shape: ", why, "; the tensor has as many bytes as the variable"));
    }
  } else if (copied && *copied < bytes) {
    // The tensor fills the whole variable.
    tensor.todos.push_back(
        absl::StrCat("shape: all of ", symbol.name, "; the host copies the first ", *copied, " bytes"));
  }
  if (width > 1 || tensor.shape.empty()) tensor.shape.push_back(absl::StrCat(width));
}

}  // namespace pawl
