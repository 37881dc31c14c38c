#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/text/sass.h"
#include "pawl/v1/campaign.pb.h"

namespace pawl {

// What differs between two things, a row each, in groups: what, the first's, the second's and, of numbers, the second
// over the first.
class Differences {
 public:
  // The rows that follow belong to it. A group in which nothing differs is not shown.
  void Group(const std::string& title);

  void Text(const std::string& what, const std::string& first, const std::string& second);
  void Time(const std::string& what, double first_us, double second_us);
  void Speedup(const std::string& what, double first, double second);
  void Number(const std::string& what, double first, double second);

  // Outcome, variables, generated code, and what the evidence says of each launch.
  void Iterations(const v1::Iteration& first, const v1::Iteration& second);
  // What the evidence says of each launch: geometry, resources, counters.
  void Evidence(const v1::Evidence& first, const v1::Evidence& second);
  // The instructions of each kernel, by opcode; those that differ the most.
  void MachineCode(const std::map<std::string, InstructionMix>& first,
                   const std::map<std::string, InstructionMix>& second);
  // Kernel, goal, device, budget, and what came of it.
  void Campaigns(const v1::Campaign& first, const v1::Campaign& second);

  bool empty() const { return rows_.empty(); }
  std::string TableText(const std::string& first, const std::string& second, int width, bool color = false) const;

 private:
  void GeneratedCode(const v1::Iteration& first, const v1::Iteration& second);
  void Add(const std::string& what, const std::string& first, const std::string& second, const std::string& factor);

  std::string group_;  // of the rows to come, until one of them is there
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace pawl
