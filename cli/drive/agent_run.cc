#include "cli/drive/agent_run.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "agent/drive/agent_command.h"
#include "agent/drive/driven_features.h"
#include "agent/tools/source_text.h"
#include "base/sync/steady_time.h"
#include "cli/connect/interrupt.h"
#include "cli/drive/agent_process.h"
#include "cli/drive/checkout.h"
#include "cli/drive/connected_campaigns.h"
#include "cli/drive/mcp_socket.h"
#include "cli/drive/subreaper.h"
#include "cli/text/failure.h"
#include "cli/text/words.h"
#include "worker/process/temporary_folder.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kLimitsLook = absl::Milliseconds(100);
constexpr absl::Duration kEndLook = absl::Milliseconds(20);
constexpr absl::Duration kCampaignLook = absl::Seconds(1);
constexpr absl::Duration kAgentGrace = absl::Seconds(5);     // to end by itself, of all agents together
constexpr absl::Duration kKillPatience = absl::Seconds(5);   // for what then is left to be killed
constexpr absl::Duration kLastWords = absl::Seconds(30);     // of agents that have nothing more to propose
constexpr absl::Duration kLastVerdicts = absl::Seconds(60);  // on what agents proposed that have ended

using Clock = std::chrono::steady_clock;

// Follows the campaign, for as long as this object is there.
class CampaignFollower {
 public:
  CampaignFollower(Campaigns& campaigns, const v1::Campaign& campaign, AgentLedger& ledger)
      : campaigns_(campaigns),
        name_(campaign.name()),
        gpu_seconds_(campaign.gpu_seconds()),
        ledger_(ledger),
        thread_([this, after = campaign.last_sequence()] { Follow(after); }) {}
  ~CampaignFollower() {
    stopping_ = true;
    thread_.join();
  }

 private:
  void Follow(int64_t after) {
    std::unique_ptr<CampaignWatch> watch = campaigns_.Watch(name_, after);
    SteadyTime looked = SteadyTime::InfinitePast();
    while (!stopping_) {
      if (SteadyNow() - looked > kCampaignLook) {
        looked = SteadyNow();
        const absl::StatusOr<v1::Campaign> now = campaigns_.GetCampaign(name_);
        if (now.ok()) ledger_.GpuSeconds(now->gpu_seconds() - gpu_seconds_);
      }
      v1::WatchCampaignResponse message;
      switch (watch->Next(kLimitsLook, &message)) {
        case CampaignWatch::Got::kMessage:
          if (!message.has_event()) break;
          after = message.event().sequence();
          ledger_.Take(message.event());
          Tell(message.event());
          break;
        case CampaignWatch::Got::kEnd:
          absl::SleepFor(kCampaignLook);
          if (!watch->status().ok()) watch = campaigns_.Watch(name_, after);
          break;
        case CampaignWatch::Got::kNothingYet:
          break;
      }
    }
  }

  void Tell(const v1::Event& event) {
    for (const v1::Iteration& judged : verdicts_.Take(event)) {
      if (ledger_.accounts().count(judged.author()) == 0) continue;
      const double speedup = judged.speedup_over_parent();
      std::fprintf(stderr, "%s: %s, %s%s\n", judged.author().c_str(), ChangeText(judged.change()).c_str(),
                   VerdictWord(judged.verdict()).c_str(),
                   speedup > 0 ? absl::StrCat(", ", SpeedupText(speedup)).c_str() : "");
    }
  }

  Campaigns& campaigns_;
  const std::string name_;
  const double gpu_seconds_;
  AgentLedger& ledger_;
  SettledVerdicts verdicts_;  // of its own thread
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

// One of the agents, with what it is given.
struct Driven {
  std::string author;
  fs::path folder, transcript;
  std::unique_ptr<DrivenFeatures> features;
  std::unique_ptr<McpServer> server;
  std::unique_ptr<McpSocket> socket;
  std::unique_ptr<AgentProcess> process;
  bool idle = false;                                  // it was ended for this
  SteadyTime kill_at = SteadyTime::InfiniteFuture();  // it was asked to end
};

// What tells the agents of this run from others of the same command on the same campaign.
std::string RunMark() { return absl::StrFormat("%04x", std::random_device()() & 0xffff); }

class AgentRun {
 public:
  AgentRun(Connection& connection, const AgentRunOptions& options)
      : options_(options), campaigns_(CampaignsOf(connection)), ledger_(options.limits, Clock::now()) {}

  absl::StatusOr<int> Run() {
    absl::StatusOr<v1::Campaign> campaign = WaitForStart();
    if (!campaign.ok()) return campaign.status();
    before_ = *std::move(campaign);
    if (sockets_.path().empty()) return absl::UnavailableError("can't create a folder for sockets in TMPDIR");
    if (absl::Status prepared = Prepare(); !prepared.ok()) return prepared;
    AgentStop stop = AgentStop::kFailed;
    {
      const CampaignFollower follower(*campaigns_, before_, ledger_);
      if (absl::Status started = StartAll(); !started.ok()) return started;
      stop = Watch();
      if (stop == AgentStop::kProposals || stop == AgentStop::kCampaignEnded) {
        Wait(kLastWords, [this] { return !AnyAlive(); });
      }
      EndAll();
      NoteUsage();
      if (stop == AgentStop::kAgentsEnded) {
        Wait(kLastVerdicts, [this] { return AllJudged(); });
        stop = ledger_.Stop(Clock::now()).value_or(stop);  // the last verdicts may have reached a limit
      }
    }
    return Finish(stop);
  }

 private:
  absl::StatusOr<v1::Campaign> WaitForStart() {
    std::string told;
    while (true) {
      absl::StatusOr<v1::Campaign> campaign = campaigns_->GetCampaign(options_.campaign);
      if (!campaign.ok()) return campaign.status();
      if (campaign->has_end_time()) {
        return absl::FailedPreconditionError(
            absl::StrCat(options_.campaign, " has ended: ", campaign->message(), "; submit another with pawl submit"));
      }
      if (campaign->spec().chooser().kind() == v1::CHOOSER_KIND_TREE) {
        return absl::FailedPreconditionError(
            absl::StrCat(options_.campaign, " takes no proposals: submit one with --chooser outside or both"));
      }
      if (campaign->has_best()) return campaign;
      // A contract alone has a situation before it has a start: the agents propose that. Another may have got its start
      // just now.
      if (campaigns_->GetSituation(options_.campaign).ok()) return campaigns_->GetCampaign(options_.campaign);
      if (Interrupted()) return absl::CancelledError("interrupted before the start variant was measured");
      if (campaign->message() != told) {
        told = campaign->message();
        if (!told.empty()) std::fprintf(stderr, "%s: %s\n", options_.campaign.c_str(), told.c_str());
      }
      absl::SleepFor(kLimitsLook);
    }
  }

  // Folders, tools and sockets of all agents.
  absl::Status Prepare() {
    const absl::StatusOr<v1::Bundle> bundle = BundleOf(*campaigns_, before_);
    if (!bundle.ok()) return bundle.status();
    absl::StatusOr<std::vector<std::string>> words = CommandWords(options_.command);
    if (!words.ok()) return words.status();
    const std::string name = absl::StrCat(fs::path((*words)[0]).filename().string(), "-", RunMark());
    for (int i = 1; i <= options_.agents; ++i) {
      Driven& agent = agents_.emplace_back();
      agent.author = options_.agents == 1 ? name : absl::StrCat(name, " ", i);
      agent.folder = options_.folder / absl::StrCat("agent-", i);
      agent.transcript = options_.folder / absl::StrCat("agent-", i, ".out");
      ledger_.AddAgent(agent.author, Clock::now());
      const fs::path checkout = agent.folder / "implementation";
      if (absl::Status written = WriteCheckout(*campaigns_, before_, checkout); !written.ok()) return written;
      if (absl::Status written = WriteContract(*bundle, agent.folder / "contract"); !written.ok()) return written;
      const fs::path calls = options_.folder / absl::StrCat("agent-", i, ".calls.jsonl");
      PawlFeatures::Options features;
      features.version = options_.version;
      features.author = agent.author;
      features.campaign = options_.campaign;
      agent.features = std::make_unique<DrivenFeatures>(campaigns_, features, ledger_, calls);
      agent.server = std::make_unique<McpServer>(*agent.features);
      absl::StatusOr<std::unique_ptr<McpSocket>> socket = McpSocket::Open(SocketOf(i), *agent.server);
      if (!socket.ok()) return socket.status();
      agent.socket = *std::move(socket);
    }
    return absl::OkStatus();
  }

  absl::Status StartAll() {
    std::error_code error;
    const std::string pawl = fs::read_symlink("/proc/self/exe", error).string();
    for (size_t i = 0; i < agents_.size(); ++i) {
      Driven& agent = agents_[i];
      AgentCommand command;
      command.text = options_.command;
      command.folder = agent.folder.string();
      command.mcp = {pawl, "mcp", "--connect", SocketOf(static_cast<int>(i) + 1).string()};
      absl::StatusOr<Json> prompt = agent.features->GetPrompt("optimise", Json::object());
      if (!prompt.ok()) return prompt.status();
      command.prompt = absl::StrCat((*prompt)["messages"][0]["content"]["text"].get<std::string>(),
                                    DrivenPrompt(agent.author, options_.agents), options_.more_prompt);
      absl::StatusOr<AgentStart> start = StartOfAgent(command);
      if (!start.ok()) return start.status();
      for (const auto& [path, text] : start->files) {
        if (absl::Status written = WriteBelow(agent.folder, path, text); !written.ok()) return written;
      }
      AgentProcessOptions process;
      process.argv = start->argv;
      process.folder = agent.folder;
      process.out = agent.transcript;
      process.err = options_.folder / absl::StrCat("agent-", i + 1, ".err");
      process.env = {{"PAWL_MCP_CONFIG", (agent.folder / kMcpConfigFile).string()},
                     {"PAWL_PROMPT_FILE", (agent.folder / kPromptFile).string()}};
      absl::StatusOr<std::unique_ptr<AgentProcess>> started = AgentProcess::Start(process);
      if (!started.ok()) return started.status();
      agent.process = *std::move(started);
      ledger_.Active(agent.author, Clock::now());
      std::fprintf(stderr, "%s started in %s\n", agent.author.c_str(), agent.folder.c_str());
    }
    return absl::OkStatus();
  }

  AgentStop Watch() {
    while (true) {
      NoteUsage();
      if (Interrupted()) return AgentStop::kInterrupted;
      if (const std::optional<AgentStop> stop = ledger_.Stop(Clock::now())) return *stop;
      EndIdle();
      Tend();
      if (!AnyAlive()) return AgentStop::kAgentsEnded;
      absl::SleepFor(kLimitsLook);
    }
  }

  void EndIdle() {
    for (Driven& agent : agents_) {
      if (agent.idle || !agent.process->alive() || !ledger_.Idle(agent.author, Clock::now())) continue;
      agent.idle = true;
      std::fprintf(stderr, "%s called no tool for %g minutes: ended\n", agent.author.c_str(),
                   options_.limits.idle_minutes);
      AskToEnd(&agent);
    }
  }

  static void AskToEnd(Driven* agent) {
    agent->process->AskToEnd();
    agent->kill_at = std::min(agent->kill_at, SteadyNow() + kAgentGrace);
  }

  // Kills the agents that were asked to end and have not, and clears up after those that have ended.
  void Tend() {
    const SteadyTime now = SteadyNow();
    bool ended = false;
    for (Driven& agent : agents_) {
      if (agent.process->finished()) continue;
      if (agent.process->alive() && now >= agent.kill_at) agent.process->Kill();
      if (agent.process->alive() && now < agent.kill_at + kKillPatience) continue;
      agent.process->Finish(now);
      ended = true;
    }
    if (ended) subreaper_.KillAdopted();
  }

  // All at once: the slowest decides how long it takes.
  void EndAll() {
    for (Driven& agent : agents_) AskToEnd(&agent);
    for (const SteadyTime end = SteadyNow() + kAgentGrace; AnyAlive() && !InterruptedAgain() && SteadyNow() < end;) {
      Tend();
      absl::SleepFor(kEndLook);
    }
    for (Driven& agent : agents_) agent.process->Kill();
    const SteadyTime deadline = SteadyNow() + kKillPatience;
    for (Driven& agent : agents_) agent.process->Finish(deadline);
    subreaper_.KillAdopted();
  }

  void Wait(absl::Duration patience, const std::function<bool()>& done) {
    for (const SteadyTime deadline = SteadyNow() + patience; !done() && !Interrupted() && SteadyNow() < deadline;) {
      Tend();
      absl::SleepFor(kLimitsLook);
    }
  }

  bool AnyAlive() const {
    return std::any_of(agents_.begin(), agents_.end(), [](const Driven& agent) { return agent.process->alive(); });
  }

  bool AllJudged() const {
    const std::map<std::string, AgentLedger::Account> accounts = ledger_.accounts();
    return ledger_.Stop(Clock::now()) == AgentStop::kCampaignEnded ||
           std::all_of(accounts.begin(), accounts.end(),
                       [](const auto& each) { return each.second.judged >= each.second.proposals; });
  }

  void NoteUsage() {
    for (const Driven& agent : agents_) {
      const AgentUsage usage = agent.process->usage();
      ledger_.Used(agent.author, usage.tokens(), usage.dollars());
    }
  }

  // An agent that ended without a call of a tool has failed, whatever its exit code: it did not find them.
  bool AllFailed() const {
    const std::map<std::string, AgentLedger::Account> accounts = ledger_.accounts();
    return std::none_of(agents_.begin(), agents_.end(), [&](const Driven& agent) {
      return agent.idle || (agent.process->succeeded() && accounts.at(agent.author).calls > 0);
    });
  }

  // "exited with code 0"
  static std::string EndOf(const Driven& agent, const AgentLedger::Account& account) {
    const bool silent = agent.process->succeeded() && account.calls == 0;
    return absl::StrCat(agent.process->end(), silent ? " and called no tool" : "");
  }

  absl::StatusOr<int> Finish(AgentStop stop) {
    if (stop == AgentStop::kAgentsEnded && AllFailed()) stop = AgentStop::kFailed;
    absl::StatusOr<v1::Campaign> campaign = campaigns_->GetCampaign(options_.campaign);
    if (!campaign.ok()) return campaign.status();
    const Json result = Result(stop, *campaign);
    if (options_.json) {
      std::printf("%s\n", JsonText(result).c_str());
    } else {
      Print(stop, *campaign);
    }
    // Last: on a full disk, what was printed is all that there is of it.
    if (absl::Status written = WriteBelow(options_.folder, "result.json", JsonText(result, 2) + "\n"); !written.ok()) {
      return written;
    }
    if (stop == AgentStop::kInterrupted) return kInterrupted;
    if (stop == AgentStop::kFailed) return kFailed;
    return ledger_.kept() > 0 ? kDone : kNoImprovement;
  }

  Json Result(AgentStop stop, const v1::Campaign& campaign) const {
    Json agents = Json::array();
    const std::map<std::string, AgentLedger::Account> accounts = ledger_.accounts();
    for (const Driven& agent : agents_) {
      const AgentLedger::Account& account = accounts.at(agent.author);
      agents.push_back({{"author", agent.author},
                        {"end", EndOf(agent, account)},
                        {"idle", agent.idle},
                        {"calls", account.calls},
                        {"proposals", account.proposals},
                        {"judged", account.judged},
                        {"kept", account.kept},
                        {"tokens", account.tokens},
                        {"dollars", account.dollars},
                        {"transcript", agent.transcript.string()}});
    }
    return {{"campaign", options_.campaign},
            {"stopReason", StopName(stop)},
            {"campaignState", StateWord(campaign.state())},
            {"campaignMessage", campaign.message()},
            {"kept", ledger_.kept()},
            {"timeUsBefore", before_.best_us()},
            {"timeUs", campaign.best_us()},
            {"speedupOverStart", campaign.speedup_over_start()},
            {"speedupOverBaseline", campaign.speedup_over_baseline()},
            {"gpuSeconds", campaign.gpu_seconds() - before_.gpu_seconds()},
            {"folder", options_.folder.string()},
            {"agents", std::move(agents)}};
  }

  void Print(AgentStop stop, const v1::Campaign& campaign) const {
    std::printf("stopped   %s\n", StopName(stop));
    if (campaign.has_best()) {
      const std::string before = before_.has_best() ? TimeText(before_.best_us()) : "no start";
      std::printf("best      %s before, %s now; %s over the start, %s over the baseline\n", before.c_str(),
                  TimeText(campaign.best_us()).c_str(), SpeedupText(campaign.speedup_over_start()).c_str(),
                  SpeedupText(campaign.speedup_over_baseline()).c_str());
    } else {
      std::printf("best      there is no start yet\n");
    }
    for (const Driven& agent : agents_) {
      const AgentLedger::Account account = ledger_.accounts().at(agent.author);
      std::printf("%-9s %d proposals, %d kept; %lld tokens; %s\n", agent.author.c_str(), account.proposals,
                  account.kept, static_cast<long long>(account.tokens), EndOf(agent, account).c_str());
    }
    std::printf("folder    %s: transcripts, calls of tools, result.json\n", options_.folder.c_str());
  }

  fs::path SocketOf(int agent) const { return sockets_.path() / absl::StrCat("agent-", agent); }

  const AgentRunOptions& options_;
  const std::shared_ptr<Campaigns> campaigns_;
  AgentLedger ledger_;
  const TemporaryFolder sockets_{"pawl-agent-"};
  const Subreaper subreaper_;
  v1::Campaign before_;
  std::vector<Driven> agents_;
};

}  // namespace

absl::StatusOr<int> RunAgents(Connection& connection, const AgentRunOptions& options) {
  return AgentRun(connection, options).Run();
}

}  // namespace pawl
