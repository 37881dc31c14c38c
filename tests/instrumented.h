#pragma once

namespace pawl {

// Limits of time and memory in tests mean the product, which is a release build. An instrumented build runs the same
// code many times slower and keeps shadow memory: there a limit is multiplied by these.
#ifndef __has_feature
#define __has_feature(feature) 0
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
inline constexpr double kSlowdown = 20;
inline constexpr double kMemoryUse = 10;
#elif defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
inline constexpr double kSlowdown = 10;
inline constexpr double kMemoryUse = 10;
#elif !defined(NDEBUG)
inline constexpr double kSlowdown = 10;
inline constexpr double kMemoryUse = 2;
#else
inline constexpr double kSlowdown = 1;
inline constexpr double kMemoryUse = 1;
#endif

}  // namespace pawl
