#pragma once

namespace pawl {

inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;
inline constexpr int kWrongUsage = 2;
inline constexpr int kNoImprovement = 3;  // finished without one
inline constexpr int kNoWorker = 4;       // none can take it
inline constexpr int kInterrupted = 130;

}  // namespace pawl
