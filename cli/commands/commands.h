// The subcommands of `pawl`, one a file. Each adds itself to the program and, when called, writes the exit code.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/text/failure.h"

namespace CLI {
class App;
}

namespace pawl {

// Groups of `pawl --help`.
inline constexpr char kRunning[] = "Run campaigns";
inline constexpr char kLooking[] = "Look at campaigns";
inline constexpr char kSteering[] = "Steer campaigns";
inline constexpr char kPreparing[] = "Prepare bundles and machines";
inline constexpr char kHelping[] = "Help";

// `pawl` with all its commands.
std::unique_ptr<CLI::App> MakePawlApp(const std::string& version, int* exit_code);
std::vector<std::string> CommandNames(const CLI::App& app);

// Global flags that stand before the command are moved behind it: `--database x.db history 1` becomes `history
// --database x.db 1`.
std::vector<std::string> WithCommandFirst(std::vector<std::string> arguments);

// The whole program; answers its exit code.
int RunPawl(std::vector<std::string> arguments, const std::string& version);

void AddAgent(CLI::App& app, const std::string& version, int* exit_code);
void AddCompare(CLI::App& app, int* exit_code);
void AddMcp(CLI::App& app, const std::string& version, int* exit_code);
void AddRun(CLI::App& app, int* exit_code);
void AddSubmit(CLI::App& app, int* exit_code);
void AddVerify(CLI::App& app, int* exit_code);

void AddBest(CLI::App& app, int* exit_code);
void AddCampaigns(CLI::App& app, int* exit_code);
void AddDiff(CLI::App& app, int* exit_code);
void AddExplain(CLI::App& app, int* exit_code);
void AddHistory(CLI::App& app, int* exit_code);
void AddLessons(CLI::App& app, int* exit_code);
void AddPatterns(CLI::App& app, int* exit_code);
void AddReport(CLI::App& app, int* exit_code);
void AddShow(CLI::App& app, int* exit_code);
void AddSituation(CLI::App& app, int* exit_code);
void AddWatch(CLI::App& app, int* exit_code);
void AddWorkers(CLI::App& app, int* exit_code);

void AddArchive(CLI::App& app, int* exit_code);
void AddCancel(CLI::App& app, int* exit_code);
void AddMaintenance(CLI::App& app, int* exit_code);
void AddPause(CLI::App& app, int* exit_code);
void AddPropose(CLI::App& app, int* exit_code);
void AddRestore(CLI::App& app, int* exit_code);
void AddResume(CLI::App& app, int* exit_code);

void AddCheck(CLI::App& app, int* exit_code);
void AddDiagnose(CLI::App& app, int* exit_code);
void AddDoctor(CLI::App& app, int* exit_code);
void AddImport(CLI::App& app, int* exit_code);
void AddInit(CLI::App& app, int* exit_code);
void AddRecord(CLI::App& app, int* exit_code);

void AddCompletion(CLI::App& app, int* exit_code);
void AddHelp(CLI::App& app, const std::string& version, int* exit_code);

}  // namespace pawl
