// ParseSource, declared in source_model.h: what libclang says about declarations, put beside the tokens.
#include <algorithm>
#include <fstream>
#include <set>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "cli/draft/embedded.h"
#include "cli/draft/read/constants.h"
#include "cli/draft/read/cpp_expression.h"
#include "cli/draft/read/element_type.h"
#include "cli/draft/read/libclang.h"
#include "cli/draft/read/macros.h"
#include "cli/draft/read/source_model.h"
#include "kernels/limits.h"
#include "kernels/source/host_code.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxIncluded = 200;
constexpr size_t kMaxFieldName = 256;
constexpr int64_t kMaxFields = 65;  // one more than a [[struct]] may have, so that the reader of the bundle says so

absl::StatusOr<std::string> ReadText(const fs::path& file) {
  std::error_code error;
  if (fs::is_directory(file, error)) return absl::InvalidArgumentError(absl::StrCat(file.string(), " is a folder"));
  if (fs::exists(file, error) && !fs::is_regular_file(file, error)) {  // a pipe would be waited for
    return absl::InvalidArgumentError(
        absl::StrCat(file.string(), " is not a regular file: save the source in a file and name that"));
  }
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return absl::NotFoundError(absl::StrCat(file.string(), " can't be read; does it exist?"));
  std::string text(kMaxSourceBytes + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(stream.gcount()));
  if (text.size() > kMaxSourceBytes) {
    return absl::OutOfRangeError(
        absl::StrCat(file.string(), " is larger than 1 MB, the most that a bundle's file has"));
  }
  if (text.find('\0') != std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat(file.string(), " is a binary file; expected CUDA C++ source"));
  }
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat(file.string(), " is empty"));
  }
  return text;
}

// A file as it is, and where its tokens come from.
struct RawFile {
  std::unique_ptr<SourceText> text;
  std::vector<CppToken> tokens;                    // all of them
  std::vector<std::pair<size_t, size_t>> skipped;  // by #if: offsets
};

class SourceParser {
 public:
  explicit SourceParser(const clang::Functions& f) : f_(f), model_(std::make_unique<SourceModel>()) {}

  absl::StatusOr<std::unique_ptr<SourceModel>> Run(const fs::path& file) {
    std::error_code error;
    if (file.extension() == ".ptx" || file.extension() == ".cubin") {
      return absl::InvalidArgumentError(
          absl::StrCat(file.string(), " is no CUDA C++: `pawl init` reads sources. Write kernel.toml by hand, with ",
                       "`source = \"", file.filename().string(),
                       "\"`, its entries' names in [[launch]] and their "
                       "parameters in `arguments` (docs/bringing-kernels.md, PTX)"));
    }
    if (file.extension() == ".py") {
      return absl::InvalidArgumentError(
          absl::StrCat(file.string(), " is Python: `pawl init` reads CUDA C++. Save the text that it gives to the ",
                       "compiler, such as cuda_sources of load_inline, as a .cu file and name that; `--reference ",
                       file.string(), "` takes the Python that computes the same"));
    }
    folder_ = fs::weakly_canonical(file, error).parent_path();
    absl::StatusOr<std::string> text = ReadText(file);
    if (!text.ok()) return text.status();
    const std::string name = (folder_ / file.filename()).string();
    AddFile(name, file.filename().string(), *std::move(text));

    const clang::Index index = f_.createIndex(0, 0);
    const absl::Cleanup no_index = [&] { f_.disposeIndex(index); };
    clang::Unit unit = nullptr;
    const std::string stubs_name = (folder_ / "pawl-cuda-stubs.h").string();
    const std::string_view stubs = embedded::kReadCudaStubsCuh;
    clang::UnsavedFile unsaved = {stubs_name.c_str(), stubs.data(), stubs.size()};
    const std::string folder = absl::StrCat("-I", folder_.string());
    const char* const arguments[] = {"-x",
                                     "c++",
                                     "-std=c++17",
                                     "-nostdinc",
                                     "-nostdinc++",
                                     "-w",
                                     "-ferror-limit=0",
                                     "-fsyntax-only",
                                     "-Wno-everything",
                                     "-include",
                                     stubs_name.c_str(),
                                     folder.c_str()};
    const int code = f_.parseTranslationUnit2(index, name.c_str(), arguments, std::size(arguments), &unsaved, 1,
                                              clang::kKeepGoing | clang::kSkipBodies, &unit);
    if (code != 0 || unit == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat(file.string(), ": libclang could not parse it (error ", code, ")"));
    }
    const absl::Cleanup no_unit = [&] { f_.disposeTranslationUnit(unit); };
    if (absl::Status status = ReadDiagnostics(unit); !status.ok()) return status;
    ReadInclusions(unit);
    ReadSkipped(unit);
    MakeTokens();
    ReadConstants(*model_);
    f_.visitChildren(f_.getTranslationUnitCursor(unit), VisitDeclaration, this);
    std::stable_sort(
        model_->functions.begin(), model_->functions.end(),
        [](const SourceFunction& a, const SourceFunction& b) { return a.file == b.file && a.name_at < b.name_at; });
    NoteHostCode();
    ReadSymbols(*model_);
    return std::move(model_);
  }

 private:
  std::string Text(clang::String string) const {
    const char* text = f_.getCString(string);
    std::string copy = text == nullptr ? "" : text;
    f_.disposeString(string);
    return copy;
  }

  struct Place {
    std::string file;
    unsigned line = 0;
    size_t offset = 0;
  };
  Place PlaceOf(clang::Location location) const {
    clang::File file = nullptr;
    unsigned line = 0, column = 0, offset = 0;
    f_.getFileLocation(location, &file, &line, &column, &offset);
    return {file == nullptr ? "" : Canonical(Text(f_.getFileName(file))), line, offset};
  }

  static std::string Canonical(const std::string& name) { return fs::path(name).lexically_normal().string(); }

  void AddFile(const std::string& name, const std::string& path, std::string text) {
    RawFile& raw = raw_[name];
    raw.text = std::make_unique<SourceText>();
    raw.text->path = path;
    raw.text->text = std::move(text);
    raw.tokens = CppTokens(raw.text->text);
    order_.push_back(name);
  }

  absl::Status ReadDiagnostics(clang::Unit unit) {
    for (unsigned i = 0; i < f_.getNumDiagnostics(unit); ++i) {
      const clang::Diagnostic diagnostic = f_.getDiagnostic(unit, i);
      const absl::Cleanup done = [&] { f_.disposeDiagnostic(diagnostic); };
      if (f_.getDiagnosticSeverity(diagnostic) < clang::kError) continue;
      const std::string message = Text(f_.getDiagnosticSpelling(diagnostic));
      const Place place = PlaceOf(f_.getDiagnosticLocation(diagnostic));
      if (absl::StrContains(message, "nested too deeply")) {
        return absl::InvalidArgumentError(
            absl::StrCat(place.file, ":", place.line, ": the file includes itself without end: add #pragma once"));
      }
      const std::vector<std::string> quoted = absl::StrSplit(message, '\'');
      if (absl::StrContains(message, "file not found") && quoted.size() > 2) {
        NoteMissing(quoted[1], place);
      } else if (model_->first_error.empty() && raw_.contains(place.file)) {
        model_->first_error = absl::StrCat(raw_[place.file].text->path, ":", place.line, ": ", message);
      }
    }
    return absl::OkStatus();
  }

  // In quotes it should be a file of the user's; in <> a library's.
  void NoteMissing(const std::string& path, const Place& place) {
    std::vector<std::string>& list = IsQuoted(path, place) ? model_->missing : model_->includes;
    if (std::find(list.begin(), list.end(), path) == list.end()) list.push_back(path);
    for (const char* folder : {"torch/", "ATen/", "c10/"})
      model_->torch = model_->torch || absl::StartsWith(path, folder);
  }

  bool IsQuoted(const std::string& path, const Place& place) const {
    const auto raw = raw_.find(place.file);
    std::string text;
    if (raw != raw_.end()) {
      text = raw->second.text->text;
    } else if (absl::StatusOr<std::string> read = ReadText(place.file); read.ok()) {
      text = *std::move(read);
    }
    return absl::StrContains(text, absl::StrCat("\"", path, "\""));
  }

  void ReadInclusions(clang::Unit unit) {
    f_.getInclusions(
        unit,
        [](clang::File file, clang::Location*, unsigned, void* data) {
          auto* self = static_cast<SourceParser*>(data);
          const std::string name = Canonical(self->Text(self->f_.getFileName(file)));
          if (self->raw_.contains(name) || self->raw_.size() > kMaxIncluded ||
              absl::EndsWith(name, "pawl-cuda-stubs.h")) {
            return;
          }
          absl::StatusOr<std::string> text = ReadText(name);
          if (text.ok()) self->AddFile(name, fs::path(name).lexically_relative(self->folder_).string(), *text);
        },
        this);
  }

  void ReadSkipped(clang::Unit unit) {
    clang::RangeList* list = f_.getAllSkippedRanges(unit);
    if (list == nullptr) return;
    for (unsigned i = 0; i < list->count; ++i) {
      const Place begin = PlaceOf(f_.getRangeStart(list->ranges[i])), end = PlaceOf(f_.getRangeEnd(list->ranges[i]));
      if (const auto raw = raw_.find(begin.file); raw != raw_.end()) {
        raw->second.skipped.push_back({begin.offset, end.offset});
      }
    }
    f_.disposeSourceRangeList(list);
  }

  static bool IsSkipped(const RawFile& raw, const CppToken& token) {
    return std::any_of(raw.skipped.begin(), raw.skipped.end(), [&](const std::pair<size_t, size_t>& range) {
      return token.offset > range.first && token.offset < range.second;
    });
  }

  void MakeTokens() {
    MacroTable macros;
    std::map<std::string, std::vector<CppToken>> active;
    for (const std::string& name : order_) {
      const RawFile& raw = raw_.at(name);
      for (const CppToken& token : raw.tokens) {
        if (IsSkipped(raw, token)) continue;
        if (token.kind == CppToken::Kind::kDirective) macros.Read(token);
        active[name].push_back(token);
      }
    }
    for (const std::string& name : order_) {
      RawFile& raw = raw_.at(name);
      for (const CppToken& token : active[name]) {
        if (token.kind == CppToken::Kind::kDirective) NoteDefine(token, *raw.text);
      }
      raw.text->tokens = macros.Expand(active[name]);
      by_name_[name] = raw.text.get();
      model_->files.push_back(std::move(raw.text));
    }
  }

  void NoteDefine(const CppToken& directive, const SourceText& file) {
    const std::vector<CppToken> tokens = DirectiveTokens(directive);
    if (tokens.size() < 4 || !tokens[1].Is("define") || !tokens[2].IsWord()) return;
    if (tokens[3].Is("(") && tokens[3].offset == tokens[2].offset + tokens[2].text.size()) return;
    AddDefinedConstant(tokens, file, *model_);
  }

  static int VisitDeclaration(clang::Cursor cursor, clang::Cursor, void* data) {
    auto* self = static_cast<SourceParser*>(data);
    switch (cursor.kind) {
      case clang::kNamespace: {
        self->scopes_.push_back(self->Text(self->f_.getCursorSpelling(cursor)));
        self->f_.visitChildren(cursor, VisitDeclaration, data);
        self->scopes_.pop_back();
        return clang::kContinue;
      }
      case clang::kLinkage:
      case clang::kUnexposedDeclaration:
        return clang::kRecurse;
      case clang::kFunction:
      case clang::kFunctionTemplate:
      case clang::kMethod:
      case clang::kConstructor:
        self->AddFunction(cursor);
        return clang::kContinue;
      case clang::kStruct:
      case clang::kClass:
      case clang::kClassTemplate: {
        self->AddRecord(cursor);
        self->scopes_.push_back(self->Text(self->f_.getCursorSpelling(cursor)));
        ++self->classes_;
        self->f_.visitChildren(cursor, VisitDeclaration, data);
        --self->classes_;
        self->scopes_.pop_back();
        return clang::kContinue;
      }
      case clang::kTypedef:
      case clang::kAlias:
        self->AddRecord(cursor);
        return clang::kContinue;
      default:
        return clang::kContinue;
    }
  }

  void AddRecord(clang::Cursor cursor) {
    const clang::Type type = f_.getCanonicalType(f_.getCursorType(cursor));
    const int64_t bytes = type.kind == clang::kTypeRecord ? f_.Type_getSizeOf(type) : 0;
    if (bytes <= 0) return;
    const std::string name = Text(f_.getCursorSpelling(cursor));
    model_->record_bytes.emplace(name, bytes);
    std::string qualified;
    for (const std::string& scope : scopes_) {
      if (!scope.empty()) absl::StrAppend(&qualified, scope, "::");
    }
    model_->record_bytes.emplace(absl::StrCat(qualified, name), bytes);
  }

  void AddFunction(clang::Cursor cursor) {
    const Place place = PlaceOf(f_.getCursorLocation(cursor));
    const auto file = by_name_.find(place.file);
    if (file == by_name_.end()) return;
    SourceFunction function;
    function.file = file->second;
    function.name = Text(f_.getCursorSpelling(cursor));
    function.name = function.name.substr(0, function.name.find('<'));
    function.line = static_cast<int>(place.line);
    const std::vector<CppToken>& tokens = function.file->tokens;
    function.name_at = tokens.size();
    auto at = std::lower_bound(tokens.begin(), tokens.end(), place.offset,
                               [](const CppToken& token, size_t offset) { return token.offset < offset; });
    for (; at != tokens.end() && at->offset == place.offset; ++at) {
      if (at->text == function.name) function.name_at = static_cast<size_t>(at - tokens.begin());
      // The ) of operator() stands for its name.
      if (function.name == "operator()" && at->Is("operator"))
        function.name_at = std::min(static_cast<size_t>(at - tokens.begin()) + 2, tokens.size());
    }
    if (function.name_at >= tokens.size()) return;
    if (!FindBody(tokens, function)) {
      if (function.body < tokens.size() && tokens[function.body].Is("{") && model_->first_error.empty()) {
        model_->first_error = absl::StrCat(function.file->path, ":", function.line, ": the brackets of ", function.name,
                                           " do not match: its { is never closed");
      }
      return;
    }
    ReadHead(tokens, function);
    std::vector<std::string> scopes;
    for (const std::string& scope : scopes_) {
      if (!scope.empty()) scopes.push_back(scope);
    }
    // void Layer::run() {} outside of the class
    const bool outside = classes_ == 0 && (cursor.kind == clang::kMethod || cursor.kind == clang::kConstructor);
    if (const std::string own = outside ? ClassOf(tokens, function) : ""; !own.empty()) scopes.push_back(own);
    function.method = classes_ > 0 || outside;
    if (function.method && !IsOfHost(tokens, function)) return;
    scopes.push_back(function.name);
    function.qualified = absl::StrJoin(scopes, "::");
    visited_ = &function;
    f_.visitChildren(cursor, VisitParameter, this);
    model_->functions.push_back(std::move(function));
  }

  // Layer of Layer<T>::run
  static std::string ClassOf(const std::vector<CppToken>& tokens, const SourceFunction& function) {
    size_t at = function.name_at - (function.name == "operator()" ? 2 : 0);
    if (at < 2 || !tokens[at - 1].Is("::")) return "";
    at -= 2;
    for (int depth = 0; at > 0; --at) {
      depth += tokens[at].Is(">") ? 1 : tokens[at].Is("<") ? -1 : 0;
      if (depth == 0 && tokens[at].IsWord()) return std::string(tokens[at].text);
    }
    return "";
  }

  // Of the functions of a class those that launch kernels or make their memory.
  static bool IsOfHost(const std::vector<CppToken>& tokens, const SourceFunction& function) {
    if (function.kernel || function.device) return false;
    return CallsHost(tokens, function.body, ClosingBracket(tokens, function.body));
  }

  static bool FindBody(const std::vector<CppToken>& tokens, SourceFunction& function) {
    size_t at = function.name_at + 1;
    if (at < tokens.size() && tokens[at].Is("<")) at = SkipTemplateArguments(tokens, at, tokens.size());
    if (at >= tokens.size() || !tokens[at].Is("(")) return false;
    at = ClosingBracket(tokens, at) + 1;
    bool members = false;  // a constructor's initialisers, : n_(n)
    while (at < tokens.size() && !tokens[at].Is("{")) {
      if (tokens[at].Is(";") || tokens[at].Is("=")) return false;
      members = members || tokens[at].Is(":");
      const bool value = members && tokens[at].IsWord() && at + 1 < tokens.size() && tokens[at + 1].Is("{");
      if (value) ++at;  // n_{n}
      at = value || tokens[at].Is("(") ? ClosingBracket(tokens, at) + 1 : at + 1;
    }
    function.body = at;
    return at < tokens.size() && ClosingBracket(tokens, at) < tokens.size();
  }

  static void ReadHead(const std::vector<CppToken>& tokens, SourceFunction& function) {
    size_t head = function.name_at;
    int brackets = 0;  // __launch_bounds__(decltype(size(Layout{}))::value)
    while (head > 0) {
      const CppToken& before = tokens[head - 1];
      brackets += before.Is(")") ? 1 : before.Is("(") ? -1 : 0;
      if (brackets > 0) {
        --head;
        continue;
      }
      if (before.Is(";") || before.Is("}") || before.Is("{") || before.kind == CppToken::Kind::kDirective) break;
      --head;
    }
    function.head = head;
    if (head > 1 && tokens[head - 1].Is("{") && tokens[head - 2].Is("\"C\"")) function.extern_c = true;
    for (size_t i = head; i < function.name_at; ++i) {
      if (tokens[i].Is("__global__")) function.kernel = true;
      if (tokens[i].Is("__device__")) function.device = true;
      if (tokens[i].Is("\"C\"")) function.extern_c = true;
      if (tokens[i].text.ends_with("_DEVICE")) function.device = true;
      if ((tokens[i].Is("__launch_bounds__") || tokens[i].text.starts_with("C10_LAUNCH_BOUNDS")) &&
          tokens[i + 1].Is("(")) {
        function.launch_bounds = TokensText(tokens, i + 2, ClosingBracket(tokens, i + 1));
      }
      if (tokens[i].Is("template") && tokens[i + 1].Is("<")) ReadTemplates(tokens, i + 1, function);
    }
  }

  static void ReadTemplates(const std::vector<CppToken>& tokens, size_t open, SourceFunction& function) {
    const size_t behind = TemplateListEnd(tokens, open);
    for (const auto& [from, to] : SplitAtCommas(tokens, open + 1, behind - 1)) {
      size_t equals = from;
      while (equals < to && !tokens[equals].Is("=")) ++equals;
      if (equals == from) continue;
      TemplateParameter parameter;
      // T (*F)(T): the argument is a function.
      const size_t open_name = FunctionName(tokens, from, equals);
      if (open_name != 0) {
        parameter.name = tokens[open_name].text;
        parameter.kind = "function";
        if (equals < to) parameter.fallback = TokensText(tokens, equals + 1, to);
        function.templates.push_back(std::move(parameter));
        continue;
      }
      if (!tokens[equals - 1].IsWord()) continue;
      parameter.name = tokens[equals - 1].text;
      parameter.is_type = tokens[from].Is("typename") || tokens[from].Is("class");
      parameter.kind = TokensText(tokens, from, equals - 1);
      if (equals < to) parameter.fallback = TokensText(tokens, equals + 1, to);
      // typename = enable_if_t<...> and the like have no name and are not ours to choose.
      if (parameter.name == "typename" || parameter.name == "class") continue;
      function.templates.push_back(std::move(parameter));
    }
  }

  // F of T (*F)(T) and T (&F)(T); 0: it is no function.
  static size_t FunctionName(const std::vector<CppToken>& tokens, size_t from, size_t to) {
    for (size_t i = from; i + 4 < to; ++i) {
      if (tokens[i].Is("(") && (tokens[i + 1].Is("*") || tokens[i + 1].Is("&")) && tokens[i + 2].IsWord() &&
          tokens[i + 3].Is(")") && tokens[i + 4].Is("(")) {
        return i + 2;
      }
    }
    return 0;
  }

  // SkipTemplateArguments stops at a default's =.
  static size_t TemplateListEnd(const std::vector<CppToken>& tokens, size_t open) {
    int depth = 0;
    for (size_t i = open; i < tokens.size(); ++i) {
      if (tokens[i].Is("<")) ++depth;
      if (tokens[i].Is("(")) i = ClosingBracket(tokens, i);
      if (i < tokens.size() && tokens[i].Is(">") && --depth == 0) return i + 1;
    }
    return open + 1;
  }

  static int VisitParameter(clang::Cursor cursor, clang::Cursor, void* data) {
    auto* self = static_cast<SourceParser*>(data);
    if (cursor.kind == clang::kParameter) self->visited_->parameters.push_back(self->ParameterOf(cursor));
    return clang::kContinue;
  }

  SourceParameter ParameterOf(clang::Cursor cursor) {
    SourceParameter parameter;
    parameter.name = Text(f_.getCursorSpelling(cursor));
    parameter.type = TypeOf(f_.getCursorType(cursor));
    const Place place = PlaceOf(f_.getCursorLocation(cursor));
    NoteUnknownType(place, parameter);
    clang::Type type = f_.getCanonicalType(f_.getCursorType(cursor));
    // A host function may take its struct by reference.
    const bool refers = type.kind == clang::kTypeReference && !visited_->kernel && !visited_->device;
    if (refers) type = f_.getCanonicalType(f_.getPointeeType(type));
    if (!parameter.type.record && (!refers || type.kind != clang::kTypeRecord)) return parameter;
    fields_ = &parameter.fields;
    f_.Type_visitFields(type, VisitField, this);
    return parameter;
  }

  static int VisitField(clang::Cursor field, void* data) {
    auto* self = static_cast<SourceParser*>(data);
    self->AddField(absl::StrCat(self->prefix_, self->Text(self->f_.getCursorSpelling(field))),
                   self->f_.getCursorType(field));
    return clang::kContinue;
  }

  // int stride[3] is the fields stride[0], stride[1] and stride[2].
  void AddField(const std::string& name, clang::Type type) {
    const clang::Type canonical = f_.getCanonicalType(type);
    if (canonical.kind == clang::kTypeConstantArray) {
      const int64_t count = std::min<int64_t>(f_.getArraySize(canonical), kMaxFields);
      for (int64_t i = 0; i < count && fields_->size() < static_cast<size_t>(kMaxFields); ++i)
        AddField(absl::StrCat(name, "[", i, "]"), f_.getArrayElementType(canonical));
      return;
    }
    SourceParameter made;
    made.name = name;
    made.type = TypeOf(type);
    // A struct in a struct is its fields; a __half is a number, however libclang sees it.
    const std::optional<ElementType> plain = ElementTypeOf(made.type.element);
    if (made.type.record && (!plain || plain->width > 1) && name.size() < kMaxFieldName) {
      const std::string outer = std::exchange(prefix_, absl::StrCat(name, "."));
      f_.Type_visitFields(canonical, VisitField, this);
      prefix_ = outer;
      return;
    }
    fields_->push_back(std::move(made));
  }

  SourceType TypeOf(clang::Type type) const {
    SourceType made;
    made.spelling = Text(f_.getTypeSpelling(type));
    clang::Type inner = type, canonical = f_.getCanonicalType(type);
    while (canonical.kind == clang::kTypePointer || canonical.kind == clang::kTypeReference) {
      ++made.pointers;
      const clang::Type pointee = f_.getPointeeType(inner);
      canonical = f_.getCanonicalType(f_.getPointeeType(canonical));
      inner = pointee.kind == 0 ? canonical : pointee;
      made.is_const = f_.isConstQualifiedType(canonical) != 0;
    }
    made.record = made.pointers == 0 && canonical.kind == clang::kTypeRecord;
    made.bytes = std::max(0LL, f_.Type_getSizeOf(canonical));
    made.element = Text(f_.getTypeSpelling(canonical));
    // type-parameter-0-0: the name of a template's parameter.
    if (absl::StrContains(made.element, "type-parameter")) made.element = Text(f_.getTypeSpelling(inner));
    for (const char* word : {"const ", "volatile ", "struct "}) {
      while (absl::StartsWith(made.element, word)) made.element.erase(0, std::string_view(word).size());
    }
    return made;
  }

  // Of a type whose header is missing libclang makes an int.
  void NoteUnknownType(const Place& place, SourceParameter& parameter) const {
    const std::vector<CppToken>& tokens = visited_->file->tokens;
    if (parameter.type.element != "int") return;
    size_t at = 0;
    while (at < tokens.size() && tokens[at].offset < place.offset) ++at;
    const size_t open = visited_->name_at + 1;
    std::string written;
    bool is_int = false;
    for (const auto& [from, to] : SplitAtCommas(tokens, open + 1, ClosingBracket(tokens, open))) {
      if (at < from || at >= to) continue;
      for (size_t i = from; i < to && i < at; ++i) {
        if (tokens[i].Is("=")) break;
        static const auto& plain = *new std::set<std::string_view>{"int", "signed", "int32_t", "unsigned"};
        is_int = is_int || plain.contains(tokens[i].text);
        if (tokens[i].IsWord() && !tokens[i].Is("const") && !tokens[i].Is("__restrict__")) {
          if (!written.empty()) written += ' ';
          written += tokens[i].text;
        }
      }
    }
    if (is_int || written.empty()) return;
    // A typedef of int that is known keeps its name in the spelling.
    if (absl::StrContains(parameter.type.spelling, written)) return;
    parameter.type.unknown = true;
    parameter.type.element = written;
  }

  void NoteHostCode() {
    for (const SourceFunction& function : model_->functions) {
      if (!function.kernel && !function.device) model_->host_code = true;
    }
    for (const std::unique_ptr<SourceText>& file : model_->files) {
      for (const CppToken& token : file->tokens) model_->host_code = model_->host_code || token.Is("<<<");
    }
  }

  std::string prefix_;  // of the fields of a struct in a struct
  const clang::Functions& f_;
  std::unique_ptr<SourceModel> model_;
  fs::path folder_;
  std::map<std::string, RawFile> raw_;
  std::vector<std::string> order_;
  std::map<std::string, const SourceText*> by_name_;
  std::vector<std::string> scopes_;
  int classes_ = 0;  // of which the declaration is a member
  SourceFunction* visited_ = nullptr;
  std::vector<SourceParameter>* fields_ = nullptr;
};

// Folders that a path leads up.
ptrdiff_t Upwards(const fs::path& path) { return std::count(path.begin(), path.end(), ".."); }

// A bundle has everything in one folder: where the source includes files from above its own, that is the one above all.
void RootAtCommonFolder(const fs::path& source, SourceModel& model) {
  ptrdiff_t up = 0;
  for (const std::unique_ptr<SourceText>& file : model.files) up = std::max(up, Upwards(file->path));
  const fs::path folder = fs::absolute(source).lexically_normal().parent_path();
  const std::vector<fs::path> names(folder.begin(), folder.end());
  if (up == 0 || up >= static_cast<ptrdiff_t>(names.size())) return;
  fs::path below;
  for (auto name = names.end() - up; name != names.end(); ++name) below /= *name;
  for (const std::unique_ptr<SourceText>& file : model.files) {
    file->path = (below / file->path).lexically_normal().generic_string();
  }
}

}  // namespace

const SourceFunction* SourceModel::Find(const std::string& name) const {
  for (const bool method : {false, true}) {  // a kernel may have the name of a member that launches it
    for (const SourceFunction& function : functions) {
      if (function.method == method && (function.name == name || function.qualified == name)) return &function;
    }
  }
  return nullptr;
}

std::string SourceModel::NameFor(const SourceFunction& function) const {
  const auto others = std::count_if(functions.begin(), functions.end(), [&](const SourceFunction& other) {
    return other.name == function.name && other.qualified != function.qualified;
  });
  return others == 0 ? function.name : function.qualified;
}

const SourceConstant* SourceModel::FindConstant(const std::string& name) const {
  for (const SourceConstant& constant : constants) {
    if (constant.name == name) return &constant;
  }
  return nullptr;
}

absl::StatusOr<std::unique_ptr<SourceModel>> ParseSource(const fs::path& file) {
  absl::StatusOr<clang::Functions> functions = clang::Load();
  if (!functions.ok()) return functions.status();
  absl::StatusOr<std::unique_ptr<SourceModel>> model = SourceParser(*functions).Run(file);
  if (model.ok()) RootAtCommonFolder(file, **model);
  return model;
}

}  // namespace pawl
