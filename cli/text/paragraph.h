#pragma once

#include <string>
#include <string_view>

namespace pawl {

// A head ("  finding    ") and a text, broken at spaces so that no line is longer than `width` cells; later lines begin
// below the text's beginning. A word that is longer than a line stays whole. 0: nothing is broken.
std::string Paragraph(std::string_view head, std::string_view text, int width);

// What people read without a ruler: the terminal's width, 100 where there is none, at most 120.
int ReadingWidth(int fd);

}  // namespace pawl
