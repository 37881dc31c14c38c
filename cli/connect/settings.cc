#include "cli/connect/settings.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/toml/settings_text.h"
#include "profiles/toml_file.h"

namespace pawl {

namespace {

namespace fs = std::filesystem;

// What one of flags, environment and config file says.
struct Level {
  std::string orchestrator;
  std::string database;
  Credentials credentials;
};

// One of the credentials' files: its flag without the dashes, which is also its key in the config file, and its name in
// the environment.
struct CredentialFile {
  const char* flag;
  const char* variable;
  std::string& (*of)(Credentials&);
};
constexpr CredentialFile kCredentialFiles[] = {
    {"tls-cert", "PAWL_TLS_CERT", [](Credentials& c) -> std::string& { return c.tls.cert; }},
    {"tls-key", "PAWL_TLS_KEY", [](Credentials& c) -> std::string& { return c.tls.key; }},
    {"tls-ca", "PAWL_TLS_CA", [](Credentials& c) -> std::string& { return c.tls.ca; }},
    {"token-file", "PAWL_TOKEN_FILE", [](Credentials& c) -> std::string& { return c.token_file; }},
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

// A path in the config file is meant from where that lies.
std::string FromConfig(const std::string& path, const fs::path& file, const Environment& environment) {
  if (path.empty()) return "";
  if (absl::StartsWith(path, "~/")) return absl::StrCat(environment("HOME").value_or(""), path.substr(1));
  return (fs::absolute(file).parent_path() / path).string();
}

absl::StatusOr<Level> ReadConfig(const fs::path& file, const Environment& environment) {
  std::ifstream in(file);
  if (!in || fs::is_directory(file)) {
    return absl::NotFoundError(absl::StrCat("the config file ", file.string(), " can't be read"));
  }
  const std::optional<std::string> text = ReadSettings(in);
  if (!text) {
    return absl::InvalidArgumentError(
        absl::StrCat("the config file ", file.string(), " is longer than 1 MB; expected a TOML file"));
  }
  TomlFile toml(*text, file.string());
  toml.AllowKeys(toml.root(), {"orchestrator", "database", "tls-cert", "tls-key", "tls-ca", "token-file"});
  Level level{toml.Text(toml.root(), "orchestrator"), toml.Text(toml.root(), "database"), {}};
  for (const CredentialFile& each : kCredentialFiles) {
    each.of(level.credentials) = FromConfig(toml.Text(toml.root(), each.flag), file, environment);
  }
  if (absl::Status status = toml.status(); !status.ok()) return status;
  level.database = FromConfig(level.database, file, environment);
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

std::vector<std::string> FlagsOf(Credentials credentials) {
  std::vector<std::string> words;
  for (const CredentialFile& each : kCredentialFiles) {
    const std::string& file = each.of(credentials);
    if (!file.empty()) words.insert(words.end(), {absl::StrCat("--", each.flag), file});
  }
  return words;
}

std::string FlagsText(const ConnectionFlags& flags) {
  std::string text;
  if (!flags.orchestrator.empty()) absl::StrAppend(&text, " --orchestrator ", flags.orchestrator);
  if (!flags.database.empty()) absl::StrAppend(&text, " --database ", flags.database);
  if (!flags.config.empty()) absl::StrAppend(&text, " --config ", flags.config);
  for (const std::string& word : FlagsOf(flags.credentials)) absl::StrAppend(&text, " ", word);
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
  Level levels[] = {
      {flags.orchestrator, flags.database, flags.credentials},
      {environment("PAWL_ORCHESTRATOR").value_or(""), environment("PAWL_DATABASE").value_or(""), {}},
      *config,
  };
  for (const CredentialFile& each : kCredentialFiles) {
    each.of(levels[1].credentials) = environment(each.variable).value_or("");
  }
  Settings settings;
  for (Level& level : levels) {
    for (const CredentialFile& each : kCredentialFiles) {
      std::string& file = each.of(settings.credentials);
      if (file.empty()) file = each.of(level.credentials);
    }
    if (settings.database.empty() && settings.orchestrator.empty()) settings.orchestrator = level.orchestrator;
    if (settings.database.empty()) settings.database = level.database;
  }
  if (settings.database.empty()) settings.database = UserFile(environment, "XDG_DATA_HOME", ".local/share", "pawl.db");
  if (settings.database.empty() && settings.orchestrator.empty()) {
    return absl::FailedPreconditionError("neither HOME nor XDG_DATA_HOME is set: name the database with --database");
  }
  settings.database = fs::absolute(settings.database).lexically_normal();
  return settings;
}

std::string Author() {
  if (const std::optional<std::string> user = FromEnvironment("USER")) return *user;
  const passwd* entry = getpwuid(getuid());
  return entry != nullptr ? entry->pw_name : absl::StrCat("user ", getuid());
}

}  // namespace pawl
