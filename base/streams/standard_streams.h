#pragma once

namespace pawl {

// First of all in a program. What was started with a standard stream closed would open its own files in that place, and
// write messages over them: they lead to /dev/null then. A file that may not grow any more fails with EFBIG, as one on
// a full disk does, and does not end the program by a signal.
void PrepareStreams();

}  // namespace pawl
