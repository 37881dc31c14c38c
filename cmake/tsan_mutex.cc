// Tells ThreadSanitizer what absl::Mutex does: the installed library was built without its annotations
// (base/sync/CMakeLists.txt). The linker sends calls of these functions here (--wrap). Reads of a Condition happen
// between "pre" and "post", where TSan looks away.
#include <sanitizer/tsan_interface.h>

#include "absl/synchronization/mutex.h"
#include "tsan_suppressions.h"

#define PAWL_JOIN_(a, b, c) a##b##c
#define PAWL_JOIN(a, b, c) PAWL_JOIN_(a, b, c)
#define PAWL_REAL(function) PAWL_JOIN(__real_, PAWL_ABSL, function)
#define PAWL_WRAP(function) PAWL_JOIN(__wrap_, PAWL_ABSL, function)

namespace {

// The time in which somebody else may hold the lock.
class Away {
 public:
  explicit Away(absl::Mutex* mutex) : mutex_(mutex) {
    __tsan_mutex_pre_unlock(mutex_, 0);
    __tsan_mutex_post_unlock(mutex_, 0);
    __tsan_mutex_pre_lock(mutex_, 0);
  }
  ~Away() { __tsan_mutex_post_lock(mutex_, 0, 0); }

 private:
  absl::Mutex* const mutex_;
};

}  // namespace

extern "C" {

const char* __tsan_default_suppressions() { return kSuppressions; }

void PAWL_REAL(5Mutex4LockEv)(absl::Mutex* mutex);
void PAWL_WRAP(5Mutex4LockEv)(absl::Mutex* mutex) {
  __tsan_mutex_pre_lock(mutex, 0);
  PAWL_REAL(5Mutex4LockEv)(mutex);
  __tsan_mutex_post_lock(mutex, 0, 0);
}

bool PAWL_REAL(5Mutex7TryLockEv)(absl::Mutex* mutex);
bool PAWL_WRAP(5Mutex7TryLockEv)(absl::Mutex* mutex) {
  __tsan_mutex_pre_lock(mutex, __tsan_mutex_try_lock);
  const bool locked = PAWL_REAL(5Mutex7TryLockEv)(mutex);
  __tsan_mutex_post_lock(mutex, __tsan_mutex_try_lock | (locked ? 0 : __tsan_mutex_try_lock_failed), 0);
  return locked;
}

void PAWL_REAL(5Mutex6UnlockEv)(absl::Mutex* mutex);
void PAWL_WRAP(5Mutex6UnlockEv)(absl::Mutex* mutex) {
  __tsan_mutex_pre_unlock(mutex, 0);
  PAWL_REAL(5Mutex6UnlockEv)(mutex);
  __tsan_mutex_post_unlock(mutex, 0);
}

void PAWL_REAL(5Mutex8LockWhenERKNS0_9ConditionE)(absl::Mutex* mutex, const absl::Condition& condition);
void PAWL_WRAP(5Mutex8LockWhenERKNS0_9ConditionE)(absl::Mutex* mutex, const absl::Condition& condition) {
  __tsan_mutex_pre_lock(mutex, 0);
  PAWL_REAL(5Mutex8LockWhenERKNS0_9ConditionE)(mutex, condition);
  __tsan_mutex_post_lock(mutex, 0, 0);
}

void PAWL_REAL(5Mutex5AwaitERKNS0_9ConditionE)(absl::Mutex* mutex, const absl::Condition& condition);
void PAWL_WRAP(5Mutex5AwaitERKNS0_9ConditionE)(absl::Mutex* mutex, const absl::Condition& condition) {
  const Away away(mutex);
  PAWL_REAL(5Mutex5AwaitERKNS0_9ConditionE)(mutex, condition);
}

void PAWL_REAL(7CondVar4WaitEPNS0_5MutexE)(absl::CondVar* changed, absl::Mutex* mutex);
void PAWL_WRAP(7CondVar4WaitEPNS0_5MutexE)(absl::CondVar* changed, absl::Mutex* mutex) {
  const Away away(mutex);
  PAWL_REAL(7CondVar4WaitEPNS0_5MutexE)(changed, mutex);
}

void PAWL_REAL(5MutexD1Ev)(absl::Mutex* mutex);
void PAWL_WRAP(5MutexD1Ev)(absl::Mutex* mutex) {
  PAWL_REAL(5MutexD1Ev)(mutex);
  __tsan_mutex_destroy(mutex, __tsan_mutex_not_static);
}

}  // extern "C"
