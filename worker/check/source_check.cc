#include "worker/check/source_check.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/expression/expression.h"
#include "base/names/spelling.h"
#include "kernels/entry_name.h"
#include "kernels/source/cluster_use.h"
#include "kernels/source/cpp_tokens.h"
#include "kernels/variable_values.h"
#include "worker/build/cubin.h"

namespace pawl {
namespace {

using Names = std::set<std::string>;

// Words of code and of directives; comments and strings have none.
void AddWords(std::string_view text, Names& words) {
  for (const CppToken& token : CppTokens(text)) {
    if (token.IsWord()) words.emplace(token.text);
    if (token.kind != CppToken::Kind::kDirective) continue;
    for (const CppToken& inner : DirectiveTokens(token)) {
      if (inner.IsWord()) words.emplace(inner.text);
    }
  }
}

void AddExpressionNames(const v1::Bundle& bundle, const std::string& text, Names& names) {
  if (text.empty()) return;
  const absl::StatusOr<std::string> plain = WithoutWords(bundle, text);
  const absl::StatusOr<std::set<std::string>> used = NamesIn(plain.ok() ? *plain : text);
  if (used.ok()) names.insert(used->begin(), used->end());
}

// What the launches, shapes and scalars use.
Names UsedNames(const v1::Bundle& bundle) {
  Names names;
  for (const v1::Launch& launch : bundle.launches()) {
    for (const std::string* text : {&launch.when(), &launch.shared(), &launch.repeat()}) {
      AddExpressionNames(bundle, *text, names);
    }
    for (const auto* list : {&launch.grid(), &launch.block(), &launch.cluster()}) {
      for (const std::string& text : *list) AddExpressionNames(bundle, text, names);
    }
    for (const std::string& word : WordsOf(launch.entry())) names.insert(word);
  }
  for (const v1::Tensor& tensor : bundle.tensors()) {
    for (const std::string& extent : tensor.shape()) AddExpressionNames(bundle, extent, names);
  }
  for (const v1::Scalar& scalar : bundle.scalars()) AddExpressionNames(bundle, scalar.value(), names);
  return names;
}

// A function with a body: the tokens of its name, its { and its }.
struct FoundFunction {
  size_t name = 0, begin = 0, end = 0;  // all 0: there is none
};

FoundFunction FunctionNamed(const std::vector<CppToken>& tokens, const std::string& name) {
  for (size_t i = 0; i + 1 < tokens.size(); ++i) {
    if (!tokens[i].Is(name) || !tokens[i + 1].Is("(")) continue;
    const size_t close = ClosingBracket(tokens, i + 1);
    if (close + 1 < tokens.size() && tokens[close + 1].Is("{"))
      return {i, close + 1, ClosingBracket(tokens, close + 1)};
  }
  return {};
}

std::map<std::string, std::vector<CppToken>> TokensOfFiles(const v1::Bundle& bundle) {
  std::map<std::string, std::vector<CppToken>> files;
  files[bundle.source().path()] = CppTokens(bundle.source().text());
  for (const v1::SourceFile& file : bundle.files()) files[file.path()] = CppTokens(file.text());
  return files;
}

// The line of the first call of sync() on what this_grid() gave, in these tokens; 0: there is none.
int GridSyncLine(const std::vector<CppToken>& tokens, size_t begin, size_t end) {
  Names grids;
  for (size_t i = begin; i + 3 < end; ++i) {
    // auto grid = cg::this_grid(); grid_group grid = ...;
    if (tokens[i].Is("this_grid") && tokens[i + 1].Is("(")) {
      if (tokens[i + 3].Is(".") && i + 4 < end && tokens[i + 4].Is("sync")) return tokens[i + 4].line;
      size_t name = i;
      while (name > begin && !tokens[name].Is("=") && !tokens[name].Is(";") && !tokens[name].Is("{")) --name;
      if (tokens[name].Is("=") && name > begin) grids.emplace(tokens[name - 1].text);
    }
    if (tokens[i].IsWord() && grids.contains(std::string(tokens[i].text)) && tokens[i + 1].Is(".") &&
        tokens[i + 2].Is("sync")) {
      return tokens[i + 2].line;
    }
  }
  return 0;
}

std::string PlainName(const std::string& entry) {
  const std::string name = entry.substr(0, entry.find('<'));
  const size_t colon = name.rfind(':');
  return colon == std::string::npos ? name : name.substr(colon + 1);
}

}  // namespace

std::string WhyNoCode(const v1::Bundle& bundle) {
  std::string why;
  for (const CppToken& token : CppTokens(bundle.source().text())) {
    const std::vector<CppToken> words = DirectiveTokens(token);
    if (token.kind != CppToken::Kind::kDirective || words.size() < 3 || !words[1].Is("error")) return "";
    const std::string text(token.text.substr(words[2].offset - token.offset));
    if (why.empty()) why = std::string(absl::StripPrefix(absl::StripSuffix(text, "\""), "\""));
  }
  return why;
}

std::vector<std::string> UnusedVariables(const v1::Bundle& bundle) {
  std::vector<std::string> problems;
  // Variables of what can't be built span a recorded space.
  if (bundle.source().text().empty() || !WhyNoCode(bundle).empty()) return problems;
  Names words;
  AddWords(bundle.source().text(), words);
  for (const v1::SourceFile& file : bundle.files()) AddWords(file.text(), words);
  for (const std::string& option : bundle.options()) AddWords(option, words);
  const Names used = UsedNames(bundle);
  for (const v1::Variable& variable : bundle.variables()) {
    if (!variable.option().empty() || !variable.replaces().empty()) continue;
    if (words.contains(variable.name()) || used.contains(variable.name())) continue;
    std::vector<std::string> known(words.begin(), words.end());
    problems.push_back(absl::StrCat("the variable ", variable.name(),
                                    " appears nowhere in the source, its files, the launches, shapes and scalars",
                                    Suggestion(variable.name(), known)));
  }
  return problems;
}

std::vector<std::string> RedefinedVariables(const v1::Bundle& bundle) {
  std::vector<std::string> warnings;
  const std::map<std::string, std::vector<CppToken>> files = TokensOfFiles(bundle);
  const auto has = [](const std::vector<CppToken>& words, const std::string& word) {
    return std::any_of(words.begin(), words.end(), [&](const CppToken& token) { return token.Is(word); });
  };
  for (const v1::Variable& variable : bundle.variables()) {
    if (!variable.option().empty() || !variable.replaces().empty()) continue;
    for (const auto& [path, tokens] : files) {
      bool asked = false;  // #ifndef NAME or #if !defined(NAME) stands before it
      for (const CppToken& token : tokens) {
        if (token.kind != CppToken::Kind::kDirective) continue;
        const std::vector<CppToken> words = DirectiveTokens(token);
        if (words.size() < 3 || !has(words, variable.name())) continue;
        if (!words[1].Is("define") || !words[2].Is(variable.name())) {
          asked = asked || words[1].Is("ifndef") || words[1].Is("ifdef") || has(words, "defined");
          continue;
        }
        if (asked) break;
        warnings.push_back(absl::StrCat("line ", words[0].line, " of ", path, " defines ", variable.name(),
                                        " itself, whatever the variable says: put #ifndef ", variable.name(),
                                        " and #endif around it, or give the variable replaces = \"#define ",
                                        variable.name(), " {}\""));
        break;
      }
    }
  }
  return warnings;
}

std::vector<std::string> LaunchesWithoutCooperation(const v1::Bundle& bundle) {
  std::vector<std::string> problems;
  const std::map<std::string, std::vector<CppToken>> files = TokensOfFiles(bundle);
  for (const v1::Launch& launch : bundle.launches()) {
    if (launch.cooperative()) continue;
    for (const auto& [path, tokens] : files) {
      const FoundFunction kernel = FunctionNamed(tokens, PlainName(launch.entry()));
      const int line = GridSyncLine(tokens, kernel.begin, kernel.end);
      if (line == 0) continue;
      problems.push_back(absl::StrCat("the launch of ", launch.entry(), " is not cooperative, and its kernel calls ",
                                      "grid.sync() in line ", line, " of ", path, ": add cooperative = true"));
      break;
    }
  }
  return problems;
}

std::vector<std::string> LaunchesWithoutClusters(const v1::Bundle& bundle) {
  std::vector<std::string> warnings;
  const std::map<std::string, std::vector<CppToken>> files = TokensOfFiles(bundle);
  for (const v1::Launch& launch : bundle.launches()) {
    if (!launch.cluster().empty()) continue;
    for (const auto& [path, tokens] : files) {
      const FoundFunction kernel = FunctionNamed(tokens, PlainName(launch.entry()));
      if (kernel.end == 0) continue;
      const ClusterUse use = FindClusterUse(tokens, kernel.name, kernel.begin);
      if (!use.dims.empty()) {
        warnings.push_back(absl::StrCat("the launch of ", launch.entry(), " says no cluster, and its kernel has ",
                                        "__cluster_dims__ in line ", use.dims_line, " of ", path, ": add cluster = [",
                                        absl::StrJoin(use.dims, ", "), "], so that grids are checked against it"));
      } else if (use.line > 0) {
        warnings.push_back(absl::StrCat("the launch of ", launch.entry(), " has no cluster, and its kernel uses ",
                                        use.what, " in line ", use.line, " of ", path,
                                        ": every block is a cluster of its own; add cluster = [2] or as many blocks "
                                        "as it needs"));
      }
      break;
    }
  }
  return warnings;
}

std::vector<v1::CheckEntry> EntriesOf(const std::string& cubin) {
  std::vector<v1::CheckEntry> entries;
  const absl::StatusOr<std::vector<std::string>> names = EntryNames(cubin);
  if (!names.ok()) return entries;
  const absl::StatusOr<std::map<std::string, std::vector<int>>> parameters = EntryParameters(cubin);
  for (const std::string& name : *names) {
    v1::CheckEntry& entry = entries.emplace_back();
    entry.set_symbol(name);
    entry.set_name(Demangled(name));
    if (!parameters.ok() || !parameters->contains(name)) continue;
    for (const int bytes : parameters->at(name)) entry.add_parameter_bytes(bytes);
  }
  return entries;
}

std::vector<std::string> UnfilledConstants(const v1::Bundle& bundle, const std::string& cubin) {
  std::vector<std::string> warnings;
  const absl::StatusOr<std::vector<GlobalVariable>> variables = GlobalVariables(cubin);
  if (!variables.ok()) return warnings;
  Names filled;
  for (const v1::Symbol& symbol : bundle.symbols()) {
    const GlobalVariable* variable = FindVariable(*variables, symbol.name());
    if (variable != nullptr) filled.insert(variable->name);
  }
  for (const GlobalVariable& variable : *variables) {
    if (!variable.constant || !variable.blank || filled.contains(variable.name)) continue;
    const std::string name = Demangled(variable.name);
    warnings.push_back(absl::StrCat("the __constant__ variable ", name, " holds zeros: it has no initialiser, and no ",
                                    "[[symbol]] gives it an input, as the program's cudaMemcpyToSymbol may do"));
  }
  return warnings;
}

}  // namespace pawl
