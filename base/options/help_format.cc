#include "base/options/help_format.h"

#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/text/paragraph.h"

namespace pawl {
namespace {

constexpr int kWidth = 80;
constexpr int kText = 28;  // where the text of a flag begins

// A name in the left column, its text beside it or, where the name is too long, below.
std::string Entry(const std::string& name, const std::string& text) {
  std::string head = absl::StrCat("  ", name, "  ");
  if (DisplayWidth(head) <= kText) {
    head.append(static_cast<size_t>(kText - DisplayWidth(head)), ' ');
    return Paragraph(head, text, kWidth);
  }
  return absl::StrCat("  ", name, "\n", Paragraph(std::string(kText, ' '), text, kWidth));
}

}  // namespace

bool TakesValue(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

ValueKind KindOf(const CLI::Option& option) {
  ValueKind kind;
  const std::string type = option.get_type_name();
  const size_t open = type.find('{'), close = type.rfind('}');
  if (open != std::string::npos && close != std::string::npos && open < close) {
    kind.words = absl::StrSplit(type.substr(open + 1, close - open - 1), ',', absl::SkipEmpty());
  }
  const std::string name = option.get_positional() ? option.get_name(true) : "";
  for (const char* file : {"FILE", "FOLDER", "PATH", "DIR", "BUNDLE"}) {
    kind.file = kind.file || absl::StrContains(type, file) || name == file;
  }
  return kind;
}

HelpFormatter::HelpFormatter() {
  label("SUBCOMMAND", "COMMAND");
  label("Positionals", "Arguments");
}

std::string HelpFormatter::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const {
  return absl::StrCat(Paragraph("", app->get_description(), kWidth), make_usage(app, std::move(name)),
                      make_positionals(app), FlagGroups(*app), make_subcommands(app, mode), "\n", make_footer(app));
}

std::string HelpFormatter::FlagGroups(const CLI::App& app) const {
  std::string text = make_groups(&app, CLI::AppFormatMode::Normal);
  // CLI11 sets two blank lines between groups, and one behind those that are not listed.
  while (absl::StrContains(text, "\n\n\n")) text.replace(text.find("\n\n\n"), 3, "\n\n");
  while (absl::EndsWith(text, "\n\n")) text.pop_back();
  return text;
}

std::string HelpFormatter::make_option(const CLI::Option* option, bool is_positional) const {
  return Entry(absl::StrCat(make_option_name(option, is_positional), make_option_opts(option)),
               make_option_desc(option));
}

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  if (option->get_positional()) return "";
  std::string text;
  if (TakesValue(*option)) {
    const std::vector<std::string> words = KindOf(*option).words;
    // CLI11 appends what its checks say ("INT:INT in [1 - 1000]").
    std::string type = option->get_type_name().substr(0, option->get_type_name().find_first_of(":("));
    if (type == "INT" || type == "UINT" || type == "FLOAT") type = "N";
    if (type == "DIR") type = "FOLDER";
    absl::StrAppend(&text, " ", words.empty() ? type : absl::StrJoin(words, "|"));
    if (option->get_required()) absl::StrAppend(&text, " (required)");
  }
  if (!option->get_needs().empty()) {
    absl::StrAppend(&text, ", needs ",
                    absl::StrJoin(option->get_needs(), ", ", [](std::string* out, const auto* other) {
                      absl::StrAppend(out, other->get_name());
                    }));
  }
  return text;
}

std::string HelpFormatter::make_option_desc(const CLI::Option* option) const {
  std::string text = option->get_description();
  if (!option->get_default_str().empty()) absl::StrAppend(&text, " (default: ", option->get_default_str(), ")");
  return text;
}

// CLI11 counts: "OTHER(0x)" for one that may be given twice.
std::string HelpFormatter::make_option_usage(const CLI::Option* option) const {
  const std::string name =
      absl::StrCat(make_option_name(option, /*is_positional=*/true), option->get_expected_max() > 1 ? "..." : "");
  return option->get_required() ? name : absl::StrCat("[", name, "]");
}

std::string HelpFormatter::make_subcommand(const CLI::App* command) const {
  return Entry(command->get_name(), command->get_description());
}

std::string HelpFormatter::make_footer(const CLI::App* app) const {
  std::string text;
  for (const absl::string_view line : absl::StrSplit(app->get_footer(), '\n')) {
    const bool example = line.empty() || line[0] == ' ' || absl::StartsWith(line, "Example");
    absl::StrAppend(&text, example ? absl::StrCat(line, "\n") : Paragraph("", std::string(line), kWidth));
  }
  return app->get_footer().empty() ? "" : text;
}

void UseHelpFormat(CLI::App& app) {
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_help_flag("-h,--help", "Print this help");
}

}  // namespace pawl
