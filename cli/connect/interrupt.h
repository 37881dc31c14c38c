#pragma once

namespace pawl {

// From here on INT, TERM and HUP are noted instead of ending the program; a second one ends it as usual. For commands
// that have something to clean up.
void NoteInterrupts();
bool Interrupted();

}  // namespace pawl
