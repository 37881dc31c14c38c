#include "cli/connect/interrupt.h"

#include <signal.h>

#include <atomic>
#include <initializer_list>

namespace pawl {
namespace {

std::atomic<int> interrupts = 0;
std::atomic<int> most = 1;
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler uses them");

}  // namespace

void NoteInterrupts(int noted) {
  most = noted;
  struct sigaction action = {};
  action.sa_handler = [](int number) {
    if (++interrupts >= most) signal(number, SIG_DFL);
  };
  action.sa_flags = SA_RESTART;
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
}

bool Interrupted() { return interrupts > 0; }

bool InterruptedAgain() { return interrupts > 1; }

}  // namespace pawl
