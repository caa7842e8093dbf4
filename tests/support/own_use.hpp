// SPDX-License-Identifier: MIT
// What this process uses, for programs that measure the library within themselves.
#pragma once

#include <chrono>
#include <cstddef>
#include <malloc.h>
#include <sys/resource.h>

namespace redlock::testing {

/// Also what is so large that it is mapped by itself.
inline std::size_t heap_in_use() {
  const auto info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

/// Time of the processor, in all threads.
inline std::chrono::microseconds processor_time() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto of = [](const timeval& time) {
    return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
  };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

}  // namespace redlock::testing
