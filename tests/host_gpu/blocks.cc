#include "tests/host_gpu/blocks.h"

#include <dlfcn.h>
#include <link.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>
#include <numeric>
#include <vector>

using host_gpu::Extent;

host_gpu::Here host_gpu_here;
alignas(1024) char host_gpu_dynamic_shared[host_gpu::kSharedPerBlock];

namespace host_gpu {
namespace {

constexpr size_t kStackBytes = 256 << 10;

Steps run;

#if defined(__x86_64__)
extern "C" void host_gpu_switch(void** from, void* to);
asm(R"(
.text
.globl host_gpu_switch
.hidden host_gpu_switch
.type host_gpu_switch,@function
host_gpu_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size host_gpu_switch,.-host_gpu_switch
)");

class Context {
 public:
  void Start(char* stack, void (*run)()) {
    void** top = reinterpret_cast<void**>(stack + kStackBytes) - 2;  // 16-byte aligned before the call
    *--top = nullptr;                                                // where run would return to
    *--top = reinterpret_cast<void*>(run);
    top -= 6;
    std::fill(top, top + 6, nullptr);
    stack_ = top;
  }
  void SwitchTo(Context& other) { host_gpu_switch(&stack_, other.stack_); }

 private:
  void* stack_ = nullptr;
};
#else
class Context {
 public:
  void Start(char* stack, void (*run)()) {
    getcontext(&context_);
    context_.uc_stack.ss_sp = stack;
    context_.uc_stack.ss_size = kStackBytes;
    context_.uc_link = nullptr;
    makecontext(&context_, run, 0);
  }
  void SwitchTo(Context& other) { swapcontext(&context_, &other.context_); }

 private:
  ucontext_t context_ = {};
};
#endif

struct Fiber {
  Context context;
  char* stack = nullptr;
  unsigned thread = 0;  // of the block, that it runs
};

struct Thread {
  Fiber* fiber = nullptr;  // that it waits on
  unsigned mask = 0;       // of the warp's barrier that it waits at
};

// Bits are lanes.
struct Warp {
  unsigned live = 0;        // that have not ended
  unsigned at_barrier = 0;  // that wait for others of the warp
  uint64_t values[2][32] = {};
  unsigned turns[32] = {};  // of each lane, through the values
};

// The block that runs. Threads share one fiber until one of them has to wait.
struct Block {
  const Entry* entry;
  void** arguments;
  unsigned count;     // of threads
  unsigned next = 0;  // that was not begun
  unsigned live = 0;  // that have not ended
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  std::vector<unsigned> at_barrier;  // of the block
  std::deque<unsigned> ready;        // those that waited and may go on
};

Context scheduler;
Block* running = nullptr;
Fiber* current = nullptr;
std::vector<std::unique_ptr<Fiber>> fibers;
std::vector<Fiber*> idle;
// As blocks left it, of each multiprocessor.
std::vector<char> shared_memory[kMultiprocessors];

sigjmp_buf fault_point;
volatile sig_atomic_t in_kernel = 0;

void SetThread(unsigned thread) {
  const Extent& dim = host_gpu_here.block_dim;
  host_gpu_here.thread = {thread % dim.x, thread / dim.x % dim.y, thread / dim.x / dim.y};
}

void RunFiber();

Fiber* IdleFiber() {
  if (idle.empty()) {
    fibers.push_back(std::make_unique<Fiber>());
    fibers.back()->stack = static_cast<char*>(
        mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    fibers.back()->context.Start(fibers.back()->stack, RunFiber);
    idle.push_back(fibers.back().get());
  }
  Fiber* const fiber = idle.back();
  idle.pop_back();
  return fiber;
}

// A thread that waited goes on, or others begin. With neither, the block has ended, or nobody ever goes on.
void GoOnWithAnother(Context& from) {
  if (!running->ready.empty()) {
    const unsigned thread = running->ready.front();
    running->ready.pop_front();
    current = running->threads[thread].fiber;
    SetThread(thread);
    from.SwitchTo(current->context);
  } else if (running->next < running->count) {
    current = IdleFiber();
    from.SwitchTo(current->context);
  } else if (&from != &scheduler) {
    from.SwitchTo(scheduler);
  }
}

// Those whom nothing keeps at barriers any more are ready, but for `self`.
void ReleaseBlock(unsigned self) {
  if (running->at_barrier.size() < running->live) return;
  for (const unsigned thread : running->at_barrier) {
    if (thread != self) running->ready.push_back(thread);
  }
  running->at_barrier.clear();
}

// `mask`: of one that waits.
void ReleaseWarp(unsigned first, unsigned mask, unsigned self) {
  Warp& warp = running->warps[first / 32];
  const unsigned group = mask & warp.live;
  if ((group & ~warp.at_barrier) != 0) return;
  warp.at_barrier &= ~group;
  for (unsigned left = group; left != 0; left &= left - 1) {
    const unsigned thread = first + static_cast<unsigned>(__builtin_ctz(left));
    if (thread != self) running->ready.push_back(thread);
  }
}

constexpr unsigned kNobody = ~0u;

void End(unsigned thread) {
  --running->live;
  running->warps[thread / 32].live &= ~(1u << thread % 32);
  if (running->live > 0 && !running->at_barrier.empty()) ReleaseBlock(kNobody);
  const unsigned first = thread / 32 * 32;
  for (unsigned left = running->warps[first / 32].at_barrier; left != 0; left &= left - 1) {
    ReleaseWarp(first, running->threads[first + static_cast<unsigned>(__builtin_ctz(left))].mask, kNobody);
  }
}

void RunFiber() {
  for (;;) {
    Fiber* const own = current;
    while (running->next < running->count) {
      const unsigned thread = running->next++;
      own->thread = thread;
      SetThread(thread);
      running->threads[thread].fiber = own;
      running->entry->call(running->arguments);
      End(thread);
    }
    idle.push_back(own);
    GoOnWithAnother(own->context);
  }
}

bool RunBlock(Block& block) {
  running = &block;
  block.next = 0;
  block.live = block.count;
  block.threads.assign(block.count, Thread());
  block.warps.assign((block.count + 31) / 32, Warp());
  for (unsigned thread = 0; thread < block.count; ++thread) block.warps[thread / 32].live |= 1u << thread % 32;
  GoOnWithAnother(scheduler);
  return block.live == 0;
}

volatile uintptr_t fault_address = 0;
char fault_text[200] = "";

void OnFault(int signal, siginfo_t* info, void*) {
  if (in_kernel == 0) {  // not a kernel's: as without this handler
    struct sigaction plain = {};
    plain.sa_handler = SIG_DFL;
    sigaction(signal, &plain, nullptr);
    return;
  }
  fault_address = reinterpret_cast<uintptr_t>(info->si_addr);
  siglongjmp(fault_point, signal);
}

void CatchFaults() {
  static const bool caught = [] {
    static char stack[64 << 10];
    stack_t own = {};
    own.ss_sp = stack;
    own.ss_size = sizeof(stack);
    sigaltstack(&own, nullptr);
    struct sigaction action = {};
    action.sa_sigaction = OnFault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE}) sigaction(signal, &action, nullptr);
    return true;
  }();
  (void)caught;
}

// The library's __shared__ variables, which are this thread's own there.
struct StaticShared {
  char* data = nullptr;
  size_t bytes = 0;
};

StaticShared FindStaticShared(void* library) {
  struct Search {
    ElfW(Addr) base;
    StaticShared found;
  } search = {};
  link_map* map = nullptr;
  if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0) return {};
  search.base = map->l_addr;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        Search& search = *static_cast<Search*>(data);
        if (info->dlpi_addr != search.base) return 0;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          if (info->dlpi_phdr[i].p_type != PT_TLS || info->dlpi_tls_data == nullptr) continue;
          search.found = {static_cast<char*>(info->dlpi_tls_data), info->dlpi_phdr[i].p_memsz};
        }
        return 1;
      },
      &search);
  return search.found;
}

}  // namespace

const char* FaultText() { return fault_text; }

std::mt19937_64& Chance() {
  static std::mt19937_64 chance(std::random_device{}());
  return chance;
}

Fault RunGrid(const Entry& entry, void** arguments, const Extent& grid, const Extent& block, size_t shared_bytes,
              void* library, Steps* steps) {
  CatchFaults();
  const StaticShared fixed = FindStaticShared(library);
  for (std::vector<char>& memory : shared_memory) {
    memory.resize(std::max(memory.size(), fixed.bytes + kSharedPerBlock));
  }
  host_gpu_here.grid_dim = grid;
  host_gpu_here.block_dim = block;
  const uint64_t blocks = uint64_t{grid.x} * grid.y * grid.z;
  const uint64_t first = Chance()() % blocks;
  uint64_t stride = 1 + Chance()() % blocks;
  while (std::gcd(stride, blocks) != 1) ++stride;
  run = Steps();
  Fault fault = Fault::kNone;
  if (const int signal = sigsetjmp(fault_point, 1); signal != 0) {
    in_kernel = 0;
    snprintf(fault_text, sizeof(fault_text), "signal %d in %s, address %zx", signal, entry.name,
             static_cast<size_t>(fault_address));
    return signal == SIGILL ? Fault::kMisaligned : Fault::kIllegalAddress;
  }
  in_kernel = 1;
  Block state = {&entry, arguments, block.x * block.y * block.z, 0, 0, {}, {}, {}, {}};
  for (uint64_t i = 0; i < blocks && fault == Fault::kNone; ++i) {
    const uint64_t number = (first + static_cast<unsigned __int128>(i) * stride % blocks) % blocks;
    host_gpu_here.block = {static_cast<unsigned>(number % grid.x), static_cast<unsigned>(number / grid.x % grid.y),
                           static_cast<unsigned>(number / grid.x / grid.y)};
    // Dynamic shared memory lies behind the variables.
    char* const memory = shared_memory[number % kMultiprocessors].data();
    memcpy(fixed.data, memory, fixed.bytes);
    memcpy(host_gpu_dynamic_shared, memory + fixed.bytes, shared_bytes);
    if (!RunBlock(state)) fault = Fault::kDeadlock;
    memcpy(memory, fixed.data, fixed.bytes);
    memcpy(memory + fixed.bytes, host_gpu_dynamic_shared, shared_bytes);
  }
  in_kernel = 0;
  *steps = run;
  return fault;
}

}  // namespace host_gpu

void host_gpu_block_barrier() {
  using namespace host_gpu;
  Fiber* const own = current;
  ++run.waits;
  running->at_barrier.push_back(own->thread);
  ReleaseBlock(own->thread);
  if (running->at_barrier.empty()) return;
  GoOnWithAnother(own->context);
}

void host_gpu_warp_barrier(unsigned mask) {
  using namespace host_gpu;
  Fiber* const own = current;
  ++run.waits;
  Warp& warp = running->warps[own->thread / 32];
  const unsigned lane = 1u << own->thread % 32;
  running->threads[own->thread].mask = mask;
  warp.at_barrier |= lane;
  ReleaseWarp(own->thread / 32 * 32, mask, own->thread);
  if ((warp.at_barrier & lane) == 0) return;
  GoOnWithAnother(own->context);
}

uint64_t* host_gpu_warp_values() {
  using namespace host_gpu;
  Warp& warp = running->warps[current->thread / 32];
  // Those of two exchanges: a lane may be at the next one before others have read what it gave in this.
  return warp.values[warp.turns[current->thread % 32]++ % 2];
}

unsigned host_gpu_lane() { return host_gpu::current->thread % 32; }

unsigned host_gpu_live_lanes() { return host_gpu::running->warps[host_gpu::current->thread / 32].live; }

uint64_t host_gpu_nanoseconds() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

void __sanitizer_cov_trace_pc() { ++host_gpu::run.blocks; }
