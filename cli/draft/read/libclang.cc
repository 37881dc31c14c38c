#include "cli/draft/read/libclang.h"

#include <dlfcn.h>
#include <stdlib.h>

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace pawl::clang {
namespace {

constexpr int kNewest = 30, kOldest = 11;  // versions of LLVM

std::vector<std::string> Names() {
  if (const char* named = getenv("PAWL_LIBCLANG"); named != nullptr && *named != '\0') return {named};
  std::vector<std::string> names;
  for (int version = kNewest; version >= kOldest; --version) {
    names.push_back(absl::StrCat("libclang-", version, ".so.1"));
    names.push_back(absl::StrCat("libclang-", version, ".so.", version));
    names.push_back(absl::StrCat("libclang.so.", version));
    names.push_back(absl::StrCat("/usr/lib/llvm-", version, "/lib/libclang.so.1"));
  }
  names.push_back("libclang.so.1");
  names.push_back("libclang.so");
  return names;
}

template <typename F>
void Find(void* library, const std::string& name, F* function, std::string* missing) {
  const std::string symbol = absl::StrCat("clang_", name);
  *function = reinterpret_cast<F>(dlsym(library, symbol.c_str()));
  if (*function == nullptr && missing->empty()) *missing = symbol;
}

}  // namespace

absl::StatusOr<Functions> Load() {
  void* library = nullptr;
  for (const std::string& name : Names()) {
    library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) break;
  }
  if (library == nullptr) {
    return absl::UnavailableError(
        "libclang was not found, and sources are parsed with it: install libclang1 (Debian, Ubuntu: apt install "
        "libclang1; Fedora: clang-libs), or set PAWL_LIBCLANG to its file");
  }
  Functions f;
  std::string missing;
#define PAWL_FIND(name) Find(library, #name, &f.name, &missing)
  PAWL_FIND(createIndex);
  PAWL_FIND(disposeIndex);
  PAWL_FIND(parseTranslationUnit2);
  PAWL_FIND(disposeTranslationUnit);
  PAWL_FIND(getTranslationUnitCursor);
  PAWL_FIND(visitChildren);
  PAWL_FIND(Type_visitFields);
  PAWL_FIND(getCursorSpelling);
  PAWL_FIND(getCursorLocation);
  PAWL_FIND(getFileLocation);
  PAWL_FIND(getFileName);
  PAWL_FIND(getCursorType);
  PAWL_FIND(getCanonicalType);
  PAWL_FIND(getPointeeType);
  PAWL_FIND(getTypeSpelling);
  PAWL_FIND(isConstQualifiedType);
  PAWL_FIND(Type_getSizeOf);
  PAWL_FIND(getArrayElementType);
  PAWL_FIND(getArraySize);
  PAWL_FIND(getTypeDeclaration);
  PAWL_FIND(getCString);
  PAWL_FIND(disposeString);
  PAWL_FIND(getNumDiagnostics);
  PAWL_FIND(getDiagnostic);
  PAWL_FIND(getDiagnosticSeverity);
  PAWL_FIND(getDiagnosticSpelling);
  PAWL_FIND(getDiagnosticLocation);
  PAWL_FIND(disposeDiagnostic);
  PAWL_FIND(getInclusions);
  PAWL_FIND(getAllSkippedRanges);
  PAWL_FIND(disposeSourceRangeList);
  PAWL_FIND(getRangeStart);
  PAWL_FIND(getRangeEnd);
#undef PAWL_FIND
  if (!missing.empty()) {
    return absl::UnavailableError(absl::StrCat("this libclang is too old: it has no ", missing,
                                               "; install a newer one, or set PAWL_LIBCLANG to its file"));
  }
  return f;
}

}  // namespace pawl::clang
