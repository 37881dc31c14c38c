// Text for terminals: its width, and how it is cut and broken into lines.
#pragma once

#include <string>
#include <string_view>

namespace pawl {

// In code points: nothing that Pawl prints is wider than one cell.
int DisplayWidth(std::string_view text);

// The text in at most `width` cells, an ellipsis for what is missing. 0: as it is.
std::string Cut(std::string_view text, int width);

// Line breaks become spaces, other control characters question marks: a compiler's message must not move the cursor.
std::string OneLine(std::string_view text);

// Line breaks and tabs stay, other control characters become question marks: for texts that have lines of their own.
std::string WithoutControls(std::string_view text);

// A head ("  finding    ") and a text, broken at spaces so that no line is longer than `width` cells; later lines begin
// below the text's beginning. A word that is longer than a line stays whole. 0: nothing is broken.
std::string Paragraph(std::string_view head, std::string_view text, int width);

}  // namespace pawl
