#include "cli/connect/interrupt.h"

#include <signal.h>

#include <initializer_list>

namespace pawl {
namespace {

volatile sig_atomic_t interrupted = 0;

}  // namespace

void NoteInterrupts() {
  struct sigaction action = {};
  action.sa_handler = [](int) { interrupted = 1; };
  action.sa_flags = SA_RESETHAND | SA_RESTART;
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
}

bool Interrupted() { return interrupted != 0; }

}  // namespace pawl
