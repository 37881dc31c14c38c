// [[size]], [[variable]], [hidden] and [[constraint]]: the names that expressions use, and what spans the space.
#include <algorithm>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/expression/expression.h"
#include "base/names/spelling.h"
#include "base/names/utf8.h"
#include "kernels/limits.h"
#include "kernels/read/reading.h"
#include "kernels/space.h"
#include "kernels/substitution.h"
#include "kernels/variable_values.h"

namespace pawl {
namespace {

void ReadAffects(TomlTable& table, v1::Variable& variable) {
  std::optional<TomlTable> affects = table.Table("affects");
  if (!affects) return;
  affects->set_where(absl::StrCat(table.where(), ": affects"));
  std::vector<std::string> resources;
  for (const NamedResource& resource : Resources()) resources.push_back(resource.name);
  for (const std::string& name : affects->Names()) {
    const auto it = std::find(resources.begin(), resources.end(), name);
    if (it == resources.end()) {
      affects->Complain(affects->Line(name),
                        absl::StrCat("unknown resource ", Printable(name.substr(0, 80)), Expected(name, resources)));
      continue;
    }
    const std::optional<int> direction = affects->Word(name);
    if (!direction) continue;
    v1::Effect* effect = variable.add_affects();
    effect->set_resource(static_cast<v1::Resource>(it - resources.begin() + 1));
    effect->set_direction(*direction == 0 ? v1::DIRECTION_MORE : v1::DIRECTION_LESS);
  }
}

// Each once, as the message has them.
void AddValue(TomlTable& table, const WrittenValue& value, v1::Variable& variable) {
  const bool word = value.kind == WrittenValue::Kind::kWord;
  const bool twice = word ? absl::c_linear_search(variable.words(), value.word)
                          : absl::c_linear_search(variable.values(), static_cast<int32_t>(value.number));
  if (twice) {
    table.Complain(table.Line("values"), absl::StrCat("values has ", value.Shown(), " twice"));
  } else if (!word) {
    variable.add_values(static_cast<int32_t>(value.number));
  } else if (!IsValueWord(value.word)) {
    table.Complain(value.line, absl::StrCat("values has ", Printable(value.Shown()),
                                            "; expected a number without quotes, or a word that begins with a letter, "
                                            "a digit or _, without blanks and quotes, of at most ",
                                            kMaxWord, " bytes"));
  } else {
    variable.add_values(variable.words_size());
    variable.add_words(value.word);
  }
}

void ReadValues(TomlTable& table, v1::Variable& variable) {
  using Kind = WrittenValue::Kind;
  const std::optional<WrittenValue> start = table.Value("start");
  std::vector<WrittenValue> values = table.Values("values");
  const bool flags = start && start->kind == Kind::kFlag;
  if (!table.Has("values")) {
    if (!flags) {
      table.Complain(table.line(), "the key values is missing");
      return;
    }
    values = {{Kind::kFlag, 0, "", 0}, {Kind::kFlag, 1, "", 0}};
  }
  for (const WrittenValue& value : values) AddValue(table, value, variable);
  variable.set_flag(!values.empty() && values[0].kind == Kind::kFlag);
  if (!start || values.empty()) return;
  const auto found = std::find(values.begin(), values.end(), *start);
  if (found == values.end()) {
    table.Complain(start->line, absl::StrCat("start is ", start->Shown(),
                                             ", which is not among values; expected one of ", ValuesText(variable)));
    return;
  }
  variable.set_start(start->kind == Kind::kWord ? static_cast<int32_t>(found - values.begin())
                                                : static_cast<int32_t>(start->number));
}

void ReadOption(TomlTable& table, const v1::SourceFile& source, v1::Variable& variable) {
  const std::optional<Text> option = table.Text("option");
  if (!option) return;
  if (!source.binary().empty()) {
    table.Complain(option->line, "option: a cubin is not compiled; expected a variable that the launches use");
  } else if (!absl::StrContains(option->value, "{}") && !variable.flag()) {
    table.Complain(option->line, absl::StrCat("option \"", option->value,
                                              "\" has no {}; expected one where the value goes, \"-maxrregcount={}\", "
                                              "or values = [false, true] for an option that is on or off"));
  } else {
    CheckOption("option", *option, table);
  }
  variable.set_option(option->value);
}

// The text must be there, once, or no value can be written into it.
void ReadReplaces(TomlTable& table, const v1::Bundle& bundle, v1::Variable& variable) {
  const std::optional<Text> replaces = table.Text("replaces");
  if (!replaces) return;
  const size_t hole = replaces->value.find("{}");
  if (hole == std::string::npos || replaces->value.find("{}", hole + 2) != std::string::npos) {
    table.Complain(replaces->line, absl::StrCat("replaces \"", Printable(replaces->value),
                                                "\" needs one {} where the value is: \"constexpr int BLOCK = {};\""));
    return;
  }
  if (!variable.option().empty()) {
    table.Complain(replaces->line, "replaces and option exclude each other; expected one of them");
  }
  variable.set_replaces(replaces->value);
  if (bundle.source().text().empty() || variable.values().empty()) return;
  if (const absl::Status status = CheckReplaced(bundle, variable); !status.ok()) {
    table.Complain(replaces->line, std::string(status.message()));
  }
}

void ReadVariable(TomlTable& table, Reading& reading) {
  v1::Variable& variable = *reading.bundle.add_variables();
  if (std::optional<Text> name = table.Text("name")) {
    if (!reading.AddName(name->value, "variable", name->line, table)) reading.names_complete = false;
    if (absl::StartsWith(name->value, "SIZE_")) {
      table.Complain(name->line, absl::StrCat(name->value, " looks like the macro of a size; expected another name"));
    }
    variable.set_name(name->value);
    table.set_where(absl::StrCat("[[variable]] ", name->value));
  } else {
    reading.names_complete = false;
  }
  ReadValues(table, variable);
  if (variable.values().empty()) reading.names_complete = false;  // its words are not known
  ReadOption(table, reading.bundle.source(), variable);
  ReadReplaces(table, reading.bundle, variable);
  ReadAffects(table, variable);
  table.Finish();
}

}  // namespace

void ReadSizes(TomlTable& root, Reading& reading) {
  std::vector<TomlTable> tables = root.Tables("size");
  if (tables.empty()) reading.names_complete = false;
  std::set<std::string> size_names, dimensions;
  for (TomlTable& table : tables) {
    v1::Size& size = *reading.bundle.add_sizes();
    if (std::optional<Text> name = table.Text("name")) {
      size.set_name(name->value);
      table.set_where(absl::StrCat("[[size]] ", name->value));
      if (name->value.size() > kMaxSizeName) {
        table.Complain(name->line,
                       absl::StrCat("name has ", name->value.size(), " bytes; expected at most ", kMaxSizeName));
      }
      if (!size_names.insert(name->value).second) {
        table.Complain(name->line, "there is another size of this name; expected a name of its own");
      }
    }
    std::set<std::string> own;
    for (const std::string& dimension : table.Names()) {
      if (dimension == "name") continue;
      own.insert(dimension);
      if (&table == &tables.front()) {
        if (!reading.AddName(dimension, "size", table.Line(dimension), table)) reading.names_complete = false;
        dimensions.insert(dimension);
      } else if (!dimensions.contains(dimension)) {
        table.Complain(table.Line(dimension),
                       absl::StrCat("the size before it has no ", Printable(dimension.substr(0, 80)),
                                    "; expected the same in every size: ", absl::StrJoin(dimensions, ", ")));
      }
      if (std::optional<int64_t> value = table.Integer(dimension)) {
        (*size.mutable_values())[dimension] = static_cast<int32_t>(*value);
      }
    }
    if (own.empty()) {
      table.Complain(table.line(), "it has no dimensions; expected at least one, such as N = 1024");
    }
    for (const std::string& dimension : dimensions) {
      if (!own.contains(dimension)) table.Complain(table.line(), absl::StrCat("the key ", dimension, " is missing"));
    }
  }
}

void ReadVariables(TomlTable& root, Reading& reading) {
  std::vector<TomlTable> tables = root.Tables("variable");
  if (!tables.empty()) reading.lines["variables"] = tables.front().line();
  for (TomlTable& table : tables) ReadVariable(table, reading);
}

void ReadHidden(TomlTable& root, Reading& reading) {
  std::optional<TomlTable> table = root.Table("hidden");
  if (!table) return;
  std::vector<std::string> sizes;
  for (const auto& [name, kind] : reading.names) {
    if (kind.first == "size") sizes.push_back(name);
  }
  for (const std::string& name : table->Names()) {
    const int line = table->Line(name);
    if (std::find(sizes.begin(), sizes.end(), name) == sizes.end()) {
      if (!reading.names_complete) continue;
      table->Complain(line, absl::StrCat("there is no size ", Printable(name.substr(0, 80)), Expected(name, sizes)));
      continue;
    }
    std::optional<TomlTable> inner = table->TableInstead(name);
    TomlTable& ranged = inner ? *inner : *table;
    const std::vector<int64_t> range = ranged.Integers(inner ? "range" : name);
    const int64_t multiple = inner ? inner->Integer("multiple").value_or(1) : 1;
    if (inner) inner->Finish();
    if (range.empty()) continue;
    if (range.size() != 2 || range[0] > range[1]) {
      table->Complain(line, absl::StrCat(name, " is [", absl::StrJoin(range, ", "),
                                         "]; expected the lowest and the highest value, such as [1, 600]"));
      continue;
    }
    if (range[1] / multiple * multiple < range[0]) {
      table->Complain(
          line, absl::StrCat(name, " is [", absl::StrJoin(range, ", "), "], which holds no multiple of ", multiple));
      continue;
    }
    v1::HiddenRange& hidden = (*reading.bundle.mutable_hidden())[name];
    hidden.set_low(static_cast<int32_t>(range[0]));
    hidden.set_high(static_cast<int32_t>(range[1]));
    if (multiple > 1) hidden.set_multiple(static_cast<int32_t>(multiple));
  }
  table->Finish();
}

void ReadConstraints(TomlTable& root, Reading& reading) {
  for (TomlTable& table : root.Tables("constraint")) {
    std::optional<Text> that = table.Expression("that");
    table.Finish();
    if (!that) continue;
    const size_t before = reading.expressions.size();
    reading.Use(table, "that", *that, Must::kBeFinite);
    if (reading.expressions.size() == before) continue;
    // Judged apart, over the whole space.
    reading.expressions.pop_back();
    const std::set<std::string> names = *NamesIn(*WithoutWords(reading.bundle, that->value));
    for (const std::string& name : names) {
      if (reading.bundle.hidden().contains(name)) {
        table.Complain(that->line, absl::StrCat("that \"", that->value, "\" depends on ", name,
                                                ", which [hidden] lets validation change; expected variables and other "
                                                "sizes: a kernel masks its tails"));
      }
    }
    reading.bundle.add_constraints()->set_that(that->value);
    reading.constraints.push_back(*that);
  }
}

}  // namespace pawl
