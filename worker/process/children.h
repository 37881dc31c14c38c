#pragma once

namespace pawl {

// Kills every child of this process, with the process group of each that leads one. For a program that must end at
// once: nobody waits for them.
void KillChildren();

}  // namespace pawl
