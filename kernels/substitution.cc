#include "kernels/substitution.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/names/utf8.h"
#include "kernels/source/host_code.h"
#include "kernels/variable_values.h"

namespace pawl {
namespace {

bool IsWordCharacterOf(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// Whether a text that begins or ends between these two characters cuts a word.
bool CutsWord(char left, char right) { return IsWordCharacterOf(left) && IsWordCharacterOf(right); }

int32_t SubstitutedValue(const v1::Variant& variant, const v1::Variable& variable) {
  const auto it = variant.values().find(variable.name());
  return it == variant.values().end() ? variable.start() : it->second;
}

// One value that goes into one file.
struct Substitution {
  TextPlace place;
  std::string text;
};

void Apply(std::vector<Substitution> substitutions, std::string& text) {
  std::sort(substitutions.begin(), substitutions.end(),
            [](const Substitution& a, const Substitution& b) { return a.place.begin > b.place.begin; });
  for (const Substitution& substitution : substitutions) {
    text.replace(substitution.place.begin, substitution.place.end - substitution.place.begin, substitution.text);
  }
}

absl::Status NotOnce(const v1::Variable& variable, size_t count) {
  return absl::InvalidArgumentError(
      absl::StrCat("the variable ", variable.name(), " replaces \"", Printable(variable.replaces()), "\" with ",
                   ValueText(variable, variable.start()), " for {}, which occurs ",
                   count == 0 ? "nowhere" : absl::StrCat(count, " times"), " in the source; expected once"));
}

absl::Status WriteValues(const v1::Bundle& bundle, const v1::Variant& variant,
                         const std::vector<v1::SourceFile*>& files) {
  std::map<v1::SourceFile*, std::vector<Substitution>> found;
  for (const v1::Variable& variable : bundle.variables()) {
    if (variable.replaces().empty()) continue;
    size_t count = 0;
    for (v1::SourceFile* file : files) {
      for (const TextPlace& place :
           PlacesOf(variable.replaces(), ValueText(variable, variable.start()), file->text())) {
        found[file].push_back({place, ValueText(variable, SubstitutedValue(variant, variable))});
        ++count;
      }
    }
    if (count != 1) return NotOnce(variable, count);
  }
  for (auto& [file, substitutions] : found) Apply(std::move(substitutions), *file->mutable_text());
  return absl::OkStatus();
}

// Host code out of every file; where NVRTC compiles, PyTorch's headers that device code uses a little of come in.
void SkipHostCode(v1::Compiler compiler, CompiledFiles& compiled) {
  std::vector<v1::SourceFile*> texts = {&compiled.source};
  for (v1::SourceFile& file : compiled.files) texts.push_back(&file);
  std::vector<std::string> macros;
  for (const v1::SourceFile* file : texts) {
    const std::vector<std::string> own = DeviceMacros(file->text());
    macros.insert(macros.end(), own.begin(), own.end());
  }
  std::vector<std::string_view> views;
  for (v1::SourceFile* file : texts) {
    if (file->text().empty()) continue;
    file->set_text(WithoutHostCode(file->text(), compiler, macros));
    views.push_back(file->text());
  }
  if (compiler == v1::COMPILER_NVCC) return;
  // A function that says neither __host__ nor __device__ and is left, a constexpr one or a method, is meant for both.
  compiled.options.push_back("-default-device");
  for (const auto& [path, text] : StandInHeaders(views)) {
    const bool own = std::any_of(compiled.files.begin(), compiled.files.end(),
                                 [&](const v1::SourceFile& file) { return file.path() == path; });
    if (own) continue;
    v1::SourceFile& file = compiled.files.emplace_back();
    file.set_path(path);
    file.set_text(text);
  }
}

}  // namespace

std::vector<TextPlace> PlacesOf(std::string_view pattern, std::string_view value, std::string_view text) {
  std::vector<TextPlace> places;
  const size_t hole = pattern.find("{}");
  if (hole == std::string_view::npos) return places;
  std::string whole(pattern.substr(0, hole));
  whole += value;
  whole += pattern.substr(hole + 2);
  for (size_t at = text.find(whole); at != std::string_view::npos; at = text.find(whole, at + 1)) {
    const size_t end = at + whole.size();
    if (at > 0 && CutsWord(text[at - 1], text[at])) continue;
    if (end < text.size() && CutsWord(text[end - 1], text[end])) continue;
    places.push_back({at + hole, at + hole + value.size()});
  }
  return places;
}

bool IsReplacedText(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const unsigned char c = static_cast<unsigned char>(text[i]);
    const bool line_end = c == '\n' || (c == '\r' && i + 1 < text.size() && text[i + 1] == '\n');
    if (c == 127 || (c < ' ' && c != '\t' && !line_end)) return false;
  }
  return true;
}

absl::Status CheckReplaced(const v1::Bundle& bundle, const v1::Variable& variable) {
  if (!IsReplacedText(variable.replaces())) {
    return absl::InvalidArgumentError(
        absl::StrCat("the variable ", variable.name(), ": replaces has a control character; expected lines of text"));
  }
  const std::string start = ValueText(variable, variable.start());
  size_t count = PlacesOf(variable.replaces(), start, bundle.source().text()).size();
  for (const v1::SourceFile& file : bundle.files()) count += PlacesOf(variable.replaces(), start, file.text()).size();
  return count == 1 ? absl::OkStatus() : NotOnce(variable, count);
}

bool ChangesFiles(const v1::Bundle& bundle) {
  return bundle.skip_host_code() ||
         std::any_of(bundle.variables().begin(), bundle.variables().end(),
                     [](const v1::Variable& variable) { return !variable.replaces().empty(); });
}

absl::StatusOr<CompiledFiles> FilesToCompile(const v1::Bundle& bundle, const v1::Variant& variant) {
  CompiledFiles compiled;
  compiled.source = bundle.source();
  compiled.files.assign(bundle.files().begin(), bundle.files().end());
  std::vector<v1::SourceFile*> files = {&compiled.source};
  for (v1::SourceFile& file : compiled.files) files.push_back(&file);
  if (absl::Status status = WriteValues(bundle, variant, files); !status.ok()) return status;
  if (bundle.skip_host_code()) SkipHostCode(bundle.compiler(), compiled);
  return compiled;
}

}  // namespace pawl
