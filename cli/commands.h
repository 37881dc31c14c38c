// The subcommands of `pawl`, one a file. Each adds itself to the program and, when called, writes the exit code:
// 0 done, 1 failed, 2 wrong usage.
#pragma once

#include <CLI/CLI.hpp>

namespace pawl {

inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;
inline constexpr int kWrongUsage = 2;

void AddCheck(CLI::App& app, int* exit_code);
void AddDoctor(CLI::App& app, int* exit_code);
void AddRecord(CLI::App& app, int* exit_code);

}  // namespace pawl
