#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "cli/draft/draft_process.h"
#include "cli/draft/read/libclang.h"
#include "kernels/problem.h"
#include "kernels/read/bundle_reader.h"
#include "worker/process/temporary_folder.h"

namespace pawl {

class DraftedTomlTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const absl::StatusOr<clang::Functions> loaded = clang::Load(); !loaded.ok()) GTEST_SKIP() << loaded.status();
  }

  // kernel.toml, which the reader of bundles takes; or the error.
  std::string TomlOf(const std::string& text, const std::string& entry = "", const std::string& name = "k.cu") {
    std::ofstream(folder_.path() / name) << text;
    const absl::StatusOr<DraftedBundle> drafted =
        DraftBundle({.source = folder_.path() / name, .entry = entry, .reference = ""});
    if (!drafted.ok()) return std::string(drafted.status().message());
    for (const auto& [path, content] : drafted->files) std::ofstream(folder_.path() / path) << content;
    for (const Problem& problem : ReadBundle(folder_.path()).problems) ADD_FAILURE() << FormatProblem(problem);
    return drafted->files.at("kernel.toml");
  }

  TemporaryFolder folder_{"pawl-drafted-"};
};

}  // namespace pawl
