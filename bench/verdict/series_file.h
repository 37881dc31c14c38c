#pragma once

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "pawl/v1/evidence.pb.h"

namespace pawl {

// One process's pairs of one comparison.
struct SeriesLine {
  std::string pair;
  int process = 0;
  std::string gpu;     // the beginning of its UUID; empty: not written down
  std::string role;    // of a seat study: "candidate", "parent" or "biased"; empty: of another
  std::string result;  // of a whole comparison, at its last process; empty: none
  std::vector<double> log_ratios, parent, candidate, anchor, witness;
};

SeriesLine LineOf(const std::string& pair, int process, const std::vector<v1::PairSample>& samples);

// JSON lines (tests/profiles/recorded_series.h). Appends; lines that are broken off are passed over when it is read.
class SeriesFile {
 public:
  // Exits where the file can't be written.
  SeriesFile(const std::string& path, const std::string& gpu);
  void Write(const SeriesLine& line);
  int written() const { return written_; }

 private:
  std::ofstream out_;
  const std::string gpu_;
  int written_ = 0;
};

std::vector<SeriesLine> ReadSeries(const std::string& path);

}  // namespace pawl
