// Variables of the device that the host may fill.
#pragma once

#include "cli/draft/read/source_model.h"

namespace pawl {

// Those of all files, at the level of files and namespaces, and where the host copies to them, added to model.symbols.
void ReadSymbols(SourceModel& model);

}  // namespace pawl
