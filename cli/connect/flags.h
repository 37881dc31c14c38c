// Flags and arguments that several commands share.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "cli/connect/connection.h"
#include "cli/connect/settings.h"
#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/campaign.pb.h"

namespace CLI {
class App;
class Option;
class Validator;
}  // namespace CLI

namespace pawl {

// Numbers above 0; CLI11's own check speaks of its limits in floating point.
CLI::Validator AboveZero();

// How to find the orchestrator. The help of a command has one line for all of them (CommandHelpFormatter).
void AddConnectionFlags(CLI::App& command, ConnectionFlags* flags);
void AddJsonFlag(CLI::App& command, bool* json);

// Whether the argument is one of the flags above, which may also come before the command. `takes_value`: the next
// argument belongs to it.
bool IsGlobalFlag(const std::string& argument, bool* takes_value);

// A required CAMPAIGN, which becomes campaigns/7.
void AddCampaign(CLI::App& command, std::string* campaign);
// The same as --campaign, which may be absent.
CLI::Option* AddCampaignOption(CLI::App& command, std::string* campaign, const std::string& text);

// What run and submit may ask for beside the bundle; 0 and empty: the bundle's goal and the default limits.
struct SpecFlags {
  std::string size;
  std::string sizes;            // main=0.6,large=0.4
  std::optional<double> worst;  // 0: no limit, whatever the bundle's goal has
  int portfolio = 0;
  double goal = 0;
  int iterations = 0;
  double minutes = 0;
  double dollars = 0;
  double least_gain = 0;
  std::string chooser;           // tree, outside or both
  double wait_for_proposal = 0;  // seconds
  std::string no_proposal;       // tree or pause
  double tuning_share = 0;       // of the iterations; 0: the default
  double expect_baseline_us = 0;
};
void AddSpecFlags(CLI::App& command, SpecFlags* flags);
// INVALID_ARGUMENT: the bundle has no such size, or flags that make no sense together.
absl::StatusOr<v1::CampaignSpec> MakeSpec(const SpecFlags& flags, const v1::Bundle& bundle);

// The sizes of a goal as --sizes has them: main=0.6,large=0.4, with weights of sum 1, or main,large. The heaviest
// stands for all.
absl::Status SetGoalSizes(const std::string& text, const v1::Bundle& bundle, v1::Goal* goal);

// Opens the way to the orchestrator, runs the command and prints its error. Answers the exit code.
int WithConnection(const std::string& command, const ConnectionFlags& flags, Need need,
                   const std::function<absl::StatusOr<int>(Connection&)>& body);

// For CLI11: what is wrong with the text of a change, "TILE_M=16" or "ACC=half"; empty where nothing is.
std::string CheckChange(const std::string& text);

}  // namespace pawl
