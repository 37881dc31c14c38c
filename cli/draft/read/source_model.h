// A CUDA source as `pawl init` sees it: its files, functions, constants and macros.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/draft/read/cpp_expression.h"
#include "kernels/source/cpp_tokens.h"

namespace pawl {

// A file of the source: itself, or one that it includes from its own folder or below.
struct SourceText {
  std::string path;  // relative to the source's folder
  std::string text;
  std::vector<CppToken> tokens;  // without what #if leaves out; simple macros of the file are expanded
};

// The type of a parameter or a field.
struct SourceType {
  std::string spelling;  // as written: "const bf16 *"
  std::string element;   // behind typedefs, pointers and const: "__nv_bfloat16", or a template parameter
  int pointers = 0;
  bool is_const = false;  // what the pointer points to
  bool record = false;    // a struct by value
  bool unknown = false;   // its header is missing
  int64_t bytes = 0;      // of a value; 0: not known
};

struct SourceParameter {
  std::string name;
  SourceType type;
  std::vector<SourceParameter> fields;  // of a struct by value
};

struct TemplateParameter {
  std::string name;
  bool is_type = false;
  std::string kind;      // "int", "bool"; of a type: "typename"
  std::string fallback;  // its default
};

struct SourceFunction {
  std::string name;
  std::string qualified;  // with its namespaces
  bool kernel = false;
  bool device = false;
  bool extern_c = false;
  bool method = false;  // of a class
  std::vector<TemplateParameter> templates;
  std::vector<SourceParameter> parameters;
  std::string launch_bounds;  // the text in its brackets
  int line = 0;
  const SourceText* file = nullptr;
  size_t head = 0, name_at = 0, body = 0;  // tokens of the file: first, name, {
};

// #define NAME 256, constexpr int NAME = 256;
struct SourceConstant {
  std::string name;
  int64_t value = 0;
  bool literal = false;  // written as a number, not made of others
  bool is_bool = false;
  bool is_macro = false;
  bool local = false;                     // in a function's body
  std::string before, value_text, after;  // its definition: "constexpr int BLOCK = ", "256", ";"
  CppExpression expression;               // the value as it is written
  int line = 0;
  const SourceText* file = nullptr;
};

// A variable of the device that the host may fill: __constant__ float weights[9];
struct SourceSymbol {
  std::string name;
  std::string qualified;    // with its namespaces
  std::string declaration;  // "__constant__ float weights[9]"
  std::string type;         // "float"
  bool pointer = false;
  std::vector<CppExpression> extents;  // of an array, slowest first
  bool initialised = false;
  int filled = 0;                       // the line with cudaMemcpyToSymbol; 0: none
  std::optional<CppExpression> copied;  // how many bytes, where it says
};

struct SourceModel {
  std::vector<std::unique_ptr<SourceText>> files;  // the source first
  std::vector<SourceFunction> functions;           // with bodies, in the order of the files
  std::vector<SourceConstant> constants;
  std::vector<SourceSymbol> symbols;
  std::vector<std::string> includes;            // of headers that are no files of ours: "cub/cub.cuh"
  std::vector<std::string> missing;             // headers in quotes that were not found
  std::map<std::string, int64_t> record_bytes;  // of the structs that the source defines
  std::string first_error;                      // "12: expected ';'"; empty: none
  bool torch = false;                           // it includes PyTorch's headers
  bool host_code = false;                       // it has functions of the host

  const SourceFunction* Find(const std::string& name) const;
  // The short one where no other function has it.
  std::string NameFor(const SourceFunction& function) const;
  const SourceConstant* FindConstant(const std::string& name) const;
};

// Variables of the device that the host may fill, of all files, at the level of files and namespaces, and where the
// host copies to them: added to model.symbols.
void ReadSymbols(SourceModel& model);

// Reads and parses a source. An error is one line that says what is wrong with the file. `text` of every file is kept
// alive by the model.
absl::StatusOr<std::unique_ptr<SourceModel>> ParseSource(const std::filesystem::path& file);

}  // namespace pawl
