#pragma once

#include <string>

#include "pawl/v1/report.pb.h"

namespace pawl {

// The same as the page, without the pictures. Pure.
std::string MarkdownPage(const v1::Report& report);

}  // namespace pawl
