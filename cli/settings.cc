#include "cli/settings.h"

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "profiles/toml_file.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

// What one of flags, environment and config file says.
struct Level {
  std::string orchestrator;
  std::string database;
};

// $XDG_…_HOME/pawl/NAME, or ~/FALLBACK/pawl/NAME; empty: there is no home.
fs::path UserFile(const Environment& environment, const char* xdg, const char* fallback, const char* name) {
  // The base directory specification has relative ones ignored.
  if (const std::optional<std::string> base = environment(xdg); base && fs::path(*base).is_absolute()) {
    return fs::path(*base) / "pawl" / name;
  }
  const std::optional<std::string> home = environment("HOME");
  return home ? fs::path(*home) / fallback / "pawl" / name : fs::path();
}

absl::StatusOr<Level> ReadConfig(const fs::path& file, const Environment& environment) {
  std::ifstream in(file);
  std::stringstream text;
  if (!in || fs::is_directory(file) || !(text << in.rdbuf() || in.eof())) {
    return absl::NotFoundError(absl::StrCat("the config file ", file.string(), " can't be read"));
  }
  TomlFile toml(text.str(), file.string());
  toml.AllowKeys(toml.root(), {"orchestrator", "database"});
  Level level{toml.Text(toml.root(), "orchestrator"), toml.Text(toml.root(), "database")};
  if (absl::Status status = toml.status(); !status.ok()) return status;
  if (absl::StartsWith(level.database, "~/")) {
    level.database = absl::StrCat(environment("HOME").value_or(""), level.database.substr(1));
  } else if (!level.database.empty()) {
    level.database = (fs::absolute(file).parent_path() / level.database).string();
  }
  return level;
}

absl::StatusOr<Level> FindConfig(const ConnectionFlags& flags, const Environment& environment) {
  if (!flags.config.empty()) return ReadConfig(flags.config, environment);
  if (const std::optional<std::string> named = environment("PAWL_CONFIG")) return ReadConfig(*named, environment);
  const fs::path usual = UserFile(environment, "XDG_CONFIG_HOME", ".config", "pawl.toml");
  std::error_code error;
  if (usual.empty() || !fs::exists(usual, error)) return Level();
  return ReadConfig(usual, environment);
}

}  // namespace

std::string FlagsText(const ConnectionFlags& flags) {
  std::string text;
  if (!flags.orchestrator.empty()) absl::StrAppend(&text, " --orchestrator ", flags.orchestrator);
  if (!flags.database.empty()) absl::StrAppend(&text, " --database ", flags.database);
  if (!flags.config.empty()) absl::StrAppend(&text, " --config ", flags.config);
  return text;
}

std::optional<std::string> FromEnvironment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

absl::StatusOr<Settings> ReadSettings(const ConnectionFlags& flags, const Environment& environment) {
  absl::StatusOr<Level> config = FindConfig(flags, environment);
  if (!config.ok()) return config.status();
  const Level levels[] = {
      {flags.orchestrator, flags.database},
      {environment("PAWL_ORCHESTRATOR").value_or(""), environment("PAWL_DATABASE").value_or("")},
      *config,
  };
  Settings settings;
  for (const Level& level : levels) {
    if (settings.database.empty() && settings.orchestrator.empty()) settings.orchestrator = level.orchestrator;
    if (settings.database.empty()) settings.database = level.database;
  }
  if (settings.database.empty()) settings.database = UserFile(environment, "XDG_DATA_HOME", ".local/share", "pawl.db");
  if (settings.database.empty() && settings.orchestrator.empty()) {
    return absl::FailedPreconditionError(
        "neither HOME nor XDG_DATA_HOME is set: say where the database is (--database)");
  }
  settings.database = fs::absolute(settings.database).lexically_normal();
  return settings;
}

}  // namespace pawl
