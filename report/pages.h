#pragma once

#include <string>

#include "pawl/v1/report.pb.h"

namespace pawl {

// One page that needs nothing else: style and pictures are in it, and it runs no script. Light or dark as the reader's
// system is. Pure.
std::string HtmlPage(const v1::Report& report);

// The same as the page, without the pictures. Pure.
std::string MarkdownPage(const v1::Report& report);

}  // namespace pawl
