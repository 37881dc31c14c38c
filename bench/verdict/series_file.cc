#include "bench/verdict/series_file.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

namespace pawl {
namespace {

std::vector<double> ListOf(const nlohmann::json& json, const char* name) {
  return json.contains(name) ? json[name].get<std::vector<double>>() : std::vector<double>();
}

nlohmann::json Rounded(const std::vector<double>& values, double digits) {
  nlohmann::json list = nlohmann::json::array();
  for (const double value : values) list.push_back(std::round(value * digits) / digits);
  return list;
}

}  // namespace

SeriesLine LineOf(const std::string& pair, int process, const std::vector<v1::PairSample>& samples) {
  SeriesLine line;
  line.pair = pair;
  line.process = process;
  for (const v1::PairSample& one : samples) {
    line.log_ratios.push_back(one.log_ratio());
    line.parent.push_back(one.parent_us());
    line.candidate.push_back(one.candidate_us());
    line.anchor.push_back(one.anchor_us());
    if (one.witness_us() > 0) line.witness.push_back(one.witness_us());
  }
  return line;
}

SeriesFile::SeriesFile(const std::string& path, const std::string& gpu) : out_(path, std::ios::app), gpu_(gpu) {
  if (out_) return;
  fprintf(stderr, "can't write %s\n", path.c_str());
  exit(1);
}

void SeriesFile::Write(const SeriesLine& line) {
  nlohmann::json json = {{"pair", line.pair}, {"process", line.process}};
  json["log_ratios"] = Rounded(line.log_ratios, 1e7);
  json["parent"] = Rounded(line.parent, 1e5);
  json["candidate"] = Rounded(line.candidate, 1e5);
  json["anchor"] = Rounded(line.anchor, 1e5);
  if (!line.witness.empty()) json["witness"] = Rounded(line.witness, 1e5);
  if (!gpu_.empty()) json["gpu"] = gpu_;
  if (!line.role.empty()) json["role"] = line.role;
  if (!line.result.empty()) json["result"] = line.result;
  out_ << json.dump() << std::endl;
  ++written_;
}

std::vector<SeriesLine> ReadSeries(const std::string& path) {
  std::vector<SeriesLine> lines;
  std::ifstream in(path);
  for (std::string text; std::getline(in, text);) {
    const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) continue;  // broken off
    SeriesLine& line = lines.emplace_back();
    line.pair = json.value("pair", "");
    line.process = json.value("process", 0);
    line.gpu = json.value("gpu", "");
    line.role = json.value("role", "");
    line.result = json.value("result", "");
    line.log_ratios = ListOf(json, "log_ratios");
    line.parent = ListOf(json, "parent");
    line.candidate = ListOf(json, "candidate");
    line.anchor = ListOf(json, "anchor");
    line.witness = ListOf(json, "witness");
  }
  return lines;
}

}  // namespace pawl
