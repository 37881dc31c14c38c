#include "cli/connect/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/names/resource_name.h"
#include "base/names/spelling.h"
#include "cli/text/failure.h"
#include "cli/text/help_format.h"
#include "kernels/limits.h"

namespace pawl {

namespace {

absl::Status SetChooser(const SpecFlags& flags, v1::ChooserSettings* chooser) {
  const bool waits = flags.chooser == "outside" || flags.chooser == "mixed";
  if (!waits && (flags.wait_for_proposal > 0 || !flags.no_proposal.empty())) {
    return absl::InvalidArgumentError(absl::StrCat(
        flags.wait_for_proposal > 0 ? "--wait-for-proposal" : "--no-proposal",
        " needs --chooser outside or mixed: with ", flags.chooser.empty() ? "both, the default," : flags.chooser,
        " a campaign does not wait for proposals"));
  }
  if (flags.tuning_share > 0 && flags.chooser != "mixed") {
    return absl::InvalidArgumentError("--tuning-share needs --chooser mixed: it is what follows each kept edit there");
  }
  if (flags.chooser == "tree") chooser->set_kind(v1::CHOOSER_KIND_TREE);
  if (flags.chooser == "outside") chooser->set_kind(v1::CHOOSER_KIND_OUTSIDE);
  if (flags.chooser == "both") chooser->set_kind(v1::CHOOSER_KIND_BOTH);
  if (flags.chooser == "mixed") chooser->set_kind(v1::CHOOSER_KIND_MIXED);
  chooser->set_tuning_share(flags.tuning_share);
  chooser->set_wait_seconds(flags.wait_for_proposal);
  if (flags.no_proposal == "tree") chooser->set_no_proposal(v1::NO_PROPOSAL_TREE);
  if (flags.no_proposal == "pause") chooser->set_no_proposal(v1::NO_PROPOSAL_PAUSE);
  return absl::OkStatus();
}

// CLI::Range takes nan.
CLI::Validator Share() {
  return CLI::Validator(
      [](std::string& text) {
        double value = 0;
        return absl::SimpleAtod(text, &value) && value >= 0 && value <= 1
                   ? std::string()
                   : absl::StrCat(text, " is not a number from 0 to 1");
      },
      "0 to 1");
}

CLI::Validator WholeCampaignName() {
  return CLI::Validator(
      [](std::string& text) {
        absl::StatusOr<std::string> whole = ReadCampaignName(text);
        if (!whole.ok()) return std::string(whole.status().message());
        text = *whole;
        return std::string();
      },
      "");
}

}  // namespace

CLI::Validator AboveZero() {
  return CLI::Validator(
      [](std::string& text) {
        double value = 0;
        return absl::SimpleAtod(text, &value) && value > 0 && std::isfinite(value)
                   ? std::string()
                   : absl::StrCat(text, " is not a number above 0");
      },
      "ABOVE 0");
}

// In groups of their own also where help does not list them: CLI11's messages do not name the flags of the group "".
void AddConnectionFlags(CLI::App& command, ConnectionFlags* flags) {
  CLI::Option* orchestrator =
      command.add_option("--orchestrator", flags->orchestrator, "Address of the orchestrator: unix:/path or host:port")
          ->type_name("ADDRESS")
          ->group(kConnectionGroup);
  command
      .add_option("--database", flags->database,
                  "Database whose orchestrator to use (default: ~/.local/share/pawl/pawl.db)")
      ->type_name("FILE")
      ->group(kConnectionGroup)
      ->excludes(orchestrator);
  command.add_option("--config", flags->config, "Settings file (default: ~/.config/pawl/pawl.toml)")
      ->type_name("FILE")
      ->group(kConnectionGroup);
  const auto file = [&](const char* name, std::string& value, const char* text) {
    command.add_option(name, value, text)->type_name("FILE")->group(kTlsGroup);
  };
  file("--tls-ca", flags->credentials.tls.ca, "Certificate authority that signed the orchestrator's certificate");
  file("--tls-cert", flags->credentials.tls.cert, "Your certificate; it names your role");
  file("--tls-key", flags->credentials.tls.key, "Private key of your certificate, readable by you only (mode 600)");
  file("--token-file", flags->credentials.token_file, "File with the token of your role, instead of a certificate");
}

void AddJsonFlag(CLI::App& command, bool* json) {
  command.add_flag("--json", *json, "Print JSON for programs: one object per line");
}

bool IsGlobalFlag(const std::string& argument, bool* takes_value) {
  static const auto* const kGlobal = [] {
    static ConnectionFlags flags;
    static bool json = false;
    auto* app = new CLI::App;
    AddConnectionFlags(*app, &flags);
    AddJsonFlag(*app, &json);
    return app;
  }();
  const size_t equals = argument.find('=');
  const CLI::Option* option = absl::StartsWith(argument, "--") && argument != "--help"
                                  ? kGlobal->get_option_no_throw(argument.substr(0, equals))
                                  : nullptr;
  *takes_value = option != nullptr && option->get_items_expected_max() > 0 && equals == std::string::npos;
  return option != nullptr;
}

void AddCampaign(CLI::App& command, std::string* campaign) {
  command.add_option("CAMPAIGN", *campaign, "Campaign: 7 or campaigns/7")->required()->transform(WholeCampaignName());
}

CLI::Option* AddCampaignOption(CLI::App& command, std::string* campaign, const std::string& text) {
  return command.add_option("--campaign", *campaign, text)->type_name("CAMPAIGN")->transform(WholeCampaignName());
}

void AddSpecFlags(CLI::App& command, SpecFlags* flags) {
  CLI::Option* size =
      command.add_option("--size", flags->size, "Optimise at this size of the bundle (default: the goal's size)");
  command
      .add_option("--sizes", flags->sizes,
                  "Optimise the weighted geometric mean over these sizes: main=0.6,large=0.4, or main,large for equal "
                  "weights (default: the goal's)")
      ->type_name("SIZE=WEIGHT,...")
      ->excludes(size);
  command
      .add_option(
          "--worst", flags->worst,
          "Of a goal over several sizes: keep nothing that falls below this share of the best speed kept so far "
          "at any of them (default: the bundle's)")
      ->type_name("SHARE")
      ->check(Share())
      ->excludes(size);
  command
      .add_option("--portfolio", flags->portfolio,
                  "Of a goal over several sizes: end with at most so many variants, and a rule that picks one by size "
                  "(default: the bundle's)")
      ->type_name("COUNT")
      ->check(CLI::Range(1, kMaxPortfolio))
      ->excludes(size);
  command.add_option("--goal", flags->goal, "Stop at this speedup over the baseline (default: the bundle's goal)")
      ->check(AboveZero());
  command
      .add_option("--iterations", flags->iterations,
                  "Maximum number of changes to try (default: 50; no limit with --minutes or --dollars)")
      ->check(AboveZero());
  command.add_option("--minutes", flags->minutes, "Time limit, in minutes (default: 60)")->check(AboveZero());
  command.add_option("--dollars", flags->dollars, "Cost limit in dollars, from the GPU's price per hour")
      ->check(AboveZero());
  command
      .add_option("--least-gain", flags->least_gain,
                  "End when no change is expected to gain this much, as a share (default 0.001)")
      ->check(AboveZero());
  command
      .add_option(
          "--chooser", flags->chooser,
          "Who chooses the next change: tree (Pawl), outside (the campaign waits for `pawl propose`), both (Pawl, "
          "proposals first; default) or mixed (outside, and Pawl tunes the variables after each kept edit)")
      ->check(CLI::IsMember({"tree", "outside", "both", "mixed"}));
  command
      .add_option("--tuning-share", flags->tuning_share,
                  "With --chooser mixed: share of the iterations (of 50 where they have no limit) for tuning after "
                  "each kept edit (default: 0.2)")
      ->type_name("SHARE")
      ->check(AboveZero());
  command
      .add_option("--wait-for-proposal", flags->wait_for_proposal,
                  "With --chooser outside or mixed: how long to wait for a proposal (default: 300)")
      ->type_name("SECONDS")
      ->check(AboveZero());
  command
      .add_option(
          "--no-proposal", flags->no_proposal,
          "With --chooser outside or mixed: what happens without a proposal in time: tree (Pawl chooses; default) or "
          "pause")
      ->check(CLI::IsMember({"tree", "pause"}));
  command
      .add_option("--expect-baseline-us", flags->expect_baseline_us,
                  "Expected time of the baseline; the campaign stops if the measured time is far from it")
      ->type_name("MICROSECONDS")
      ->check(AboveZero());
}

absl::Status SetGoalSizes(const std::string& text, const v1::Bundle& bundle, v1::Goal* goal) {
  std::vector<std::string> known;
  for (const v1::Size& size : bundle.sizes()) known.push_back(size.name());
  goal->clear_sizes();
  const std::vector<std::string> parts = absl::StrSplit(text, ',');
  const bool weighted = absl::StrContains(text, '=');
  double sum = 0, most = 0;
  for (const std::string& part : parts) {
    const std::pair<std::string, std::string> named = absl::StrSplit(part, absl::MaxSplits('=', 1));
    if (std::find(known.begin(), known.end(), named.first) == known.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--sizes: ", bundle.name(), " has no size ", named.first, Expected(named.first, known)));
    }
    double weight = 1.0 / static_cast<double>(parts.size());
    if (weighted && (!absl::SimpleAtod(named.second, &weight) || !(weight > 0) || !std::isfinite(weight))) {
      return absl::InvalidArgumentError(absl::StrCat("--sizes: the weight of ", named.first, " is \"", named.second,
                                                     "\"; expected a number above 0, such as ", named.first,
                                                     "=0.5; or no weights at all, for equal ones"));
    }
    if (!goal->mutable_sizes()->insert({named.first, weight}).second) {
      return absl::InvalidArgumentError(absl::StrCat("--sizes: ", named.first, " is there twice"));
    }
    sum += weight;
    if (weight > most) goal->set_size(named.first);
    most = std::max(most, weight);
  }
  if (std::fabs(sum - 1) > kGoalWeights) {
    return absl::InvalidArgumentError(absl::StrCat("--sizes: the weights have the sum ", sum, "; expected 1"));
  }
  if (goal->sizes_size() < 2) {
    goal->clear_worst();
    goal->clear_portfolio();
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::CampaignSpec> MakeSpec(const SpecFlags& flags, const v1::Bundle& bundle) {
  v1::CampaignSpec spec;
  *spec.mutable_goal() = bundle.goal();
  if (!flags.size.empty()) {
    std::vector<std::string> known;
    for (const v1::Size& size : bundle.sizes()) known.push_back(size.name());
    if (std::find(known.begin(), known.end(), flags.size) == known.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat(bundle.name(), " has no size ", flags.size, Expected(flags.size, known)));
    }
    spec.mutable_goal()->set_size(flags.size);
    spec.mutable_goal()->clear_sizes();
    spec.mutable_goal()->clear_worst();
    spec.mutable_goal()->clear_portfolio();
  }
  if (!flags.sizes.empty()) {
    if (absl::Status status = SetGoalSizes(flags.sizes, bundle, spec.mutable_goal()); !status.ok()) return status;
  }
  if (flags.worst) {
    if (spec.goal().sizes_size() < 2) {
      return absl::InvalidArgumentError(
          "--worst is for a goal over several sizes: name them with --sizes, or in kernel.toml");
    }
    spec.mutable_goal()->set_worst(*flags.worst);
  }
  if (flags.portfolio > 0) spec.mutable_goal()->set_portfolio(flags.portfolio == 1 ? 0 : flags.portfolio);
  if (spec.goal().portfolio() > 1 && spec.goal().sizes_size() < 2) {
    return absl::InvalidArgumentError(
        "--portfolio is for a goal over several sizes: name them with --sizes, or in kernel.toml");
  }
  if (flags.goal > 0) spec.mutable_goal()->set_speedup(flags.goal);
  spec.mutable_budget()->set_iterations(flags.iterations);
  spec.mutable_budget()->set_minutes(flags.minutes);
  spec.mutable_budget()->set_dollars(flags.dollars);
  spec.mutable_budget()->set_least_gain(flags.least_gain);
  if (absl::Status status = SetChooser(flags, spec.mutable_chooser()); !status.ok()) return status;
  spec.set_expected_baseline_us(flags.expect_baseline_us);
  return spec;
}

int WithConnection(const std::string& command, const ConnectionFlags& flags, Need need,
                   const std::function<absl::StatusOr<int>(Connection&)>& body) {
  absl::StatusOr<Settings> settings = ReadSettings(flags);
  if (!settings.ok()) return Fail(command, settings.status());
  absl::StatusOr<std::unique_ptr<Connection>> connection = Connection::Open(*settings, need);
  if (!connection.ok()) return Fail(command, connection.status());
  absl::StatusOr<int> exit_code = body(**connection);
  return exit_code.ok() ? *exit_code : Fail(command, exit_code.status());
}

std::string CheckChange(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals != std::string::npos && equals > 0 && equals + 1 < text.size()) return "";
  return absl::StrCat("\"", text, "\" is not a change: expected VARIABLE=VALUE, such as TILE_M=16");
}

}  // namespace pawl
