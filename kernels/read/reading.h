// Inside of the bundle reader: what its parts share while one kernel.toml is read.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/problem.h"
#include "kernels/read/toml_table.h"
#include "kernels/vocabulary.h"
#include "pawl/v1/bundle.pb.h"

namespace pawl {

inline constexpr int kOfContract = 0;  // the line of a name that the text which is read does not have

// What the value of an expression must be.
enum class Must { kBeFinite, kBeNotNegative, kBeAnExtent, kBeBytes, kBeAnInt32, kBeWhole, kBeACount };

struct UsedExpression {
  Text text;
  std::string where;
  Must must;
  std::string guard;  // evaluated only where this is not 0; empty: always
};

struct Reading {
  Reading(std::filesystem::path folder, const std::string& file)
      : folder(std::move(folder)), problems(file), warnings(file) {}

  // One namespace for sizes, variables, tensors, scalars and GPU limits. Complains about clashes and bad names.
  bool AddName(const std::string& name, const std::string& kind, int line, TomlTable& table);

  // Complains when the text does not parse or uses names that the key's row does not allow.
  void Use(TomlTable& table, const std::string& key, const Text& text, Must must, const std::string& guard = "");
  void Use(TomlTable& table, const std::string& key, const Text& text, Scope scope, Must must,
           const std::string& guard);

  std::filesystem::path folder;
  Problems problems, warnings;
  v1::Bundle bundle;
  std::map<std::string, std::pair<std::string, int>> names;  // to what it is ("size", ...) and its line
  bool contract_alone = false;                               // kernel.toml has nothing of the implementation
  bool names_complete = true;  // false: a table of names is broken, and unknown names are its consequence
  std::vector<UsedExpression> expressions;
  size_t data_bytes = 0;  // of data files
  std::vector<Text> constraints;
  std::map<std::string, int> lines;  // of "tensor q", "launch entry", "variables", "launches"
};

// absolute and relative, of [tolerance] or of an output.
void ReadToleranceKeys(TomlTable& table, v1::Tolerance& tolerance);

// Each reads one kind of table from the root of kernel.toml. Sizes and variables come first: the others use their
// names.
void ReadTop(TomlTable& root, Reading& reading);
void ReadFiles(TomlTable& root, Reading& reading);
// Complains of a compile option that is none, or that is not for a bundle to choose.
void CheckOption(const std::string& key, const Text& option, TomlTable& table);
// `compiler` and `options`; `include`. ReadTop and ReadFiles read them with the rest.
void ReadCompiling(TomlTable& root, Reading& reading);
void ReadIncludes(TomlTable& root, Reading& reading);
void ReadSizes(TomlTable& root, Reading& reading);
void ReadVariables(TomlTable& root, Reading& reading);
void ReadHidden(TomlTable& root, Reading& reading);
void ReadConstraints(TomlTable& root, Reading& reading);
void ReadTensors(TomlTable& root, Reading& reading);
void ReadScalars(TomlTable& root, Reading& reading);
void ReadStructs(TomlTable& root, Reading& reading);
void ReadLaunches(TomlTable& root, Reading& reading);
void ReadSymbols(TomlTable& root, Reading& reading);
void ReadReference(TomlTable& root, Reading& reading);
void ReadSetup(TomlTable& root, Reading& reading);
// After the tensors: [tolerance] may be missing where none of them needs it.
void ReadTolerance(TomlTable& root, Reading& reading);
void ReadWork(TomlTable& root, Reading& reading);

// What only shows when everything is put together: evaluates all for the start variant at every size.
void CheckWhole(Reading& reading);

// The orchestrator judges a bundle by BundleProblems alone: what it would refuse is refused here, with a line. Last,
// and only where nothing else was complained about.
void CheckMessage(Reading& reading);

// What implementation.toml in reading.folder makes of a contract alone.
void ReadImplementationFile(const std::string& text, const v1::Bundle& contract, Reading& reading);

// Nothing, after a complaint, where it is no TOML.
std::optional<toml::table> ParseTables(const std::string& text, Problems& problems);

// The text of a file of a bundle. The path must be relative and, symbolic links followed, lie inside the folder; the
// file must be UTF-8 and at most 1 MB.
absl::StatusOr<std::string> ReadSourceFile(const std::filesystem::path& folder, const std::string& path);
// The bytes of a file of a bundle, whatever they are; at most `most`.
absl::StatusOr<std::string> ReadBinaryFile(const std::filesystem::path& folder, const std::string& path, size_t most);

// The files of a bundle's folder that a pattern names, sorted: * stands for part of a name, ** for any folders. Neither
// stands for names that begin with a dot, and no symbolic link to a folder is followed. An error: the pattern leads out
// of the folder, or too many files would have to be looked at.
absl::StatusOr<std::vector<std::string>> FilesLike(const std::filesystem::path& folder, const std::string& pattern);

// A file of data of the bundle, which may be there already. False: it can't be read, which is complained about.
bool ReadDataFile(TomlTable& table, const std::string& key, const Text& at, const std::string& path, Reading& reading);

// The files that the key `files` of a table names, sorted, without its source.
void ReadSourceFiles(TomlTable& table, const std::string& source, Reading& reading,
                     google::protobuf::RepeatedPtrField<v1::SourceFile>& files);

// Whether a path is one that an entry of `files` names.
bool IsLike(const std::string& path, const std::string& pattern);

// The key's file, complained about where it can't be read.
void ReadSource(TomlTable& table, const std::string& key, Reading& reading, v1::SourceFile& file);

}  // namespace pawl
