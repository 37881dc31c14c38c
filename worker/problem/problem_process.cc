#include "worker/problem/problem_process.h"

#include <fcntl.h>
#include <google/protobuf/wrappers.pb.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "absl/hash/hash.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/hash/hash.h"
#include "base/sync/steady_time.h"
#include "kernels/data_file.h"
#include "kernels/data_type.h"
#include "kernels/plan.h"
#include "worker/embedded.h"
#include "worker/problem/baseline_answers.h"
#include "worker/problem/plan_json.h"
#include "worker/process/process.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kStartDeadline = absl::Minutes(3);  // PyTorch from a cold disk
constexpr int kBaselineMeasurements = 30;
constexpr char kServer[] = "pawl_problem.py";
constexpr char kWinner[] = "pawl_winner.cubin";
constexpr int kSharedFd = 3;

// A new file: what runs in the sandbox may have put a link there, which would lead out of it.
absl::Status WriteModule(const fs::path& path, std::string_view text) {
  unlink(path.c_str());
  const Fd file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
  for (size_t at = 0; file.valid() && at < text.size();) {
    const ssize_t written = write(file.get(), text.data() + at, text.size() - at);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;
    at += static_cast<size_t>(written);
    if (at == text.size()) return absl::OkStatus();
  }
  if (file.valid() && text.empty()) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("can't write ", path.string(), ": is the disk full?"));
}

uint64_t RandomSeed() {
  uint64_t seed = 0;
  memcpy(&seed, RandomBytes(sizeof(seed)).data(), sizeof(seed));
  return seed;
}

int64_t MachineMemory() { return int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGE_SIZE); }

std::string TextOf(const nlohmann::json& object, const char* key) {
  return object.is_object() && object.contains(key) && object[key].is_string() ? object[key].get<std::string>() : "";
}

double NumberOf(const nlohmann::json& object, const char* key) {
  return object.contains(key) && object[key].is_number() ? object[key].get<double>() : 0;
}

absl::Status BrokenAnswer(const nlohmann::json& reply) {
  return absl::InvalidArgumentError(
      absl::StrCat("problem.py's process gave no answer that fits: ", reply.dump().substr(0, 200),
                   "; does problem.py change modules of Python, or write where its process answers?"));
}

// What lies beside problem.py.
nlohmann::json ProblemFilesOf(const v1::Bundle& bundle) {
  nlohmann::json files = nlohmann::json::array();
  for (const std::string& path : bundle.problem_files()) {
    const v1::DataFile* file = FindDataFile(bundle, path);
    if (file == nullptr) continue;
    files.push_back({{"path", BesideProblem(bundle, path)}, {"base64", absl::Base64Escape(file->data())}});
  }
  return files;
}

// What a reply says went wrong.
absl::Status ErrorOf(const nlohmann::json& reply) {
  if (!reply.is_object()) return BrokenAnswer(reply);
  if (!reply.contains("error")) return absl::OkStatus();
  const std::string kind = TextOf(reply["error"], "kind"), message = TextOf(reply["error"], "message");
  if (kind == "problem") return absl::InvalidArgumentError(message);
  if (kind == "memory") return absl::ResourceExhaustedError(message);
  if (kind == "no baseline") return absl::UnimplementedError(message);
  if (kind == "closed") return absl::NotFoundError(message);
  return absl::FailedPreconditionError(message);
}

absl::StatusOr<std::vector<v1::ProvideRequest::Part>> PartsOf(const nlohmann::json& reply, const char* key) {
  std::vector<v1::ProvideRequest::Part> parts;
  if (!reply.contains(key) || !reply[key].is_array()) return BrokenAnswer(reply);
  for (const nlohmann::json& each : reply[key]) {
    v1::ProvideRequest::Part& part = parts.emplace_back();
    part.set_tensor(TextOf(each, "tensor"));
    part.set_offset(static_cast<int64_t>(NumberOf(each, "offset")));
    part.set_bytes(static_cast<int64_t>(NumberOf(each, "bytes")));
  }
  return parts;
}

// Where the runner puts the outputs of one call of several (OutputSlots in worker/runner/arena.h).
constexpr int64_t kOutputAlign = 256;
constexpr int64_t kPageBytes = 4096;

int64_t AlignedUp(int64_t bytes) { return (bytes + kOutputAlign - 1) / kOutputAlign * kOutputAlign; }

// What is at `offset` of shared memory from now on.
absl::Status WriteShared(int fd, absl::string_view data, int64_t offset) {
  while (!data.empty()) {
    const ssize_t count = pwrite(fd, data.data(), data.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      return absl::ResourceExhaustedError(
          absl::StrCat("no room for ", data.size(), " bytes of inputs in shared memory: ", strerror(errno)));
    }
    data.remove_prefix(static_cast<size_t>(count));
    offset += count;
  }
  return absl::OkStatus();
}

// Puts the data of files into shared memory, from `offset` on, and says in `tensors` where: reference() gets them too.
absl::Status StageFiles(const v1::Bundle& bundle, const v1::Plan& plan, int fd, int64_t offset,
                        nlohmann::json* tensors) {
  for (int i = 0; i < plan.tensors_size(); ++i) {
    if (plan.tensors(i).fill() != v1::FILL_FILE) continue;
    for (const v1::Tensor& tensor : bundle.tensors()) {
      const v1::DataFile* file = FindDataFile(bundle, tensor.file());
      if (tensor.name() != plan.tensors(i).name() || file == nullptr) continue;
      const absl::StatusOr<absl::string_view> data = DataOf(*file, plan.tensors(i));
      if (!data.ok()) return data.status();
      if (absl::Status status = WriteShared(fd, *data, offset); !status.ok()) return status;
      (*tensors)[i]["data"] = {{"offset", offset}, {"bytes", data->size()}};
      offset += AlignedUp(static_cast<int64_t>(data->size()));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<StagedEntry> StagedOf(const nlohmann::json& reply) {
  StagedEntry staged;
  for (const auto& [key, parts] : {std::pair{"inputs", &staged.inputs}, std::pair{"expected", &staged.expected}}) {
    absl::StatusOr<std::vector<v1::ProvideRequest::Part>> read = PartsOf(reply, key);
    if (!read.ok()) return read.status();
    *parts = *std::move(read);
  }
  staged.make_seconds = NumberOf(reply, "make_seconds");
  staged.stage_seconds = NumberOf(reply, "stage_seconds");
  return staged;
}

}  // namespace

std::string ProblemIdentity(const v1::Bundle& bundle) {
  std::string text = absl::StrCat(bundle.name(), "\n", bundle.problem().text());
  for (const std::string& path : bundle.problem_files()) {
    const v1::DataFile* file = FindDataFile(bundle, path);  // asked for at every request: a fast hash
    absl::StrAppend(&text, "\n", path, " ", file == nullptr ? 0 : absl::HashOf(absl::string_view(file->data())));
  }
  return Sha256(text);
}

int64_t StagedEntry::bytes() const {
  int64_t bytes = 0;
  for (const auto* parts : {&inputs, &expected}) {
    for (const v1::ProvideRequest::Part& part : *parts) bytes += part.bytes();
  }
  return bytes;
}

int64_t StagedEntry::end() const {
  int64_t end = 0;
  for (const auto* parts : {&inputs, &expected}) {
    for (const v1::ProvideRequest::Part& part : *parts) end = std::max(end, part.offset() + part.bytes());
  }
  return (end + kPageBytes - 1) / kPageBytes * kPageBytes;
}

std::string ProblemProcess::DefaultPython() {
  const char* chosen = getenv("PAWL_PYTHON");
  return chosen != nullptr && *chosen != '\0' ? chosen : "python3";
}

void ProblemProcess::Restart() {
  child_.reset();
  starting_ = false;
  open_.clear();
  ahead_.reset();
}

absl::Status ProblemProcess::Spawn() {
  Restart();
  folder_ = std::make_unique<TemporaryFolder>("pawl-problem-");
  std::error_code error;
  const fs::path folder = fs::canonical(folder_->path(), error);
  if (folder_->path().empty() || error) {
    return absl::ResourceExhaustedError("can't make a temporary folder: set TMPDIR to one with room");
  }
  for (const auto& [name, text] : {std::pair{kServer, embedded::kProblemPawlProblemPy},
                                   std::pair{"pawl_tensors.py", embedded::kProblemPawlTensorsPy},
                                   std::pair{"pawl_baseline.py", embedded::kDevicePawlBaselinePy}}) {
    if (absl::Status status = WriteModule(folder / name, text); !status.ok()) return status;
  }
  const int64_t memory = options_.memory_bytes > 0 ? options_.memory_bytes : MachineMemory() / 4 * 3;
  ChildOptions child;
  child.argv = {options_.python, (folder / kServer).string(), absl::StrCat(kSharedFd), absl::StrCat(memory)};
  if (options_.sandboxing != nullptr) {
    child.argv = options_.sandboxing->Problem(child.argv, folder.string(), kSharedFd);
  }
  child.directory = folder.string();
  child.env = {{"CUDA_VISIBLE_DEVICES", options_.gpu_uuid}, {"PYTHONDONTWRITEBYTECODE", "1"}};
  child.fds = {{options_.shared_fd, kSharedFd}};
  absl::StatusOr<std::unique_ptr<ChildProcess>> started = ChildProcess::Start(child);
  if (absl::IsNotFound(started.status())) {
    return absl::FailedPreconditionError(absl::StrCat("problem.py needs Python 3 with NumPy, and there is no ",
                                                      options_.python,
                                                      ": install it, or set PAWL_PYTHON to an interpreter"));
  }
  if (!started.ok()) return started.status();
  child_ = *std::move(started);
  starting_ = true;
  start_seconds_ = 0;
  start_time_ = std::chrono::steady_clock::now();
  return absl::OkStatus();
}

void ProblemProcess::Warm() {
  if (child_ == nullptr || !child_->alive()) (void)Spawn();
}

void ProblemProcess::Settle() {
  if (starting_) (void)Start();
}

absl::Status ProblemProcess::Start() {
  if (child_ == nullptr || !child_->alive()) {
    if (absl::Status status = Spawn(); !status.ok()) return status;
  }
  if (!starting_) return absl::OkStatus();
  absl::StatusOr<Json> hello = Receive(kStartDeadline);
  if (hello.ok()) hello = ErrorOf(*hello).ok() ? hello : absl::StatusOr<Json>(ErrorOf(*hello));
  if (!hello.ok()) {
    Restart();
    return hello.status();
  }
  starting_ = false;
  start_seconds_ = NumberOf(*hello, "seconds");
  return absl::OkStatus();
}

absl::StatusOr<nlohmann::json> ProblemProcess::Receive(absl::Duration deadline) {
  google::protobuf::BytesValue message;
  absl::Status status = child_->Receive(&message, SteadyNow() + deadline, stopped_);
  if (!status.ok()) {
    Restart();
    if (absl::IsCancelled(status)) return status;
    return absl::UnavailableError(absl::StrCat("the process that runs problem.py failed: ", status.message()));
  }
  Json reply = Json::parse(message.value(), nullptr, /*allow_exceptions=*/false);
  if (!reply.is_object()) {
    Restart();
    return BrokenAnswer(reply);
  }
  return reply;
}

absl::Status ProblemProcess::Send(const Json& request, absl::Duration deadline) {
  google::protobuf::BytesValue message;
  message.set_value(request.dump(-1, ' ', false, Json::error_handler_t::replace));
  const absl::Status sent = child_->Send(message, SteadyNow() + deadline);
  if (sent.ok()) return sent;
  Restart();
  return absl::UnavailableError(absl::StrCat("the process that runs problem.py failed: ", sent.message()));
}

absl::StatusOr<nlohmann::json> ProblemProcess::Exchange(const Json& request, absl::Duration deadline) {
  if (absl::Status sent = Send(request, deadline); !sent.ok()) return sent;
  return ReadReply(deadline);
}

absl::StatusOr<nlohmann::json> ProblemProcess::ReadReply(absl::Duration deadline) {
  absl::StatusOr<Json> reply = Receive(deadline + options_.grace);
  if (!reply.ok()) return reply;
  if (absl::Status error = ErrorOf(*reply); !error.ok()) return error;
  return reply;
}

bool ProblemProcess::CanRun(const std::vector<std::string>& command) const {
  return command.size() > 1 && command[0] == options_.python && absl::EndsWith(command[1], ".py");
}

// The process writes the files itself: nothing outside of the sandbox writes where a script can put links.
absl::StatusOr<ProcessResult> ProblemProcess::RunScript(const v1::Bundle& bundle,
                                                        const std::vector<std::string>& command,
                                                        const ScriptFiles& files, const std::string& input,
                                                        absl::Duration deadline) {
  DropAhead();
  if (absl::Status status = Start(); !status.ok()) {
    return absl::IsCancelled(status) ? status : absl::FailedPreconditionError(status.message());
  }
  const bool other = !open_.empty() && open_ != ProblemIdentity(bundle);
  if (other) open_.clear();
  Json written = Json::array();
  for (const auto& [path, content] : files) {
    written.push_back({{"path", path}, {"base64", absl::Base64Escape(content)}});
  }
  const absl::StatusOr<Json> reply = Exchange({{"do", "script"},
                                               {"argv", std::vector<std::string>(command.begin() + 1, command.end())},
                                               {"files", std::move(written)},
                                               {"close", other},
                                               {"input", input},
                                               {"seconds", absl::ToDoubleSeconds(deadline)}},
                                              deadline);
  if (!reply.ok()) return reply.status();
  ProcessResult result;
  result.signal = static_cast<int>(NumberOf(*reply, "signal"));
  result.exit_code = result.signal != 0 ? -1 : static_cast<int>(NumberOf(*reply, "code"));
  result.timed_out = NumberOf(*reply, "timed_out") != 0;
  result.out = TextOf(*reply, "out");
  result.err = TextOf(*reply, "err");
  result.seconds = NumberOf(*reply, "took");
  return result;
}

absl::Status ProblemProcess::Open(const v1::Bundle& bundle) {
  const std::string identity = ProblemIdentity(bundle);
  if (open_ != identity) DropAhead();
  if (absl::Status status = Start(); !status.ok()) return status;
  if (open_ == identity) return absl::OkStatus();
  open_.clear();
  const std::string path = bundle.problem().path().empty() ? "problem.py" : bundle.problem().path();
  const absl::StatusOr<Json> opened = Exchange({{"do", "open"},
                                                {"path", path},
                                                {"source", bundle.problem().text()},
                                                {"files", ProblemFilesOf(bundle)},
                                                {"seconds", absl::ToDoubleSeconds(options_.deadline)}},
                                               options_.deadline);
  if (!opened.ok()) return opened.status();
  has_check_ = opened->contains("check") && (*opened)["check"] == true;
  open_ = identity;
  return absl::OkStatus();
}

absl::StatusOr<nlohmann::json> ProblemProcess::Ask(const v1::Bundle& bundle, Json request, absl::Duration deadline) {
  request["seconds"] = absl::ToDoubleSeconds(deadline);
  const bool asked = ahead_ == request && open_ == ProblemIdentity(bundle) && child_ != nullptr;
  if (!asked) {
    DropAhead();
    if (absl::Status open = Open(bundle); !open.ok()) return open;
  }
  ahead_.reset();
  absl::StatusOr<Json> reply = asked ? ReadReply(deadline) : Exchange(request, deadline);
  // A problem that ended is closed: the next request opens it again.
  if (!reply.ok() && !absl::IsNotFound(reply.status())) open_.clear();
  return reply;
}

void ProblemProcess::DropAhead() {
  if (!std::exchange(ahead_, std::nullopt)) return;
  const absl::StatusOr<Json> unread = ReadReply(options_.deadline);
  if (!unread.ok() && !absl::IsNotFound(unread.status())) open_.clear();
}

absl::StatusOr<StagedEntry> ProblemProcess::AskEntry(const v1::Bundle& bundle, absl::StatusOr<Json> request) {
  if (!request.ok()) return request.status();
  absl::StatusOr<Json> reply = Ask(bundle, *std::move(request), options_.deadline);
  if (!reply.ok()) return reply.status();
  return StagedOf(*reply);
}

void ProblemProcess::AskAhead(const v1::Bundle& bundle, absl::StatusOr<Json> request) {
  // What goes wrong here shows again where the answer is asked for.
  if (!request.ok() || ahead_ || !Open(bundle).ok()) return;
  (*request)["seconds"] = absl::ToDoubleSeconds(options_.deadline);
  if (Send(*request, options_.deadline).ok()) ahead_ = *std::move(request);
}

absl::StatusOr<nlohmann::json> ProblemProcess::MakeRequest(const v1::Bundle& bundle, const v1::Plan& plan,
                                                           const EntryRequest& request) {
  Json asked = SizeJson(plan.size(), plan.sizes(), request.seed);
  asked["do"] = "make";
  asked["fill_seed"] = request.seed & ((uint64_t{1} << 32) - 1);
  asked["pool"] = request.pool;
  asked["entry"] = request.entry;
  asked["offset"] = request.offset;
  asked["only"] = request.only;
  asked["strict"] = request.strict;
  asked["tensors"] = TensorsJson(plan);
  if (request.distribution != v1::DISTRIBUTION_UNSPECIFIED) {
    asked["distribution"] = v1::Distribution_Name(request.distribution).substr(sizeof("DISTRIBUTION_") - 1);
    asked["magnitude"] = request.magnitude;
  }
  absl::Status files = StageFiles(bundle, plan, options_.shared_fd, request.offset, &asked["tensors"]);
  if (!files.ok()) return files;
  return asked;
}

absl::StatusOr<StagedEntry> ProblemProcess::Make(const v1::Bundle& bundle, const v1::Plan& plan,
                                                 const EntryRequest& request) {
  return AskEntry(bundle, MakeRequest(bundle, plan, request));
}

void ProblemProcess::MakeAhead(const v1::Bundle& bundle, const v1::Plan& plan, const EntryRequest& request) {
  // Files lie where the entry is put: asking again would write them over it.
  const bool has_files = std::any_of(plan.tensors().begin(), plan.tensors().end(),
                                     [](const v1::PlanTensor& tensor) { return tensor.fill() == v1::FILL_FILE; });
  if (has_files) return;
  AskAhead(bundle, MakeRequest(bundle, plan, request));
}

absl::StatusOr<StagedEntry> ProblemProcess::Stage(const v1::Bundle& bundle, const std::string& pool, uint32_t entry,
                                                  int64_t offset) {
  return AskEntry(bundle, Json({{"do", "stage"}, {"pool", pool}, {"entry", entry}, {"offset", offset}}));
}

void ProblemProcess::StageAhead(const v1::Bundle& bundle, const std::string& pool, uint32_t entry, int64_t offset) {
  AskAhead(bundle, Json({{"do", "stage"}, {"pool", pool}, {"entry", entry}, {"offset", offset}}));
}

void ProblemProcess::Forget(const v1::Bundle& bundle, const std::string& pool) {
  if (child_ == nullptr || open_ != ProblemIdentity(bundle)) return;  // it has none of them
  (void)Ask(bundle, {{"do", "drop"}, {"pool", pool}}, options_.deadline);
}

absl::StatusOr<bool> ProblemProcess::HasCheck(const v1::Bundle& bundle) {
  if (absl::Status open = Open(bundle); !open.ok()) return open;
  return has_check_;
}

absl::StatusOr<OwnCheck> ProblemProcess::Check(const v1::Bundle& bundle, const v1::Plan& plan,
                                               const std::vector<v1::InputDraw>& draws, bool self_test) {
  Json calls = Json::array();
  int64_t offset = 0;  // outputs lie one after another, those of the next call behind them
  for (const v1::InputDraw& draw : draws) {
    Json outputs = Json::array();
    for (const v1::PlanTensor& tensor : plan.tensors()) {
      if (!IsCompared(tensor.role())) continue;
      outputs.push_back({{"tensor", tensor.name()}, {"offset", offset}, {"bytes", TensorBytes(tensor)}});
      offset += AlignedUp(TensorBytes(tensor));
    }
    calls.push_back({{"pool", draw.pool()}, {"entry", draw.entry()}, {"outputs", std::move(outputs)}});
  }
  absl::StatusOr<Json> reply =
      Ask(bundle, {{"do", "check"}, {"calls", std::move(calls)}, {"self_test", self_test}}, options_.deadline);
  if (!reply.ok()) return reply.status();
  OwnCheck check;
  for (const auto& [key, texts] : {std::pair{"verdicts", &check.verdicts}, std::pair{"lenient", &check.lenient}}) {
    if (!reply->contains(key) || !(*reply)[key].is_array()) return BrokenAnswer(*reply);
    for (const Json& text : (*reply)[key]) texts->push_back(text.is_string() ? text.get<std::string>() : "?");
  }
  if (check.verdicts.size() != draws.size()) return BrokenAnswer(*reply);
  return check;
}

absl::StatusOr<v1::BaselineTime> ProblemProcess::TimeBaseline(const v1::Bundle& bundle, const v1::Plan& plan) {
  Json asked = SizeJson(plan.size(), plan.sizes(), RandomSeed());
  asked["do"] = "baseline";
  asked["tensors"] = TensorsJson(plan);
  asked["measurements"] = kBaselineMeasurements;
  absl::StatusOr<Json> reply = Ask(bundle, std::move(asked), options_.baseline_deadline);
  if (!reply.ok()) return reply.status();
  absl::StatusOr<std::vector<v1::BaselineTime>> times = ReadBaselineAnswers(reply->dump());
  if (!times.ok()) return times.status();
  return times->at(0);
}

absl::StatusOr<v1::BesideBaseline> ProblemProcess::TimeBesideBaseline(const v1::Bundle& bundle, const BuiltSize& best) {
  if (best.plan.setup_size() > 0) {
    return absl::UnimplementedError("a kernel with setup launches is not timed beside the baseline");
  }
  if (absl::Status open = Open(bundle); !open.ok()) return open;
  std::error_code error;
  const fs::path cubin = fs::canonical(folder_->path(), error) / kWinner;
  if (absl::Status status = WriteModule(cubin, *best.cubin); !status.ok()) return status;
  Json asked = SizeJson(best.plan.size(), best.plan.sizes(), RandomSeed());
  asked["do"] = "beside";
  asked["tensors"] = TensorsJson(best.plan);
  asked["winner"] = {{"cubin", cubin.string()},
                     {"plan",
                      {{"tensors", TensorsJson(best.plan)},
                       {"launches", LaunchesJson(best.plan)},
                       {"symbols", SymbolsJson(best.plan, *best.cubin)}}}};
  absl::StatusOr<Json> reply = Ask(bundle, std::move(asked), options_.baseline_deadline);
  if (!reply.ok()) return reply.status();
  return ReadBesideAnswer(reply->dump(), best.plan.size());
}

}  // namespace pawl
