#pragma once

namespace pawl {

// From here on INT, TERM and HUP are noted instead of ending the program; after `noted` of them the next ends it as
// usual. For commands that have something to clean up.
void NoteInterrupts(int noted = 1);
bool Interrupted();
// Twice: the user does not want to wait.
bool InterruptedAgain();

}  // namespace pawl
