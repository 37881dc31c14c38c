// The content of a report, independent of its format.
#pragma once

#include <string>
#include <variant>
#include <vector>

namespace pawl {

// What a text means; style.css gives the colours. The text says the same in words.
enum class Tone { kPlain, kGood, kReverted, kBad, kRunning, kDim, kCode };

struct Cell {
  std::string text;
  Tone tone = Tone::kPlain;
  std::string under = {};  // a smaller line below
};

struct Paragraph {
  std::string text;
  Tone tone = Tone::kPlain;
};

// Names and values; prominent ones are shown large.
struct Facts {
  struct Fact {
    std::string name;
    Cell value;
  };
  std::vector<Fact> facts = {};
  bool prominent = false;
};

struct Grid {
  struct Column {
    std::string title;
    bool number = false;
  };
  std::vector<Column> columns = {};
  std::vector<std::vector<Cell>> rows = {};
};

// Lines to be copied.
struct Code {
  std::vector<std::string> lines = {};
};

// A picture, as SVG that is already escaped.
struct Chart {
  std::string wide, narrow;
  std::string caption = {};
  std::string words = {};  // replaces it where there are no pictures; empty: the tables say the same
};

// A unified diff, folded in unless it is open. Only on pages: it is too long for what is read line by line.
struct Diff {
  std::string title;
  std::string patch;
  bool open = false;
};

using Block = std::variant<Paragraph, Facts, Grid, Code, Chart, Diff>;

struct Section {
  std::string id;
  std::string title;
  std::vector<Block> blocks;
};

struct Document {
  std::string title;
  std::string subtitle;
  std::vector<Section> sections;
  std::string footer;
};

}  // namespace pawl
