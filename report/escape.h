#pragma once

#include <string>
#include <string_view>

namespace pawl {

// As text of an HTML or SVG element, or inside a quoted attribute. Control characters become question marks.
std::string EscapeHtml(std::string_view text);

// As text of one line, or one cell of a table, in Markdown: nothing in it is markup.
std::string EscapeMarkdown(std::string_view text);

}  // namespace pawl
