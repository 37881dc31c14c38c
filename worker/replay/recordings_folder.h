#pragma once

#include <filesystem>

namespace pawl {

// Where the recordings that ship with Pawl lie: ../share/pawl/profiles/recordings of the program in a package,
// profiles/recordings of the checkout it was built in. Empty: neither is there.
std::filesystem::path FindRecordingsFolder();
std::filesystem::path FindRecordingsFolder(const std::filesystem::path& program_folder);

}  // namespace pawl
