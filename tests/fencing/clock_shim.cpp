// SPDX-License-Identifier: MIT
// Loaded into a redis-server with LD_PRELOAD: its wall clock is off by as many seconds as stand, as
// a binary number, in the file that CLOCK_SHIM_FILE names, from one call to the next. The clocks
// that cannot be set stay as they are.
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

namespace {

const volatile std::int64_t* map_offset() {
  const char* const file = std::getenv("CLOCK_SHIM_FILE");
  const int fd = file == nullptr ? -1 : ::open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || ::ftruncate(fd, sizeof(std::int64_t)) != 0) std::abort();
  void* const place = ::mmap(nullptr, sizeof(std::int64_t), PROT_READ, MAP_SHARED, fd, 0);
  ::close(fd);
  if (place == MAP_FAILED) std::abort();
  return static_cast<const std::int64_t*>(place);
}

timespec shifted(clockid_t clock) {
  static const volatile std::int64_t* const offset = map_offset();
  timespec now{};
  ::syscall(SYS_clock_gettime, clock, &now);
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) now.tv_sec += *offset;
  return now;
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT int clock_gettime(clockid_t clock, timespec* result) noexcept {
  *result = shifted(clock);
  return 0;
}

EXPORT int gettimeofday(timeval* result, void* /*zone*/) noexcept {
  const timespec now = shifted(CLOCK_REALTIME);
  *result = {now.tv_sec, now.tv_nsec / 1000};
  return 0;
}

EXPORT std::time_t time(std::time_t* result) noexcept {
  const timespec now = shifted(CLOCK_REALTIME);
  if (result != nullptr) *result = now.tv_sec;
  return now.tv_sec;
}
