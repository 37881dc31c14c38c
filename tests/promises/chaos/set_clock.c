// Preloaded into a daemon, adds to its time of day the seconds that the file PAWL_CLOCK_OFFSET names holds (a binary
// int64), while the daemon runs: what a program sees when somebody sets the machine's clock. The monotonic clock and
// waits that a program asks the kernel for by the time of day (absl's and gRPC's futexes) stay right.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t* offset_seconds;
static int (*real_clock_gettime)(clockid_t, struct timespec*);
static long (*real_syscall)(long, ...);
static int (*real_timedwait)(pthread_cond_t*, pthread_mutex_t*, const struct timespec*);

__attribute__((constructor)) static void Begin(void) {
  real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
  real_syscall = dlsym(RTLD_NEXT, "syscall");
  real_timedwait = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
  const char* name = getenv("PAWL_CLOCK_OFFSET");
  const int fd = name == NULL ? -1 : open(name, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  void* mapped = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  if (mapped != MAP_FAILED) offset_seconds = mapped;
}

static int64_t Offset(void) { return offset_seconds == NULL ? 0 : *offset_seconds; }

int clock_gettime(clockid_t clock, struct timespec* now) {
  if (real_clock_gettime == NULL) Begin();
  const int code = real_clock_gettime(clock, now);
  if (code == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += Offset();
  return code;
}

int gettimeofday(struct timeval* restrict now, void* restrict zone) {
  (void)zone;
  struct timespec precise;
  const int code = clock_gettime(CLOCK_REALTIME, &precise);
  now->tv_sec = precise.tv_sec;
  now->tv_usec = precise.tv_nsec / 1000;
  return code;
}

time_t time(time_t* out) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out != NULL) *out = now.tv_sec;
  return now.tv_sec;
}

int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex, const struct timespec* until) {
  struct timespec real = *until;
  const unsigned monotonic = 2;  // of the flags in glibc's condition, set by pthread_condattr_setclock
  if ((condition->__data.__wrefs & monotonic) == 0) real.tv_sec -= Offset();
  return real_timedwait(condition, mutex, &real);
}

long syscall(long number, ...) {
  if (real_syscall == NULL) Begin();
  va_list list;
  va_start(list, number);
  long a[6];
  for (int i = 0; i < 6; ++i) a[i] = va_arg(list, long);
  va_end(list);
  struct timespec real;
  if (number == SYS_futex && (a[1] & FUTEX_CLOCK_REALTIME) != 0 && a[3] != 0) {
    real = *(const struct timespec*)a[3];
    real.tv_sec -= Offset();
    if (real.tv_sec < 0) real.tv_sec = 0;
    a[3] = (long)&real;
  }
  return real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
