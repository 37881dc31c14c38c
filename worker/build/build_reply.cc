#include "worker/build/build_reply.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/names/utf8.h"
#include "base/sync/steady_time.h"
#include "kernels/bundle_message.h"
#include "kernels/entry_name.h"
#include "kernels/source/active_source.h"
#include "worker/build/compilation.h"
#include "worker/build/compiler_log.h"
#include "worker/build/cubin.h"
#include "worker/build/entry_markers.h"
#include "worker/build/implied_names.h"
#include "worker/build/source_paths.h"
#include "worker/build/source_tree.h"
#include "worker/host/header_libraries.h"

namespace pawl {
namespace {

constexpr size_t kLogCap = 1 << 20;
// What NVRTC calls the text that it makes of name expressions.
constexpr char kNameMap[] = "__nv_name_map", kNvrtcPragma[] = "#pragma nv_mangled_name ";
constexpr char kImplied[] = "pawl_implied_names.h";
constexpr char kOutOfMemory[] = "out of memory: ";  // begins the message of a failure that deserves another try

std::string Name(const v1::BuildRequest& request) { return request.name().empty() ? "kernel.cu" : request.name(); }

bool IsArchitecture(const std::string& text) {
  return text.starts_with("sm_") && text.size() > 3 &&
         std::all_of(text.begin() + 3, text.end(), [](char c) { return absl::ascii_isalnum(c); });
}

bool IsPtx(const v1::BuildRequest& request) { return absl::EndsWith(Name(request), ".ptx"); }

// The files that have this name, whatever folder they are in.
std::vector<std::string> FilesNamed(const SourceTexts& texts, const std::string& name) {
  std::vector<std::string> found;
  for (const auto& [path, text] : texts) {
    if (path.substr(path.rfind('/') + 1) == name) found.push_back(path);
  }
  return found;
}

// A folder of the bundle in which a compile option has headers looked for: -Iinclude.
std::optional<std::string> OwnIncludeFolder(const std::string& option) {
  absl::string_view rest = option;
  if (!absl::ConsumePrefix(&rest, "-I") && !absl::ConsumePrefix(&rest, "--include-path=")) return std::nullopt;
  if (rest.empty() || IsOutside(rest) || absl::StrContains(rest, "@")) return std::nullopt;
  return std::string(rest);
}

// `tree` is where the bundle's files are, where the compiler does not stand there.
std::vector<std::string> Options(const v1::BuildRequest& request, const Toolkit& toolkit,
                                 const std::vector<std::string>& include_folders, const std::string& tree) {
  std::vector<std::string> options = {absl::StrCat("-arch=", request.architecture())};
  if (!IsPtx(request)) {
    const bool has_standard = std::any_of(request.options().begin(), request.options().end(), [](const std::string& o) {
      return o.starts_with("-std") || o.starts_with("--std");
    });
    if (!has_standard) options.push_back("--std=c++17");
    for (const std::string& folder : include_folders) options.push_back(absl::StrCat("-I", folder));
    for (const std::string& folder : ToolkitFolders(toolkit.include)) options.push_back(absl::StrCat("-I", folder));
  }
  for (const std::string& option : request.options()) {
    const std::optional<std::string> own = tree.empty() ? std::nullopt : OwnIncludeFolder(option);
    options.push_back(own ? absl::StrCat("-I", tree, "/", *own) : option);
  }
  return options;
}

// The message about a place in one of the request's files, with its line.
std::string PlaceText(const v1::BuildRequest& request, CompilerError error) {
  error.file = NormalPath(error.file);
  const SourceTexts texts = TextsOf(request);
  const auto text = texts.find(error.file);
  return text == texts.end() ? ErrorText(error, "", "") : ErrorText(error, text->first, *text->second);
}

v1::Failure Refused(const v1::BuildRequest& request, const std::string& file, int line, const std::string& path) {
  const std::string what = path.empty() ? "the source asks for a file by way of a macro"
                                        : absl::StrCat("the source asks for \"", path, "\"");
  return BuildFailure(
      v1::CHECK_BUILD_SANDBOX,
      PlaceText(
          request,
          {file, line, absl::StrCat(what, ": a build sees only its own files, the toolkit and the system's headers")}));
}

// Where one of the files makes the compiler read a file that is none of them.
struct AskedFor {
  std::string file;
  OutsidePath path;
};

std::vector<AskedFor> AskedForOutside(const v1::BuildRequest& request) {
  const SourceTexts texts = TextsOf(request);
  std::vector<AskedFor> asked;
  for (const auto& [file, text] : texts) {
    for (OutsidePath& path : OutsidePaths(*text)) {
      if (path.directive != ".incbin" && !IncludedFile(texts, file, path.path).empty()) continue;
      asked.push_back({file, std::move(path)});
    }
  }
  return asked;
}

// The first place where a file includes one outside of what the sandbox shows. A toolkit header by its full path is
// allowed.
std::optional<v1::Failure> Stolen(const v1::BuildRequest& request, bool compiled) {
  for (const auto& [file, asked] : AskedForOutside(request)) {
    const bool assembly = asked.directive == ".incbin";
    if (compiled && !assembly) continue;  // the compiler saw nothing there, and that was all right
    if (!assembly && (asked.path.empty() || access(asked.path.c_str(), R_OK) == 0)) continue;
    return Refused(request, file, asked.line, asked.path);
  }
  return std::nullopt;
}

// Whether an option steers the compiler and nothing else. Others have it run programs (-Xcompiler=-wrapper,...), hand
// on what it does not know to such programs, or write files.
bool SteersCompiler(absl::string_view option) {
  static constexpr absl::string_view kNames[] = {"define-macro",
                                                 "undefine-macro",
                                                 "include-path",
                                                 "std",
                                                 "optimize",
                                                 "dopt",
                                                 "Ofast-compile",
                                                 "ofast-compile",
                                                 "maxrregcount",
                                                 "use_fast_math",
                                                 "ftz",
                                                 "prec-div",
                                                 "prec-sqrt",
                                                 "fmad",
                                                 "lineinfo",
                                                 "generate-line-info",
                                                 "G",
                                                 "device-debug",
                                                 "restrict",
                                                 "extra-device-vectorization",
                                                 "expt-extended-lambda",
                                                 "extended-lambda",
                                                 "expt-relaxed-constexpr",
                                                 "device-as-default-execution-space",
                                                 "default-device",
                                                 "modify-stack-limit",
                                                 "builtin-move-forward",
                                                 "builtin-initializer-list",
                                                 "split-compile",
                                                 "Xptxas",
                                                 "ptxas-options",
                                                 "v",
                                                 "verbose",
                                                 "resource-usage",
                                                 "res-usage",
                                                 "w",
                                                 "disable-warnings",
                                                 "Wno-deprecated-declarations",
                                                 "Wno-deprecated-gpu-targets",
                                                 "Werror",
                                                 "diag-suppress",
                                                 "diag-warn",
                                                 "diag-error",
                                                 "err-no",
                                                 "display-error-number"};
  // nvcc hands on its options by a shell: macros in double quotes, those of ptxas in none.
  if (option.find_first_of("$`") != option.npos) return false;
  if (absl::StrContains(option, "ptxas") && option.find_first_of(";&|<>()\n") != option.npos) return false;
  if (!absl::ConsumePrefix(&option, "-")) return false;
  if (!absl::ConsumePrefix(&option, "-")) {
    for (const absl::string_view joined : {"D", "U", "I"}) {  // -DNAME=1
      if (option.size() > 1 && absl::StartsWith(option, joined)) return true;
    }
    if (option.size() == 2 && option[0] == 'O' && absl::ascii_isdigit(option[1])) return true;
  }
  const absl::string_view name = option.substr(0, option.find_first_of("= "));
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

// The weaker guard, before compiling, where there is no sandbox.
std::optional<v1::Failure> RefuseUnread(const v1::BuildRequest& request) {
  const std::vector<AskedFor> asked = AskedForOutside(request);
  if (!asked.empty()) return Refused(request, asked[0].file, asked[0].path.line, asked[0].path.path);
  for (const std::string& option : request.options()) {
    if (!SteersCompiler(option)) {
      return BuildFailure(v1::CHECK_BUILD_SANDBOX,
                          absl::StrCat("the compile option \"", option,
                                       "\" is none of those that steer the device compiler and nothing else (such as "
                                       "-O, -maxrregcount, --use_fast_math, -Xptxas=), which only a build sandbox "
                                       "allows"));
    }
    if (!absl::StrContains(option, "..") && !absl::StrContains(option, "/") && !absl::StrContains(option, "@") &&
        !absl::StrContains(option, "~")) {
      continue;
    }
    if (OwnIncludeFolder(option)) continue;
    return BuildFailure(v1::CHECK_BUILD_SANDBOX, absl::StrCat("the compile option \"", option,
                                                              "\" names a path, which only a build sandbox allows"));
  }
  return std::nullopt;
}

// What the options define as numbers. A file may define another value for the rest: of several, nothing is known.
std::map<std::string, int64_t> MacrosOf(const v1::BuildRequest& request) {
  std::map<std::string, int64_t> macros;
  if (request.files_size() > 0) return macros;
  for (absl::string_view option : request.options()) {
    if (!absl::ConsumePrefix(&option, "-D")) continue;
    const std::pair<absl::string_view, absl::string_view> macro = absl::StrSplit(option, absl::MaxSplits('=', 1));
    if (int64_t value = 0; absl::SimpleAtoi(macro.second, &value)) macros[std::string(macro.first)] = value;
  }
  return macros;
}

// A source that knows when it was compiled. The builder's clock stands still (builder_main.cc), so that it would learn
// nothing; it is refused all the same, so that its author hears of it.
std::optional<v1::Failure> AskedForTime(const v1::BuildRequest& request) {
  std::vector<std::pair<std::string, std::string>> files = {{Name(request), request.source()}};
  for (const v1::SourceFile& file : request.files()) files.push_back({file.path(), file.text()});
  for (const auto& [name, text] : files) {
    const std::string active = ActiveSource(text, MacrosOf(request));
    for (const char* macro : {"__TIME__", "__DATE__", "__TIMESTAMP__"}) {
      if (!absl::StrContains(active, macro)) continue;
      const std::string before = text.substr(0, text.find(macro));
      const int line = 1 + static_cast<int>(std::count(before.begin(), before.end(), '\n'));
      const std::string what =
          absl::StrCat("the source uses ", macro, ": the same variant must give the same code whenever it is compiled");
      return BuildFailure(v1::CHECK_COMPILE, ErrorText({name, line, what}, name, text));
    }
  }
  return std::nullopt;
}

// What to write in kernel.toml for a header that was not found.
std::string MissingHeaderHint(const v1::BuildRequest& request, const std::string& header, const std::string& includer) {
  const SourceTexts texts = TextsOf(request);
  const bool of_library = FilesNamed(texts, includer.substr(includer.rfind('/') + 1)).empty();
  const bool standard = header.find_first_of("./") == std::string::npos;  // <execution>
  if (request.compiler() == v1::COMPILER_NVRTC && (of_library || standard)) {
    return "; NVRTC has none of the host's headers: `compiler = \"nvcc\"` in kernel.toml has them";
  }
  const std::vector<std::string> own = FilesNamed(texts, header.substr(header.rfind('/') + 1));
  if (!own.empty()) {
    return absl::StrCat("; the bundle has ", own[0], ": include it by that path, or name its folder in `options`: -I",
                        own[0].substr(0, own[0].rfind('/')));
  }
  const std::string first = header.substr(0, header.find('/'));
  for (const char* of_torch : {"torch", "ATen", "c10", "pybind11"}) {
    if (first != of_torch) continue;
    return "; it is for the host: `host_code = \"skip\"` in kernel.toml leaves the source's host code out";
  }
  if (first != header && IsHeaderLibrary(first)) {
    return absl::StrCat(
        "; if it is the bundle's own, `files` in kernel.toml must name it; if it is of a library, "
        "`include = [\"",
        first, "\"]`");
  }
  return "; `files` in kernel.toml must name the files of the bundle that are included";
}

// The entry that NVRTC or nvcc could not make anything of, where the error is about one.
std::string FailedEntry(const CompilerError& error, const std::string& log) {
  if (const std::string entry = MarkedEntry(error.file); !entry.empty()) return entry;
  if (error.file != kNameMap) return "";
  const size_t at = log.find(kNvrtcPragma);
  return at == std::string::npos
             ? "?"
             : log.substr(at + sizeof(kNvrtcPragma) - 1, log.find('\n', at) - at - sizeof(kNvrtcPragma) + 1);
}

v1::Failure CompileFailure(const v1::BuildRequest& request, const Compilation& compilation) {
  const std::optional<CompilerError> error = FirstError(compilation.log);
  const std::string missing = error.has_value() ? UnopenedFile(*error) : "";
  const bool own = !missing.empty() && !IncludedFile(TextsOf(request), NormalPath(error->file), missing).empty();
  if (IsOutside(missing) && !own) return Refused(request, error->file, error->line, missing);
  if (std::optional<v1::Failure> asked = Stolen(request, false)) return *asked;
  if (const std::string cycle = CyclicInclude(request); !cycle.empty()) return BuildFailure(v1::CHECK_COMPILE, cycle);
  if (error.has_value()) {
    if (const std::string entry = FailedEntry(*error, compilation.log); !entry.empty()) {
      return BuildFailure(v1::CHECK_ENTRY,
                          absl::StrCat("the entry ", entry, " can't be instantiated: ", error->text,
                                       NamespaceHint(TextsOf(request), entry), OverloadHint(*error, entry)));
    }
    CompilerError shown = *error;
    if (!missing.empty()) shown.text += MissingHeaderHint(request, missing, error->file);
    if (request.compiler() == v1::COMPILER_NVRTC) shown.text += NvrtcHint(*error);
    return BuildFailure(v1::CHECK_COMPILE, PlaceText(request, shown));
  }
  const absl::string_view log = absl::StripAsciiWhitespace(compilation.log);
  if (compilation.result == Compilation::Result::kOptionRefused && request.compiler() == v1::COMPILER_NVRTC) {
    return BuildFailure(v1::CHECK_COMPILE,
                        absl::StrCat(Name(request), ": NVRTC refuses one of `options` in kernel.toml: ",
                                     log.empty() ? compilation.error : log.substr(0, log.find('\n')),
                                     "; leave out what is nvcc's, or have `compiler = \"nvcc\"`"));
  }
  return BuildFailure(v1::CHECK_COMPILE, absl::StrCat(Name(request), ": ", compilation.error, log.empty() ? "" : ": ",
                                                      log.substr(0, log.find('\n'))));
}

// The kernels of this plain C++ name: `__global__ void add(float*)` is _Z3addPf.
std::vector<std::string> SymbolsOf(const std::string& name, const std::vector<std::string>& symbols) {
  std::vector<std::string> found;
  for (const std::string& symbol : symbols) {
    absl::string_view rest = symbol;
    if (!absl::ConsumePrefix(&rest, "_Z")) continue;
    absl::ConsumePrefix(&rest, "L");
    if (absl::ConsumePrefix(&rest, absl::StrCat(name.size(), name)) && !absl::StartsWith(rest, "I")) {
      found.push_back(symbol);
    }
  }
  return found;
}

// Finds each entry that was asked for among the cubin's kernels, and notes those whose names are others there.
std::optional<v1::Failure> FindEntries(const v1::BuildRequest& request, const std::vector<std::string>& symbols,
                                       const std::map<std::string, std::string>& lowered, v1::BuildReply* reply) {
  const auto has = [&](const std::string& name) {
    return std::find(symbols.begin(), symbols.end(), name) != symbols.end();
  };
  for (const std::string& wanted : request.entries()) {
    const auto known = lowered.find(wanted);
    if (known != lowered.end() && has(known->second)) {
      (*reply->mutable_lowered())[wanted] = known->second;
      continue;
    }
    if (has(wanted)) continue;
    const std::vector<std::string> plain = SymbolsOf(wanted, symbols);
    if (plain.size() == 1) {
      (*reply->mutable_lowered())[wanted] = plain[0];
      continue;
    }
    std::vector<std::string> names;
    for (const std::string& symbol : plain.empty() ? symbols : plain) names.push_back(Demangled(symbol));
    if (!plain.empty()) {
      return BuildFailure(v1::CHECK_ENTRY, absl::StrCat("the entry \"", wanted, "\" of ", Name(request),
                                                        " is one of several: ", absl::StrJoin(names, ", ")));
    }
    return BuildFailure(
        v1::CHECK_ENTRY,
        absl::StrCat("the cubin of ", Name(request), " has no entry \"", wanted, "\"; it has ",
                     names.empty() ? "none" : absl::StrJoin(names, ", "),
                     ". Entries are __global__ functions; of templates, with their arguments: copy<float, 4>"));
  }
  return std::nullopt;
}

std::string PreInclude() { return absl::StrCat("--pre-include=", kImplied); }

// NVRTC's headers of the standard library, and what the source uses of them without saying so.
void AddStandardLibrary(const v1::BuildRequest& request, const Toolkit& toolkit, CompileJob* job) {
  const SourceTexts texts = TextsOf(request);
  std::vector<std::string_view> views;
  for (const auto& [path, text] : texts) views.push_back(*text);
  std::vector<std::string_view> with_macros = views;
  for (const std::string& option : request.options()) {
    if (absl::StartsWith(option, "-D")) with_macros.push_back(option);
  }
  // A library's headers may use what they include.
  const bool uses_std = !request.include().empty() || MentionsStd(with_macros);
  for (const StandardHeader& header : StandardHeaders(toolkit.include)) {
    // A file of the bundle's own is not hidden.
    if (!FilesNamed(texts, header.name).empty()) continue;
    job->headers.push_back(header);
    if (header.only_std && !uses_std) job->headers.back().text = "#pragma once\n";
  }
  const std::string implied = ImpliedNames(views, job->headers);
  if (implied.empty()) return;
  job->headers.push_back({kImplied, implied, false});
  job->options.push_back(PreInclude());
}

// Names that the source has for itself may clash with implied ones.
Compilation CompileWithNvrtc(const Compilers& compilers, CompileJob* job) {
  Compilation compilation = compilers.nvrtc->Compile(*job);
  if (compilation.result != Compilation::Result::kSourceRefused) return compilation;
  if (std::erase_if(job->headers, [](const StandardHeader& header) { return header.name == kImplied; }) == 0) {
    return compilation;
  }
  std::erase(job->options, PreInclude());
  Compilation without = compilers.nvrtc->Compile(*job);
  return without.result == Compilation::Result::kOk ? without : compilation;
}

constexpr absl::Duration kBeyondDeadline = absl::Seconds(5);

void AddOptions(const std::vector<std::string>& options, CompileJob* job) {
  job->options.insert(job->options.end(), options.begin(), options.end());
}

Compilation CompileFiles(const v1::BuildRequest& request, const Compilers& compilers,
                         const std::vector<std::string>& libraries) {
  const Toolkit& toolkit = compilers.toolkit;
  const bool with_nvcc = request.compiler() == v1::COMPILER_NVCC, ptx = IsPtx(request);
  if (ptx && toolkit.nvcc.empty()) {
    return Broken("PTX needs ptxas, which comes with nvcc: install the CUDA toolkit or set CUDA_HOME");
  }
  if (with_nvcc && toolkit.nvcc.empty()) return Broken("nvcc was not found: install the CUDA toolkit or set CUDA_HOME");
  if (!with_nvcc && !ptx && compilers.nvrtc == nullptr) {
    return Broken(absl::StrCat(compilers.nvrtc_missing,
                               compilers.toolkit.nvcc.empty() ? "" : "; or say compiler = \"nvcc\" in kernel.toml"));
  }
  CompileJob job;
  job.source = request.source();
  job.name = Name(request);
  for (const std::string& entry : request.entries()) {
    if (IsCppEntry(entry) && !ptx) job.entries.push_back(entry);
  }
  if (!with_nvcc && !ptx) AddStandardLibrary(request, toolkit, &job);
  if (!with_nvcc && !ptx && request.files().empty()) {
    AddOptions(Options(request, toolkit, libraries, ""), &job);
    return CompileWithNvrtc(compilers, &job);
  }
  SourceTree tree(compilers.sandboxed);
  if (const absl::Status status = tree.Write(request); !status.ok()) {
    Compilation compilation = Broken(std::string(status.message()));
    if (absl::IsInvalidArgument(status)) compilation.result = Compilation::Result::kSourceRefused;
    return compilation;
  }
  std::vector<std::string> folders = {"."};
  if (!with_nvcc) folders = tree.IncludeFolders(job.name);
  folders.insert(folders.end(), libraries.begin(), libraries.end());
  AddOptions(Options(request, toolkit, folders, with_nvcc ? "" : tree.path().string()), &job);
  // The owner kills at the deadline; this one is for a builder whose owner does not.
  const absl::Duration timeout = absl::Seconds(request.deadline_seconds()) + kBeyondDeadline;
  Compilation compilation = ptx         ? AssemblePtx(toolkit.nvcc, job, tree.path(), timeout)
                            : with_nvcc ? CompileWithNvcc(toolkit.nvcc, job, tree.path(), timeout)
                                        : CompileWithNvrtc(compilers, &job);
  compilation.log = tree.WithoutFolder(compilation.log);
  return compilation;
}

// Code that is there already: it is only looked at.
Compilation TakeCubin(const v1::BuildRequest& request) {
  Compilation compilation;
  compilation.result = Compilation::Result::kSourceRefused;
  const absl::StatusOr<int> has = CubinArchitecture(request.binary());
  int wanted = 0;
  if (!has.ok()) {
    compilation.error = std::string(has.status().message());
  } else if (const std::string digits =
                 request.architecture().substr(3, request.architecture().find_last_of("0123456789") - 2);
             !absl::SimpleAtoi(digits, &wanted) || *has / 10 != wanted / 10 || *has % 10 > wanted % 10) {
    compilation.error = absl::StrCat("the cubin is for sm_", *has, ", and this GPU is ", request.architecture());
  } else {
    compilation.result = Compilation::Result::kOk;
    compilation.cubin = request.binary();
  }
  return compilation;
}

// The architecture is the GPU's, not the candidate's choice.
bool BlamesArchitecture(const Compilation& compilation) {
  return compilation.result == Compilation::Result::kOptionRefused &&
         absl::StrContains(compilation.log, "gpu-architecture");
}

void Judge(const v1::BuildRequest& request, const Compilation& compilation, v1::BuildReply* reply) {
  using Result = Compilation::Result;
  if (compilation.result == Result::kBroken || BlamesArchitecture(compilation)) {
    reply->set_host_error(BlamesArchitecture(compilation)
                              ? absl::StrCat("this CUDA toolkit can't compile for ", request.architecture(),
                                             ": install one that knows this GPU")
                              : compilation.error);
  } else if (compilation.result == Result::kOutOfMemory) {
    *reply->mutable_failure() = BuildFailure(v1::CHECK_COMPILE, absl::StrCat(kOutOfMemory, compilation.error));
  } else if (compilation.result == Result::kTimedOut) {
    *reply->mutable_failure() = BuildTimeout(request, request.deadline_seconds());
  } else if (compilation.result != Result::kOk) {
    *reply->mutable_failure() = CompileFailure(request, compilation);
  } else if (std::optional<v1::Failure> asked = Stolen(request, true)) {
    *reply->mutable_failure() = *std::move(asked);
  } else if (absl::StatusOr<std::vector<std::string>> entries = EntryNames(compilation.cubin); !entries.ok()) {
    reply->set_host_error(absl::StrCat("the compiler's output can't be read: ", entries.status().message()));
  } else if (std::optional<v1::Failure> missing = FindEntries(request, *entries, compilation.lowered, reply)) {
    *reply->mutable_failure() = *std::move(missing);
    reply->clear_lowered();
  } else {
    reply->set_cubin(compilation.cubin);
  }
}

}  // namespace

v1::BuildReply MakeBuildReply(const v1::BuildRequest& request, const Compilers& compilers) {
  const SteadyTime start = SteadyNow();
  v1::BuildReply reply;
  if (!IsArchitecture(request.architecture())) {
    reply.set_host_error(absl::StrCat("\"", request.architecture(), "\" is not an architecture such as sm_90"));
    return reply;
  }
  if (!compilers.sandboxed) {
    if (std::optional<v1::Failure> refused = RefuseUnread(request)) {
      *reply.mutable_failure() = *std::move(refused);
      return reply;
    }
  }
  if (std::optional<v1::Failure> asked = AskedForTime(request)) {
    *reply.mutable_failure() = *std::move(asked);
    return reply;
  }
  const absl::StatusOr<std::vector<std::string>> libraries = IncludeFolders(
      {request.include().begin(), request.include().end()}, compilers.toolkit.include, compilers.toolkit.libraries);
  if (!libraries.ok()) {
    *reply.mutable_failure() = BuildFailure(v1::CHECK_COMPILE, std::string(libraries.status().message()));
    return reply;
  }
  const Compilation compilation =
      request.binary().empty() ? CompileFiles(request, compilers, *libraries) : TakeCubin(request);
  reply.set_log(ValidUtf8(std::string_view(compilation.log).substr(0, kLogCap)));
  Judge(request, compilation, &reply);
  reply.set_seconds(absl::ToDoubleSeconds(SteadyNow() - start));
  return reply;
}

v1::Failure BuildFailure(v1::Check check, const std::string& message) {
  v1::Failure failure;
  failure.set_stage(v1::STAGE_BUILD);
  failure.set_check(check);
  failure.set_message(ValidUtf8(message));
  return failure;
}

v1::Failure BuildTimeout(const v1::BuildRequest& request, double seconds) {
  return BuildFailure(v1::CHECK_TIMEOUT,
                      absl::StrFormat("compiling %s did not end within %g s and was killed", Name(request), seconds));
}

bool IsOutOfMemory(const v1::BuildReply& reply) {
  return reply.failure().check() == v1::CHECK_COMPILE && reply.failure().message().starts_with(kOutOfMemory);
}

std::string TooLargeText(const v1::BuildRequest& request) {
  const double gigabytes = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE) / (1 << 30);
  return absl::StrFormat(
      "the compiler was killed twice, the second time with nothing beside it: %s is too large to compile in this "
      "machine's memory (%.0f GiB)",
      Name(request), gigabytes);
}

}  // namespace pawl
