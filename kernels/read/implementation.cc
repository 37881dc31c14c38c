#include "kernels/read/implementation.h"

#include <algorithm>
#include <set>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/hash/hash.h"
#include "kernels/bundle_message.h"
#include "kernels/read/implementation_toml.h"
#include "kernels/source/cpp_tokens.h"
#include "kernels/space.h"
#include "kernels/variable_values.h"
#include "kernels/vocabulary.h"

namespace pawl {
namespace {

constexpr absl::string_view kOpen = "==== ", kClose = " lines ====\n", kCloseOfUnended = " lines, no line end ====\n";

void AppendFile(const std::string& path, const std::string& text, std::string* all) {
  const bool ended = text.empty() || text.back() == '\n';
  const auto lines = std::count(text.begin(), text.end(), '\n') + (ended ? 0 : 1);
  absl::StrAppend(all, kOpen, path, ", ", lines, ended ? kClose : kCloseOfUnended, text, ended ? "" : "\n");
}

// Takes the next file off the text. False: there is no such file here.
bool TakeFile(const std::string& path, absl::string_view* text, std::string* file) {
  if (!absl::ConsumePrefix(text, kOpen) || !absl::ConsumePrefix(text, path) || !absl::ConsumePrefix(text, ", ")) {
    return false;
  }
  const size_t digits = std::min(text->find(' '), text->size());
  int64_t lines = 0;
  if (!absl::SimpleAtoi(text->substr(0, digits), &lines) || lines < 0) return false;
  text->remove_prefix(digits);
  const bool ended = absl::ConsumePrefix(text, kClose);
  if (!ended && !absl::ConsumePrefix(text, kCloseOfUnended)) return false;
  size_t end = 0;
  for (int64_t i = 0; i < lines; ++i) {
    const size_t next = text->find('\n', end);
    if (next == text->npos) return false;
    end = next + 1;
  }
  *file = std::string(text->substr(0, ended ? end : end - 1));
  text->remove_prefix(end);
  return true;
}

// Every file of a text that has kernel.toml as its last, whatever their paths are; none: it is no such text.
SourceFiles AllFilesIn(absl::string_view rest) {
  SourceFiles files;
  while (absl::StartsWith(rest, kOpen)) {
    absl::string_view head = rest.substr(0, rest.find('\n') + 1);
    if (!absl::ConsumeSuffix(&head, kClose) && !absl::ConsumeSuffix(&head, kCloseOfUnended)) return {};
    const size_t comma = head.rfind(", ");
    if (comma == head.npos || comma < kOpen.size()) return {};
    files.emplace_back(std::string(head.substr(kOpen.size(), comma - kOpen.size())), "");
    if (!TakeFile(files.back().first, &rest, &files.back().second)) return {};
  }
  const bool whole = rest.empty() && files.size() > 1 && files.back().first == kKernelToml;
  return whole ? files : SourceFiles();
}

bool HasToml(const SourceFiles& files) { return !files.empty() && files.back().first == kKernelToml; }

// Every file, by its path, and kernel.toml where the text has it.
absl::StatusOr<SourceFiles> FilesIn(const v1::Bundle& bundle, const std::string& text) {
  SourceFiles files;
  if (IsContractAlone(bundle) && text.empty()) return files;
  // What was proposed as the start has its own files.
  if (SourceFiles all = AllFilesIn(text); !all.empty()) return all;
  const bool plain =
      bundle.files().empty() && !absl::StartsWith(text, absl::StrCat(kOpen, bundle.source().path(), ", "));
  if (plain) {
    files.emplace_back(bundle.source().path(), text);
    return files;
  }
  absl::string_view rest = text;
  const auto take = [&](const std::string& path) {
    files.emplace_back(path, "");
    return TakeFile(path, &rest, &files.back().second);
  };
  bool good = take(bundle.source().path());
  for (const v1::SourceFile& file : bundle.files()) good = good && take(file.path());
  if (good && !rest.empty()) good = take(kKernelToml);
  if (!good || !rest.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("the edited source is not one of the files of ", bundle.name()));
  }
  return files;
}

// The source, the other files, and perhaps kernel.toml, which is not the bundle's.
void SetFiles(const SourceFiles& files, v1::Bundle* bundle) {
  bundle->clear_files();
  for (size_t i = 0; i < files.size(); ++i) {
    const auto& [path, text] = files[i];
    if (path == kKernelToml) continue;
    v1::SourceFile& file = i == 0 ? *bundle->mutable_source() : *bundle->add_files();
    file.set_path(path);
    file.set_text(text);
  }
}

// With kernel.toml where it is not the one of `own`.
std::string TextOf(const v1::Bundle& own, const v1::Bundle& edited) {
  const std::string toml = ImplementationToml(edited);
  if (toml == ImplementationToml(own)) return ImplementationText(edited);
  std::string all;
  AppendFile(edited.source().path(), edited.source().text(), &all);
  for (const v1::SourceFile& file : edited.files()) AppendFile(file.path(), file.text(), &all);
  AppendFile(kKernelToml, toml, &all);
  return all;
}

// The name in "[tolerance]" or "[[reference.launch]]", up to the dot; nothing where the line is no header.
absl::string_view TableOf(absl::string_view line) {
  if (!absl::StartsWith(line, "[")) return "";
  line.remove_prefix(std::min(line.find_first_not_of("[ \t"), line.size()));
  return line.substr(0, line.find_first_of(".] \t"));
}

bool IsContractKey(absl::string_view name) {
  return KernelToml().Find(std::string(name)) != nullptr && !IsImplementationKey(std::string(name));
}

// A key that stands at the top of kernel.toml only, not in a table that an edit may change.
bool IsTopContractKey(absl::string_view key) {
  if (!IsContractKey(key)) return false;
  for (const TomlKey& row : KernelToml().keys) {
    if (IsImplementationKey(row.name) && row.table != nullptr && row.table->Find(std::string(key)) != nullptr) {
      return false;
    }
  }
  return true;
}

// A line that the patch changes in kernel.toml and that shows, by itself or by the lines above it, that it is the
// contract's. The rest shows when the patched text is read.
absl::Status CheckTouchesNoContract(const std::string& patch, bool start) {
  bool toml = false;
  absl::string_view table;
  int number = 0;
  for (const absl::string_view whole : absl::StrSplit(patch, '\n')) {
    ++number;
    absl::string_view line = absl::StripTrailingAsciiWhitespace(whole);
    if (absl::StartsWith(line, "+++ ")) toml = absl::EndsWith(line.substr(0, line.find('\t')), kKernelToml);
    if (absl::StartsWith(line, "@@")) table = "";
    const bool changed = absl::StartsWith(line, "-") || absl::StartsWith(line, "+");
    if (!toml || line.empty() || absl::StartsWith(line, "+++ ") || absl::StartsWith(line, "--- ")) continue;
    if (!changed && line[0] != ' ') continue;
    const absl::string_view text = absl::StripLeadingAsciiWhitespace(line.substr(1));
    const absl::string_view header = TableOf(text);
    if (!header.empty()) table = header;
    if (!changed || text.empty()) continue;
    const absl::string_view key = text.substr(0, text.find_first_of(" =\t"));
    const bool in_contract = table.empty() ? IsTopContractKey(key) : IsContractKey(table);
    const bool names_files = table.empty() && NamesFiles(std::string(key));
    if (!in_contract || (start && names_files)) continue;
    if (names_files) {
      return absl::InvalidArgumentError(absl::StrCat("line ", number, " of the patch: ", key, kFilesStay));
    }
    return absl::InvalidArgumentError(
        absl::StrCat("line ", number, " of the patch: \"", text.substr(0, 100), "\"",
                     table.empty() || !header.empty() ? "" : absl::StrCat(" in [", table, "]"),
                     " belongs to the contract, which no edit may change"));
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::Bundle> BundleWith(const v1::Bundle& bundle, const std::string& text) {
  v1::Bundle result = bundle;
  if (absl::Status status = SetImplementation(text, &result); !status.ok()) return status;
  return result;
}

SourceFiles EditableFilesOf(const v1::Bundle& state, const v1::Variant& variant) {
  SourceFiles files;
  if (!IsContractAlone(state)) files.emplace_back(state.source().path(), state.source().text());
  for (const v1::SourceFile& file : state.files()) files.emplace_back(file.path(), file.text());
  files.emplace_back(kKernelToml, ImplementationToml(state, variant));
  return files;
}

// "BLOCK 64 to 128".
std::string ChangedValues(const v1::Bundle& bundle, const v1::Variant& from, const v1::Variant& to) {
  std::vector<std::string> changes;
  for (const v1::Variable& variable : bundle.variables()) {
    const int32_t before = from.values().at(variable.name()), after = to.values().at(variable.name());
    if (before == after) continue;
    changes.push_back(
        absl::StrCat(variable.name(), " ", ValueText(variable, before), " to ", ValueText(variable, after)));
  }
  return absl::StrJoin(changes, ", ");
}

// What the edited files make of the parent.
absl::StatusOr<ImplementationState> Edited(const v1::Bundle& own, const v1::Bundle& parent, const v1::Variant& values,
                                           const SourceFiles& before, const SourceFiles& after) {
  v1::Bundle edited = parent;
  SetFiles(after, &edited);
  ImplementationState result;
  result.variant = values;
  if (after.back().second != before.back().second) {
    absl::StatusOr<v1::Variant> variant = ReadEditedToml(after.back().second, parent, values, &edited);
    if (!variant.ok()) return variant.status();
    result.variant = *std::move(variant);
  }
  result.text = TextOf(own, edited);
  if (result.text == TextOf(own, parent) && VariantText(result.variant) != VariantText(values)) {
    return absl::InvalidArgumentError(absl::StrCat("the patch changes nothing but values of variables (",
                                                   ChangedValues(edited, values, result.variant),
                                                   "): propose one of them instead"));
  }
  return result;
}

absl::Status CheckEditable(const v1::Bundle& bundle, const std::string& patch) {
  if (!bundle.source().binary().empty()) {
    return absl::InvalidArgumentError(absl::StrCat(bundle.source().path(), " is a cubin: it can't be edited"));
  }
  return CheckTouchesNoContract(patch, IsContractAlone(bundle));
}

// A source that begins as the text of several files does would be read as such.
absl::Status CheckTexts(const SourceFiles& files) {
  for (const auto& [path, text] : files) {
    if (const std::string problem = SourceTextProblem(text); !problem.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": ", problem));
    }
    if (!absl::StartsWith(text, kOpen)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(path, " would begin with \"", kOpen, "\", which Pawl puts between files: begin it otherwise"));
  }
  return absl::OkStatus();
}

// The first implementation of a contract alone.
absl::StatusOr<ImplementationState> Started(const v1::Bundle& contract, const std::string& patch) {
  const std::set<std::string> taken = ContractPaths(contract);
  const std::string before = ImplementationToml(contract);
  SourceFiles files = {{kKernelToml, before}};
  if (absl::Status status = ApplyPatchThatAdds(patch, taken, &files); !status.ok()) return status;
  const std::string toml = std::move(files[0].second);
  files.erase(files.begin());
  if (absl::Status status = CheckTexts(files); !status.ok()) return status;
  if (toml == before) {
    return absl::InvalidArgumentError(
        "the patch leaves kernel.toml as it is: a start states source and [[launch]] there");
  }
  v1::Bundle started = contract;
  absl::StatusOr<v1::Variant> variant = ReadStartToml(toml, files, &started);
  if (!variant.ok()) return variant.status();
  ImplementationState state{TextOf(contract, started), *std::move(variant)};
  // What is tried and stored is made of this text.
  v1::Bundle read = contract;
  if (absl::Status status = SetImplementation(state.text, &read); !status.ok()) return status;
  return state;
}

}  // namespace

std::string ImplementationText(const v1::Bundle& bundle) {
  if (bundle.files().empty()) return bundle.source().text();
  std::string all;
  AppendFile(bundle.source().path(), bundle.source().text(), &all);
  for (const v1::SourceFile& file : bundle.files()) AppendFile(file.path(), file.text(), &all);
  return all;
}

absl::Status SetImplementation(const std::string& text, v1::Bundle* bundle) {
  absl::StatusOr<SourceFiles> files = FilesIn(*bundle, text);
  if (!files.ok()) return files.status();
  v1::Bundle result = *bundle;
  SetFiles(*files, &result);
  if (HasToml(*files)) {
    if (absl::Status status = ReadStoredToml(files->back().second, &result); !status.ok()) return status;
  }
  *bundle = std::move(result);
  return absl::OkStatus();
}

bool ChangesToml(const v1::Bundle& bundle, const std::string& text) {
  const absl::StatusOr<SourceFiles> files = FilesIn(bundle, text);
  return files.ok() && HasToml(*files);
}

absl::StatusOr<SourceFiles> EditableFiles(const v1::Bundle& bundle, const std::string& text,
                                          const v1::Variant& variant) {
  absl::StatusOr<v1::Bundle> state = BundleWith(bundle, text);
  if (!state.ok()) return state.status();
  return EditableFilesOf(*state, variant);
}

absl::StatusOr<ImplementationState> PatchImplementation(const v1::Bundle& bundle, const ImplementationState& parent,
                                                        const std::string& patch) {
  if (absl::Status status = CheckEditable(bundle, patch); !status.ok()) return status;
  if (IsContractAlone(bundle)) return Started(bundle, patch);
  absl::StatusOr<v1::Bundle> state = BundleWith(bundle, parent.text);
  if (!state.ok()) return state.status();
  const SourceFiles before = EditableFilesOf(*state, parent.variant);
  SourceFiles after = before;
  if (absl::Status status = ApplyPatch(patch, &after, ContractPaths(bundle)); !status.ok()) return status;
  if (absl::Status status = CheckTexts(after); !status.ok()) return status;
  return Edited(bundle, *state, parent.variant, before, after);
}

absl::StatusOr<ImplementationState> RebaseImplementation(const v1::Bundle& bundle, const ImplementationState& earlier,
                                                         const ImplementationState& parent, const std::string& patch) {
  if (absl::Status status = CheckEditable(bundle, patch); !status.ok()) return status;
  absl::StatusOr<v1::Bundle> base = BundleWith(bundle, earlier.text);
  if (!base.ok()) return base.status();
  absl::StatusOr<v1::Bundle> state = BundleWith(bundle, parent.text);
  if (!state.ok()) return state.status();
  const SourceFiles before = EditableFilesOf(*state, parent.variant);
  SourceFiles after = before;
  const absl::Status rebased =
      RebasePatch(patch, EditableFilesOf(*base, earlier.variant), &after, ContractPaths(bundle));
  if (!rebased.ok()) return rebased;
  if (absl::Status status = CheckTexts(after); !status.ok()) return status;
  return Edited(bundle, *state, parent.variant, before, after);
}

std::string NormalizedHash(const v1::Bundle& bundle, const std::string& text) {
  const absl::StatusOr<SourceFiles> files = FilesIn(bundle, text);
  if (!files.ok()) return Sha256(text);
  std::string normal;
  for (const auto& [path, content] : *files) {
    absl::StrAppend(&normal, path, "\n");
    if (path == kKernelToml) {
      normal += content;
      continue;
    }
    for (const CppToken& token : CppTokens(content)) {
      const bool directive = token.kind == CppToken::Kind::kDirective;
      // Blanks tell #define F(x) from #define F (x): the line counts as it is.
      if (directive) normal += '\n';
      normal += token.text;
      normal += directive ? '\n' : ' ';
    }
  }
  return Sha256(normal);
}

}  // namespace pawl
