#include "cli/draft/draft_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/sync/steady_time.h"
#include "cli/draft/draft.h"
#include "cli/draft/read/source_model.h"
#include "kernels/limits.h"

namespace pawl {
namespace {

constexpr rlim_t kMemory = rlim_t{4} << 30;  // of the process that parses
constexpr size_t kMaxAnswer = 64 << 20;

absl::StatusOr<std::string> ReadReference(const std::filesystem::path& path) {
  if (path.empty()) return "";
  std::error_code error;
  if (std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path.string(), " is not a regular file: save the reference in a file and name that"));
  }
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return absl::NotFoundError(absl::StrCat(path.string(), " can't be read; does it exist?"));
  std::string text(std::istreambuf_iterator<char>(stream), {});
  if (text.size() > kMaxSourceBytes) return absl::OutOfRangeError(absl::StrCat(path.string(), " is larger than 1 MB"));
  return text;
}

absl::StatusOr<DraftedBundle> DraftHere(const DraftRequest& request) {
  absl::StatusOr<std::string> reference = ReadReference(request.reference);
  if (!reference.ok()) return reference.status();
  absl::StatusOr<std::unique_ptr<SourceModel>> model = ParseSource(request.source);
  if (!model.ok()) return model.status();
  absl::StatusOr<Draft> draft = MakeDraft(**model, request.entry);
  if (!draft.ok()) return draft.status();
  DraftedBundle bundle;
  bundle.name = draft->name;
  bundle.files["kernel.toml"] = KernelTomlText(*draft);
  bundle.files["problem.py"] = ProblemText(*draft, *reference);
  bundle.todos = CountTodos(bundle.files["kernel.toml"]) + CountTodos(bundle.files["problem.py"]);
  for (const std::unique_ptr<SourceText>& file : (*model)->files) {
    if (file->path.find("..") == std::string::npos) bundle.files[file->path] = file->text;
  }
  bundle.notes.push_back(absl::StrCat(draft->tensors.size(), " tensors, ", draft->scalars.size(), " scalars, ",
                                      draft->sizes.size(), " sizes, ", draft->variables.size(), " variables, ",
                                      draft->launches.size(), " launches"));
  return bundle;
}

nlohmann::json Answer(const absl::StatusOr<DraftedBundle>& bundle) {
  if (!bundle.ok()) {
    return {{"code", static_cast<int>(bundle.status().code())}, {"error", std::string(bundle.status().message())}};
  }
  return {{"name", bundle->name}, {"files", bundle->files}, {"notes", bundle->notes}, {"todos", bundle->todos}};
}

absl::StatusOr<DraftedBundle> FromAnswer(const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded() || !json.is_object()) return absl::InternalError("the parser's answer is cut off");
  if (json.contains("error")) {
    return absl::Status(static_cast<absl::StatusCode>(json["code"].get<int>()), json["error"].get<std::string>());
  }
  DraftedBundle bundle;
  bundle.name = json["name"];
  bundle.files = json["files"].get<std::map<std::string, std::string>>();
  bundle.notes = json["notes"].get<std::vector<std::string>>();
  bundle.todos = json["todos"];
  return bundle;
}

[[noreturn]] void Child(const DraftRequest& request, int answer) {
  [[maybe_unused]] const rlimit memory = {kMemory, kMemory};
  const rlimit none = {0, 0};
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)  // their shadow memory would not fit
  setrlimit(RLIMIT_AS, &memory);
#endif
  setrlimit(RLIMIT_CORE, &none);
  // What libclang says about a crash of its own is of no use to the user.
  if (const int null = open("/dev/null", O_WRONLY); null >= 0) dup2(null, 2);
  const std::string text = Answer(DraftHere(request)).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  for (size_t at = 0; at < text.size();) {
    const ssize_t written = write(answer, text.data() + at, text.size() - at);
    if (written <= 0) _exit(1);
    at += static_cast<size_t>(written);
  }
  _exit(0);
}

// All that comes until the end or the deadline; false: the deadline.
bool ReadAll(int fd, SteadyTime deadline, std::string* text) {
  char buffer[1 << 16];
  while (text->size() < kMaxAnswer) {
    pollfd waited = {fd, POLLIN, 0};
    const absl::Duration left = deadline - SteadyNow();
    if (left <= absl::ZeroDuration()) return false;
    if (poll(&waited, 1, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1) <= 0) continue;
    const ssize_t count = read(fd, buffer, sizeof(buffer));
    if (count <= 0) return true;
    text->append(buffer, static_cast<size_t>(count));
  }
  return true;
}

}  // namespace

absl::StatusOr<DraftedBundle> DraftBundle(const DraftRequest& request) {
  int pipes[2];
  if (pipe2(pipes, O_CLOEXEC) != 0) return absl::UnavailableError(absl::StrCat("no pipe: ", strerror(errno)));
  const pid_t child = fork();
  if (child < 0) return absl::UnavailableError(absl::StrCat("no process: ", strerror(errno)));
  if (child == 0) Child(request, pipes[1]);
  close(pipes[1]);
  std::string text;
  const bool ended = ReadAll(pipes[0], SteadyNow() + request.limit, &text);
  close(pipes[0]);
  if (!ended) kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  const std::string file = request.source.string();
  if (!ended) {
    return absl::DeadlineExceededError(absl::StrCat(file, " was not parsed in ", absl::FormatDuration(request.limit),
                                                    ": does a file include itself?"));
  }
  if (WIFSIGNALED(status) || WEXITSTATUS(status) != 0) {
    return absl::InternalError(absl::StrCat(file, ": libclang crashed while it parsed the file",
                                            WIFSIGNALED(status) ? absl::StrCat(" (signal ", WTERMSIG(status), ")") : "",
                                            "; set PAWL_LIBCLANG to another version of it"));
  }
  return FromAnswer(text);
}

}  // namespace pawl
