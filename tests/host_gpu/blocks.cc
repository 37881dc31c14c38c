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

// Where a thread of the block stands.
enum class State { kNew, kReady, kAtBlockBarrier, kAtWarpBarrier, kDone };

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
    *--top = nullptr;                                               // where run would return to
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

struct Waiting {
  State state = State::kNew;
  Fiber* fiber = nullptr;
  unsigned mask = 0;  // of a warp's barrier
};

// The block that runs. Threads share one fiber until one of them has to wait.
struct Block {
  const Entry* entry;
  void** arguments;
  unsigned count;      // of threads
  unsigned next = 0;   // that was not begun
  std::vector<Waiting> threads;
};

Context scheduler;
Block* running = nullptr;
Fiber* current = nullptr;
std::vector<std::unique_ptr<Fiber>> fibers;
std::vector<Fiber*> idle;
std::vector<uint64_t> warp_values;
// As blocks left it, of each multiprocessor.
std::vector<char> shared_memory[kMultiprocessors];

sigjmp_buf fault_point;
volatile sig_atomic_t in_kernel = 0;

void SetThread(unsigned thread) {
  const Extent& dim = host_gpu_here.block_dim;
  host_gpu_here.thread = {thread % dim.x, thread / dim.x % dim.y, thread / dim.x / dim.y};
}

void RunFiber() {
  for (;;) {
    while (running->next < running->count) {
      Fiber* const own = current;
      const unsigned thread = own->thread = running->next++;
      SetThread(thread);
      running->threads[thread].fiber = own;
      running->threads[thread].state = State::kReady;
      running->entry->call(running->arguments);
      running->threads[own->thread].state = State::kDone;
    }
    idle.push_back(current);
    current->context.SwitchTo(scheduler);
  }
}

Fiber* IdleFiber() {
  if (idle.empty()) {
    fibers.push_back(std::make_unique<Fiber>());
    fibers.back()->stack = static_cast<char*>(mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    fibers.back()->context.Start(fibers.back()->stack, RunFiber);
    idle.push_back(fibers.back().get());
  }
  Fiber* const fiber = idle.back();
  idle.pop_back();
  return fiber;
}

void Resume(Fiber* fiber) {
  current = fiber;
  scheduler.SwitchTo(fiber->context);
}

void Wait(State state, unsigned mask) {
  Fiber* const own = current;
  Waiting& here = running->threads[own->thread];
  ++run.waits;
  here.state = state;
  here.mask = mask;
  own->context.SwitchTo(scheduler);
  SetThread(own->thread);
}

unsigned LiveLanes(const Block& block, unsigned warp) {
  unsigned live = 0;
  for (unsigned lane = 0; lane < 32 && warp * 32 + lane < block.count; ++lane) {
    if (block.threads[warp * 32 + lane].state != State::kDone) live |= 1u << lane;
  }
  return live;
}

// Lets those go on whom nothing keeps any more.
void Release(Block& block) {
  const auto waits = [](const Waiting& thread) {
    return thread.state == State::kAtBlockBarrier || thread.state == State::kDone;
  };
  if (std::all_of(block.threads.begin(), block.threads.end(), waits)) {
    for (Waiting& thread : block.threads) {
      if (thread.state == State::kAtBlockBarrier) thread.state = State::kReady;
    }
    return;
  }
  for (unsigned first = 0; first < block.count; first += 32) {
    const unsigned live = LiveLanes(block, first / 32);
    unsigned at_barrier = 0;
    for (unsigned lane = 0; lane < 32 && first + lane < block.count; ++lane) {
      if (block.threads[first + lane].state == State::kAtWarpBarrier) at_barrier |= 1u << lane;
    }
    for (unsigned lane = 0; lane < 32 && first + lane < block.count; ++lane) {
      if ((at_barrier >> lane & 1) == 0) continue;
      const unsigned group = block.threads[first + lane].mask & live;
      if ((group & ~at_barrier) != 0) continue;
      for (unsigned other = 0; other < 32; ++other) {
        if ((group >> other & 1) == 0) continue;
        block.threads[first + other].state = State::kReady;
        at_barrier &= ~(1u << other);
      }
    }
  }
}

bool RunBlock(Block& block) {
  running = &block;
  for (;;) {
    while (block.next < block.count) Resume(IdleFiber());
    bool done = true, moved = false;
    Release(block);
    for (unsigned thread = 0; thread < block.count; ++thread) {
      if (block.threads[thread].state == State::kReady) {
        SetThread(thread);
        Resume(block.threads[thread].fiber);
        moved = true;
      }
      done = done && block.threads[thread].state == State::kDone;
    }
    if (done) return true;
    if (!moved) return false;
  }
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
  warp_values.resize(kMaxThreads);
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
  Block state = {&entry, arguments, block.x * block.y * block.z, 0, {}};
  for (uint64_t i = 0; i < blocks && fault == Fault::kNone; ++i) {
    const uint64_t number = (first + static_cast<unsigned __int128>(i) * stride % blocks) % blocks;
    host_gpu_here.block = {static_cast<unsigned>(number % grid.x), static_cast<unsigned>(number / grid.x % grid.y),
                           static_cast<unsigned>(number / grid.x / grid.y)};
    // Dynamic shared memory lies behind the variables.
    char* const memory = shared_memory[number % kMultiprocessors].data();
    memcpy(fixed.data, memory, fixed.bytes);
    memcpy(host_gpu_dynamic_shared, memory + fixed.bytes, shared_bytes);
    state.next = 0;
    state.threads.assign(state.count, Waiting());
    if (!RunBlock(state)) fault = Fault::kDeadlock;
    memcpy(memory, fixed.data, fixed.bytes);
    memcpy(memory + fixed.bytes, host_gpu_dynamic_shared, shared_bytes);
  }
  in_kernel = 0;
  *steps = run;
  return fault;
}

}  // namespace host_gpu

void host_gpu_block_barrier() { host_gpu::Wait(host_gpu::State::kAtBlockBarrier, 0); }

void host_gpu_warp_barrier(unsigned mask) { host_gpu::Wait(host_gpu::State::kAtWarpBarrier, mask); }

uint64_t* host_gpu_warp_values() { return &host_gpu::warp_values[host_gpu::current->thread / 32 * 32]; }

unsigned host_gpu_lane() { return host_gpu::current->thread % 32; }

unsigned host_gpu_live_lanes() { return host_gpu::LiveLanes(*host_gpu::running, host_gpu::current->thread / 32); }

uint64_t host_gpu_nanoseconds() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

void __sanitizer_cov_trace_pc() { ++host_gpu::run.blocks; }
