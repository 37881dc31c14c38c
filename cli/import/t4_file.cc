#include "cli/import/t4_file.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/import/parameter_value.h"
#include "cli/output/files.h"

namespace pawl {
namespace {

using T4Json = nlohmann::json;

constexpr size_t kMaxT4Bytes = size_t{512} << 20;

// Microseconds in one of the unit; nothing: it is no unit of time.
std::optional<double> Microseconds(std::string unit) {
  unit = absl::AsciiStrToLower(unit);
  if (unit == "s" || unit == "seconds") return 1e6;
  if (unit == "ms" || unit == "milliseconds" || unit == "miliseconds") return 1e3;  // files do misspell it
  if (unit == "us" || unit == "microseconds") return 1;
  if (unit == "ns" || unit == "nanoseconds") return 1e-3;
  return std::nullopt;
}

// A cache file of Kernel Tuner's as T4 results. Its times are milliseconds.
T4Json OfKernelTuner(const T4Json& cache) {
  static const auto& failures = *new std::map<std::string, std::string>{
      {"CompilationFailedConfig", "compile"}, {"RuntimeFailedConfig", "runtime"}, {"InvalidConfig", "constraints"}};
  T4Json results = T4Json::array();
  for (const auto& [key, entry] : JsonField(cache, "cache").items()) {
    T4Json configuration = T4Json::object();
    for (const T4Json& name : JsonField(cache, "tune_params_keys")) {
      if (!name.is_string()) continue;
      configuration[name.get<std::string>()] = JsonField(entry, name.get<std::string>().c_str());
    }
    const T4Json& time = JsonField(entry, "time");
    const auto failure = failures.find(JsonText(entry, "time"));
    constexpr double kFailed = 1e20;  // what older versions write
    const bool correct = time.is_number() && time.get<double>() < kFailed;
    T4Json result;
    result["configuration"] = std::move(configuration);
    result["times"]["runtimes"] = correct ? JsonField(entry, "times") : T4Json();
    result["times"]["compilation_time"] = JsonNumber(entry, "compile_time");
    result["times"]["validation"] = JsonNumber(entry, "verification_time");
    result["measurements"][0]["name"] = "time";
    result["measurements"][0]["value"] = time;
    result["invalidity"] = correct ? "correct" : failure == failures.end() ? "runtime" : failure->second;
    result["timestamp"] = JsonText(entry, "timestamp");
    results.push_back(std::move(result));
  }
  T4Json t4;
  t4["metadata"]["timeunit"] = "milliseconds";
  t4["results"] = std::move(results);
  return t4;
}

// A cache file lacks its end until the tuner has ended.
T4Json ParsedOrEnded(std::string text) {
  T4Json json = T4Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_discarded() || text.find("\"tune_params_keys\"") == std::string::npos) return json;
  text.resize(text.find_last_not_of(" \t\r\n,") + 1);
  return T4Json::parse(text + "}}", nullptr, /*allow_exceptions=*/false);
}

class Reader {
 public:
  explicit Reader(const std::filesystem::path& file) : file_(file) {}

  absl::StatusOr<T4File> Read() {
    absl::StatusOr<std::string> text = ReadPackedFile(file_, kMaxT4Bytes);
    if (!text.ok()) return text.status();
    T4Json json = ParsedOrEnded(*std::move(text));
    if (JsonField(json, "cache").is_object() && JsonField(json, "tune_params_keys").is_array()) {
      read_.gpu = JsonText(json, "device_name");
      json = OfKernelTuner(json);
    }
    if (json.is_discarded()) return Wrong("it is not JSON; expected T4 results, a JSON file with a list \"results\"");
    const T4Json& results = JsonField(json, "results");
    if (!results.is_array()) return Wrong(absl::StrCat("it has no list \"results\"; expected T4 results", Known(json)));
    if (results.empty()) return Wrong("its \"results\" are empty");
    if (absl::Status status = ReadUnit(JsonText(JsonField(json, "metadata"), "timeunit")); !status.ok()) return status;
    for (const T4Json& result : results) {
      at_ = absl::StrCat("results[", read_.results.size(), "]: ");
      if (absl::Status status = ReadResult(result); !status.ok()) return status;
    }
    if (assumed_) {
      read_.assumed.push_back("the file does not name its unit of time: milliseconds, as Kernel Tuner writes them");
    }
    DropRepeated();
    return std::move(read_);
  }

 private:
  absl::Status Wrong(const std::string& what) const {
    return absl::InvalidArgumentError(absl::StrCat(file_.string(), ": ", at_, what));
  }

  // What another file of a tuner is, and how to get T4 results.
  static std::string Known(const T4Json& json) {
    if (JsonField(json, "Results").is_array()) {
      return ". This is KTT's own format: in T4 each of \"results\" has \"configuration\", \"times\" and "
             "\"invalidity\"";
    }
    if (JsonField(json, "ConfigurationSpace").is_object()) return ". This is a T1 problem: name it by --problem";
    return "";
  }

  // Of several results of one configuration the last stays.
  void DropRepeated() {
    std::map<std::string, size_t> last;
    const auto key = [](const T4Result& result) {
      return absl::StrJoin(result.configuration, "\n", [](std::string* out, const auto& value) {
        const ParameterValue& one = value.second;
        absl::StrAppend(out, one.whole ? absl::StrCat(*one.whole) : one.number ? one.text : "=" + one.text);
      });
    };
    for (size_t i = 0; i < read_.results.size(); ++i) last[key(read_.results[i])] = i;
    const size_t repeated = read_.results.size() - last.size();
    if (repeated == 0) return;
    std::vector<T4Result> kept;
    for (size_t i = 0; i < read_.results.size(); ++i) {
      if (last[key(read_.results[i])] == i) kept.push_back(std::move(read_.results[i]));
    }
    read_.results = std::move(kept);
    read_.assumed.push_back(absl::StrCat(repeated, " results repeat a configuration: the last one is used"));
  }

  absl::Status ReadUnit(const std::string& unit) {
    if (unit.empty()) return absl::OkStatus();
    const std::optional<double> us = Microseconds(unit);
    if (!us) return Wrong(absl::StrCat("the timeunit \"", unit, "\" is unknown"));
    unit_us_ = *us;
    return absl::OkStatus();
  }

  // The unit of one result's `times`: its own, the file's, that of the measurement of the same time, or milliseconds.
  absl::StatusOr<double> UnitOf(const T4Json& times, const T4Json& measurements) {
    if (const std::string unit = JsonText(times, "unit"); !unit.empty()) {
      const std::optional<double> us = Microseconds(unit);
      if (!us) return Wrong(absl::StrCat("the unit \"", unit, "\" of its times is not a known unit of time"));
      return *us;
    }
    if (unit_us_) return *unit_us_;
    for (const bool named : {true, false}) {
      for (const T4Json& one : measurements) {
        const std::optional<double> us = Microseconds(JsonText(one, "unit"));
        const bool same = named ? JsonText(one, "name") == "time" : IsTypical(one, JsonField(times, "runtimes"));
        if (us && same) return *us;
      }
    }
    assumed_ = assumed_ || !times.empty();
    return 1e3;
  }

  // Whether a measurement is the mean or median of the runtimes, in their unit.
  static bool IsTypical(const T4Json& measurement, const T4Json& runtimes) {
    std::vector<double> sorted;
    for (const T4Json& one : runtimes) {
      if (one.is_number()) sorted.push_back(one.get<double>());
    }
    if (sorted.empty()) return false;
    std::sort(sorted.begin(), sorted.end());
    const double count = static_cast<double>(sorted.size()), value = JsonNumber(measurement, "value");
    const double mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) / count;
    const double median = (sorted[(sorted.size() - 1) / 2] + sorted[sorted.size() / 2]) / 2;
    const auto agrees = [&](double with) { return std::fabs(value - with) <= 0.01 * std::fabs(with); };
    return agrees(mean) || agrees(median);
  }

  // The measurement "time", or the first; null: there is none.
  static const T4Json* Objective(const T4Json& measurements) {
    const T4Json* objective = nullptr;
    for (const T4Json& one : measurements) {
      if (objective == nullptr || JsonText(one, "name") == "time") objective = &one;
    }
    return objective;
  }

  absl::Status ReadResult(const T4Json& json) {
    T4Result result;
    if (absl::Status status = ReadConfiguration(JsonField(json, "configuration"), &result); !status.ok()) return status;
    const T4Json& times = JsonField(json, "times");
    const T4Json& given = JsonField(json, "measurements");
    const T4Json measurements = given.is_array() ? given : T4Json::array();
    const T4Json* objective = Objective(measurements);
    const absl::StatusOr<double> unit_us = UnitOf(times, measurements);
    if (!unit_us.ok()) return unit_us.status();
    const double compilation = JsonNumber(times, "compilation_time") + JsonNumber(times, "compilation");
    result.compile_seconds = compilation * *unit_us * 1e-6;
    result.validate_seconds = JsonNumber(times, "validation") * *unit_us * 1e-6;
    result.timestamp = JsonText(json, "timestamp").substr(0, 19);
    result.invalidity = JsonText(json, "invalidity");
    constexpr const char* kKnown[] = {"correct", "timeout", "compile", "runtime", "correctness", "constraints"};
    if (std::find(std::begin(kKnown), std::end(kKnown), result.invalidity) == std::end(kKnown)) {
      return Wrong(absl::StrCat("invalidity is \"", result.invalidity, "\"; expected ", absl::StrJoin(kKnown, ", ")));
    }
    if (absl::Status status = ReadTimes(times, objective, *unit_us, &result); !status.ok()) return status;
    read_.results.push_back(std::move(result));
    return absl::OkStatus();
  }

  absl::Status ReadConfiguration(const T4Json& json, T4Result* result) {
    if (!json.is_object() || json.empty()) return Wrong("it has no configuration");
    for (const auto& [name, value] : json.items()) {
      const std::optional<ParameterValue> read = ParameterValue::Of(value);
      if (!read) {
        return Wrong(absl::StrCat(name, " is ", value.type_name(), "; expected a number, a flag or a text"));
      }
      result->configuration.emplace(name, *read);
    }
    if (read_.results.empty()) return absl::OkStatus();
    for (const auto& [name, value] : read_.results.front().configuration) {
      if (!result->configuration.contains(name)) return Wrong(absl::StrCat("its configuration has no ", name));
    }
    if (result->configuration.size() != read_.results.front().configuration.size()) {
      return Wrong("its configuration has a parameter that results[0] does not have");
    }
    return absl::OkStatus();
  }

  // The samples where they are there, otherwise the objective.
  absl::Status ReadTimes(const T4Json& times, const T4Json* objective, double unit_us, T4Result* result) {
    if (result->invalidity != "correct") {
      result->error = objective == nullptr ? "" : JsonText(*objective, "value");
      return absl::OkStatus();
    }
    const T4Json& runtimes = JsonField(times, "runtimes");
    if (runtimes.is_array() && !runtimes.empty()) {
      for (const T4Json& runtime : runtimes) {
        if (absl::Status status = AddRuntime(runtime, unit_us, result); !status.ok()) return status;
      }
      return absl::OkStatus();
    }
    if (objective == nullptr) return Wrong("it is correct, but there is neither a runtime nor a measurement");
    const std::string unit = JsonText(*objective, "unit");
    const std::optional<double> us = unit.empty() ? unit_us : Microseconds(unit);
    if (unit.empty() && !unit_us_) assumed_ = true;
    if (!us) return Wrong(absl::StrCat("the unit \"", unit, "\" of its measurement is not a known unit of time"));
    return AddRuntime(JsonField(*objective, "value"), *us, result);
  }

  absl::Status AddRuntime(const T4Json& json, double unit_us, T4Result* result) const {
    const double us = json.is_number() ? json.get<double>() * unit_us : 0;
    if (!(us > 0) || !std::isfinite(us)) {
      return Wrong(
          absl::StrCat("it is correct, but its time is ", json.dump(-1, ' ', false, T4Json::error_handler_t::replace)));
    }
    result->runtimes_us.push_back(us);
    return absl::OkStatus();
  }

  const std::filesystem::path file_;
  T4File read_;
  std::optional<double> unit_us_;  // of the file
  bool assumed_ = false;           // nothing names the unit of some time
  std::string at_;
};

}  // namespace

absl::StatusOr<T4File> ReadT4(const std::filesystem::path& file) { return Reader(file).Read(); }

}  // namespace pawl
