#include "cli/handoff/merged_source.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "kernels/entry_name.h"
#include "kernels/plan.h"
#include "kernels/read/implementation.h"
#include "kernels/source/active_source.h"
#include "kernels/source/cpp_tokens.h"
#include "kernels/source/host_code.h"
#include "kernels/source/source_patch.h"
#include "kernels/substitution.h"
#include "kernels/variable_values.h"

namespace pawl {
namespace {

constexpr int kMaxNesting = 8;  // of macros in #pragma unroll

using Macros = std::vector<std::pair<std::string, std::string>>;  // names and texts, in the bundle's order

// What stands in place of [begin, end) of a text.
struct Rewrite {
  size_t begin, end;
  std::string text;
};

void RewriteText(std::vector<Rewrite> rewrites, std::string* text) {
  std::sort(rewrites.begin(), rewrites.end(), [](const Rewrite& a, const Rewrite& b) { return a.begin > b.begin; });
  for (const Rewrite& rewrite : rewrites) text->replace(rewrite.begin, rewrite.end - rewrite.begin, rewrite.text);
}

// The tokens of `# word NAME ...`; empty: the token is another directive.
std::vector<CppToken> DirectiveCalled(const CppToken& token, std::string_view word) {
  if (token.kind != CppToken::Kind::kDirective) return {};
  std::vector<CppToken> tokens = DirectiveTokens(token);
  if (tokens.size() < 3 || !tokens[1].Is(word)) return {};
  return tokens;
}

// Where the value of a default is: #ifndef NAME with #define NAME value as the next line of code.
std::vector<Rewrite> DefaultsIn(const std::string& text, const std::string& name, const std::string& value) {
  std::vector<Rewrite> places;
  const std::vector<CppToken> tokens = CppTokens(text);
  for (size_t i = 0; i + 1 < tokens.size(); ++i) {
    const std::vector<CppToken> guard = DirectiveCalled(tokens[i], "ifndef");
    const std::vector<CppToken> define = DirectiveCalled(tokens[i + 1], "define");
    if (guard.empty() || !guard[2].Is(name) || define.size() < 4 || !define[2].Is(name)) continue;
    const size_t begin = static_cast<size_t>(define[3].text.data() - text.data());
    const size_t end = static_cast<size_t>(define.back().text.data() - text.data()) + define.back().text.size();
    places.push_back({begin, end, value});
  }
  return places;
}

// Object-like macros that the files define once.
std::map<std::string, std::string> DefinedIn(const std::vector<v1::SourceFile>& files) {
  std::map<std::string, std::string> bodies;
  std::set<std::string> again;
  for (const v1::SourceFile& file : files) {
    for (const CppToken& token : CppTokens(file.text())) {
      const std::vector<CppToken> define = DirectiveCalled(token, "define");
      if (define.size() < 4) continue;
      const std::string name(define[2].text);
      if (*(define[2].text.data() + define[2].text.size()) == '(') continue;  // it has parameters
      const char* begin = define[3].text.data();
      const char* end = define.back().text.data() + define.back().text.size();
      if (!bodies.try_emplace(name, begin, end).second) again.insert(name);
    }
  }
  for (const std::string& name : again) bodies.erase(name);
  return bodies;
}

std::string ExpandedUnroll(const std::string& text, const std::map<std::string, std::string>& macros, int nesting) {
  std::vector<Rewrite> rewrites;
  for (const CppToken& token : CppTokens(text)) {
    const auto macro = token.IsWord() ? macros.find(std::string(token.text)) : macros.end();
    if (macro == macros.end() || nesting >= kMaxNesting) continue;
    const std::string inner = ExpandedUnroll(macro->second, macros, nesting + 1);
    const bool number =
        !inner.empty() && std::all_of(inner.begin(), inner.end(), [](char c) { return c >= '0' && c <= '9'; });
    rewrites.push_back(
        {token.offset, token.offset + token.text.size(), number ? inner : absl::StrCat("(", inner, ")")});
  }
  std::string result = text;
  RewriteText(std::move(rewrites), &result);
  return result;
}

// nvcc's preprocessor leaves the words behind #pragma unroll as they are.
void ExpandUnrolls(const std::map<std::string, std::string>& macros, std::string* text) {
  std::vector<Rewrite> rewrites;
  for (const CppToken& token : CppTokens(*text)) {
    const std::vector<CppToken> pragma = DirectiveCalled(token, "pragma");
    if (pragma.size() < 4 || !pragma[2].Is("unroll")) continue;
    const size_t begin = static_cast<size_t>(pragma[3].text.data() - text->data());
    const size_t end = static_cast<size_t>(pragma.back().text.data() - text->data()) + pragma.back().text.size();
    rewrites.push_back({begin, end, ExpandedUnroll(text->substr(begin, end - begin), macros, 0)});
  }
  RewriteText(std::move(rewrites), text);
}

bool MentionedIn(const std::vector<v1::SourceFile>& files, const std::string& name) {
  return std::any_of(files.begin(), files.end(), [&](const v1::SourceFile& file) {
    return absl::StrContains(file.text(), name) && WordsOf(ActiveSource(file.text(), {})).contains(name);
  });
}

// The variables that the files see as macros.
Macros VariableMacros(const v1::Bundle& bundle, const v1::Variant& variant, const std::vector<v1::SourceFile>& files) {
  Macros macros;
  for (const v1::Variable& variable : bundle.variables()) {
    if (!variable.option().empty() || !variable.replaces().empty() || !MentionedIn(files, variable.name())) continue;
    const auto value = variant.values().find(variable.name());
    macros.emplace_back(variable.name(),
                        MacroText(variable, value == variant.values().end() ? variable.start() : value->second));
  }
  return macros;
}

// Dimensions that the variant is compiled for: those of the compile options.
std::map<std::string, int32_t> FixedSizes(const v1::Bundle& bundle, const v1::Variant& variant, const v1::Size& size) {
  std::map<std::string, int32_t> fixed;
  const std::vector<std::string> options = CompileOptions(bundle, variant, size);
  for (const auto& [name, value] : size.values()) {
    const std::string option = absl::StrCat("-DSIZE_", name, "=", value);
    if (std::find(options.begin(), options.end(), option) != options.end()) fixed[name] = value;
  }
  return fixed;
}

void DefineMacros(const Macros& macros, const std::map<std::string, int32_t>& sizes, const std::string& comment,
                  std::vector<v1::SourceFile>* files) {
  std::string head;
  for (const auto& [name, value] : macros) {
    std::vector<std::pair<v1::SourceFile*, Rewrite>> defaults;
    for (v1::SourceFile& file : *files) {
      for (Rewrite& place : DefaultsIn(file.text(), name, value)) defaults.emplace_back(&file, std::move(place));
    }
    if (defaults.size() == 1) {
      RewriteText({defaults[0].second}, defaults[0].first->mutable_text());
    } else {
      absl::StrAppend(&head, "#define ", name, " ", value, "\n");
    }
  }
  for (const auto& [name, value] : sizes) {
    absl::StrAppend(&head, "#ifndef SIZE_", name, "\n#define SIZE_", name, " ", value,
                    "  // another size needs a build of its own\n#endif\n");
  }
  std::map<std::string, std::string> expanded = DefinedIn(*files);
  for (const auto& [name, value] : macros) expanded[name] = value;
  for (const auto& [name, value] : sizes) expanded.try_emplace(absl::StrCat("SIZE_", name), absl::StrCat(value));
  for (v1::SourceFile& file : *files) ExpandUnrolls(expanded, file.mutable_text());
  if (head.empty()) return;
  std::string* source = files->front().mutable_text();
  *source = absl::StrCat("// ", comment, "\n", head, *source);
}

// The texts without host code, and the headers of PyTorch that device code uses a little of.
std::vector<v1::SourceFile> DeviceFiles(const std::vector<v1::SourceFile>& files) {
  std::vector<std::string> macros;
  for (const v1::SourceFile& file : files) {
    for (std::string& macro : DeviceMacros(file.text())) macros.push_back(std::move(macro));
  }
  std::vector<v1::SourceFile> device = files;
  std::vector<std::string_view> texts;
  for (v1::SourceFile& file : device) {
    file.set_text(WithoutHostCode(file.text(), v1::COMPILER_NVRTC, macros));
    texts.push_back(file.text());
  }
  for (const auto& [path, text] : StandInHeaders(texts)) {
    const bool own =
        std::any_of(files.begin(), files.end(), [&](const v1::SourceFile& file) { return file.path() == path; });
    if (own) continue;
    v1::SourceFile& header = device.emplace_back();
    header.set_path(path);
    header.set_text(text);
  }
  return device;
}

}  // namespace

absl::StatusOr<MergedSource> MergeSource(const v1::Bundle& bundle, const std::string& implementation,
                                         const v1::Variant& variant, const v1::Size& size, const std::string& comment) {
  MergedSource merged;
  v1::Bundle winner = bundle;
  if (bundle.source().binary().empty()) {
    if (absl::Status status = SetImplementation(implementation, &winner); !status.ok()) return status;
  }
  if (!IsCudaSource(bundle.source().path())) {
    merged.files = merged.bundle_files = {winner.source()};
  } else {
    merged.fixed_sizes = FixedSizes(winner, variant, size);
    winner.set_skip_host_code(false);
    absl::StatusOr<CompiledFiles> written = FilesToCompile(winner, variant);
    if (!written.ok()) return written.status();
    merged.files = {std::move(written->source)};
    for (v1::SourceFile& file : written->files) merged.files.push_back(std::move(file));
    merged.bundle_files = merged.files;
    DefineMacros(VariableMacros(winner, variant, merged.files), merged.fixed_sizes, comment, &merged.files);
    if (bundle.skip_host_code()) merged.device_files = DeviceFiles(merged.files);
  }
  merged.patch = UnifiedDiff(bundle.source().path(), bundle.source().text(), merged.files[0].text());
  for (int i = 0; i < bundle.files_size(); ++i) {
    absl::StrAppend(&merged.patch, UnifiedDiff(bundle.files(i).path(), bundle.files(i).text(),
                                               merged.files[static_cast<size_t>(i) + 1].text()));
  }
  return merged;
}

}  // namespace pawl
