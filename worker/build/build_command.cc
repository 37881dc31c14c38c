#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "kernels/plan.h"
#include "worker/build/built_variant.h"

namespace pawl {
namespace {

std::string ShellWord(const std::string& word) {
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) {
    return std::isalnum(c) || std::strchr("-_=+./,:@%", c) != nullptr;
  });
  return plain ? word : absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
}

}  // namespace

const v1::Size* FindSize(const v1::Bundle& bundle, const std::string& name) {
  const auto found = std::find_if(bundle.sizes().begin(), bundle.sizes().end(),
                                  [&](const v1::Size& size) { return size.name() == name; });
  return found == bundle.sizes().end() ? nullptr : &*found;
}

std::string BuildCommand(const v1::Bundle& bundle, const v1::Variant& variant, const v1::Size& size,
                         const std::string& architecture) {
  return BuildCommand(CompileOptions(bundle, variant, size), bundle.source().path(), architecture);
}

std::string BuildCommand(const std::vector<std::string>& options, const std::string& source,
                         const std::string& architecture) {
  const bool has_standard = std::any_of(options.begin(), options.end(), [](const std::string& option) {
    return absl::StartsWith(option, "-std") || absl::StartsWith(option, "--std");
  });
  std::string command = absl::StrCat("nvcc -cubin -arch=", architecture, has_standard ? "" : " --std=c++17");
  for (const std::string& option : options) absl::StrAppend(&command, " ", ShellWord(option));
  const std::string cubin = std::filesystem::path(source).stem().string() + ".cubin";
  absl::StrAppend(&command, " -o ", ShellWord(cubin), " ", ShellWord(source));
  return command;
}

}  // namespace pawl
