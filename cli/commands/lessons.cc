// `pawl lessons`: changes that the stored campaigns tried, with purpose and outcome.
#include "agent/tools/lessons.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/names/resource_name.h"
#include "cli/commands/commands.h"
#include "cli/connect/flags.h"
#include "cli/drive/connected_campaigns.h"
#include "cli/text/layout.h"
#include "report/words.h"

namespace pawl {
namespace {

struct LessonsFlags {
  ConnectionFlags connection;
  std::vector<std::string> words;
  std::string gpu;
  bool edits = false;
  bool json = false;
  size_t most = 50;
};

// Columns are as wide as their widest cell where there is no terminal: one long text would set all rows apart.
constexpr int kWidestCell = 80;

void PrintTable(const LessonAnswer& answer) {
  using Align = Table::Align;
  Table table({{"campaign"},
               {"#", Align::kRight},
               {"kernel", Align::kLeft, 2},
               {"device", Align::kLeft, 3},
               {"verdict"},
               {"parent", Align::kRight},
               {"change", Align::kLeft, 0, 20},
               {"finding", Align::kLeft, 1, 12},
               {"reason", Align::kLeft, 0, 20}});
  for (const Lesson& lesson : answer.lessons) {
    const std::string finding = lesson.rule.empty() ? lesson.why : lesson.rule;
    table.Add({ShortName(lesson.campaign), absl::StrCat(lesson.iteration), lesson.bundle, lesson.device, lesson.verdict,
               SpeedupText(lesson.speedup), Cut(OneLine(lesson.change), kWidestCell),
               Cut(OneLine(finding), kWidestCell), lesson.reason});
  }
  std::fputs(table.Text(TerminalWidth(STDOUT_FILENO), TakesColor(STDOUT_FILENO)).c_str(), stdout);
}

absl::StatusOr<int> Lessons(const LessonsFlags& flags, Connection& connection) {
  LessonQuery query;
  if (!flags.words.empty()) query.any_of = {absl::StrJoin(flags.words, " ")};
  query.gpu = flags.gpu;
  query.edits_only = flags.edits;
  query.most = flags.most;
  LessonBook book;
  absl::StatusOr<LessonAnswer> answer = book.Find(*CampaignsOf(connection), query);
  if (!answer.ok()) return answer.status();
  if (flags.json) {
    for (const Lesson& lesson : answer->lessons) std::printf("%s\n", JsonText(LessonForm(lesson)).c_str());
  } else if (!answer->lessons.empty()) {
    PrintTable(*answer);
  }
  std::fflush(stdout);
  if (answer->lessons.empty()) {
    std::fprintf(stderr, "No matching lessons: no iteration of the stored campaigns has all of these words\n");
  } else if (answer->found > answer->lessons.size()) {
    std::fprintf(stderr, "%zu of %zu; --limit shows more\n", answer->lessons.size(), answer->found);
  }
  if (answer->older_left_out) std::fprintf(stderr, "Only the newest campaigns were searched\n");
  return kDone;
}

}  // namespace

void AddLessons(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<LessonsFlags>();
  CLI::App* command =
      app.add_subcommand("lessons", "Search the changes that stored campaigns tried, with purpose and outcome");
  command->group(kLooking)->footer(
      "Examples: pawl lessons \"bank conflicts\" --gpu H200\n"
      "          pawl lessons tensor cores --edits\n"
      "A lesson is an iteration: its change or edit, the finding that it addressed, its intended effect, reason, "
      "author "
      "and verdict. Every word must occur in it. Edits are listed first, then changes by their gain.");
  command->add_option("WORDS", flags->words, "Words to search for (default: all lessons)");
  command->add_option("--gpu", flags->gpu, "Show only campaigns on GPUs whose name contains this");
  command->add_flag("--edits", flags->edits, "Show only edits, no changes of variables");
  command->add_option("--limit", flags->most, "Show at most this many lessons")
      ->capture_default_str()
      ->check(CLI::Range(1, 10'000));
  command->add_flag("--json", flags->json, "Print JSON for programs: one object per line");
  AddConnectionFlags(*command, &flags->connection);
  command->callback([flags, exit_code] {
    *exit_code = WithConnection("lessons", flags->connection, Need::kCampaigns,
                                [&](Connection& connection) { return Lessons(*flags, connection); });
  });
}

}  // namespace pawl
