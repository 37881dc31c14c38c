// The few declarations of libclang's C interface (clang-c/Index.h) that are used here, so that nothing needs its
// headers to build. The library is loaded when a source is read.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace pawl::clang {

struct String {
  const void* data;
  unsigned flags;
};
struct Cursor {
  int kind;
  int xdata;
  const void* data[3];
};
struct Type {
  int kind;
  void* data[2];
};
struct Location {
  const void* pointers[2];
  unsigned number;
};
struct UnsavedFile {
  const char* name;
  const char* content;
  unsigned long length;
};
struct Range {
  const void* pointers[2];
  unsigned begin, end;
};
struct RangeList {
  unsigned count;
  Range* ranges;
};
using Index = void*;
using Unit = void*;
using File = void*;
using Diagnostic = void*;
using Visitor = int (*)(Cursor cursor, Cursor parent, void* data);
using FieldVisitor = int (*)(Cursor cursor, void* data);
using InclusionVisitor = void (*)(File file, Location* stack, unsigned depth, void* data);

// Kinds of cursors and types, the same since libclang 3.9.
inline constexpr int kStruct = 2, kClass = 4, kFunction = 8, kParameter = 10, kMethod = 21, kNamespace = 22,
                     kConstructor = 24, kLinkage = 23, kFunctionTemplate = 30, kClassTemplate = 31, kTypedef = 20,
                     kAlias = 36, kUnexposedDeclaration = 1;
inline constexpr int kTypeVoid = 2, kTypePointer = 101, kTypeReference = 103, kTypeRecord = 105,
                     kTypeConstantArray = 112;
inline constexpr int kContinue = 1, kRecurse = 2;
inline constexpr unsigned kDetailedRecord = 0x01, kKeepGoing = 0x200, kSkipBodies = 0x40;
inline constexpr int kError = 3, kFatal = 4;

struct Functions {
  Index (*createIndex)(int, int);
  void (*disposeIndex)(Index);
  int (*parseTranslationUnit2)(Index, const char*, const char* const*, int, UnsavedFile*, unsigned, unsigned, Unit*);
  void (*disposeTranslationUnit)(Unit);
  Cursor (*getTranslationUnitCursor)(Unit);
  unsigned (*visitChildren)(Cursor, Visitor, void*);
  unsigned (*Type_visitFields)(Type, FieldVisitor, void*);
  String (*getCursorSpelling)(Cursor);
  Location (*getCursorLocation)(Cursor);
  void (*getFileLocation)(Location, File*, unsigned*, unsigned*, unsigned*);
  String (*getFileName)(File);
  Type (*getCursorType)(Cursor);
  Type (*getCanonicalType)(Type);
  Type (*getPointeeType)(Type);
  String (*getTypeSpelling)(Type);
  unsigned (*isConstQualifiedType)(Type);
  long long (*Type_getSizeOf)(Type);
  Type (*getArrayElementType)(Type);
  long long (*getArraySize)(Type);
  Cursor (*getTypeDeclaration)(Type);
  const char* (*getCString)(String);
  void (*disposeString)(String);
  unsigned (*getNumDiagnostics)(Unit);
  Diagnostic (*getDiagnostic)(Unit, unsigned);
  int (*getDiagnosticSeverity)(Diagnostic);
  String (*getDiagnosticSpelling)(Diagnostic);
  Location (*getDiagnosticLocation)(Diagnostic);
  void (*disposeDiagnostic)(Diagnostic);
  void (*getInclusions)(Unit, InclusionVisitor, void*);
  RangeList* (*getAllSkippedRanges)(Unit);
  void (*disposeSourceRangeList)(RangeList*);
  Location (*getRangeStart)(Range);
  Location (*getRangeEnd)(Range);
};

// The newest libclang of this machine, or the one that PAWL_LIBCLANG names. Unavailable: there is none; the message
// names the package.
absl::StatusOr<Functions> Load();

}  // namespace pawl::clang
