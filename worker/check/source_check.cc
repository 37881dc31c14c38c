#include "worker/check/source_check.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/expression/expression.h"
#include "base/names/spelling.h"
#include "kernels/entry_name.h"
#include "kernels/source/cluster_use.h"
#include "kernels/source/cpp_tokens.h"
#include "kernels/substitution.h"
#include "kernels/variable_values.h"
#include "worker/build/cubin.h"
#include "worker/replay/recording.h"

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

std::map<std::string, std::vector<CppToken>> TokensOfFiles(const v1::Bundle& bundle) {
  std::map<std::string, std::vector<CppToken>> files;
  files[bundle.source().path()] = CppTokens(bundle.source().text());
  for (const v1::SourceFile& file : bundle.files()) files[file.path()] = CppTokens(file.text());
  return files;
}

// A function with a body: the tokens of its file and, among them, its name, its { and its }.
struct FoundFunction {
  const std::string* path = nullptr;
  const std::vector<CppToken>* tokens = nullptr;
  size_t name = 0, begin = 0, end = 0;
};

// The first of each name in each file, in the order of the files.
using FoundFunctions = std::map<std::string_view, std::vector<FoundFunction>>;
FoundFunctions FunctionsOf(const std::map<std::string, std::vector<CppToken>>& files) {
  FoundFunctions functions;
  for (const auto& [path, tokens] : files) {
    const std::vector<size_t> closing = ClosingBrackets(tokens);
    for (size_t i = 0; i + 1 < tokens.size(); ++i) {
      if (!tokens[i].IsWord() || !tokens[i + 1].Is("(")) continue;
      const size_t body = closing[i + 1] + 1;
      if (body >= tokens.size() || !tokens[body].Is("{")) continue;
      std::vector<FoundFunction>& named = functions[tokens[i].text];
      if (named.empty() || named.back().path != &path) named.push_back({&path, &tokens, i, body, closing[body]});
    }
  }
  return functions;
}

// What `find` says of each launch's kernel, each said once: `find` is asked once for a function, however many launches
// it has.
template <typename Find, typename Say>
std::vector<std::string> OfKernels(const v1::Bundle& bundle, Find find, Say say) {
  const std::map<std::string, std::vector<CppToken>> files = TokensOfFiles(bundle);
  const FoundFunctions functions = FunctionsOf(files);
  using Found = decltype(find(FoundFunction()));
  std::map<std::string, std::vector<std::pair<const std::string*, Found>>> found;  // by name, with the file
  std::vector<std::string> said;
  Names seen;
  for (const v1::Launch& launch : bundle.launches()) {
    const std::string name = FunctionName(launch.entry());
    const auto named = functions.find(name);
    if (named == functions.end()) continue;
    const auto [known, fresh] = found.try_emplace(name);
    for (const FoundFunction& function : named->second) {
      if (fresh) known->second.emplace_back(function.path, find(function));
    }
    for (const auto& [path, of_kernel] : known->second) {
      const std::string text = say(launch, *path, of_kernel);
      if (text.empty()) continue;
      if (seen.insert(text).second) said.push_back(text);
      break;
    }
  }
  return said;
}

// The line of the first call of sync() on what this_grid() gave, in these tokens; 0: there is none.
int GridSyncLine(const std::vector<CppToken>& tokens, size_t begin, size_t end) {
  Names grids;
  size_t last = begin;  // =, ; or { before
  for (size_t i = begin; i + 3 < end; ++i) {
    if (tokens[i].Is("=") || tokens[i].Is(";") || tokens[i].Is("{")) last = i;
    // auto grid = cg::this_grid(); grid_group grid = ...;
    if (tokens[i].Is("this_grid") && tokens[i + 1].Is("(")) {
      if (tokens[i + 3].Is(".") && i + 4 < end && tokens[i + 4].Is("sync")) return tokens[i + 4].line;
      if (tokens[last].Is("=") && last > begin) grids.emplace(tokens[last - 1].text);
    }
    if (tokens[i].IsWord() && grids.contains(std::string(tokens[i].text)) && tokens[i + 1].Is(".") &&
        tokens[i + 2].Is("sync")) {
      return tokens[i + 2].line;
    }
  }
  return 0;
}

// A #define that takes effect in every compilation, and where it stands among the tokens of its file.
struct Definition {
  std::vector<CppToken> words;
  size_t at = 0;
};

struct FileWords {
  std::vector<Definition> definitions;
  std::map<std::string_view, size_t> last_used;  // where each word stands last: not as what is (un)defined
};

FileWords WordsOfFile(const std::vector<CppToken>& tokens) {
  FileWords words;
  // Whether each #if around is an include guard: #ifndef NAME with #define NAME next. What other #ifs hold may be left
  // out by the compiler.
  std::vector<bool> guards;
  int others = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].IsWord()) words.last_used[tokens[i].text] = i;
    if (tokens[i].kind != CppToken::Kind::kDirective) continue;
    std::vector<CppToken> line = DirectiveTokens(tokens[i]);
    if (line.size() < 2) continue;
    const std::string_view directive = line[1].text;
    const bool names = (directive == "define" || directive == "undef") && line.size() > 2;
    for (size_t k = names ? 3 : 2; k < line.size(); ++k) {
      if (line[k].IsWord()) words.last_used[line[k].text] = i;
    }
    if (directive.starts_with("if")) {
      const std::vector<CppToken> next = i + 1 < tokens.size() && tokens[i + 1].kind == CppToken::Kind::kDirective
                                             ? DirectiveTokens(tokens[i + 1])
                                             : std::vector<CppToken>();
      guards.push_back(directive == "ifndef" && line.size() == 3 && next.size() == 3 && next[1].Is("define") &&
                       next[2].Is(line[2].text));
      others += guards.back() ? 0 : 1;
    } else if (directive == "endif" && !guards.empty()) {
      others -= guards.back() ? 0 : 1;
      guards.pop_back();
    } else if (directive == "define" && line.size() > 2 && others == 0) {
      words.definitions.push_back({std::move(line), i});
    }
  }
  return words;
}

// What `replaces` may be for a variable whose #define this is; empty: the text does not stand once with its start.
std::string ReplacesText(const v1::Bundle& bundle, const v1::Variable& variable, const std::string& text,
                         const std::vector<CppToken>& words) {
  if (words.size() < 4) return "";
  v1::Variable replacing = variable;
  replacing.set_replaces(absl::StrCat(text.substr(words[0].offset, words[3].offset - words[0].offset), "{}"));
  const std::string value =
      text.substr(words[3].offset, words.back().offset + words.back().text.size() - words[3].offset);
  const bool stands = value == ValueText(variable, variable.start()) && CheckReplaced(bundle, replacing).ok();
  return stands && replacing.replaces().find_first_of("'\n\r") == std::string::npos ? replacing.replaces() : "";
}

const std::string& TextOf(const v1::Bundle& bundle, const std::string& path) {
  for (const v1::SourceFile& file : bundle.files()) {
    if (file.path() == path) return file.text();
  }
  return bundle.source().text();
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
  // Variables of an imported space only name what was recorded.
  if (bundle.source().text().empty() || WhyNoCode(bundle) == kImportedCode) return problems;
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
  std::map<std::string, FileWords> words;
  for (const auto& [path, tokens] : files) words[path] = WordsOfFile(tokens);
  for (const v1::Variable& variable : bundle.variables()) {
    if (!variable.option().empty() || !variable.replaces().empty()) continue;
    const std::string& name = variable.name();
    // Other files may include this one, or be included behind it.
    const auto used_behind = [&](const std::string& path, size_t at) {
      return std::any_of(words.begin(), words.end(), [&](const auto& file) {
        const auto last = file.second.last_used.find(name);
        return last != file.second.last_used.end() && (file.first != path || last->second > at);
      });
    };
    for (const auto& [path, file] : words) {
      const auto defined = std::find_if(file.definitions.begin(), file.definitions.end(),
                                        [&](const Definition& one) { return one.words[2].Is(name); });
      if (defined == file.definitions.end() || !used_behind(path, defined->at)) continue;
      const std::string replaces = ReplacesText(bundle, variable, TextOf(bundle, path), defined->words);
      warnings.push_back(
          absl::StrCat("line ", defined->words[0].line, " of ", path, " defines ", name,
                       " itself, whatever the variable says: put #ifndef ", name, " and #endif around it",
                       replaces.empty() ? "" : absl::StrCat(", or give the variable replaces = '", replaces, "'")));
    }
  }
  return warnings;
}

std::vector<std::string> LaunchesWithoutCooperation(const v1::Bundle& bundle) {
  return OfKernels(
      bundle, [](const FoundFunction& kernel) { return GridSyncLine(*kernel.tokens, kernel.begin, kernel.end); },
      [](const v1::Launch& launch, const std::string& path, int line) {
        if (launch.cooperative() || line == 0) return std::string();
        return absl::StrCat("the launch of ", launch.entry(), " is not cooperative, and its kernel calls ",
                            "grid.sync() in line ", line, " of ", path, ": add cooperative = true");
      });
}

std::vector<std::string> LaunchesWithoutClusters(const v1::Bundle& bundle) {
  return OfKernels(
      bundle, [](const FoundFunction& kernel) { return FindClusterUse(*kernel.tokens, kernel.name, kernel.begin); },
      [](const v1::Launch& launch, const std::string& path, const ClusterUse& use) {
        if (!launch.cluster().empty()) return std::string();
        if (!use.dims.empty()) {
          const bool numbers = std::all_of(use.dims.begin(), use.dims.end(), [](const std::string& dim) {
            return std::all_of(dim.begin(), dim.end(), absl::ascii_isdigit);
          });
          const std::string dims = absl::StrJoin(use.dims, ", ");
          return absl::StrCat("the launch of ", launch.entry(), " says no cluster, and its kernel has ",
                              "__cluster_dims__ in line ", use.dims_line, " of ", path, ": add cluster = [",
                              numbers ? dims : "...",
                              numbers ? "]" : absl::StrCat("] with the numbers of (", dims, ")"),
                              ", so that grids are checked against it");
        }
        if (use.line == 0) return std::string();
        return absl::StrCat("the launch of ", launch.entry(), " has no cluster, and its kernel uses ", use.what,
                            " in line ", use.line, " of ", path,
                            ": every block is a cluster of its own; add cluster = [2] or as many blocks as it needs");
      });
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
